"""Writers for the tables of a run: removed, pairs, clusters, rejected.

The bytes depend on the rows alone, not on how they are split into calls.
"""

from __future__ import annotations

import contextlib
import csv
import math
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Final, Protocol, Self

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup import schema
from neardup.errors import ConfigError
from neardup.io.storage.work_folder import remove_folder, reserve
from neardup.io.storage.workspace import digest, left_complete, open_workspace, publish_files
from neardup.io.streams import is_remote, open_output
from neardup.version import VERSION

# Rows per Parquet row group, which are buffered until it is written.
GROUP_ROWS: Final = 1 << 17
# Bytes per row group, which long ids reach first.
GROUP_BYTES: Final = 32 << 20
# Of a list, each item counts as this many bytes: about a dozen numbers.
_LIST_ITEM_BYTES: Final = 96


class _Sink(Protocol):
    def write(self, table: pa.Table) -> None:
        """Write the next group of rows; every column is one chunk."""

    def close(self) -> None:
        """Finish the file."""


class _Parquet:
    def __init__(self, output: IO[bytes], columns: pa.Schema) -> None:
        self._writer = pq.ParquetWriter(output, columns, compression="zstd")

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=GROUP_ROWS)

    def close(self) -> None:
        self._writer.close()


class _JsonLines:
    def __init__(self, output: IO[bytes], columns: pa.Schema) -> None:  # noqa: ARG002
        self._output = output
        self._encoder = msgspec.json.Encoder()

    def write(self, table: pa.Table) -> None:
        names = table.column_names
        columns = [_json_values(column) for column in table.columns]
        lines = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        self._output.write(self._encoder.encode_lines(lines))

    def close(self) -> None:
        """Do nothing: JSON Lines has no footer."""


def _json_values(column: pa.ChunkedArray) -> list[Any]:
    """Return Python values; floats as Python prints them, null for NaN and infinity, which JSON lacks."""
    values: list[Any] = column.to_pylist()
    if not pa.types.is_floating(column.type):
        return values
    numbers: list[msgspec.Raw | None] = []
    for value in values:
        if value is None or not math.isfinite(value):
            numbers.append(None)
        else:
            numbers.append(msgspec.Raw(repr(value).encode()))
    return numbers


class _WrittenLines(list[str]):
    """Lines of CSV; Python 3.11 quotes cells with a carriage return or a newline only if lines end in both."""

    def write(self, line: str) -> None:
        """Add a line that ends in a newline alone."""
        self.append(line.removesuffix("\r\n") + "\n")


def _csv_values(column: pa.ChunkedArray) -> list[Any]:
    """Return Python values; lists as JSON, because CSV has none."""
    values: list[Any] = column.to_pylist()
    if not pa.types.is_list(column.type):
        return values
    return [None if value is None else msgspec.json.encode(value).decode() for value in values]


class _Csv:
    def __init__(self, output: IO[bytes], columns: pa.Schema) -> None:
        self._output = output
        self._write([columns.names])

    def write(self, table: pa.Table) -> None:
        self._write(zip(*map(_csv_values, table.columns), strict=True))

    def _write(self, rows: Iterable[Iterable[Any]]) -> None:
        lines = _WrittenLines()
        csv.writer(lines, lineterminator="\r\n").writerows(rows)
        self._output.write("".join(lines).encode())

    def close(self) -> None:
        """Do nothing: CSV has no footer."""


_SINKS: Final[dict[str, Any]] = {".parquet": _Parquet, ".jsonl": _JsonLines, ".csv": _Csv}


def _as_table(rows: pa.Table | pa.RecordBatch, columns: pa.Schema) -> pa.Table:
    if isinstance(rows, pa.RecordBatch):
        table = pa.Table.from_batches([rows])
    else:
        table = rows
    return table.select(columns.names).cast(columns)


def _row_bytes(table: pa.Table) -> npt.NDArray[np.int64]:
    """Return the approximate size of each row in bytes."""
    sizes = np.zeros(table.num_rows, np.int64)
    for column in table.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            sizes += pc.binary_length(column).cast(pa.int64()).fill_null(0).to_numpy() + 4
        elif pa.types.is_list(column.type):
            sizes += _LIST_ITEM_BYTES * pc.list_value_length(column).fill_null(0).to_numpy() + 4
        else:
            sizes += 8
    return sizes


