"""A run on Spark: from a DataFrame to DataFrames, or from files to files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

from neardup import pipeline, schema
from neardup.config import Config
from neardup.errors import ConfigError
from neardup.events import Watch
from neardup.io.columns.rejected_rows import RejectedRow
from neardup.io.documents.file_reader import Advance
from neardup.io.finished import finished_run
from neardup.io.storage.table_writer import write_rejected, write_rows
from neardup.io.storage.work_folder import remove_tree
from neardup.jobs.audit import Reported, audit_files
from neardup.jobs.file_run import FileRun
from neardup.jobs.rejections import name_rejected
from neardup.jobs.run import Counts, Results, RowCounts
from neardup.jobs.start import RunSetup, check_settings
from neardup.report import Audit, Report
from neardup.theory.plan import Plan, plan_for

if TYPE_CHECKING:
    from neardup.engines.spark import FileSource, FrameSource, SparkEngine
    from neardup.engines.spark.storage import SparkTable
    from neardup.engines.spark.written_tables import Target


def read_frame(frame: Any, config: Config, engine: SparkEngine | None, watch: Watch) -> SparkFrame:
    """Choose the columns of a DataFrame and number its rows; without an engine, use the session of the frame."""
    from neardup.engines.spark import FrameSource, SparkEngine

    check_settings(config)
    if config.audit:
        raise ConfigError(
            "`audit` is not supported for a Spark DataFrame, whose documents stay on its workers",
            hint="write a sample of it to files, and audit a run on those",
        )
    own = (engine or SparkEngine(frame.sparkSession)).begin()
    with watch.stage("read"):
        source = FrameSource(frame, config, own.storage)
        return SparkFrame(
            source=source, engine=own, plan=plan_for(source.config), config=source.config
        )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SparkFrame:
    """A run on a Spark DataFrame; the tables of the report are DataFrames, too."""

    source: FrameSource
    engine: SparkEngine
    plan: Plan
    config: Config

    def results(self, outcome: pipeline.PipelineOutcome[SparkTable], watch: Watch) -> Results:
        """Store the pairs; the other tables are computed lazily."""
        from neardup.engines.spark import results

        source = self.source
        selection = outcome.selection
        storage = self.engine.storage
        with watch.stage("report"):
            found = outcome.row_pairs
            row_pairs = None
            if found is not None:
                row_pairs = storage.checkpoint("pairs", lambda: found.frame)
            top = results.largest_clusters(selection.frame, self.config.per_cluster)
            ids = source.ids()
            for row, doc_id in (("kept_row", "cluster_id"), ("weakest_row", "weakest_id")):
                top = results.with_ids(top, row, doc_id, ids)
            largest = results.cluster_facts([row.asDict() for row in storage.run(top.collect)])
            removed = results.count_selection(source, selection, outcome.clustered, self.engine)
        counted = source.counted
        rows = RowCounts(counted["own_documents"], counted["own_rejected"], self._name_first)
        return Results(
            counts=Counts(
                rows=rows,
                text_bytes=counted["own_bytes"],
                removed=removed.removed,
                below=removed.below,
                removed_against=removed.against,
                spared=removed.spared,
            ),
            num_pairs=None if row_pairs is None else self.engine.total(row_pairs),
            columns=source.columns.taken(),
            load=results.frame_tables(
                source,
                selection.frame,
                outcome.clustered.frame,
                None if row_pairs is None else row_pairs.frame,
            ).get,
            largest=largest,
            engine=self.engine.facts,
        )

    def publish(self, report: Report) -> None:
        """Do nothing: the report is the output."""

    def _name_first(self) -> RejectedRow:
        from neardup.engines.spark import results

        first = self.source.rejected.orderBy("row").limit(1)
        named: Any = results.with_ids(first, "row", "doc_id", self.source.ids()).first()
        return RejectedRow(f"id {named['doc_id']}", named["reason"])


class SparkFiles(FileRun["SparkTable"]):
    """Files that Spark's workers read and write; tables are in the workspace, which every worker must reach."""

    source: FileSource
    engine: SparkEngine

    def __init__(self, setup: RunSetup, engine: SparkEngine | None) -> None:
        from neardup.engines.spark import FileSource
        from neardup.engines.spark.session import open_engine

        own = (engine or open_engine(setup.config, sum(file.size for file in setup.own))).begin(
            setup.workspace
        )
        # The inode of a file may differ between machines.
        files = [
            msgspec.structs.replace(file, identity="") for file in (*setup.references, *setup.own)
        ]
        source = FileSource(own.spark, files, len(setup.references), setup.config)
        super().__init__(setup, source, source.layout, own)

    def inputs(self) -> Sequence[dict[str, Any]]:
        """Return the entry of every file in the report, with the path as the user gave it."""
        return self.source.summary()

    def audit(self, reported: Reported, watch: Watch) -> Audit:
        """Measure the recall on the driver."""
        return audit_files(
            self.layout.files, self.layout.num_reference_files, reported, self.config, watch
        )

    def engine_facts(self) -> dict[str, Any]:
        """Return the rounds and the skew of the run."""
        return self.engine.facts

    def publish(self, report: Report) -> None:
        """Publish, and remove the tables between stages that are not in the workspace."""
        super().publish(report)
        self.engine.storage.discard()

    def write_steps(self) -> tuple[int | None, str]:
        """Return the number of files, which Spark's listener reports."""
        return (len(self.layout.own_files()) if self.writes_kept else None), "files"

    def write(self, outcome: pipeline.PipelineOutcome[SparkTable], advance: Advance) -> None:
        """Write every table once, and the kept rows."""
        from neardup.engines.spark import file_tables as tables

        source = self.source
        selection = outcome.selection
        total = self.engine.total
        files = self.engine.tables(self.source)
        if self.config.asks_containment:
            by_row = schema.CONTAINMENT_SELECTION
        else:
            by_row = schema.SELECTION
        columns = schema.with_shares(schema.REMOVED_FROM_FILES, by_row)
        self._write_table(
            "removed", partial(files.write_removed, selection.frame), total(selection), columns
        )
        num_documents = source.counted["own_documents"]
        columns = schema.clusters(pa.string())
        self._write_table(
            "clusters",
            partial(files.write_clusters, outcome.clustered.frame),
            num_documents,
            columns,
        )
        self.write_table("rejected", self._write_rejected)
        found = outcome.row_pairs
        if self.config.pairs and found is not None:
            row_pairs = self.engine.checkpoint("row_pairs", lambda: found)
            columns = schema.with_shares(schema.PAIRS_FROM_FILES, outcome.pair_columns)
            self._write_table(
                "pairs", partial(files.write_pairs, row_pairs.frame), total(row_pairs), columns
            )
        if self.writes_kept:
            folder = (self.workspace.folder / "out" / finished_run.KEPT).resolve()
            remove_tree(folder)  # an interrupted run may have left drafts
            folder.mkdir(parents=True, exist_ok=True)
            self.engine.storage.listen(advance, len(self.layout.own_files()))
            self.engine.compute(
                tables.write_kept(source, selection.frame, outcome.clustered.frame, str(folder)),
                "kept",
            )

    def _write_table(
        self, name: str, write: Callable[[Target], int], num_rows: int, columns: pa.Schema
    ) -> None:
        """Let workers write a table: as a file, or as a folder of parts if it is large and not a file of the user's."""
        from neardup.engines.spark.written_tables import Target

        is_small = num_rows <= self.engine.few_rows or not self.output.has_kept

        def write_to(path: Path) -> dict[str, int]:
            write_all = partial(write_rows, columns=columns)
            if not num_rows:
                write_all(path, iter(()))
                return {f"num_{name}": 0}
            remove_tree(path)  # an interrupted run may have left some parts
            target = Target(
                name=name,
                path=path,
                columns=columns,
                num_rows=num_rows,
                part_rows=None if is_small else self.engine.few_rows,
                write=write_all,
            )
            return {f"num_{name}": write(target)}

        self.write_table(name, write_to)

    def _write_rejected(self, path: Path) -> dict[str, int]:
        from neardup.engines.spark.file_tables import rejected_table, write_table

        num_rows = self.source.counted["own_rejected"]
        if not num_rows:
            write_rejected(path, iter(()))
        else:
            table = rejected_table(self.source)
            write_table(path, "rejected", table, num_rows, write_rejected, self.engine.storage)
        return {"num_rejected": num_rows}

    def count_not_utf8(self) -> int:
        """Count the rows that were rejected because they are not in UTF-8."""
        from neardup.engines.spark import file_tables

        return file_tables.count_not_utf8(self.source)

    def count(self, outcome: pipeline.PipelineOutcome[SparkTable]) -> Counts:
        """Count the notes of rows."""
        from neardup.engines.spark import results

        removed = results.count_selection(
            self.source, outcome.selection, outcome.clustered, self.engine
        )
        return Counts(
            rows=self._count_rows("own"),
            text_bytes=self.source.counted["own_bytes"],
            removed=removed.removed,
            below=removed.below,
            removed_against=removed.against,
            spared=removed.spared,
            against=self._count_rows("reference") if self.source.num_references else None,
        )

    def _count_rows(self, side: str) -> RowCounts:
        from neardup.engines.spark.file_tables import rejected_table

        def name_first() -> RejectedRow:
            first: Any = rejected_table(self.source, references=side == "reference").first()
            return name_rejected(first)

        counted = self.source.counted
        return RowCounts(counted[f"{side}_documents"], counted[f"{side}_rejected"], name_first)

    def largest(self, outcome: pipeline.PipelineOutcome[SparkTable]) -> tuple[dict[str, Any], ...]:
        """Name the largest clusters."""
        from neardup.engines.spark import results

        top = results.largest_clusters(outcome.selection.frame, self.config.per_cluster)
        found = [row.asDict() for row in self.engine.storage.run(top.collect)]
        names = self.source.names()
        for row in found:
            ends = (("kept_row", "cluster_id"), ("weakest_row", "weakest_id"))
            row |= {doc_id: names.ids_of(np.array([row[at]]))[0].as_py() for at, doc_id in ends}
        return results.cluster_facts(found)
