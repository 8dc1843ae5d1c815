"""The tables of a run on files, named, sorted and written by workers: a file if they are small, else a folder of parts.

Rows encode the part of the input that they are in, so a range of parts is a range of rows: every
bucket of an exchange gets one, and the buckets are in order without a sort of the whole table.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from neardup.engines.local.groups import whole_groups
from neardup.engines.spark.arrow_steps import Batches, arrow_schema, map_frame
from neardup.engines.spark.documents import FileSource
from neardup.engines.spark.naming import CLUSTERED, MEMBERS, End, Names, list_members
from neardup.engines.spark.packed import BLOCKS, Exchange, map_buckets, map_ranges, markers
from neardup.engines.spark.reading import ROW_BITS
from neardup.engines.spark.storage import Storage

# Writes batches, in order, to a file.
Write = Callable[[Path, Iterator[pa.RecordBatch]], None]
PART_NAME: Final = "part-{:05}.parquet"
_COUNTED: Final = pa.schema([("rows", pa.int64())])
_REMOVED: Final = (
    End("row", "doc_id", "file", "number"),
    End("kept_row", "kept_id", "kept_file", "kept_number"),
)
_PAIRS: Final = (
    End("row_a", "doc_a", "file_a", "number_a"),
    End("row_b", "doc_b", "file_b", "number_b"),
)
# The columns that name rows, as the tables of a run call them.
_NUMBERS: Final = {
    "row": "number",
    "kept_row": "kept_number",
    "row_a": "number_a",
    "row_b": "number_b",
}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Where a table goes: `path` is a file, or a folder of parts of about `part_rows` rows if that is not None."""

    name: str
    path: Path
    columns: pa.Schema
    num_rows: int
    part_rows: int | None
    write: Write

    @property
    def num_parts(self) -> int | None:
        """The number of parts, None for a file or where it is not limited."""
        if not self.part_rows:
            return None
        return self.num_rows // self.part_rows + 1


