"""External sorting with DuckDB, and documents spilled to disk."""

from __future__ import annotations

import shutil
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

# A column and "ascending" or "descending".
SortKey = tuple[str, str]
# DuckDB overshoots its memory limit by up to half.
_SHARE: Final = 0.5
# Sorted rows are consumed while DuckDB still holds its memory: naming pairs and encoding them as
# Parquet took 80 MB.
_CONSUMER_BYTES: Final = 80 << 20
# DuckDB fails with less; with 32 MiB, sorting 32 million rows of numbers by one thread failed now
# and then.
_MIN_BYTES: Final = 64 << 20
_SQL_DIRECTIONS: Final = {"ascending": "ASC", "descending": "DESC"}
_SORTED_ROWS: Final = 1 << 17


def sort_on_disk(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    by: Sequence[SortKey],
    folder: Path,
    room: int,
    threads: int,
) -> Iterator[pa.RecordBatch]:
    """Sort rows with about `room` bytes of memory, including what the consumer of the rows takes."""
    import duckdb

    given = int((room - _CONSUMER_BYTES) * _SHARE)
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{max(_MIN_BYTES, given) >> 20}MiB",
        "temp_directory": str(folder),
        # Each thread takes memory of its own.
        "threads": 1 if given <= _MIN_BYTES else threads,
        "preserve_insertion_order": False,
    }
    failed: list[BaseException] = []
    source = pa.RecordBatchReader.from_batches(schema, _watched(batches, failed))
    order = ", ".join(f'"{name}" {_SQL_DIRECTIONS[direction]}' for name, direction in by)
    try:
        with duckdb.connect(config=settings) as connection:
            connection.execute(
                "SET enable_progress_bar = false"
            )  # it prints to stdout after two seconds
            connection.register("source", source)
            for batch in connection.sql(f"SELECT * FROM source ORDER BY {order}").to_arrow_reader(  # noqa: S608
                _SORTED_ROWS
            ):
                # DuckDB drops the non-null flags of the schema.
                yield pa.record_batch(batch.columns, schema=schema)
    except (duckdb.Error, pa.ArrowException) as error:
        if not failed:
            raise
        raise failed[0] from error


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


def _watched(
    batches: Iterable[pa.RecordBatch], failed: list[BaseException]
) -> Iterator[pa.RecordBatch]:
    """Record the exception of the source, because DuckDB, whose threads read it, raises only its own errors."""
    try:
        yield from batches
    except BaseException as error:
        failed.append(error)
        raise


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
