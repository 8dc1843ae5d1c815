"""Tables of the local engine, in memory or in files, and operations on either."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from neardup.engines.base import Bools, Documents, TableView
from neardup.io.storage.workspace import read_batches
from neardup.schema import one_batch


class BatchTable(Protocol):
    """A table that is read batch by batch, as often as needed."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over some columns."""


# A table of the local engine: read in batches, in memory, or, where the result of a step can be
# consumed once, batches. pyarrow has no types: in the union, pa.Table would let anything pass.
LocalTable: TypeAlias = BatchTable | Iterator[pa.RecordBatch]


class InMemoryTable:
    """A table in memory, in batches."""

    def __init__(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> None:
        self._batches = batches
        self.schema = schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over some columns."""
        return (batch.select(list(columns)) for batch in self._batches)


class WrittenParts:
    """The batches of a table by part, kept as they are written to files, as long as they are few; thread-safe."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._parts: dict[int, list[pa.RecordBatch]] = {}
        self._lock = threading.Lock()

    def keep(self, part: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pass on the batches of a part, and keep them."""
        own: list[pa.RecordBatch] = []
        for batch in batches:
            yield batch
            with self._lock:
                self._room -= min(self._room, batch.nbytes)
                if not self._room:
                    self._parts.clear()
            own.append(batch)
            if not self._room:
                own.clear()
        with self._lock:
            if self._room:
                self._parts[part] = own

    def get(self, part: int) -> list[pa.RecordBatch] | None:
        """Return the batches of a part, None if they are only on disk."""
        return self._parts.get(part)


def part_file(name: str, part: int) -> str:
    """Return the name of the file of a part of a table."""
    return f"{name}/{part:06}.arrow"


class FileTable:
    """A table in files, cached in memory if it is small.

    With `documents`, there is one file per part, with rows and priorities local to the part.
    `written` has parts that need not be read again.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        schema: pa.Schema,
        room: int,
        documents: Documents | None = None,
        written: WrittenParts | None = None,
    ) -> None:
        self._paths = paths
        self._documents = documents
        self.schema = schema
        self._is_small = sum(path.stat().st_size for path in paths) <= room
        self._written = written if self._is_small else None
        self._cached: list[pa.RecordBatch] | None = None
        self._lock = threading.Lock()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over some columns, with the rows and priorities of the whole run."""
        if not self._is_small:
            return self._read(columns)
        with self._lock:
            if self._cached is None:
                self._cached = list(self._read(self.schema.names))
                self._written = None
        return (batch.select(list(columns)) for batch in self._cached)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for part, path in enumerate(self._paths):
            if self._written is None:
                written = None
            else:
                written = self._written.get(part)
            for batch in read_batches(path, list(columns)) if written is None else written:
                yield batch if self._documents is None else self._documents.renumber(part, batch)


def batches_of(table: LocalTable, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Iterate over some columns of a table of any kind, or all; over batches as they are."""
    if isinstance(table, Iterator):
        yield from table
    elif isinstance(table, pa.Table):
        yield from (table if columns is None else table.select(columns)).to_batches()
    else:
        yield from table.batches(table.schema.names if columns is None else columns)


def table_in_memory(
    table: pa.Table | Iterable[pa.RecordBatch], schema: pa.Schema | None
) -> pa.Table:
    """Return a table in memory, from batches if necessary."""
    if isinstance(table, pa.Table):
        return table
    return pa.Table.from_batches(table, schema=schema)


def sub_schema(table: LocalTable, columns: Sequence[str]) -> pa.Schema:
    """Return the schema of some columns."""
    if isinstance(table, Iterator):
        raise TypeError("batches that can be read once have no schema: make a checkpoint of them")
    return pa.schema([table.schema.field(name) for name in columns])


def num_rows_of(table: LocalTable) -> int:
    """Count the rows of a table."""
    return sum(batch.num_rows for batch in batches_of(table, ["row"]))


def filtered(
    table: LocalTable, columns: Sequence[str], where: Bools | None
) -> Iterator[pa.RecordBatch]:
    """Iterate over the rows that are True in `where`, or over all."""
    return chosen(batches_of(table, columns), where)


def chosen(batches: Iterable[pa.RecordBatch], where: Bools | None) -> Iterator[pa.RecordBatch]:
    """Select the rows that are True in `where`, or all."""
    for batch in batches:
        if where is None:
            is_wanted = np.True_
        else:
            is_wanted = where[batch.column("row").to_numpy()]
        yield batch if is_wanted.all() else batch.filter(pa.array(is_wanted))


def read_views(
    table: LocalTable, views: Sequence[TableView], where: Bools | None, num_rows: int, most: float
) -> Iterator[tuple[TableView, Sequence[pa.RecordBatch] | None]]:
    """Iterate over views with their rows, as many views in one pass over the table as `most` bytes hold.

    A view that they do not hold comes without rows. Filtering every batch for each of 16 bands
    takes longer than linking them, and reading the table from disk 16 times even more.
    """
    rest = list(views)
    while rest:
        names: dict[str, None] = {}
        group: list[TableView] = []
        while rest and 8 * num_rows * len(names.keys() | set(rest[0].columns)) <= most:
            names |= dict.fromkeys(rest[0].columns)
            group.append(rest.pop(0))
        if not group:
            yield rest.pop(0), None
            continue
        whole = one_batch(list(filtered(table, list(names), where)), sub_schema(table, list(names)))
        for view in group:
            yield view, [whole.select(list(view.columns))]