class TableFiles:
    """Writes the tables of a run on files; limit: bytes of rows that a worker sorts in memory."""

    def __init__(self, source: FileSource, storage: Storage, limit: int) -> None:
        self._source = source
        self._storage = storage
        self._limit = limit

    def write_removed(self, selection: DataFrame, target: Target) -> int:
        """Write schema.REMOVED_FROM_FILES in input order; return the number of rows."""
        return self._write_named(selection, _REMOVED, ("row",), target)

    def write_pairs(self, row_pairs: DataFrame, target: Target) -> int:
        """Write schema.PAIRS_FROM_FILES in input order; return the number of rows."""
        return self._write_named(row_pairs, _PAIRS, ("row_a", "row_b"), target)

    def _write_named(
        self, table: DataFrame, ends: tuple[End, End], order: tuple[str, ...], target: Target
    ) -> int:
        """Name the rows of a table by two exchanges: the other end first, then the one it is ordered by."""
        own, other = ends
        names = self._source.names()
        columns = arrow_schema(table)
        by_other = self._ranges(columns, (other.row,), None)
        columns = pa.schema([*columns, *other.added])
        by_own = self._ranges(columns, order, target.num_parts)
        columns = pa.schema([*columns, *own.added])

        def name_other(_: int, rows: Batches) -> Iterator[pa.RecordBatch]:
            return by_own.pack(names.add(rows, other))

        def name_own(_: int, rows: Batches) -> Iterator[pa.RecordBatch]:
            return names.add(rows, own)

        blocks = map_frame(table, BLOCKS, by_other.pack)
        blocks = map_ranges(blocks, by_other, BLOCKS, name_other)
        return self._write(blocks, by_own, columns, name_own, target)

    def write_clusters(self, members: DataFrame, target: Target) -> int:
        """Write every document of the input with its cluster, in input order; return the number of rows."""
        names = self._source.names()
        layout = self._source.layout
        spark = self._storage.spark
        rows = members.select("row", "kept_row")
        by_kept = self._ranges(arrow_schema(rows), ("kept_row", "row"), None)
        by_own = self._ranges(MEMBERS, ("row",), target.num_parts)
        bounds = [0, *(bound >> ROW_BITS for bound in by_own.bounds or ()), layout.num_parts]
        parts = [
            range(max(first, layout.num_reference_parts), stop) for first, stop in pairwise(bounds)
        ]

        def pack_members(_: int, rows: Batches) -> Iterator[pa.RecordBatch]:
            return by_own.pack(list_members(whole_groups(rows, ["kept_row"]), names))

        def cluster(bucket: int, members: Batches) -> Iterator[pa.RecordBatch]:
            return _clustered(parts[bucket], members, names)

        blocks = map_frame(rows, BLOCKS, by_kept.pack)
        blocks = map_ranges(blocks, by_kept, BLOCKS, pack_members)
        blocks = blocks.unionByName(markers(spark, by_own.num_buckets))
        return self._write(blocks, by_own, CLUSTERED, cluster, target)

    def _ranges(
        self, columns: pa.Schema, order: tuple[str, ...], num_buckets: int | None
    ) -> Exchange:
        """Return an exchange whose buckets are ranges of parts."""
        num_parts = self._source.layout.num_parts
        count = max(min(num_parts, num_buckets or self._storage.num_partitions), 1)
        bounds = tuple((at * num_parts // count) << ROW_BITS for at in range(1, count))
        return Exchange(
            columns=columns, order=order, num_buckets=count, limit=self._limit, bounds=bounds
        )

    def _write(
        self,
        blocks: DataFrame,
        exchange: Exchange,
        columns: pa.Schema,
        finish: Callable[[int, Batches], Iterable[pa.RecordBatch]],
        target: Target,
    ) -> int:
        """Finish the rows of every bucket and write them, as parts or, after another exchange, in one file."""
        path = target.path.resolve()
        names = target.columns.names
        write = target.write

        if target.part_rows is None:
            every = Exchange(
                columns=columns, order=exchange.order, num_buckets=1, limit=self._limit, bounds=()
            )

            def send_part(bucket: int, rows: Batches) -> Iterator[pa.RecordBatch]:
                return every.pack(finish(bucket, rows))

            def write_whole(rows: Batches) -> Iterator[pa.RecordBatch]:
                return write_file(path, _written_names(rows, names), write)

            blocks = map_ranges(blocks, exchange, BLOCKS, send_part)
            written = map_buckets(blocks, every, _COUNTED, write_whole)
        else:

            def write_part(bucket: int, rows: Batches) -> Iterator[pa.RecordBatch]:
                named = _written_names(finish(bucket, rows), names)
                return write_file(path / PART_NAME.format(bucket), named, write)

            path.mkdir(parents=True)
            written = map_ranges(blocks, exchange, _COUNTED, write_part)
        counted: list[Any] = self._storage.run(written.collect, target.name)
        return sum(row["rows"] for row in counted)


def _written_names(
    batches: Iterable[pa.RecordBatch], names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Return the columns of a table as it is written, where rows are numbers in files."""
    for batch in batches:
        columns = []
        for name in names:
            number = _NUMBERS.get(name)
            taken = number if number in batch.schema.names else name
            columns.append(batch.column(taken))
        yield pa.RecordBatch.from_arrays(columns, names=list(names))


def _clustered(parts: range, members: Batches, names: Names) -> Iterator[pa.RecordBatch]:
    """Return every document of some parts with its cluster; `members` are MEMBERS, sorted by row."""
    waiting = next(members, None)
    for part in parts:
        own: list[pa.RecordBatch] = []
        while waiting is not None:
            stop = int(np.searchsorted(waiting.column("row").to_numpy(), (part + 1) << ROW_BITS))
            own.append(waiting.slice(0, stop))
            if stop < waiting.num_rows:
                waiting = waiting.slice(stop)
                break
            waiting = next(members, None)
        yield names.clustered(part, pa.Table.from_batches(own, MEMBERS))


def write_file(
    path: Path, batches: Iterable[pa.RecordBatch], write: Write
) -> Iterator[pa.RecordBatch]:
    """Write batches to a file; retries and speculative attempts are safe."""
    num_rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal num_rows
        for batch in batches:
            num_rows += batch.num_rows
            yield batch

    draft = path.with_name(f".{uuid.uuid4().hex}{path.suffix}")
    try:
        write(draft, counted())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    yield pa.record_batch([pa.array([num_rows])], schema=_COUNTED)
