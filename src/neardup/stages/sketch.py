"""Stage 1 of 6: turn texts, items or vectors into digests and band keys, or, for the exact join, into sets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.config.checks import SET_MEASURES
from neardup.io.records import text_bytes
from neardup.measures import jaccard
from neardup.measures.base import Sketched
from neardup.measures.registry import measure_of
from neardup.stages.choose import Sampler
from neardup.theory.plan import Plan


def sketch(
    batch: pa.RecordBatch,
    plan: Plan,
    config: Config,
    hold: Callable[[npt.NDArray[np.uint64]], int] | None = None,
    *,
    is_sampled: bool = False,
    secret: bytes | None = None,
) -> pa.RecordBatch:
    """Replace the `text` column by size, digest and band keys, or by the set; rows keep their order.

    Args:
        batch: documents.
        plan: bands and rows.
        config: the settings.
        hold: keeps the sets in memory for verification.
        is_sampled: append the sample of shingles that `choose` needs.
        secret: that of the digests of this run; None takes that of this process.
    """
    text = batch.column("text")
    groups = batch.column("group")
    sampler = Sampler(hold) if is_sampled else None
    group_numbers = groups.to_numpy()
    sketched: Sketched | jaccard.Collected
    is_set = config.measure in SET_MEASURES
    columns: list[pa.Array]
    if plan.is_exact and is_set:
        sketched = jaccard.collect_texts(text, config, group_numbers, hold, secret)
        ends = pa.array(sketched.sets.ends)
        shingles = pa.array(sketched.sets.shingles.view(np.int64))
        columns = [pa.LargeListArray.from_arrays(ends, shingles)]
    else:
        measure = measure_of(config)
        sketched = measure.sketch(text, plan, config, group_numbers, sampler or hold, secret)
        keys_by_band = np.ascontiguousarray(sketched.keys.T).view(np.int64)
        columns = [pa.array(keys) for keys in keys_by_band]
        if sampler is not None:
            columns.append(sampler.lists(sketched.sizes, group_numbers))
    if config.ignores_shingles:
        columns.insert(0, _only_ignored(text, sketched.sizes, config))
    return pa.record_batch(
        [
            batch.column("row"),
            batch.column("priority"),
            groups,
            pc.binary_length(text).cast(pa.int64()),
            pa.array(sketched.sizes),
            pa.array(sketched.digests[:, 0].view(np.int64)),
            pa.array(sketched.digests[:, 1].view(np.int64)),
            pa.array(sketched.held_at),
            *columns,
        ],
        schema=schema.sketches(
            plan.bands,
            has_shingles=is_sampled or (plan.is_exact and is_set),
            ignores=config.ignores_shingles,
        ),
    )


def _only_ignored(texts: pa.Array, sizes: npt.NDArray[np.int64], config: Config) -> pa.Array:
    """Mark with 1 the texts that have shingles, but only ignored ones."""
    is_empty = sizes == 0
    if pa.types.is_large_binary(texts.type):  # as CommonShingles has marked them
        return pa.array((is_empty & (text_bytes(texts) > 0)).astype(np.int64))
    marks = np.zeros(len(texts), np.int64)
    marks[is_empty] = jaccard.have_shingles(texts.filter(pa.array(is_empty)), config)
    return pa.array(marks)
