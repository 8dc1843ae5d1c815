"""What an engine can do, and what it works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.io.spill import SortKey

BatchStep = Callable[[pa.RecordBatch], pa.RecordBatch]
Bools = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.uint8]
CountStep = Callable[[pa.RecordBatch, Counts], None]
Advance = Callable[[int], None]
# An engine's own kinds of table and of a choice of rows: only the engine that made one looks inside.
Table = Any
Rows = Any
Sort = Callable[[Iterable[pa.RecordBatch], pa.Schema, Sequence[SortKey]], Iterator[pa.RecordBatch]]


class Source(Protocol):
    """Where documents come from, as the stages see it; each engine has its own kind."""

    @property
    def total(self) -> int:
        """What `advance` adds up to when every document was read."""

    @property
    def unit(self) -> str:
        """What `advance` counts."""

    @property
    def num_rows(self) -> int:
        """Rows are below this, once all were read."""

    @property
    def num_ahead(self) -> int:
        """Rows below this are kept ahead of all others and never removed."""


class Documents(Source, Protocol):
    """The documents of one machine, in parts that can be read apart, and again."""

    @property
    def num_parts(self) -> int:
        """How many parts there are."""

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
    def num_ahead_parts(self) -> int:
        """Parts below this hold the rows that are kept ahead."""


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
# Copies and verified documents in, as pa.Table; None for verified documents where there are none yet.
ClassStep = Callable[[pa.Table, pa.Table | None], Iterator[pa.RecordBatch]]
ClassCount = Callable[[pa.Table, pa.Table | None], int]


class Engine(Protocol):
    """Where stages run. Every engine gives equal tables."""

    @property
    def hold(self) -> Callable[[npt.NDArray[np.uint64]], int] | None:
        """Copies what a step wants to have held to memory, and returns where it starts; None holds nothing."""

    @property
    def holds_all(self) -> bool:
        """Whether everything that steps wanted to have held still is."""

    def map_documents(self, documents: Any, step: BatchStep, schema: pa.Schema, advance: Advance) -> Table:
        """Apply a step to every document, a batch at a time; `documents` is the `Source` of this engine."""

    def rows_with(self, table: Table, column: str | None, num_rows: int) -> Rows:
        """Choose the rows of a table that are above zero in a column; all of them for None."""

    def without(self, rows: Rows, table: Table) -> Rows:
        """Choose the rows that are not in the column `row` of a table; what was given is used up."""

    def map_read(
        self, name: str, documents: Any, table: Table, where: Rows, step: BatchStep, schema: pa.Schema
    ) -> Table:
        """Apply a step to documents that `map_documents` made `table` of, of the rows in `where`.

        What is held stands for the text; where not all is held, the documents are read once more.
        """

    def map_groups(
        self, table: Table, views: Sequence[View], step: BatchStep, where: Rows | None, advance: Advance
    ) -> Table:
        """Apply a step to the groups of every view, many at a time, of the rows in `where`, or of all.

        A group cut in two shows its first row at the head of both. A step takes a batch without rows too.
        """

    def map_table(
        self,
        name: str,
        table: Table,
        columns: Sequence[str],
        where: Rows,
        make_step: Callable[[], BatchStep],
        schema: pa.Schema,
    ) -> Table:
        """Apply a step to some columns of a table, a batch at a time, of the rows in `where`.

        The result has a name, under which an earlier start of the same run may have left it; then no step is made.
        """

    def count(self, table: Table, columns: Sequence[str], where: Rows, step: CountStep, num_places: int) -> Counts:
        """Let a step add batches to counts; the counts of several workers add up, and end at 255.

        `num_places` is at most 2**27.
        """

    def connected_components(self, links: Table, num_rows: int) -> Table:
        """Name for every linked row the smallest row it is connected with, ascending by row."""

    def lookup(self, table: Table, key: str, other: Table, columns: Sequence[str]) -> Table:
        """Add to every row the columns of the one row of `other` whose `row` is its `key`; null where there is none."""

    def map_tables(self, tables: Sequence[Table], step: BatchStep, schema: pa.Schema) -> Table:
        """Apply a step to the rows of some tables, and return all in one table."""

    def map_components(
        self,
        documents: Any,
        members: Table,
        step: BatchStep,
        block_step: BlockStep,
        schema: pa.Schema,
        advance: Advance,
    ) -> Table:
        """Apply a step to the documents of whole components, best priority first in each.

        A component too large to hold goes to `block_step`, block by block.
        """

    def map_classes(self, classes: Table, verified: Table | None, step: ClassStep, schema: pa.Schema) -> Table:
        """Apply a step to copies and verified documents, those of a component together.

        Without verified documents the copies of a class are together, with all columns that they have.
        """

    def count_classes(self, classes: Table, verified: Table | None, count: ClassCount) -> int:
        """Add up what `count` says of copies and verified documents, brought together as by `map_classes`."""

    def count_rows(self, table: Table, first_row: int = 0) -> int:
        """Return how many rows of a table have a `row` from `first_row` on."""

    def add_up(self, table: Table, column: str, where: Rows | None = None) -> int:
        """Return the sum of a column over the rows in `where`, or over all."""

    def sort(self, table: Table, schema: pa.Schema, by: Sequence[SortKey]) -> Table:
        """Put rows in order, where tables of this engine have one; the result may be good for one use only."""

    def room(self) -> int:
        """Return the bytes of memory that a step may still take here; 0 for no limit."""

    def once(self, name: str, make: Callable[[], Table], schema: pa.Schema | None = None) -> Table:
        """Make a table that can be used many times, or take it from an earlier start; `schema` of what is made anew."""
