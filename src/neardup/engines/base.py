"""The interface of an engine, and of the tables and documents it works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.events import Tally
from neardup.io.storage.spill import SortKey

I64 = npt.NDArray[np.int64]
BatchStep = Callable[[pa.RecordBatch], pa.RecordBatch]
# Copies sets that should stay in memory until verification, and returns their offset.
Hold = Callable[[npt.NDArray[np.uint64]], int]
DocumentStep = Callable[[pa.RecordBatch, Hold | None], pa.RecordBatch]
Bools = npt.NDArray[np.bool_]
Counts = npt.NDArray[np.uint8]
CountStep = Callable[[pa.RecordBatch, Counts], None]
Advance = Callable[[int], None]
# The tables and the row selections of an engine: `LocalTable` and a mask on one machine, `SparkTable`
# and `Chosen` on Spark. Code for any engine is generic in both, and cannot look inside.
Table = TypeVar("Table")
Rows = TypeVar("Rows")
R = TypeVar("R")
Sort = Callable[[Iterable[pa.RecordBatch], pa.Schema, Sequence[SortKey]], Iterator[pa.RecordBatch]]


def no_progress(steps: int) -> None:
    """Ignore progress: an `Advance` for work that is not reported."""
    del steps


class Source(Protocol):
    """The documents of a run, as the stages see them; each engine has its own kind."""

    @property
    def total(self) -> int:
        """The total that `advance` reaches when every document has been read."""

    @property
    def unit(self) -> str:
        """What `advance` counts."""

    @property
    def num_rows(self) -> int:
        """The number of rows, known once all have been read."""

    @property
    def num_references(self) -> int:
        """Rows below this are reference documents: ahead of all input and never removed."""


class Parts(Protocol):
    """Documents in parts that can be read independently, and more than once."""

    @property
    def total(self) -> int:
        """The total that `advance` reaches when every document has been read."""

    @property
    def unit(self) -> str:
        """What `advance` counts."""

    @property
    def num_parts(self) -> int:
        """The number of parts."""

    @property
    def stops_at_first(self) -> bool:
        """Whether the error of the first failing part must be raised, even if a later part fails sooner."""

    def read(self, part: int, advance: Advance) -> Iterator[pa.RecordBatch]:
        """Read the documents of a part."""


class Documents(Source, Protocol):
    """The documents of one machine, in parts that can be read independently, and more than once."""

    @property
    def num_parts(self) -> int:
        """The number of parts."""

    @property
    def stops_at_first(self) -> bool:
        """Whether the error of the first failing part must be raised, even if a later part fails sooner."""

    def read(self, part: int, advance: Advance) -> Iterator[pa.RecordBatch]:
        """Read the documents of a part, as schema.DOCUMENTS; rows and priorities are its own until `finish_reading`."""

    def has_read(self, part: int) -> bool:
        """Whether an interrupted run has already read a part, so that it can be skipped."""

    def skip(self, part: int, advance: Advance) -> None:
        """Count a part that an interrupted run has already read."""

    def finish_reading(self, sort: Sort) -> None:
        """Number the rows of all parts and compute their keep order, once every part has been read."""

    def renumber(self, part: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Turn rows and priorities local to a part into those of the whole run."""

    @property
    def first_rows(self) -> I64:
        """The first row of every part, and the end of the last one."""

    @property
    def num_reference_parts(self) -> int:
        """Parts below this hold the reference documents."""


# What a scan of a part takes to a worker, and what it brings back.
Arrays = Mapping[str, npt.NDArray[Any]]