def known_ending(path: str | os.PathLike[str]) -> str:
    """Return the file extension, which determines the format of a table."""
    ending = Path(path).suffix.lower()
    if ending not in _SINKS:
        raise ConfigError(
            f"the output {os.fspath(path)!r} must end in .parquet, .jsonl or .csv, got {ending or 'no extension'}",
            hint="the extension determines the format",
        )
    return ending


class TableWriter:
    """Writes tables to a .parquet, .jsonl or .csv file; if the block fails, the file is removed."""

    def __init__(self, path: str | os.PathLike[str], columns: pa.Schema) -> None:
        """Open the file for rows of the given schema."""
        self._path = os.fspath(path)
        ending = known_ending(self._path)
        self._columns = columns
        self._waiting: list[pa.Table] = []
        self._num_waiting = self._num_bytes = 0
        self._open = contextlib.ExitStack()
        output = self._open.enter_context(open_output(self._path, None))
        self._sink: _Sink | None = _SINKS[ending](output, columns)

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Add rows; they must have the columns of the schema, in any order."""
        if self._sink is None:
            raise ValueError(f"{self._path} is closed: no more rows can be written")
        table = _as_table(rows, self._columns)
        ends = np.cumsum(_row_bytes(table))
        first = before = 0
        while first < table.num_rows:
            # A group ends with the row that fills it, regardless of how rows are split into calls.
            full = int(np.searchsorted(ends, before + GROUP_BYTES - self._num_bytes)) + 1
            stop = min(full, first + GROUP_ROWS - self._num_waiting, table.num_rows)
            self._waiting.append(table.slice(first, stop - first))
            self._num_waiting += stop - first
            self._num_bytes += int(ends[stop - 1]) - before
            first = stop
            before = int(ends[stop - 1])
            if self._num_waiting >= GROUP_ROWS or self._num_bytes >= GROUP_BYTES:
                self._sink.write(self._group())

    def _group(self) -> pa.Table:
        """Return the buffered rows with one chunk per column, because chunks determine the pages; clear the buffer."""
        group = pa.concat_tables(self._waiting).combine_chunks()
        self._waiting = []
        self._num_waiting = 0
        self._num_bytes = 0
        return group

    def close(self) -> None:
        """Write the buffered rows and finish the file; a second call does nothing."""
        if self._sink is None:
            return
        sink = self._sink
        self._sink = None
        with self._open:
            if self._num_waiting:
                sink.write(self._group())
            sink.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
            return
        self._num_waiting = 0
        # The first error is already being raised.
        with contextlib.suppress(OSError, pa.ArrowException):
            self.close()
        if not is_remote(self._path):
            Path(self._path).unlink(missing_ok=True)


@contextlib.contextmanager
def reserved_table(target: Path, *, overwrite: bool) -> Iterator[Callable[[pa.Table], None]]:
    """Reserve a file for a table that is yet to be computed; yield the function that writes it, atomically.

    A marker shows that an earlier process was killed after the file was complete: if the table has
    the same bytes, the run is done.
    """
    manifest = {"version": VERSION, "command": "write a table", "settings": {}, "inputs": []}
    with reserve(target) as folder:
        left = left_complete(target)
        if left is None:
            open_workspace(folder, target, manifest, overwrite=overwrite, is_fresh=False)

        def write(table: pa.Table) -> None:
            same = folder / f"same{target.suffix}"
            if left is not None and digest(_written(same, table)) == left:
                remove_folder(folder)
                return
            workspace = open_workspace(
                folder, target, manifest, overwrite=overwrite, is_fresh=False
            )
            publish_files(
                workspace, [(_written(workspace.draft(f"table{target.suffix}"), table), target)]
            )

        yield write


def _written(path: Path, table: pa.Table) -> Path:
    with TableWriter(path, table.schema) as writer:
        writer.write(table)
    return path


def write_rows(
    path: str | os.PathLike[str], batches: Iterable[pa.RecordBatch], columns: pa.Schema
) -> None:
    """Write batches of rows as one table."""
    with TableWriter(path, columns) as writer:
        for batch in batches:
            writer.write(batch)


def write_rejected(
    path: str | os.PathLike[str], batches: Iterable[pa.Table | pa.RecordBatch]
) -> None:
    """Write the rejected rows as JSON Lines, in order; the file is empty if there are none."""
    with open_output(os.fspath(path), None) as output:
        sink = _JsonLines(output, schema.REJECTED)
        for batch in batches:
            sink.write(_as_table(batch, schema.REJECTED))
