"""A run on Spark: from a DataFrame to DataFrames, or from files to files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neardup import pipeline, schema
from neardup.config import Config
from neardup.events import Watch
from neardup.io import finished
from neardup.io.outputs import TableWriter, write_rejected
from neardup.io.work_folder import remove_tree
from neardup.report import Report
from neardup.runs.files import CLUSTER_COLUMNS, NUM_LARGEST, Advance, FileRun, name_rejected
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

        source, selection = self.source, outcome.selection
        with watch.stage("report"):
            row_pairs = outcome.row_pairs
            if row_pairs is not None:
                row_pairs = self.engine.storage.store("pairs", row_pairs)
            largest = results.largest_clusters(selection, source.ids(), NUM_LARGEST, self.config.per_cluster)
            top = self.engine.storage.run(largest.collect)
            counts = _count(source, selection, self.engine, self.config, self._name_first)
            counts = counts._replace(spared=_count_spared(outcome, counts, self.engine))
        return Results(
            counts=counts,
            num_pairs=None if row_pairs is None else self.engine.total(row_pairs),
            columns=source.columns.taken(),
            load=results.frame_tables(source, selection, outcome.clustered, row_pairs).get,
            largest=_clusters(top),
            engine=_facts(self.engine),
        )

    def publish(self, report: Report) -> None:
        """Do nothing: the report is the output."""

    def _name_first(self) -> str:
        from neardup.engines.spark import results

        first = self.source.rejected.orderBy("row").limit(1)
        named: Any = results.with_ids(first, "row", "doc_id", self.source.ids()).first()
        return f"id {named['doc_id']}, because {named['reason']}"


class SparkFiles(FileRun):
    """Files that Spark's workers read and write; tables are in the workspace, which every worker must reach."""

    source: FileSource
    engine: SparkEngine

    def __init__(self, setup: RunSetup, engine: SparkEngine | None) -> None:
        from neardup.engines.spark import FileSource
        from neardup.engines.spark.session import open_engine

        own = (engine or open_engine(setup.config)).begin(str((setup.workspace.folder / "spark").resolve()))
        # The inode of a file may differ between machines.
        files = [dataclasses.replace(file, identity="") for file in (*setup.ahead, *setup.own)]
        source = FileSource(own.spark, files, len(setup.ahead), setup.config)
        super().__init__(setup, source, source.parts, own)

    def results(self, outcome: pipeline.Outcome, watch: Watch) -> Results:
        """Write the tables, and add the facts of the Spark engine."""
        return dataclasses.replace(super().results(outcome, watch), engine=_facts(self.engine))

    def write(self, outcome: pipeline.Outcome, advance: Advance) -> None:
        """Write every table once, and the kept rows."""
        from neardup.engines.spark import file_tables as tables

        ends = self.source, outcome.selection
        num_removed = self.engine.total(outcome.selection)
        self._write_table("removed", partial(tables.removed_table, *ends, num_removed), schema.REMOVED_FROM_FILES)
        clusters = partial(tables.clusters_table, self.source, outcome.clustered)
        self._write_table("clusters", clusters, schema.clusters(pa.string()))
        self.write_once("rejected", lambda path: write_rejected(path, self._rejected()))
        if self.config.pairs:
            found: Any = outcome.row_pairs
            row_pairs = self.engine.once("row_pairs", lambda: found)
            pairs = partial(tables.pairs_table, self.source, row_pairs, self.engine.total(row_pairs))
            self._write_table("pairs", pairs, schema.PAIRS_FROM_FILES)
        if self.writes_kept:
            self._write_kept(outcome, advance)

    def count(self, outcome: pipeline.Outcome) -> Counts:
        """Count the notes of rows."""
        name_first = partial(self._name_first, ahead=False)
        counts = _count(self.source, outcome.selection, self.engine, self.config, name_first)
        counts = counts._replace(spared=_count_spared(outcome, counts, self.engine))
        if not self.source.num_ahead:
            return counts
        documents, rejected = (self.source.counted[f"ahead_{what}"] for what in ("documents", "rejected"))
        return counts._replace(against=RowCounts(documents, rejected, partial(self._name_first, ahead=True)))

    def largest(self, outcome: pipeline.Outcome) -> tuple[dict[str, Any], ...]:
        """Name the largest clusters."""
        from neardup.engines.spark import results

        top = results.largest_clusters(outcome.selection, self.source.ids(), NUM_LARGEST, self.config.per_cluster)
        ends = [("kept_row", "cluster_id", "file", "number"), ("weakest_row", "weakest_id", "weakest_file", "at")]
        return _clusters(self.engine.storage.run(self.source.place(top, ends).collect))

    def _write_table(self, name: str, make: Callable[[], Any], columns: pa.Schema) -> None:
        """Write a table in order, on the driver, as the local engine does."""

        def write(path: Path) -> dict[str, int]:
            num_rows = 0
            with TableWriter(path, columns) as writer:
                for batch in self.engine.storage.batches(name, make()):
                    writer.write(batch)
                    num_rows += batch.num_rows
            return {f"num_{name}": num_rows}

        self.write_once(name, write)

    def _rejected(self) -> Iterable[pa.RecordBatch]:
        from neardup.engines.spark import file_tables as tables

        if not self.source.counted["own_rejected"]:
            return ()
        return self.engine.storage.batches("rejected", tables.rejected_table(self.source))

    def _name_first(self, *, ahead: bool) -> str:
        from neardup.engines.spark import file_tables as tables

        first: Any = tables.rejected_table(self.source, ahead=ahead).first()
        return name_rejected(first)

    def _write_kept(self, outcome: pipeline.Outcome, advance: Advance) -> None:
        from neardup.engines.spark import file_tables as tables

        num_files = len(self.parts.own_files())
        folder = (self.workspace.folder / "out" / finished.KEPT).resolve()
        remove_tree(folder)  # an interrupted run may have left drafts
        folder.mkdir(parents=True, exist_ok=True)
        self.engine.storage.listen(advance, num_files)
        rows = tables.write_kept(self.source, outcome.selection, outcome.clustered, str(folder))
        self.engine.compute(rows, "kept")


def _count_spared(outcome: pipeline.Outcome, counts: Counts, engine: SparkEngine) -> int:
    return 0 if outcome.clustered is outcome.selection else engine.total(outcome.clustered) - counts.removed


def _count(source: Any, selection: Any, engine: Any, config: Config, first_rejected: Callable[[], str]) -> Counts:
    from neardup.engines.spark import results

    counted, removed, below, removed_against = source.counted, engine.total(selection), 0, 0
    # Only chains lead to documents that are less similar.
    if removed and (config.cluster == "components" or source.num_ahead > 0):
        count = partial(results.count_special, selection, config.threshold, source.num_ahead)
        below, removed_against = engine.storage.run(count)
    return Counts(
        rows=RowCounts(counted["own_documents"], counted["own_rejected"], first_rejected),
        text_bytes=counted["own_bytes"],
        removed=removed,
        removed_against=removed_against,
        below=below,
        against=None,
    )


def _clusters(rows: Iterable[Any]) -> tuple[dict[str, Any], ...]:
    ordered = sorted(rows, key=lambda row: (-row["documents"], row["kept_row"]))
    return tuple({name: row[name] for name in CLUSTER_COLUMNS} for row in ordered)


def _facts(engine: SparkEngine) -> dict[str, Any]:
    return {"name": "spark", **engine.facts}
