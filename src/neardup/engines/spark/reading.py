"""What workers return for the rows they read: notes, that is, sketches with ids, scores and rejected rows.

Notes have one row per document, and one per rejected or blank row, where `num_shingles` is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.accumulators import AccumulatorParam

from neardup import schema
from neardup.config import Config
from neardup.engines.base import BatchStep, TableView
from neardup.engines.local.groups import split_groups
from neardup.engines.spark.storage import stored_batches
from neardup.io.columns import keep_order
from neardup.io.columns.contents import content_type
from neardup.io.columns.scores import SCORES
from neardup.io.columns.sorted_search import find_sorted
from neardup.io.documents.file_reader import documents_of, read_pieces
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.notes import joined
from neardup.io.records import Records

I64 = npt.NDArray[np.int64]
# By part: the number of rows of every piece, and the names of the columns found.
Ends = dict[int, tuple[list[int], list[str]]]
# A row encodes the number of its part and its position there, which is less than 2**ROW_BITS.
ROW_BITS: Final = 36
_KEY: Final = schema.key_column(0).rstrip("0")
_BESIDE: Final = (
    ("id", pa.string()),
    ("score", SCORES),
    ("reason", pa.string()),
)


def texts_schema(config: Config) -> pa.Schema:
    """Return the schema of the members of components with their contents."""
    own = [("priority", pa.int64()), ("text", content_type(config)), ("group", pa.int64())]
    return pa.schema([*schema.COMPONENTS, *own])


def notes_schema(sketches: pa.Schema) -> pa.Schema:
    """Return the schema of notes: sketches, ids, scores and reasons for rejection."""
    return pa.schema([*folded_schema(sketches), *_BESIDE])


def folded_schema(sketches: pa.Schema) -> pa.Schema:
    """Return the schema of sketches with one list of keys instead of a column for every band."""
    others = [field for field in sketches if not field.name.startswith(_KEY)]
    if len(others) == len(sketches):
        return sketches
    return pa.schema([*others, ("keys", pa.large_list(pa.int64()))])


def _folded(sketched: pa.RecordBatch) -> dict[str, pa.Array]:
    columns = {}
    keys = []
    for name, column in zip(sketched.schema.names, sketched.columns, strict=True):
        if name.startswith(_KEY):
            keys.append(column.to_numpy())
        else:
            columns[name] = column
    if keys:
        ends = pa.array(np.arange(sketched.num_rows + 1) * len(keys))
        values = pa.array(np.stack(keys, axis=1).ravel())
        columns["keys"] = pa.LargeListArray.from_arrays(ends, values)
    return columns


def view_batches(
    batch: pa.RecordBatch, views: Sequence[TableView], columns: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Return the columns of each view, under the names of the first; bands are columns of the list of keys."""
    found = dict(zip(batch.schema.names, batch.columns, strict=True))
    if "keys" in found:
        keys = found.pop("keys").flatten().to_numpy().reshape(batch.num_rows, -1)
        for band in range(keys.shape[1]):
            found[schema.key_column(band)] = keys[:, band]
    for view in views:
        yield pa.record_batch([pa.array(found[name]) for name in view.columns], schema=columns)