class PartScan(Protocol):
    """A look at every document, whose findings the object holds.

    Where other processes look, each gets what `part_of` returns for the rows of its part, makes a scan of it with
    `make`, and brings back what that has `found`, which is merged here.
    """

    def look(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Look at some documents; return schema.COUNTS, or the rows of another table; thread-safe."""

    def part_of(self, first: int, stop: int) -> Arrays | None:
        """Return what a scan of the rows from `first` to `stop` needs; None if it has nothing to look for."""

    @property
    def make(self) -> Callable[[Arrays], PartScan]:
        """Return a function that makes a scan of a part; it can be pickled."""

    def found(self) -> Arrays:
        """Return what was found."""

    def merge(self, first: int, stop: int, found: Arrays) -> None:
        """Add what was found in the rows from `first` to `stop`."""


class TableView(NamedTuple):
    """Some columns of a table, including `row`, with the columns to group by and to sort by.

    is_whole: never split a group, however large it is.
    """

    columns: tuple[str, ...]
    by: tuple[str, ...]
    order: tuple[str, ...]
    is_whole: bool = False


class Blocks(Protocol):
    """The documents of a component too large for memory, in keep order."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the documents, block by block, from the start each time."""

    def put(self, documents: pa.RecordBatch) -> None:
        """Spill documents to disk."""

    def stored(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the spilled documents."""


# Takes pairs as they are found, as schema.PARTNERED.
PutPairs = Callable[[pa.RecordBatch], None]


class WholeStep(Protocol):
    """A step for whole components."""

    def __call__(
        self, batch: pa.RecordBatch, *, tally: Tally | None = None, put: PutPairs | None = None
    ) -> pa.RecordBatch:
        """Map a batch; `tally` counts the documents that are done, `put` takes the pairs found."""


class BlockStep(Protocol):
    """A step for a component too large for memory."""

    def __call__(
        self, blocks: Blocks, *, tally: Tally | None = None, put: PutPairs | None = None
    ) -> pa.Table:
        """Map its documents; `tally` counts those that are done, `put` takes the pairs found."""


class VerifiedPairs(NamedTuple):
    """The rows of verified documents; their pairs, as schema.PARTNERED, in any order; and how to sort a table."""

    rows: I64
    batches: Callable[[], Iterator[pa.RecordBatch]]
    sort: Sort


# Takes copies and the pairs of verified documents; None if no documents have been verified yet.
ClassStep = Callable[[pa.Table, VerifiedPairs | None], Iterator[pa.RecordBatch]]


class ComponentSteps(NamedTuple):
    """How to verify the documents of components.

    whole: takes whole components with the columns component, row, text (or the set kept in memory),
    priority and group;
    blocks: takes a component too large for memory; cost: returns the bytes of memory that verifying
    documents takes, given their bytes of text and numbers of shingles.
    """

    whole: WholeStep
    blocks: BlockStep
    cost: Callable[[I64, I64], I64]


class PairSteps(Protocol):
    """How every two documents are compared."""

    def block(self, batch: pa.RecordBatch) -> Any:
        """Prepare a block of documents to be compared."""

    def link(self, block: Any, batch: pa.RecordBatch, position: int) -> pa.RecordBatch:
        """Link the documents of a block with those of a piece.

        `position` is that of the first one of the piece in the block, or the size of the block;
        each is compared with the documents of the block before its own position.
        """


class Engine(Protocol[Table, Rows]):
    """Where stages run: on the threads of one process, or on a cluster. All engines return equal rows.

    A stage is a function from Arrow batch to Arrow batch, independent of the engine. An engine
    decides where batches live, which of them are processed in parallel and what is spilled to disk,
    and does not know the stages. `pipeline.run` connects the two:

        map_documents                  read every document once, and sketch it
        choose_rows                    select the rows for a later step
        map_groups, map_classes        process rows that belong together: a bucket, a class, a component
        connected_components           the components of the link graph
        map_components                 read the documents of components again, and verify them
        map_read                       read selected documents again
        map_block_pairs                process every row with every other one
        map_table, map_tables, lookup  process the rows of tables, and join columns of another table
        count, total                   aggregate a table
        counting                       report how many rows a step is done with
        once                           materialise a table that is used more than once

    Only the engine that made a `Table`, and code for that engine, looks inside. Every table has one
    or two row columns. Tables from `once` are sorted by `schema.row_order`, if the
    tables of this engine have an order at all; so are those from `map_classes`, whose steps yield
    rows in that order. A step with a name is a checkpoint: a resumed run does not repeat it.
    """

    # The secret of the digests of this run, also after it is resumed.
    secret: bytes

    def map_documents(
        self, documents: Any, step: DocumentStep, schema: pa.Schema, advance: Advance
    ) -> Table:
        """Apply a step to every document, batch by batch; `documents` is the `Source` of this engine.

        The step also receives a `Hold` to keep sets in memory, or None if this engine cannot.
        """

    def choose_rows(
        self,
        table: Table,
        column: str | None,
        num_rows: int,
        without: Table | None = None,
        *,
        below: int | None = None,
    ) -> Rows:
        """Select the rows of a table with a positive value in a column, or all, except those in the table `without`.

        All rows are less than `num_rows`; `below`: the values of the column must be less than it.
        """

    def map_groups(
        self,
        table: Table,
        views: Sequence[TableView],
        step: BatchStep,
        where: Rows | None,
        advance: Advance,
    ) -> Table:
        """Apply a step to the groups of every view, many per batch, for the rows in `where` or all rows.

        If a group is split, its first row heads both parts. A step must accept an empty batch. The
        result can be consumed once.
        """

    def map_classes(
        self, classes: Table, verified: Table | None, step: ClassStep, schema: pa.Schema
    ) -> Table:
        """Apply a step to copies and the pairs of verified documents; those of a component are in the same call.

        Without verified documents, the copies of a class are in the same call, with all their
        columns. The result can be consumed once.
        """

    def connected_components(self, links: Table, num_rows: int) -> Table:
        """Return for every linked row the smallest row of its component, ascending by row."""

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

        Sets that `map_documents` has kept in memory replace the texts; otherwise the documents are
        read again.
        """

    def map_read(
        self,
        name: str,
        documents: Any,
        sketches: Table,
        where: Rows,
        step: BatchStep,
        schema: pa.Schema,
    ) -> Table:
        """Apply a step to the documents of the rows in `where`.

        Sets kept in memory replace the texts; if some are missing, the documents are read again.
        """

    def map_block_pairs(
        self, table: Table, steps: PairSteps, schema: pa.Schema, advance: Advance
    ) -> Table:
        """Compare every two rows of a table from `map_read`, block by block. The result can be consumed once."""

    def map_table(
        self,
        name: str,
        table: Table,
        columns: Sequence[str],
        where: Rows,
        make_step: Callable[[], BatchStep],
        schema: pa.Schema,
    ) -> Table:
        """Apply a step to some columns of a table, batch by batch, for the rows in `where`.

        `make_step` is not called if an interrupted run has already finished the table.
        """

    def map_tables(self, tables: Sequence[Table], step: BatchStep, schema: pa.Schema) -> Table:
        """Apply a step to the rows of some tables, and return the results as one table."""

    def lookup(self, table: Table, key: str, other: Table, columns: Sequence[str]) -> Table:
        """Left-join columns of `other`, matching `key` with its `row`, which is unique; null without a match."""

    def count(
        self, table: Table, columns: Sequence[str], where: Rows, step: CountStep, num_counters: int
    ) -> Counts:
        """Let a step add batches to an array of counters; those of several workers are added, saturating at 255.

        `num_counters` is at most 2**27.
        """

    def counting(self, step: Callable[..., R], tally: Tally) -> Callable[..., R]:
        """Let a step count the rows of every batch it is done with; where steps run elsewhere, return it as it is."""

    def total(
        self, table: Table, column: str | None = None, where: Rows | None = None, first_row: int = 0
    ) -> int:
        """Return the sum of a column, or the number of rows, over the rows in `where` or all rows.

        Rows below `first_row` do not count.
        """

    def checkpoint(
        self, name: str, make: Callable[[], Table], schema: pa.Schema | None = None
    ) -> Table:
        """Materialise a table that can be read many times, or load it from an interrupted run.

        With a schema it is sorted; without, `make` returns a sorted table.
        """
