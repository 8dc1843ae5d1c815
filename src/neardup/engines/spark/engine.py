"""Runs stages on the workers of a Spark cluster; a table is a DataFrame without an order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from neardup import schema as schemas
from neardup.engines.base import (
    Advance,
    BatchStep,
    ClassStep,
    ComponentSteps,
    Counts,
    CountStep,
    DocumentStep,
    Engine,
    PairSteps,
    TableView,
    VerifiedPairs,
)
from neardup.engines.local.block_pairs import BLOCK_BYTES, map_block_pairs
from neardup.engines.local.groups import headed_groups, split_groups, whole_groups
from neardup.engines.local.limits import available_cores
from neardup.engines.spark.arrow_steps import (
    Batches,
    arrow_schema,
    large,
    large_table,
    map_frame,
    plain,
    spark_schema,
)
from neardup.engines.spark.component_sizes import Largest, watch_sizes
from neardup.engines.spark.counts import add_counts
from neardup.engines.spark.documents import FileSource, SparkSource
from neardup.engines.spark.packed import BLOCKS, Exchange, map_buckets
from neardup.engines.spark.reading import leave_out, texts_schema, view_batches
from neardup.engines.spark.row_selection import Chosen, keep_all, select_rows, widened
from neardup.engines.spark.stars import FEW_LINKS, connect, connect_few
from neardup.engines.spark.storage import FEW_ROWS, SparkTable, Storage, StoredTable
from neardup.engines.spark.whole_components import map_whole
from neardup.engines.spark.written_tables import TableFiles
from neardup.errors import ConfigError
from neardup.events import Tally
from neardup.io.storage.spill import sort_in_memory
from neardup.io.storage.workspace import Workspace
from neardup.kernels import union_find
from neardup.kernels.keys import own_secret
from neardup.report import format_bytes
from neardup.theory.shingle_advice import FEW_SHINGLES

R = TypeVar("R")

# The most text of one component that a task holds in memory; verifying takes up to eight times as
# much.
COMPONENT_BYTES: Final = 64 << 20
_LOWEST_ROW: Final = -(1 << 63)
# Assumed bytes of a document of a frame, whose size is not known.
_BYTES_A_DOCUMENT: Final = 4096
# The most bytes of documents that the driver holds to compare them with each other, and how many it
# cuts into pieces at once.
_COMPARED_BYTES: Final = 1 << 30
_COMPARED_ROWS: Final = 1 << 14
# A worker sorts the texts of a bucket in memory up to this many times the limit of one component.
_BUCKET_COMPONENTS: Final = 4
# Up to this many excluded rows are read and filtered out by every worker, which takes less time
# than a join.
_FEW_LEFT_OUT: Final = 1_000_000
# Copies and verified documents per step that lists pairs.
_LISTED_ROWS: Final = 200_000


class _Question(NamedTuple):
    """The rows that are counted, or the column that is summed, which a run asks for more than once."""

    table: SparkTable
    column: str | None
    where: Chosen | None
    first_row: int


class SparkEngine(Engine[SparkTable, Chosen]):
    """Runs stages on a Spark session.

    Args:
        spark: the session.
        folder: where tables are kept between stages, on a path that every worker reaches; None
            takes the checkpoint folder of the session, or on one machine a temporary one. It is
            removed when the session ends.
        component_bytes: a component with more text than this is spilled to disk and verified block
            by block.
        few_links: the most links that one task joins; more are first reduced by rounds of stars.
        few_rows: the most rows that one task writes as one file; a larger table of a run on files
            becomes a folder.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        folder: str | None = None,
        component_bytes: int = COMPONENT_BYTES,
        few_links: int = FEW_LINKS,
        few_rows: int = FEW_ROWS,
    ) -> None:
        self.spark = spark
        self._folder = folder
        self._component_bytes = component_bytes
        self._few_links = few_links
        self.few_rows = few_rows
        self.secret = own_secret()
        self._workspace: Workspace | None = None
        self._storage: Storage | None = None
        self._num_documents = 0  # those with shingles
        self._links: Observation | None = None  # counted while they are joined
        self._components: SparkTable | None = None  # those that were verified
        self._totals: dict[_Question, int] = {}
        self.facts: dict[str, Any] = {"name": "spark"}

    def begin(self, workspace: Workspace | None = None) -> SparkEngine:
        """Return an engine with its own tables for one run; with a workspace, an interrupted run is resumed."""
        engine = SparkEngine(
            self.spark,
            folder=self._folder,
            component_bytes=self._component_bytes,
            few_links=self._few_links,
            few_rows=self.few_rows,
        )
        engine._workspace = workspace
        if workspace is not None:
            engine.secret = workspace.secret
        return engine

    @property
    def storage(self) -> Storage:
        """The tables of this run."""
        if self._storage is None:
            self._storage = Storage(self.spark, self._folder, self._workspace)
        return self._storage

    def tables(self, source: FileSource) -> TableFiles:
        """Return the writer of the tables of a run on files."""
        return TableFiles(source, self.storage, _BUCKET_COMPONENTS * self._component_bytes)

    def map_documents(
        self, documents: SparkSource, step: DocumentStep, schema: pa.Schema, advance: Advance
    ) -> SparkTable:
        """Read the documents on all workers; sets are not kept in memory, because they would be lost with a worker."""
        num_bytes = documents.total
        if documents.unit != "bytes":
            num_bytes *= _BYTES_A_DOCUMENT
        self.storage.plan_partitions(num_bytes)
        self.storage.listen(advance, documents.total)
        notes = self.storage.checkpoint(
            "notes",
            lambda: documents.read(lambda batch: step(batch, None), schema),
            documents.metrics(),
            documents.facts,
        )
        documents.finish_reading(notes, self.storage)
        sketches = SparkTable(documents.sketches(schema))
        self._num_documents = documents.counted["with_shingles"]
        for below, name in ((None, "with_shingles"), (FEW_SHINGLES, "with_few_shingles")):
            every = Chosen("num_shingles", None, below)
            self._totals[_Question(sketches, None, every, 0)] = documents.counted[name]
        return sketches

    def choose_rows(
        self,
        table: SparkTable,
        column: str | None,
        num_rows: int,
        without: SparkTable | None = None,
        *,
        below: int | None = None,
    ) -> Chosen:
        """Record the selection; nothing is computed yet."""
        del table, num_rows
        return Chosen(column, without, below)

    def map_groups(
        self,
        table: SparkTable,
        views: Sequence[TableView],
        step: BatchStep,
        where: Chosen | None,
        advance: Advance,
    ) -> SparkTable:
        """Shuffle the groups of all views in one exchange; each group streams through one task, in order."""
        self.storage.listen(advance, len(views))
        names, by, order, is_whole = views[0]
        wanted = {name for view in views for name in view.columns}
        rows, spare = self._spared(table, where)
        # The keys of all bands are one column.
        if "keys" in rows.columns and not wanted <= set(rows.columns):
            wanted.add("keys")
        rows = rows.select(*(name for name in rows.columns if name in wanted))
        kinds = {field.name: field.type for field in arrow_schema(rows)}
        columns = pa.schema([(name, kinds.get(name, pa.int64())) for name in names])
        exchange = self._exchange(columns, by, (*by, *order))

        def pack(batches: Batches) -> Iterator[pa.RecordBatch]:
            spared = (spare(large(batch)) for batch in batches)
            return exchange.pack(
                chain.from_iterable(view_batches(batch, views, columns) for batch in spared)
            )

        cut = whole_groups if is_whole else headed_groups
        nothing = step(pa.RecordBatch.from_pylist([], schema=columns)).schema
        blocks = map_frame(rows, BLOCKS, pack)
        return SparkTable(
            map_buckets(blocks, exchange, nothing, lambda batches: map(step, cut(batches, by)))
        )

    def _exchange(
        self, columns: pa.Schema, by: tuple[str, ...], order: tuple[str, ...]
    ) -> Exchange:
        limit = _BUCKET_COMPONENTS * self._component_bytes
        return Exchange(
            columns=columns,
            by=by,
            order=order,
            num_buckets=self.storage.num_partitions,
            limit=limit,
        )

    def _spared(self, table: SparkTable, where: Chosen | None) -> tuple[DataFrame, BatchStep]:
        """Select rows; if few are excluded, return a step that filters them on the workers, instead of a join."""
        left_out = None if where is None else where.without
        if where is None or not isinstance(left_out, StoredTable):
            return select_rows(table, where), keep_all
        num_rows = left_out.observed["rows"]
        if num_rows > _FEW_LEFT_OUT:
            return select_rows(table, where), keep_all
        rows = select_rows(table, Chosen(where.column, None, where.below))
        if not num_rows:
            return rows, keep_all
        return rows, partial(leave_out, folder=left_out.path)

    def map_table(
        self,
        name: str,
        table: SparkTable,
        columns: Sequence[str],
        where: Chosen,
        make_step: Callable[[], BatchStep],
        schema: pa.Schema,
    ) -> StoredTable:
        """Map the rows in their partitions, and store the result."""

        def make() -> SparkTable:
            rows, spare = self._spared(table, where)
            step = make_step()
            mapped = map_frame(
                rows.select(*columns), schema, lambda batches: map(step, widened(batches, spare))
            )
            return SparkTable(mapped)

        return self.checkpoint(name, make)

    def map_read(
        self,
        name: str,
        documents: SparkSource,
        sketches: SparkTable,
        where: Chosen,
        step: BatchStep,
        schema: pa.Schema,
    ) -> StoredTable:
        """Read the documents again on all workers, and store the result."""
        rows = select_rows(sketches, where).select(
            "row", F.lit(0).cast("bigint").alias("component"), "priority"
        )

        def make() -> SparkTable:
            return SparkTable(documents.map_texts(rows, schema, lambda batches: map(step, batches)))

        return self.checkpoint(name, make)

    def map_block_pairs(
        self, table: SparkTable, steps: PairSteps, schema: pa.Schema, advance: Advance
    ) -> SparkTable:
        """Compare every two rows on the driver, which holds them all; more than it may hold is an error."""
        counted = self.storage.run(table.frame.agg(F.sum(F.length("text"))).first)
        num_bytes = int(counted[0] or 0) if counted else 0
        if num_bytes > _COMPARED_BYTES:
            raise ConfigError(
                f"the exact method compares all documents on the driver of Spark, which may hold "
                f"{format_bytes(_COMPARED_BYTES)} of them, got {format_bytes(num_bytes)}",
                hint="pass method='lsh' and a recall below 1, or run it with engine='local'",
            )
        collected = (
            self.collect(table, "documents to compare").sort_by("row").cast(schemas.COMPARED)
        )
        found = map_block_pairs(
            lambda: collected.to_batches(max_chunksize=_COMPARED_ROWS),
            steps,
            available_cores(),
            BLOCK_BYTES,
            advance,
        )
        rows = collected.column("row").to_numpy()
        parents = np.arange(rows.size)
        for links in found:
            ends = (np.searchsorted(rows, column.to_numpy()) for column in links.columns)
            union_find.union_links(*ends, parents)
        is_linked = parents != np.arange(rows.size)
        if not is_linked.any():
            return self.empty(schema)
        forest = pa.table([rows[is_linked], rows[parents[is_linked]]], schema=plain(schema))
        return SparkTable(self.spark.createDataFrame(forest))

    def count(
        self,
        table: SparkTable,
        columns: Sequence[str],
        where: Chosen,
        step: CountStep,
        num_counters: int,
    ) -> Counts:
        """Count on all workers, one array each; the driver holds the sum."""
        rows, spare = self._spared(table, where)
        rows = rows.select(*columns).coalesce(max(self.spark.sparkContext.defaultParallelism, 1))
        return self.storage.run(
            lambda: add_counts(rows, partial(widened, spare=spare), step, num_counters),
            "shingle counts",
        )

    def collect_below(self, table: SparkTable, columns: Sequence[str], row: int) -> pa.Table:
        """Return the rows below a row that have shingles, on the driver, sorted."""
        is_wanted = (F.col("row") < F.lit(row)) & (F.col("num_shingles") > 0)
        rows = table.frame.where(is_wanted).select(*columns)
        return large_table(self.storage.run(rows.toArrow, "reference documents").sort_by("row"))

    def collect(self, table: SparkTable, what: str) -> pa.Table:
        """Return a small table, on the driver, in no order."""
        return self.storage.run(table.frame.toArrow, what)

    def collect_range(
        self,
        count: int,
        step: Callable[[int], pa.RecordBatch],
        schema: pa.Schema,
        progress: tuple[Advance, int],
    ) -> pa.Table:
        """Apply a step to the numbers below `count`, each in a task of its own, and return the results."""
        numbers = self.spark.range(0, count, 1, max(count, 1))
        self.storage.listen(*progress)

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            return (step(number) for batch in batches for number in batch.column("id").to_pylist())

        return self.collect(SparkTable(map_frame(numbers, schema, run)), "neighbours")

    def empty(self, schema: pa.Schema) -> SparkTable:
        """Return a table without rows."""
        return SparkTable(self.spark.createDataFrame([], spark_schema(schema)))

    def connected_components(self, links: SparkTable, num_rows: int) -> SparkTable:
        """Join few documents in one task; otherwise run rounds of large and small stars, storing each."""
        del num_rows
        if self._num_documents <= self._few_links:
            components, self._links = connect_few(links.frame)
        else:
            components, sizes = connect(links.frame, self.storage, self._few_links)
            self.facts["component_rounds"] = sizes
        return SparkTable(components)

    def lookup(
        self, table: SparkTable, key: str, other: SparkTable, columns: Sequence[str]
    ) -> SparkTable:
        """Left-join; Spark handles skew by splitting or broadcasting."""
        found = other.frame.select(F.col("row").alias("found_row"), *columns)
        joined = table.frame.join(found, F.col(key) == F.col("found_row"), "left")
        return SparkTable(joined.drop("found_row"))

    def map_tables(
        self, tables: Sequence[SparkTable], step: BatchStep, schema: pa.Schema
    ) -> SparkTable:
        """Map the rows in their partitions."""

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            return (step(large(batch)) for batch in batches)

        mapped = (map_frame(table.frame, schema, run) for table in tables)
        return SparkTable(reduce(DataFrame.unionByName, mapped))

    def map_components(
        self,
        documents: SparkSource,
        components: SparkTable,
        sketches: SparkTable,
        steps: ComponentSteps,
        schema: pa.Schema,
        advance: Advance,
    ) -> StoredTable:
        """Read the members again, shuffle them by component, and stream them through the step."""
        if not isinstance(components, StoredTable):
            raise TypeError("components must be stored before they are verified")
        found = components.observed
        read = Observation()
        self._components = components
        largest = self.spark.sparkContext.accumulator((0, 0), Largest())
        limit = self._component_bytes

        def verify(batches: Batches) -> Iterator[pa.RecordBatch]:
            return map_whole(watch_sizes(batches, largest.add), steps.whole, steps.blocks, limit)

        def make() -> SparkTable:
            members = self.lookup(components, "row", sketches, ["priority", "text_bytes"]).frame
            members = members.observe(read, F.sum("text_bytes").alias("text_bytes"))
            columns = texts_schema(documents.config)
            exchange = self._exchange(columns, ("component",), ("component", "priority", "row"))
            blocks = documents.map_texts(members.drop("text_bytes"), BLOCKS, exchange.pack)
            return SparkTable(map_buckets(blocks, exchange, schema, verify))

        def facts() -> dict[str, Any]:
            documents_of_one, bytes_of_one = largest.value
            return {
                "components": found["components"],
                "linked_documents": found["rows"],
                "largest_component": documents_of_one,
                "linked_text_bytes": read.get["text_bytes"] or 0,
                "largest_component_bytes": bytes_of_one,
            }

        self.storage.listen(advance, found["rows"])
        return self.checkpoint("verified", make, facts=facts)

    def map_classes(
        self, classes: SparkTable, verified: SparkTable | None, step: ClassStep, schema: pa.Schema
    ) -> SparkTable:
        """Shuffle the copies and verified documents of a component into the same bucket."""
        sides = _copies if verified is None else _sides

        def run(batches: Batches) -> Iterator[pa.RecordBatch]:
            for bucket in split_groups(batches, "bucket"):
                yield from step(*sides(bucket))

        return SparkTable(map_frame(self._together(classes, verified), schema, run))

    def _together(self, classes: SparkTable, verified: SparkTable | None) -> DataFrame:
        """Union copies and verified documents; those of a component, or of a class, get the same bucket."""
        num_rows = self.total(classes)
        if verified is not None:
            num_rows += self.total(verified)
        num_buckets = num_rows // _LISTED_ROWS + 1

        def bucket(by: Column) -> Column:
            return F.pmod(F.xxhash64(by), F.lit(num_buckets)).alias("bucket")

        if verified is None:
            rows = classes.frame.select(bucket(F.col("representative")), "*")
        elif self._components is None:
            raise TypeError("only this engine's verified documents have components")
        else:
            copies = self.lookup(classes, "representative", self._components, ["component"]).frame
            rows = copies.select(
                bucket(F.coalesce("component", "representative")),
                "row",
                "representative",
                F.lit(None).cast("binary").alias("partners"),
                F.lit(None).cast("binary").alias("partner_similarities"),
            )
            documents = self.lookup(verified, "row", self._components, ["component"]).frame
            rows = rows.unionByName(
                documents.select(
                    bucket(F.col("component")),
                    "row",
                    F.lit(None).cast("bigint").alias("representative"),
                    "partners",
                    "partner_similarities",
                )
            )
        return rows.repartition("bucket").sortWithinPartitions("bucket")

    def counting(self, step: Callable[..., R], tally: Tally) -> Callable[..., R]:
        """Return the step: it runs on workers."""
        del tally
        return step

    def total(
        self,
        table: SparkTable,
        column: str | None = None,
        where: Chosen | None = None,
        first_row: int = 0,
    ) -> int:
        """Look up what was observed when the table was stored, else count or sum on all workers."""
        is_whole = where is None and first_row in (0, _LOWEST_ROW)
        if is_whole and isinstance(table, StoredTable) and (column or "rows") in table.observed:
            return int(table.observed[column or "rows"] or 0)
        question = _Question(table, column, where, first_row)
        if question not in self._totals:
            rows = select_rows(table, where)
            if first_row:
                rows = rows.where(F.col("row") >= first_row)
            what = F.count(F.lit(1)) if column is None else F.sum(column)
            row = self.storage.run(rows.agg(what).first)
            self._totals[question] = int(row[0] or 0) if row else 0
        return self._totals[question]

    def compute(self, frame: DataFrame, what: str) -> None:
        """Compute a frame for its side effects."""
        self.storage.run(frame.count, what)

    def checkpoint(
        self,
        name: str,
        make: Callable[[], SparkTable],
        schema: pa.Schema | None = None,
        *,
        facts: Callable[[], dict[str, Any]] = dict,
    ) -> StoredTable:
        """Compute and store an unordered table; `facts`: returns facts about the run, called once it is stored."""
        del schema
        stored = self.storage.checkpoint(
            name, lambda: make().frame, facts=lambda: {"engine": self._learn() | facts()}
        )
        self.facts |= stored.observed["engine"]
        return stored

    def _learn(self) -> dict[str, Any]:
        """Return the facts so far; a resumed run takes them from the tables it loads."""
        if self._links is not None:
            self.facts["component_rounds"] = [self._links.get["links"]]
            self._links = None
        return dict(self.facts)


_SIDES: Final = pa.schema(
    [
        ("row", pa.int64()),
        ("representative", pa.int64()),
        *(schemas.VERIFIED.field(name) for name in ("partners", "partner_similarities")),
    ]
)


def _copies(bucket: pa.Table) -> tuple[pa.Table, None]:
    return bucket.drop_columns(["bucket"]), None


def _sides(bucket: pa.Table) -> tuple[pa.Table, VerifiedPairs]:
    """The copies of a bucket, and the pairs of its verified documents."""
    is_copy = bucket.column("representative").is_valid()
    copies = bucket.filter(is_copy).select(schemas.CLASSES.names).cast(schemas.CLASSES)
    documents = bucket.filter(pa.compute.invert(is_copy)).select(
        ["row", "partners", "partner_similarities"]
    )
    kinds = pa.schema([_SIDES.field(name) for name in documents.column_names])
    found = schemas.partnered(large_table(documents).cast(kinds))
    return copies, VerifiedPairs(
        documents.column("row").to_numpy(), lambda: iter([found]), sort_in_memory
    )
