"""Internals for inspection: which documents share a bucket, and the signature of a union."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.config.setting_types import Settings
from neardup.errors import ConfigError, DataError
from neardup.io.documents import in_memory as memory
from neardup.io.documents.discover import paths_of
from neardup.jobs.compare import check_counts_all
from neardup.jobs.source import check_in_memory, items_or_source
from neardup.measures.base import I64, U64
from neardup.measures.registry import measure_of
from neardup.theory.plan import plan_for


def buckets(
    source: Any = None,
    *,
    items: Any = None,
    ids: Sequence[Any] | None = None,
    config: Config | None = None,
    **settings: Unpack[Settings],
) -> pa.Table:
    """Return every bucket that two or more documents share: its band (from 0), its key and the ids of its documents.

    Two documents in the same bucket are a candidate pair, which a run verifies. Buckets are sorted
    by band, and within a band by their first document.

    Args:
        source: documents in memory, as for `deduplicate`.
        items: sets to compare instead of texts, as for `deduplicate`.
        ids: one id per document; by default, the id column of a table, otherwise the position.
        config: settings to start from.
        settings: fields of Config by name.

    >>> table = buckets(["to be or not to be", "To be, or not to be!", "all the world"], size=2, bands=2, rows=4)
    >>> table.select(["band", "documents"]).to_pylist()
    [{'band': 0, 'documents': [0, 1]}, {'band': 1, 'documents': [0, 1]}]
    """
    source, chosen = items_or_source(source, items, Config.of(config, **settings))
    if paths_of(source) is not None:
        raise ConfigError(
            "buckets can be listed only for documents in memory, got a path",
            hint="read the file first",
        )
    check_in_memory(chosen)
    check_counts_all(chosen, "buckets are those of all shingles")
    read = memory.read(source, chosen, ids=ids)
    if read.rejected.num_rows:
        first = read.rejected.column("reason")[0].as_py()
        warnings.warn(
            f"{read.rejected.num_rows:,} rows are in no bucket; the reason for the first: {first}",
            stacklevel=2,
        )
    chosen = memory.with_dimension(read, chosen)
    plan = plan_for(chosen)
    if plan.is_exact:
        raise ConfigError(
            "the exact join has no bands, so it has no buckets",
            hint="pass method='lsh', recall=0.99",
        )
    rows = [np.empty(0, np.int64)]
    keys = [np.empty((0, plan.bands), np.uint64)]
    for batch in read.documents.to_batches():
        sketched = measure_of(chosen).sketch(
            batch.column("text"), plan, chosen, batch.column("group").to_numpy()
        )
        is_similar_to_any = sketched.sizes > 0
        rows.append(batch.column("row").to_numpy()[is_similar_to_any])
        keys.append(sketched.keys[is_similar_to_any])
    return _table(np.concatenate(rows), np.concatenate(keys), read.ids)


def _table(rows: I64, keys: U64, ids: pa.Array) -> pa.Table:
    bands = []
    bucket_keys = []
    sizes = [np.zeros(1, np.int64)]
    members = [np.empty(0, np.int64)]
    for band in range(keys.shape[1]):
        order = np.argsort(keys[:, band], kind="stable")
        ordered = keys[order, band]
        starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]][: ordered.size])
        lengths = np.diff(np.r_[starts, ordered.size])
        is_shared = lengths > 1
        starts = starts[is_shared]
        lengths = lengths[is_shared]
        by_first = np.argsort(order[starts])
        starts = starts[by_first]
        lengths = lengths[by_first]
        bands.append(np.full(starts.size, band))
        bucket_keys.append(ordered[starts])
        sizes.append(lengths)
        members.extend(
            rows[order[start : start + length]]
            for start, length in zip(starts, lengths, strict=True)
        )
    documents = ids.take(pa.array(np.concatenate(members)))
    offsets = pa.array(np.cumsum(np.concatenate(sizes)))
    return pa.table(
        [
            np.concatenate(bands),
            np.concatenate(bucket_keys),
            pa.LargeListArray.from_arrays(offsets, documents),
        ],
        schema=schema.buckets(ids.type),
    )


def merge_signatures(
    a: npt.NDArray[np.uint32], b: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]:
    """Return the signature of the union of two sets, or of many pairs of sets, row by row: the slot-wise minimum.

    Both must come from `signatures` with the same settings. A document without shingles changes
    nothing. The union is
    that of the shingles: the concatenation of two texts also has the shingles that span the
    boundary.

    Args:
        a: a signature, or a matrix with one signature per row.
        b: another one of the same shape.

    >>> from neardup import signatures
    >>> left, right, both = signatures(["abc", "cde", "abcde"], unit="char", size=1)
    >>> bool((merge_signatures(left, right) == both).all())
    True
    """
    for name, value in (("a", a), ("b", b)):
        if (
            not isinstance(value, np.ndarray)
            or value.dtype != np.uint32
            or value.ndim not in (1, 2)
        ):
            raise DataError(
                f"`{name}` must be an array of uint32 with one or two dimensions, got {_kind(value)}",
                hint="neardup.signatures(texts) returns signatures, one row each",
            )
    if a.shape != b.shape:
        raise DataError(
            f"cannot merge signatures of different shapes, got {a.shape} and {b.shape}",
            hint="compute both with the same num_perm from the same number of texts",
        )
    return np.minimum(a, b)


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    return type(value).__name__
