"""A run on documents in memory, and its report."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import pipeline, schema
from neardup.config import Config
from neardup.engines.local.engine import LocalEngine
from neardup.io.sources import in_memory as memory
from neardup.measures.registry import measure_of
from neardup.report import Audit, Progress, Report, Watch, count_below, peak_memory_bytes
from neardup.runs import containment
from neardup.runs.recall import SAMPLE, Audited, measure
from neardup.stages.select import select_again
from neardup.theory.plan import Plan, plan_for


def deduplicate_held(source: Any, ids: Sequence[Any] | None, config: Config, progress: Progress | None) -> Report:
    """Find the near-duplicates among documents in memory."""
    watch = Watch(progress)
    with watch.stage("read"):
        read = memory.read(source, config, ids=ids)
    config = memory.with_dimension(read, config)
    plan = plan_for(config)
    _judge(plan, watch)
    if read.rejected.num_rows and not read.documents.num_rows:
        reason = read.rejected.column("reason")[0].as_py()
        watch.warn(f"all {read.rejected.num_rows:,} rows were rejected, the first because {reason}")
    documents = memory.HeldDocuments(read.documents, read.original.num_rows)
    outcome = containment.answer(documents, plan, config, LocalEngine(config.threads), watch)
    report = _report(read, outcome, outcome.plan, config, watch)
    if not config.audit:
        return report
    audit = audit_held(report, SAMPLE, config, watch)
    return dataclasses.replace(report, audit=audit, seconds=watch.seconds)


def audit_held(report: Report, sample: int, config: Config, watch: Watch) -> Audit:
    """Audit a run on documents in memory; threads are those of `config`."""
    if report.audited is None:
        raise TypeError("the report of a run on files has no documents in memory")
    return measure(report.audited(report), LocalEngine(config.threads), watch, sample)


def _audited(read: memory.Source, report: Report) -> Audited:
    """Let an audit see a run."""

    def reported(name: str, *columns: str) -> Iterator[pa.Table]:
        if (table := report.load(name)) is not None:
            rows = [pc.index_in(table.column(column), read.ids).cast(pa.int64()) for column in columns]
            yield pa.table([*rows, table.column("similarity")], schema=schema.ROW_PAIRS)

    return Audited(
        documents=memory.HeldDocuments(read.documents, read.original.num_rows),
        plan=report.plan,
        config=report.config,
        num_documents=read.documents.num_rows,
        removed=functools.partial(reported, "removed", "doc_id", "kept_id"),
        listed=None if report.num_pairs is None else functools.partial(reported, "pairs", "doc_a", "doc_b"),
        name=functools.partial(_named_pairs, read),
    )


def _judge(plan: Plan, watch: Watch) -> None:
    if not plan.keeps_recall:
        watch.warn(plan.judgement())


def _report(read: memory.Source, outcome: pipeline.Outcome, plan: Plan, config: Config, watch: Watch) -> Report:
    with watch.stage("report"):
        row_pairs = (
            None if outcome.row_pairs is None else pa.Table.from_batches(outcome.row_pairs, outcome.pair_columns)
        )
        tables = _tables(read, outcome.selection) | {"rejected": read.rejected}
        if row_pairs is not None:
            tables["pairs"] = _named_pairs(read, row_pairs)
    kept_rows = _kept_rows(read, outcome.selection)
    bare = dataclasses.replace(outcome, row_pairs=None, find_priorities=None)
    if below := count_below(outcome.selection, config.threshold):
        watch.warn(f"{below:,} removed documents are below the threshold: chains count with cluster='components'")
    return Report(
        config=config,
        plan=plan,
        documents=read.original.num_rows,
        num_kept=kept_rows.size,
        num_removed=outcome.selection.num_rows,
        num_rejected=read.rejected.num_rows,
        exact_duplicates=outcome.exact_duplicates,
        pairs_verified=outcome.pairs_verified,
        num_pairs=None if row_pairs is None else row_pairs.num_rows,
        seconds=watch.seconds,
        bytes_read=pc.sum(pc.binary_length(read.documents.column("text"))).as_py() or 0,
        peak_memory_bytes=peak_memory_bytes(),
        stages=watch.seconds_by_stage,
        warnings=tuple(watch.warnings),
        columns=read.columns,
        load=functools.partial(_load, read.original, kept_rows, tables),
        signature_format=measure_of(config).signature_format(config),
        select_again=functools.partial(_select_again, read, bare, row_pairs, plan, config) if outcome.selects else None,
        audited=functools.partial(_audited, read),
    )


def _select_again(
    read: memory.Source,
    outcome: pipeline.Outcome,
    stored: pa.Table,
    plan: Plan,
    config: Config,
    report: Report,
    threshold: float,
) -> Report:
    """Report on the stored pairs of at least `threshold`; bands, rows and filter stay those of the run."""
    del report
    again = Config.of(config, threshold=threshold, bands=plan.bands or None, rows=plan.rows or None, audit=False)
    row_pairs = stored.filter(pc.greater_equal(stored.column("similarity"), threshold))
    selection = select_again(read.documents, row_pairs, again)
    judged, watch = dataclasses.replace(plan, threshold=threshold), Watch()
    _judge(judged, watch)
    chosen = dataclasses.replace(outcome, selection=selection, row_pairs=iter(row_pairs.to_batches()))
    return _report(read, chosen, judged, again, watch)


def _load(
    original: pa.Table, kept_rows: npt.NDArray[np.int64], tables: dict[str, pa.Table], name: str
) -> pa.Table | None:
    return original.take(pa.array(kept_rows)) if name == "kept" else tables.get(name)


def _kept_rows(read: memory.Source, selection: pa.Table) -> npt.NDArray[np.int64]:
    rows = read.documents.column("row").to_numpy()
    kept: npt.NDArray[np.int64] = rows[~np.isin(rows, selection.column("row").to_numpy(), assume_unique=True)]
    return kept


def _tables(read: memory.Source, selection: pa.Table) -> dict[str, pa.Table]:
    rows = read.documents.column("row").to_numpy()
    kept_rows = rows.copy()
    kept_rows[np.searchsorted(rows, selection.column("row").to_numpy())] = selection.column("kept_row").to_numpy()
    removed = [_ids(read, selection, "row"), _ids(read, selection, "kept_row"), selection.column("similarity")]
    return {
        "removed": pa.table(removed, schema=schema.removed(read.ids.type)).combine_chunks(),
        "clusters": pa.table(
            [read.ids.take(pa.array(rows)), read.ids.take(pa.array(kept_rows))], schema=schema.clusters(read.ids.type)
        ),
    }


def _named_pairs(read: memory.Source, row_pairs: pa.Table) -> pa.Table:
    return pa.table(
        [_ids(read, row_pairs, "row_a"), _ids(read, row_pairs, "row_b"), *row_pairs.columns[2:]],
        schema=schema.with_shares(schema.pairs(read.ids.type), row_pairs.schema),
    )


def _ids(read: memory.Source, table: pa.Table, column: str) -> pa.Array:
    return read.ids.take(schema.one_array(table.column(column)))
