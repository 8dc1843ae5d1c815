"""One run: source -> pipeline -> results -> report, wherever the documents come from.

An adapter provides the source and the engine and stores the results. Everything else that a run
does is here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from neardup import pipeline
from neardup.config import Config
from neardup.engines.base import Engine, Rows, Source, Table
from neardup.errors import DataError
from neardup.events import Watch
from neardup.io.columns.rejected_rows import RejectedRow
from neardup.jobs.rejections import all_rejected, most_rejected
from neardup.measures.registry import measure_of
from neardup.pipeline import Pipeline
from neardup.report import Audit, Report, count_below, peak_memory_bytes
from neardup.theory.plan import Plan


class RowCounts(NamedTuple):
    """The number of documents and of rejected rows; `first_rejected` names the first rejected row."""

    documents: int
    rejected: int
    first_rejected: Callable[[], RejectedRow]


class Counts(NamedTuple):
    """The counts of a run.

    removed_against: removed documents whose kept document is one of `against`; spared: documents
    kept by `per_cluster` beside the kept one of their cluster; below: removed documents below the
    threshold.
    """

    rows: RowCounts
    text_bytes: int
    removed: int
    below: int
    removed_against: int = 0
    spared: int = 0
    against: RowCounts | None = None
    decisions: dict[str, int] | None = None

    @classmethod
    def of(
        cls,
        outcome: pipeline.PipelineOutcome[pa.Table],
        rows: RowCounts,
        text_bytes: int,
        threshold: float,
        *,
        removed_against: int = 0,
        against: RowCounts | None = None,
    ) -> Counts:
        """Count the removed and the spared documents of one machine."""
        removed = outcome.selection.num_rows
        below = count_below(outcome.selection, threshold)
        spared = outcome.clustered.num_rows - removed
        if outcome.decisions is not None:  # decisions are not worth a warning
            below = max(below - outcome.decisions["removed"], 0)
            spared = spared - outcome.decisions["kept"]
        return cls(
            rows=rows,
            text_bytes=text_bytes,
            removed=removed,
            below=below,
            removed_against=removed_against,
            spared=spared,
            against=against,
            decisions=outcome.decisions,
        )


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Results:
    """What an adapter has counted and stored.

    audit: measures the recall, on engines that can; common_shingles: how many `ignore_common`
    ignores; weights: what was counted for `weights`. The other fields are those of the report.
    """

    counts: Counts
    audit: Callable[[Watch], Audit] | None = None
    num_pairs: int | None
    columns: dict[str, str]
    load: Callable[[str], pa.Table | None]
    common_shingles: int | None = None
    weights: dict[str, int] | None = None
    select_again: Callable[[Report, float], Report] | None = None
    out: str | None = None
    inputs: tuple[dict[str, Any], ...] = ()
    files: tuple[str, ...] = ()
    largest: tuple[dict[str, Any], ...] | None = None
    engine: dict[str, Any] = dataclasses.field(default_factory=dict)
    audited: Callable[[Callable[[str], pa.Table | None]], Any] | None = None


class Adapter(Protocol[Table, Rows]):
    """What differs between documents in memory, files and Spark."""

    @property
    def source(self) -> Source:
        """The documents."""

    @property
    def engine(self) -> Engine[Table, Rows]:
        """Where the stages run."""

    @property
    def plan(self) -> Plan:
        """The plan of the settings, before any document has been read."""

    @property
    def config(self) -> Config:
        """The settings, completed by the source."""

    def results(self, outcome: pipeline.PipelineOutcome[Table], watch: Watch) -> Results:
        """Write the tables, or keep them in memory, and count."""

    def publish(self, report: Report) -> None:
        """Make the output visible."""


def run(adapter: Adapter[Table, Rows], watch: Watch, find: Pipeline = pipeline.run) -> Report:
    """Run the pipeline, store its results, and report."""
    warn_of_recall(adapter.plan, watch)
    outcome = find(adapter.source, adapter.plan, adapter.config, adapter.engine, watch)
    return report_on(outcome, adapter, watch)


def report_on(
    outcome: pipeline.PipelineOutcome[Table], adapter: Adapter[Table, Rows], watch: Watch
) -> Report:
    """Store the results of the pipeline, and report."""
    config = adapter.config
    results = adapter.results(outcome, watch)
    counts = results.counts
    _warn(counts, config, watch)
    if results.common_shingles is None:
        ignored = None
    else:
        ignored = {"shingles": results.common_shingles, "documents": outcome.only_ignored}
    audit = results.audit(watch) if config.audit and results.audit else None
    report = Report(
        config=config,
        plan=outcome.plan,
        documents=counts.rows.documents + counts.rows.rejected,
        num_kept=counts.rows.documents - counts.removed,
        num_removed=counts.removed,
        removed_against=counts.removed_against,
        num_rejected=counts.rows.rejected,
        exact_duplicates=outcome.exact_duplicates,
        pairs_verified=outcome.pairs_verified,
        comparisons=outcome.comparisons,
        seconds=watch.seconds,
        bytes_read=counts.text_bytes,
        peak_memory_bytes=peak_memory_bytes(),
        stages=watch.seconds_by_stage,
        warnings=tuple(watch.warnings),
        signature_format=measure_of(config).signature_format(config),
        audit=audit,
        decisions=counts.decisions,
        ignored_common=ignored,
        weights=results.weights,
        num_pairs=results.num_pairs,
        columns=results.columns,
        load=results.load,
        select_again=results.select_again,
        out=results.out,
        inputs=results.inputs,
        files=results.files,
        largest=results.largest,
        engine=results.engine,
        audited=results.audited,
    )
    adapter.publish(report)
    return report


def settings_again(config: Config, plan: Plan, threshold: float) -> tuple[Config, Plan]:
    """Return the settings and the plan for selecting again among stored pairs at a higher threshold."""
    again = Config.of(
        config,
        threshold=threshold,
        audit=False,
        bands=plan.bands or None,  # the exact method has no bands
        rows=plan.rows or None,
    )
    return again, dataclasses.replace(plan, threshold=threshold)


def warn_of_recall(plan: Plan, watch: Watch) -> None:
    """Warn if the plan does not reach the requested recall."""
    if not plan.keeps_recall:
        watch.warn(plan.judgement())


def _warn(counts: Counts, config: Config, watch: Watch) -> None:
    rows = counts.rows
    against = counts.against
    # No table lists rejected rows of --against, because they are not part of the input.
    if against is not None and against.rejected:
        first = against.first_rejected()
        if not against.documents:
            raise DataError(
                f"no row of `against` can be used; the first is {first}",
                hint="name its columns in `against_text_column`, `against_items_column` or `against_id_column`",
            )
        if against.rejected == 1:
            watch.warn(f"1 row of `against` was rejected: {first}")
        else:
            watch.warn(
                f"{against.rejected:,} rows of `against` were rejected; the first is {first}"
            )
    if counts.below:
        watch.warn(
            f"{counts.below:,} removed documents are below the threshold: cluster='components' follows chains of pairs"
        )
    if counts.spared:
        watch.warn(
            f"{counts.spared:,} kept documents are similar to another kept document: `per_cluster` keeps up to "
            f"{config.per_cluster:,} documents of a cluster"
        )
    if rows.rejected and not rows.documents:
        raise all_rejected(rows.rejected, rows.first_rejected(), config)
    if rows.rejected > rows.documents:
        num_rows = rows.documents + rows.rejected
        message = most_rejected(rows.rejected, num_rows, rows.first_rejected(), config)
        watch.warn(message, is_urgent=True)
