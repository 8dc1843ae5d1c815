"""A run on documents in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import pipeline
from neardup.config import Config
from neardup.engines.local.engine import LocalEngine
from neardup.events import Watch
from neardup.io.documents import in_memory
from neardup.io.documents.memory_tables import MemoryTables
from neardup.io.finished.run_folders import kept_of_runs
from neardup.jobs.audit import audited_memory, measure
from neardup.jobs.run import Counts, Results, RowCounts, report_on, settings_again, warn_of_recall
from neardup.jobs.templates import warn_of_templates
from neardup.report import Report, count_references
from neardup.stages.select import select_again, thin_table
from neardup.theory.plan import Plan, plan_for


def read_memory(
    source: Any, ids: Sequence[Any] | None, config: Config, watch: Watch, against: Any = None
) -> MemoryRun:
    """Read documents in memory; `against`: reference documents in memory, else the settings may name files."""
    with watch.stage("read"):
        read = in_memory.read(source, config, ids=ids)
    config = in_memory.with_dimension(read, config)
    if config.text_out is not None:
        from neardup.jobs.text_out import write_texts_in_memory

        write_texts_in_memory(read, config)
    if config.against:
        from neardup.io.documents import references as reference_files  # few runs have any

        with watch.stage("read"):
            if against is None:
                references = reference_files.read_reference_files(
                    kept_of_runs(config.against), config
                )
            else:
                if isinstance(source, in_memory.ItemSets):
                    against = in_memory.ItemSets(against)
                references = reference_files.read_references(against, config)
            read = reference_files.with_references(read, references)
    run = MemoryRun(read=read, config=config, plan=plan_for(config))
    if config.weights is not None:
        from neardup.jobs.idf_weights import count_shingles  # few runs weigh shingles
        from neardup.measures.idf import IdfWeights

        weights = IdfWeights(count_shingles(run.source, config, run.engine, watch), config)
        compared = weights.compared_table(read.documents)
        return dataclasses.replace(run, compared=compared, weights=weights.counts())
    if config.ignore_common is None:
        return run
    from neardup.jobs.common_shingles import count_common  # few runs count them
    from neardup.measures.remaining import CommonShingles

    common = count_common(run.source, config, run.engine, watch)
    compared = CommonShingles(common, config).compared_table(read.documents)
    return dataclasses.replace(run, compared=compared, common=common)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class MemoryRun:
    """A run on documents in memory; the tables of the report stay in memory, too."""

    read: in_memory.InMemorySource
    config: Config
    plan: Plan
    # The documents without their common shingles, and these, as schema.COMMON.
    compared: pa.Table | None = None
    common: pa.Table | None = None
    # How many documents and shingles were counted for weights.
    weights: dict[str, int] | None = None

    @property
    def documents(self) -> pa.Table:
        """The documents as they are compared."""
        return self.read.documents if self.compared is None else self.compared

    @property
    def source(self) -> in_memory.InMemoryDocuments:
        """The documents, as one part."""
        read = self.read
        return in_memory.InMemoryDocuments(self.documents, len(read.ids), read.num_references)

    @property
    def engine(self) -> LocalEngine:
        """An engine without a memory limit."""
        return LocalEngine(self.config.threads)

    def results(self, outcome: pipeline.PipelineOutcome[pa.Table], watch: Watch) -> Results:
        """Build the tables, with ids instead of rows."""
        read = self.read
        row_pairs = None
        with watch.stage("report"):
            warn_of_templates(outcome, self.source, self.config, watch)
            if self.config.passages:
                from neardup.jobs.pair_passages import with_passages_in_memory

                outcome = with_passages_in_memory(outcome, read.documents, self.config, self.engine)
            if outcome.row_pairs is not None:
                row_pairs = pa.Table.from_batches(outcome.row_pairs, outcome.pair_columns)
            tables = MemoryTables(
                read, self.common, outcome.selection, outcome.clustered, row_pairs
            )
        audited = partial(audited_memory, read, self.source, outcome.plan, self.config)
        bare = dataclasses.replace(outcome, row_pairs=None, sketches=None)
        rows = RowCounts(read.num_own, read.rejected.num_rows, read.first_rejected)
        own_texts = read.own_documents().column("text")
        text_bytes = pc.sum(pc.binary_length(own_texts)).as_py() or 0
        kept_rows = outcome.selection.column("kept_row")
        return Results(
            counts=Counts.of(
                outcome,
                rows,
                text_bytes,
                self.config.threshold,
                removed_against=count_references(kept_rows, read.num_references),
                against=_count_references(read),
            ),
            num_pairs=None if row_pairs is None else row_pairs.num_rows,
            common_shingles=None if self.common is None else self.common.num_rows,
            weights=self.weights,
            columns=read.columns,
            load=tables.load,
            select_again=partial(self._select_again, bare, row_pairs) if outcome.selects else None,
            audit=lambda watch: measure(audited(tables.load), self.engine, watch),
            audited=audited,
        )

    def publish(self, report: Report) -> None:
        """Do nothing: the report is the output."""

    def _select_again(
        self,
        outcome: pipeline.PipelineOutcome[pa.Table],
        stored: pa.Table,
        report: Report,
        threshold: float,
    ) -> Report:
        """Report on the stored pairs of similarity >= `threshold`, with the bands, rows and filter of the run."""
        config, plan = settings_again(report.config, outcome.plan, threshold)
        documents = self.documents
        row_pairs = stored.filter(pc.greater_equal(stored.column("similarity"), threshold))
        compared = config
        if config.weights is not None:
            from neardup.jobs.idf_weights import compared_config  # few runs weigh shingles

            compared = compared_config(config)
        members = select_again(documents, row_pairs, compared)
        is_own = pc.greater_equal(members.column("row"), self.read.num_references)
        members = members.filter(is_own)
        at = np.searchsorted(documents.column("row").to_numpy(), members.column("row").to_numpy())
        priority = documents.column("priority").to_numpy()[at]
        chosen = dataclasses.replace(
            outcome,
            plan=plan,
            selection=thin_table(members, priority, config.per_cluster),
            members=members,
            row_pairs=iter(row_pairs.to_batches()),
        )
        watch = Watch()
        warn_of_recall(plan, watch)
        return report_on(chosen, dataclasses.replace(self, config=config, plan=plan), watch)


def _count_references(read: in_memory.InMemorySource) -> RowCounts | None:
    references = read.references
    if references is None:
        return None
    num_documents = references.documents.num_rows
    return RowCounts(num_documents, references.rejected.num_rows, references.first_rejected)
