"""Sorting on disk, and documents spilled to disk."""

from __future__ import annotations

import bisect
import os
import shutil
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# A column and "ascending" or "descending".
SortKey = tuple[str, str]
# Sorted rows are consumed while others are still held: naming pairs and encoding them as Parquet took
# 80 MB.
_CONSUMER_BYTES: Final = 80 << 20
# Rows that are sorted are in memory three times, with the indexes of all of them.
_SORTING_COST: Final = 4
# How many bytes are sorted at once.
_MIN_SORTED_BYTES: Final = 8 << 20
_MAX_SORTED_BYTES: Final = 32 << 20
# While sorted rows are merged, less than one block of each sorted part waits for the next ones: 16 MB
# for 8 GB that were sorted in parts of 8 MB.
_BLOCK_BYTES: Final = 16 << 10
_SORTED_ROWS: Final = 1 << 17


def sort_on_disk(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    by: Sequence[SortKey],
    folder: Path,
    room: int,
) -> Iterator[pa.RecordBatch]:
    """Sort rows with about `room` bytes of memory, including what the consumer of the rows takes.

    As many rows as memory holds are sorted and written in blocks, then the next ones. All blocks are
    read in the order of their first rows: what comes before the first row of the next block is then
    complete.
    """
    num_bytes = (room - _CONSUMER_BYTES) // _SORTING_COST
    num_bytes = min(max(num_bytes, _MIN_SORTED_BYTES), _MAX_SORTED_BYTES)
    folder.mkdir(parents=True, exist_ok=True)
    descriptor, path = tempfile.mkstemp(dir=folder)
    os.close(descriptor)
    try:
        first_rows = _write_blocks(batches, schema, by, path, num_bytes)
        with pa.OSFile(path, "rb") as source, pa.ipc.open_file(source) as blocks:
            yield from _merge(blocks, first_rows, by, num_bytes)
    finally:
        Path(path).unlink(missing_ok=True)


def _write_blocks(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    by: Sequence[SortKey],
    path: str,
    num_bytes: int,
) -> pa.Table:
    """Sort about `num_bytes` of rows at a time, and write them; return the first row of each block."""
    first_rows = [schema.empty_table()]
    with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
        for collected in _cut(batches, num_bytes):
            rows = _sorted(collected, schema, by)
            block_rows = max(_BLOCK_BYTES * rows.num_rows // max(rows.nbytes, 1), 1)
            starts = []
            start = 0
            for block in rows.to_batches(max_chunksize=block_rows):
                writer.write_batch(block)
                starts.append(start)
                start += block.num_rows
            first_rows.append(rows.take(pa.array(starts, pa.int64())))
            del rows  # before the next ones are held
    return pa.concat_tables(first_rows).combine_chunks()


def _merge(
    blocks: pa.RecordBatchFileReader, first_rows: pa.Table, by: Sequence[SortKey], num_bytes: int
) -> Iterator[pa.RecordBatch]:
    """Read about `num_bytes` of blocks at a time, and iterate over the rows that are complete."""
    order = pc.sort_indices(first_rows, sort_keys=list(by)).to_pylist()
    collected = deque[pa.RecordBatch]()
    size = 0
    for block, following in pairwise([*order, None]):
        collected.append(blocks.get_batch(block))
        size += collected[-1].nbytes
        if size < num_bytes and following is not None:
            continue
        rows = _sorted(collected, first_rows.schema, by)
        num_complete = rows.num_rows
        if following is not None:
            num_complete = _num_before(rows, first_rows.slice(following, 1), by)
        yield from rows.slice(0, num_complete).to_batches(max_chunksize=_SORTED_ROWS)
        # A slice would hold the rows that have been consumed.
        waiting = np.arange(num_complete, rows.num_rows)
        collected.extend(rows.take(pa.array(waiting)).to_batches())
        size = 0


def _cut(batches: Iterable[pa.RecordBatch], num_bytes: int) -> Iterator[deque[pa.RecordBatch]]:
    """Cut a stream of batches where they reach a number of bytes."""
    collected = deque[pa.RecordBatch]()
    size = 0
    for batch in batches:
        collected.append(batch)
        size += batch.nbytes
        if size >= num_bytes:
            yield collected
            size = 0
    if collected:
        yield collected


def _sorted(collected: deque[pa.RecordBatch], schema: pa.Schema, by: Sequence[SortKey]) -> pa.Table:
    """Return the rows of batches, sorted; release the batches."""
    rows = pa.Table.from_batches(collected, schema=schema).combine_chunks()
    collected.clear()
    order = pc.sort_indices(rows, sort_keys=list(by))
    return rows.take(order).combine_chunks()


def _num_before(rows: pa.Table, bound: pa.Table, by: Sequence[SortKey]) -> int:
    """Return how many of some sorted rows come before another row."""

    def is_before(at: int) -> bool:
        # A stable sort: what ties with the bound comes after it.
        both = pa.concat_tables([bound, rows.slice(at, 1)])
        return bool(pc.sort_indices(both, sort_keys=list(by))[0].as_py() == 1)

    return bisect.bisect_left(range(rows.num_rows), True, key=lambda at: not is_before(at))


def sort_in_memory(
    batches: Iterable[pa.RecordBatch], schema: pa.Schema, by: Sequence[SortKey]
) -> Iterator[pa.RecordBatch]:
    """Sort rows that fit in memory."""
    yield from (
        pa.Table.from_batches(batches, schema=schema)
        .sort_by(list(by))
        .combine_chunks()
        .to_batches()
    )


def drained(batches: deque[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Iterate over batches and release each one."""
    while batches:
        yield batches.popleft()


class Shelves:
    """Documents stored by shelf, in memory up to a limit, then on disk; thread-safe."""

    def __init__(self, folder: Path | None = None, limit: int | None = None) -> None:
        self._folder = folder
        self._limit = limit
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)  # leftovers of a killed run
            folder.mkdir(parents=True)
        self._in_memory: dict[int, list[pa.RecordBatch]] = {}
        self._size = 0
        self._lock = threading.Lock()

    def put(self, shelf: int, documents: pa.RecordBatch) -> None:
        """Add documents to a shelf."""
        with self._lock:
            self._in_memory.setdefault(shelf, []).append(documents)
            self._size += documents.nbytes
            if self._limit is not None and self._size > self._limit:
                for full in list(self._in_memory):
                    self._write(full)
                self._size = 0

    def _write(self, shelf: int) -> None:
        """Append a complete Arrow stream: no file stays open, however many shelves there are."""
        table = pa.Table.from_batches(self._in_memory.pop(shelf)).combine_chunks()
        with self._path(shelf).open("ab") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)

    def batches(self, shelf: int) -> Iterator[pa.RecordBatch]:
        """Read the documents of a shelf, those on disk first."""
        path = None if self._folder is None else self._path(shelf)
        size = path.stat().st_size if path is not None and path.exists() else 0
        if path is not None and size:
            with path.open("rb") as source:
                while source.tell() < size:
                    yield from pa.ipc.open_stream(source)
        yield from self._in_memory.get(shelf, [])

    def clear(self, shelf: int) -> None:
        """Delete the documents of a shelf."""
        with self._lock:
            self._in_memory.pop(shelf, None)
        if self._folder is not None:
            self._path(shelf).unlink(missing_ok=True)

    def _path(self, shelf: int) -> Path:
        if self._folder is None:
            raise ValueError("these shelves are in memory and have no files")
        return self._folder / f"{shelf:06}.arrows"
