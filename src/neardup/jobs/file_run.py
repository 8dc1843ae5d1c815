"""A run from files to files: what all engines share."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic

from neardup import pipeline
from neardup.engines.base import Table
from neardup.events import Watch
from neardup.io.documents.file_reader import Advance
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.stdin import STDIN_PATH
from neardup.jobs.output import write_report
from neardup.jobs.rejections import warn_of_encodings
from neardup.jobs.run import Counts, Results
from neardup.jobs.start import RunSetup
from neardup.report import Audit, Report

if TYPE_CHECKING:
    from neardup.jobs.audit import Reported


class FileRun(abc.ABC, Generic[Table]):
    """A run on files, except for how an engine writes the tables; `source` reads the files of `layout`."""

    def __init__(self, setup: RunSetup, source: Any, layout: FileLayout, engine: Any) -> None:
        self.output = setup.output
        self.workspace = setup.workspace
        self._spooled = setup.spooled
        self.config = setup.config
        self.plan = setup.plan
        self.source = source
        self.layout = layout
        self.engine = engine

    @abc.abstractmethod
    def write(self, outcome: pipeline.PipelineOutcome[Table], advance: Advance) -> None:
        """Write every table once, and the kept rows; `advance` counts `write_steps`."""

    @abc.abstractmethod
    def write_steps(self) -> tuple[int | None, str]:
        """Return how many steps `write` takes, None if that is not known, and their unit."""

    @abc.abstractmethod
    def count(self, outcome: pipeline.PipelineOutcome[Table]) -> Counts:
        """Count the rows read and removed."""

    @abc.abstractmethod
    def count_not_utf8(self) -> int:
        """Count the rows that were rejected because they are not in UTF-8."""

    @abc.abstractmethod
    def largest(self, outcome: pipeline.PipelineOutcome[Table]) -> tuple[dict[str, Any], ...]:
        """Return the largest clusters, with CLUSTER_COLUMNS."""

    @abc.abstractmethod
    def audit(self, reported: Reported, watch: Watch) -> Audit:
        """Measure the recall; the files are read again."""

    def select_again(
        self, outcome: pipeline.PipelineOutcome[Table]
    ) -> Callable[[Report, float], Report] | None:
        """Return the function that selects again among the stored pairs, if this engine has one."""

    def engine_facts(self) -> dict[str, Any]:
        """Return further facts from the engine."""
        return {}

    @property
    def writes_kept(self) -> bool:
        """Whether kept rows are written."""
        return self.output.has_kept and not self.config.dry_run

    def inputs(self) -> Sequence[dict[str, Any]]:
        """Return the entry of every file in the report."""
        return self.layout.summary()

    def write_table(self, table: str, write: Callable[[Path], dict[str, int] | None]) -> None:
        """Write a table if it belongs to the output and an interrupted run has not written it yet."""
        if table in self.output.drafts:
            self.workspace.checkpoint(self.output.drafts[table], write)

    def results(self, outcome: pipeline.PipelineOutcome[Table], watch: Watch) -> Results:
        """Write the tables, and collect what the report says about files."""
        with watch.stage("write", *self.write_steps()) as advance:
            self.write(outcome, advance)
        num_pairs = None
        if self.config.pairs:
            num_pairs = self.workspace.facts(self.output.drafts["pairs"])["num_pairs"]
        counts = self.count(outcome)
        warn_of_encodings(
            counts.rows.documents, counts.rows.rejected, self.count_not_utf8, self.config, watch
        )

        def audit(watch: Watch) -> Audit:
            from neardup.jobs.audit import Reported  # an audit needs its own kernels

            load = partial(self.output.load_draft, self.workspace)
            reported = Reported(outcome.plan, load, counts.rows.documents, num_pairs)
            return self.audit(reported, watch)

        return Results(
            counts=counts,
            audit=audit,
            num_pairs=num_pairs,
            columns=self.layout.columns_taken(),
            load=self.output.load,
            select_again=self.select_again(outcome),
            out=str(self.output.target),
            inputs=tuple(map(self._as_given, self.inputs())),
            files=self.output.files(self.workspace),
            largest=self.largest(outcome),
            engine=self.engine_facts(),
        )

    def _as_given(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return the entry of a file; standard input was spooled to one that nobody knows."""
        if entry["path"] != self._spooled:
            return entry
        return entry | {"path": STDIN_PATH, "modified": ""}

    def publish(self, report: Report) -> None:
        """Write report.json and the page, and make the output visible."""
        self.output.write_page(self.workspace, report)
        write_report(self.workspace, report)
        if self.config.text_out is not None:
            from neardup.jobs.text_out import publish_texts

            publish_texts(self.workspace, self.config)
        self.output.publish(self.workspace)
