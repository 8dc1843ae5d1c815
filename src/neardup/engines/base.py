"""What an engine can do, and what it works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.io.spill import SortKey

I64 = npt.NDArray[np.int64]
BatchStep = Callable[[pa.RecordBatch], pa.RecordBatch]
# Copies what a step wants to have held in memory until it is verified, and returns where it starts.
Hold = Callable[[npt.NDArray[np.uint64]], int]
DocumentStep = Callable[[pa.RecordBatch, Hold | None], pa.RecordBatch]
Bools = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.uint8]
CountStep = Callable[[pa.RecordBatch, Counts], None]
Advance = Callable[[int], None]
# An engine's own kinds of table and of a choice of rows: only the engine that made one looks inside.
Table = Any
Rows = Any
Sort = Callable[[Iterable[pa.RecordBatch], pa.Schema, Sequence[SortKey]], Iterator[pa.RecordBatch]]


def no_progress(steps: int) -> None:
    """Ignore progress: an `Advance` for work that is not reported."""
    del steps


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
    def first_rows(self) -> I64:
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


class ComponentSteps(NamedTuple):
    """How the documents of components are verified.

    whole: takes whole components with the columns component, row, text (or the set that was held), priority and group;
    blocks: takes a component too large to hold; cost: bytes of memory that verifying documents takes, from their bytes
    of text and numbers of shingles.
    """

    whole: BatchStep
    blocks: BlockStep
    cost: Callable[[I64, I64], I64]


class Engine(Protocol):
    """Where stages run: on the threads of one process, or on a cluster. Every engine gives equal rows.

    A stage is a function from Arrow batch to Arrow batch, and knows no engine; an engine decides where batches are,
    which of them are worked on at once, and what goes to disk, and knows no stage. `pipeline.run` ties the two:

        map_documents                  read every document, once, and sketch it
        choose_rows                    name the rows that a later step is for
        map_groups, map_classes        work on rows that belong together: of one bucket, one class, one component
        connected_components           the groups that links make
        map_components                 read the documents of components again, and verify them
        map_read                       read chosen documents again
        map_table, map_tables, lookup  work on the rows of tables, and put columns of one beside another
        count, total                   numbers about a table
        once                           make a table that is used more than once

    A `Table` belongs to the engine that made it: hand it back, and look inside only in code for that engine. Every
    table has a column `row`, or two. What `once` and `map_classes` return is in the order of `schema.row_order`, if
    tables of this engine have an order at all. What has a name is finished once for all: a run that was killed finds it
    when it starts again.
    """

    def map_documents(self, documents: Any, step: DocumentStep, schema: pa.Schema, advance: Advance) -> Table:
        """Apply a step to every document, a batch at a time; `documents` is the `Source` of this engine.

        The step is handed what it may have sets held by, or None: then what stands for a text is lost with the batch.
        """

    def choose_rows(
        self, table: Table, column: str | None, num_rows: int, without: Table | None = None, *, below: int | None = None
    ) -> Rows:
        """Choose the rows of a table that are above zero in a column, or all, but for those of the table `without`.

        `num_rows`: rows are below it; `below`: the column is, too.
        """

    def map_groups(
        self, table: Table, views: Sequence[View], step: BatchStep, where: Rows | None, advance: Advance
    ) -> Table:
        """Apply a step to the groups of every view, many at a time, of the rows in `where`, or of all.

        A group cut in two shows its first row at the head of both. A step takes a batch without rows too. The result
        is good for one use.
        """

    def map_classes(self, classes: Table, verified: Table | None, step: ClassStep, schema: pa.Schema) -> Table:
        """Apply a step to copies and verified documents, those of a component together.

        Without verified documents the copies of a class are together, with all columns that they have. The result is
        good for one use.
        """

    def connected_components(self, links: Table, num_rows: int) -> Table:
        """Name for every linked row the smallest row it is connected with, ascending by row."""

    def map_components(
        self,
        documents: Any,
        components: Table,
        sketches: Table,
        steps: ComponentSteps,
        schema: pa.Schema,
        advance: Advance,
    ) -> Table:
        """Verify the documents of whole components, best priority first in each.

        What is held since `map_documents` made `sketches` stands for the text; else the documents are read once more.
        """

    def map_read(
        self, name: str, documents: Any, sketches: Table, where: Rows, step: BatchStep, schema: pa.Schema
    ) -> Table:
        """Apply a step to the documents of the rows in `where`, out of those `map_documents` made `sketches` of.

        What is held stands for the text; where not all is held, the documents are read once more.
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

        No step is made where an earlier start of the run has finished the table.
        """

    def map_tables(self, tables: Sequence[Table], step: BatchStep, schema: pa.Schema) -> Table:
        """Apply a step to the rows of some tables, and return all in one table."""

    def lookup(self, table: Table, key: str, other: Table, columns: Sequence[str]) -> Table:
        """Add to every row the columns of the one row of `other` whose `row` is its `key`; null where there is none."""

    def count(self, table: Table, columns: Sequence[str], where: Rows, step: CountStep, num_places: int) -> Counts:
        """Let a step add batches to counts; the counts of several workers add up, and end at 255.

        `num_places` is at most 2**27.
        """

    def total(self, table: Table, column: str | None = None, where: Rows | None = None, first_row: int = 0) -> int:
        """Return the sum of a column, or the number of rows, over the rows in `where`, or over all.

        Only rows from `first_row` on count.
        """

    def once(self, name: str, make: Callable[[], Table], schema: pa.Schema | None = None) -> Table:
        """Make a table that can be used many times, or take it from an earlier start.

        With a schema it is put in order; without, `make` returns a table that is.
        """
