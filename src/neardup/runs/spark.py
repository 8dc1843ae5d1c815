"""A run on Spark: from a DataFrame to DataFrames, or from files to files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa

from neardup import pipeline, schema
from neardup.config import Config
from neardup.events import Watch
from neardup.io import finished
from neardup.io.outputs import write_rejected
from neardup.io.sources.corpus import Advance
from neardup.io.work_folder import remove_tree
from neardup.report import Report
from neardup.runs.file_run import FileRun
from neardup.runs.rejections import name_rejected
from neardup.runs.run import Counts, Results, RowCounts
from neardup.runs.start import RunSetup, check_settings
from neardup.theory.plan import Plan, plan_for

if TYPE_CHECKING:
    from neardup.engines.spark import FileSource, FrameSource, SparkEngine


def read_frame(frame: Any, config: Config, engine: SparkEngine | None, watch: Watch) -> SparkFrame:
    """Choose the columns of a DataFrame and number its rows; without an engine, use the session of the frame."""
    from neardup.engines.spark import FrameSource, SparkEngine

    check_settings(config)
    own = (engine or SparkEngine(frame.sparkSession)).begin()
    with watch.stage("read"):
        source = FrameSource(frame, config, own.storage)
        return SparkFrame(source=source, engine=own, plan=plan_for(source.config), config=source.config)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SparkFrame:
    """A run on a Spark DataFrame; the tables of the report are DataFrames, too."""

    source: FrameSource
    engine: SparkEngine
    plan: Plan
    config: Config

    def results(self, outcome: pipeline.Outcome, watch: Watch) -> Results:
        """Store the pairs; the other tables are computed lazily."""
        from neardup.engines.spark import results

        source, selection, storage = self.source, outcome.selection, self.engine.storage
        with watch.stage("report"):
            row_pairs = None if outcome.row_pairs is None else storage.store("pairs", outcome.row_pairs)
            top = results.largest_clusters(selection, source.ids(), self.config.per_cluster)
            largest = results.cluster_facts(storage.run(top.collect))
            removed = results.count_selection(source, selection, outcome.clustered, self.engine)
        counted = source.counted
        rows = RowCounts(counted["own_documents"], counted["own_rejected"], self._name_first)
        return Results(
            counts=Counts(rows=rows, text_bytes=counted["own_bytes"], **removed),
            num_pairs=None if row_pairs is None else self.engine.total(row_pairs),
            columns=source.columns.taken(),
            load=results.frame_tables(source, selection, outcome.clustered, row_pairs).get,
            largest=largest,
            engine=self.engine.facts,
        )

    def publish(self, report: Report) -> None:
        """Do nothing: the report is the output."""

    def _name_first(self) -> str:
        from neardup.engines.spark import results

        first = self.source.rejected.orderBy("row").limit(1)
        named: Any = results.with_ids(first, "row", "doc_id", self.source.ids()).first()
        return f"id {named['doc_id']}: {named['reason']}"


class SparkFiles(FileRun):
    """Files that Spark's workers read and write; tables are in the workspace, which every worker must reach."""

    source: FileSource
    engine: SparkEngine

    def __init__(self, setup: RunSetup, engine: SparkEngine | None) -> None:
        from neardup.engines.spark import FileSource
        from neardup.engines.spark.session import open_engine

        own = (engine or open_engine(setup.config)).begin(str((setup.workspace.folder / "spark").resolve()))
        # The inode of a file may differ between machines.
        files = [msgspec.structs.replace(file, identity="") for file in (*setup.ahead, *setup.own)]
        source = FileSource(own.spark, files, len(setup.ahead), setup.config)
        super().__init__(setup, source, source.parts, own)

    def results(self, outcome: pipeline.Outcome, watch: Watch) -> Results:
        """Write the tables, and add the facts of the Spark engine."""
        return dataclasses.replace(super().results(outcome, watch), engine=self.engine.facts)

    def write_steps(self) -> tuple[int | None, str]:
        """Return the number of files, which Spark's listener reports."""
        return (len(self.parts.own_files()) if self.writes_kept else None), "files"

    def write(self, outcome: pipeline.Outcome, advance: Advance) -> None:
        """Write every table once, and the kept rows."""
        from neardup.engines.spark import file_tables as tables

        source, total, selection = self.source, self.engine.total, outcome.selection
        removed = partial(tables.removed_table, source, selection, total(selection))
        self._write_table("removed", removed, schema.REMOVED_FROM_FILES)
        clusters = partial(tables.clusters_table, source, outcome.clustered)
        self._write_table("clusters", clusters, schema.clusters(pa.string()))
        self.write_once(
            "rejected", lambda path: write_rejected(path, tables.rejected_batches(source, self.engine.storage))
        )
        if self.config.pairs:
            found: Any = outcome.row_pairs
            row_pairs = self.engine.once("row_pairs", lambda: found)
            pairs = partial(tables.pairs_table, source, row_pairs, total(row_pairs))
            self._write_table("pairs", pairs, schema.PAIRS_FROM_FILES)
        if self.writes_kept:
            folder = (self.workspace.folder / "out" / finished.KEPT).resolve()
            remove_tree(folder)  # an interrupted run may have left drafts
            folder.mkdir(parents=True, exist_ok=True)
            self.engine.storage.listen(advance, len(self.parts.own_files()))
            self.engine.compute(tables.write_kept(source, selection, outcome.clustered, str(folder)), "kept")

    def _write_table(self, name: str, make: Callable[[], Any], columns: pa.Schema) -> None:
        from neardup.engines.spark.file_tables import write_table

        self.write_once(name, lambda path: write_table(path, columns, name, make(), self.engine.storage))

    def count(self, outcome: pipeline.Outcome) -> Counts:
        """Count the notes of rows."""
        from neardup.engines.spark import results

        removed = results.count_selection(self.source, outcome.selection, outcome.clustered, self.engine)
        against = self._count_rows("ahead") if self.source.num_ahead else None
        return Counts(self._count_rows("own"), self.source.counted["own_bytes"], **removed, against=against)

    def _count_rows(self, side: str) -> RowCounts:
        from neardup.engines.spark.file_tables import rejected_table

        documents, rejected = (self.source.counted[f"{side}_{what}"] for what in ("documents", "rejected"))

        def name_first() -> str:
            first: Any = rejected_table(self.source, ahead=side == "ahead").first()
            return name_rejected(first)

        return RowCounts(documents, rejected, name_first)

    def largest(self, outcome: pipeline.Outcome) -> tuple[dict[str, Any], ...]:
        """Name the largest clusters."""
        from neardup.engines.spark import results

        top = results.largest_clusters(outcome.selection, self.source.ids(), self.config.per_cluster)
        ends = [("kept_row", "cluster_id", "file", "number"), ("weakest_row", "weakest_id", "weakest_file", "at")]
        return results.cluster_facts(self.engine.storage.run(self.source.place(top, ends).collect))
