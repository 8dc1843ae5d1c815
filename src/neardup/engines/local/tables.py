"""Tables of the local engine, in memory or in files, and operations on either."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from neardup.engines.base import Bools, Documents, Table
from neardup.io.workspace import read_batches


class InMemoryTable:
    """A table in memory, in batches."""

    def __init__(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> None:
        self._batches = batches
        self.schema = schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over some columns."""
        return (batch.select(list(columns)) for batch in self._batches)


class FileTable:
    """A table in files, cached in memory if it is small.

    With `documents`, there is one file per part, with rows and priorities local to the part.
    """

    def __init__(self, paths: Sequence[Path], schema: pa.Schema, room: int, documents: Documents | None = None) -> None:
        self._paths = paths
        self._documents = documents
        self.schema = schema
        self._is_small = sum(path.stat().st_size for path in paths) <= room
        self._held: list[pa.RecordBatch] | None = None
        self._lock = threading.Lock()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over some columns, with the rows and priorities of the whole run."""
        if not self._is_small:
            return self._read(columns)
        with self._lock:
            if self._held is None:
                self._held = list(self._read(self.schema.names))
        return (batch.select(list(columns)) for batch in self._held)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for part, path in enumerate(self._paths):
            for batch in read_batches(path, list(columns)):
                yield batch if self._documents is None else self._documents.place(part, batch)


def batches_of(table: Table, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Iterate over some columns of a table of either kind."""
    yield from table.select(columns).to_batches() if isinstance(table, pa.Table) else table.batches(columns)


def held_table(table: pa.Table | Iterable[pa.RecordBatch], schema: pa.Schema | None) -> pa.Table:
    """Return a table in memory, from batches if necessary."""
    return table if isinstance(table, pa.Table) else pa.Table.from_batches(table, schema=schema)


def sub_schema(table: Table, columns: Sequence[str]) -> pa.Schema:
    """Return the schema of some columns."""
    return pa.schema([table.schema.field(name) for name in columns])


def num_rows_of(table: Table) -> int:
    """Count the rows of a table."""
    return sum(batch.num_rows for batch in batches_of(table, ["row"]))


def filtered(table: Table, columns: Sequence[str], where: Bools | None) -> Iterator[pa.RecordBatch]:
    """Iterate over the rows that are True in `where`, or over all."""
    return chosen(batches_of(table, columns), where)


def chosen(batches: Iterable[pa.RecordBatch], where: Bools | None) -> Iterator[pa.RecordBatch]:
    """Select the rows that are True in `where`, or all."""
    for batch in batches:
        is_wanted = np.True_ if where is None else where[batch.column("row").to_numpy()]
        yield batch if is_wanted.all() else batch.filter(pa.array(is_wanted))
