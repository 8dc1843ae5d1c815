"""What an engine can do, and what it works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.io.spill import SortKey

BatchStep = Callable[[pa.RecordBatch], pa.RecordBatch]
Bools = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.uint8]
CountStep = Callable[[pa.RecordBatch, Counts], None]
Advance = Callable[[int], None]
Sort = Callable[[Iterable[pa.RecordBatch], pa.Schema, Sequence[SortKey]], Iterator[pa.RecordBatch]]


class Documents(Protocol):
    """Where documents come from, in parts that can be read apart, and again."""

    @property
    def num_parts(self) -> int:
        """How many parts there are."""

    @property
    def total(self) -> int:
        """What `advance` adds up to when every part was read."""

    @property
    def unit(self) -> str:
        """What `advance` counts."""

    @property
    def stops_at_first(self) -> bool:
        """Whether of several errors the first in the order of parts must be told, however long it takes."""

    def read(self, part: int, advance: Advance) -> Iterator[pa.RecordBatch]:
        """Read the documents of a part, as schema.DOCUMENTS; rows and priorities are the part's own until `settle`."""

    def has_read(self, part: int) -> bool:
        """Whether an earlier start has read a part, so that it can be skipped."""

    def skip(self, part: int, advance: Advance) -> None:
        """Count a part that an earlier start has read."""

    def settle(self, sort: Sort) -> None:
        """Number the rows of all parts and put them in keep order, once every part was read."""

    def place(self, part: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Turn the part's own rows and priorities into those of the whole run."""

    @property
    def first_rows(self) -> npt.NDArray[np.int64]:
        """The first row of every part, and the end of the last one."""

    @property
    def num_ahead(self) -> int:
        """Rows below this are kept ahead of all others and never removed."""

    @property
    def num_ahead_parts(self) -> int:
        """Parts below this hold those rows."""


class Table(Protocol):
    """A table in batches, in memory or not."""

    @property
    def schema(self) -> pa.Schema:
        """Its columns."""

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over some columns, in row order."""


class View(NamedTuple):
    """Some columns of a table, `row` among them, to be grouped by some and put in order by others.

    is_whole: no group is cut in two, whatever it takes to hold it.
    """

    columns: tuple[str, ...]
    by: tuple[str, ...]
    order: tuple[str, ...]
    is_whole: bool = False


class Blocks(Protocol):
    """The documents of a component too large to hold, in keep order."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the documents, a block at a time; from the start each time."""

    def put(self, documents: pa.RecordBatch) -> None:
        """Store documents aside."""

    def stored(self) -> Iterator[pa.RecordBatch]:
        """Iterate over what was put."""


BlockStep = Callable[[Blocks], pa.Table]


class Engine(Protocol):
    """Where stages run. Every engine gives equal tables."""

    @property
    def hold(self) -> Callable[[npt.NDArray[np.uint64]], int] | None:
        """Copies what a step wants to have held to memory, and returns where it starts; None holds nothing."""

    @property
    def holds_all(self) -> bool:
        """Whether everything that steps wanted to have held still is."""

    def map_documents(self, documents: Documents, step: BatchStep, schema: pa.Schema, advance: Advance) -> Table:
        """Apply a step to every document, a batch at a time."""

    def scan_documents(self, documents: Documents, step: BatchStep, schema: pa.Schema, advance: Advance) -> pa.Table:
        """Apply a step to every document and hold what comes of it, which is little."""

    def map_groups(
        self, table: Table, views: Sequence[View], step: BatchStep, where: Bools | None, advance: Advance
    ) -> Iterator[pa.RecordBatch]:
        """Apply a step to the groups of every view, many at a time, of the rows that are True in `where`, or of all.

        A group cut in two shows its first row at the head of both.
        """

    def map_table(
        self,
        name: str,
        table: Table,
        columns: Sequence[str],
        where: Bools,
        make_step: Callable[[], BatchStep],
        schema: pa.Schema,
    ) -> Table:
        """Apply a step to some columns of a table, a batch at a time, of the rows that are True in `where`.

        The result has a name, under which an earlier start of the same run may have left it; then no step is made.
        """

    def count(self, table: Table, columns: Sequence[str], where: Bools, step: CountStep, num_places: int) -> Counts:
        """Let a step add batches to counts; the counts of several workers add up, and end at 255.

        `num_places` is at most 2**27.
        """

    def connected_components(self, links: Iterable[pa.RecordBatch], num_rows: int) -> pa.Table:
        """Name for every linked row the smallest row it is connected with, ascending by row."""

    def find_rows(self, table: Table, rows: npt.NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """Return the given rows of a table, ascending."""

    def map_components(
        self,
        documents: Documents,
        members: pa.Table,
        step: BatchStep,
        block_step: BlockStep,
        schema: pa.Schema,
        advance: Advance,
    ) -> pa.Table:
        """Apply a step to the documents of whole components, best priority first in each.

        A component too large to hold goes to `block_step`, block by block.
        """

    def sort(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, by: Sequence[SortKey]
    ) -> Iterator[pa.RecordBatch]:
        """Sort rows, wherever they fit."""

    def room(self) -> int:
        """Return the bytes of memory that may still be taken; 0 for an engine without a limit."""

    def once(self, name: str, make: Callable[[], pa.Table]) -> pa.Table:
        """Make a table, or take it from an earlier start of the same run."""