def note(
    sketched: pa.RecordBatch, found: Records, absent: I64, notes: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Add ids and scores to the sketches of documents; append the rejected rows, `absent`, with the reason."""
    columns = _folded(sketched) | {"id": found.ids}
    if found.scores is not None:
        columns["score"] = found.scores
    yield _padded(columns, sketched.num_rows, notes)
    if absent.size:
        reason_of = dict(found.rejected)
        spots = np.setdiff1d(np.arange(found.num_rows), found.rows)
        reasons = pa.array([reason_of.get(spot) for spot in spots.tolist()], pa.string())
        yield _padded({"row": pa.array(absent), "reason": reasons}, absent.size, notes)


def _padded(columns: dict[str, pa.Array], num_rows: int, notes: pa.Schema) -> pa.RecordBatch:
    """Return columns as notes; those that are missing are null."""
    arrays = [columns.get(field.name, pa.nulls(num_rows, field.type)) for field in notes]
    nullable = pa.schema([field.with_nullable(True) for field in notes])
    return pa.record_batch(arrays, schema=nullable)


class EndsParam(AccumulatorParam[Ends]):
    """Collects the rows of pieces and the columns found, by part; shares of a part, and retries, report the same."""

    def zero(self, value: Ends) -> Ends:
        """Return nothing."""
        del value
        return {}

    def addInPlace(self, value1: Ends, value2: Ends) -> Ends:  # noqa: N802 - Spark calls it so
        """Return both."""
        value1.update(value2)
        return value1


def read_parts(
    numbers: Iterable[pa.RecordBatch],
    layout: FileLayout,
    num_shares: int,
    step: BatchStep,
    notes: pa.Schema,
    report: Callable[[Ends], None],
) -> Iterator[pa.RecordBatch]:
    """Read parts of files and sketch their documents; `num_shares` tasks share a part, batch by batch."""
    for number in (number for batch in numbers for number in batch.column("id").to_pylist()):
        part, share = divmod(number, num_shares)
        ends: tuple[list[int], list[str]] = ([], [])
        batches = _read_part(part, layout, ends)
        own = (batch for at, batch in enumerate(batches) if at % num_shares == share)
        noted = (_noted(part, layout, batch, step, notes) for batch in own)
        yield from joined(chain.from_iterable(noted))
        report({part: ends})


def _read_part(
    part: int, layout: FileLayout, ends: tuple[list[int], list[str]]
) -> Iterator[tuple[int, Records]]:
    """Read the batches of a part, each with its first row; add the rows of pieces and the columns found to `ends`."""
    piece_rows, names = ends
    for pieces, rows in read_pieces(layout, part):
        num_rows = 0
        for first_row, found in rows:
            yield first_row, found
            num_rows += found.num_rows
            names += sorted(found.found.difference(names))
        piece_rows += [num_rows // len(pieces)] * len(pieces)


def _noted(
    part: int, layout: FileLayout, batch: tuple[int, Records], step: BatchStep, notes: pa.Schema
) -> Iterator[pa.RecordBatch]:
    first_row, found = batch
    documents = documents_of(found, found.rows + first_row, layout.config)
    sketched = step(renumber(documents, part, layout))
    spots = np.setdiff1d(np.arange(found.num_rows), found.rows)
    yield from note(sketched, found, (part << ROW_BITS) + first_row + spots, notes)


def renumber(documents: pa.RecordBatch, part: int, layout: FileLayout) -> pa.RecordBatch:
    """Turn rows and priorities local to a part into those of the whole run, except for scores."""
    rows = documents.column("row").to_numpy() + (part << ROW_BITS)
    priority = documents.column("priority").to_numpy()
    if part < layout.num_reference_parts:
        priority = np.full(rows.size, schema.REFERENCE_PRIORITY)
    elif layout.config.keep == "last":
        priority = keep_order.priorities(layout.config.keep, rows)
    columns = [
        pa.array(rows),
        documents.column("text"),
        pa.array(priority),
        documents.column("group"),
    ]
    return pa.record_batch(columns, schema=documents.schema)


def leave_out(batch: pa.RecordBatch, folder: str) -> pa.RecordBatch:
    """Return a batch without the rows of a stored table."""
    is_there, _ = find_sorted(_stored_rows(folder), batch.column("row").to_numpy())
    if not is_there.any():
        return batch
    return batch.filter(pa.array(~is_there))


@lru_cache(maxsize=4)
def _stored_rows(folder: str) -> I64:
    """Read the rows of a stored table, once per worker."""
    parts = [batch.column("row").to_numpy() for batch in stored_batches(folder, ["row"])]
    return np.sort(np.concatenate([np.empty(0, np.int64), *parts]))


def read_texts(members: Iterable[pa.RecordBatch], layout: FileLayout) -> Iterator[pa.RecordBatch]:
    """Read parts again and select the documents of components; `members` are sorted by part, then by row."""
    texts = texts_schema(layout.config)
    for own in split_groups(members, "part"):
        part = own.column("part")[0].as_py()
        rows, component, priority = (
            own.column(name).to_numpy() for name in ("row", "component", "priority")
        )
        for _, pieces in read_pieces(layout, part):
            for first_row, found in pieces:
                batch_rows = found.rows + first_row + (part << ROW_BITS)
                is_member, at = find_sorted(rows, batch_rows)
                if is_member.any():
                    documents = documents_of(found, found.rows + first_row, layout.config)
                    chosen = documents.filter(pa.array(is_member))
                    at = at[is_member]
                    columns = [rows[at], component[at], priority[at]]
                    columns += [chosen.column("text"), chosen.column("group")]
                    yield pa.record_batch(columns, schema=texts)
