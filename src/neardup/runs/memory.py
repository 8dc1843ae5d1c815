"""A run on documents in memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import pipeline, schema
from neardup.config import Config
from neardup.engines.local.engine import LocalEngine
from neardup.events import Watch
from neardup.io.sources import in_memory
from neardup.io.sources.cluster_sizes import ClusterSizes
from neardup.report import Report, count_below
from neardup.runs.recall import Audited, measure
from neardup.runs.run import Counts, Results, RowCounts, report_on, warn_of_recall
from neardup.stages.select import select_again, thin_table
from neardup.theory.plan import Plan, plan_for


def read_memory(source: Any, ids: Sequence[Any] | None, config: Config, watch: Watch) -> MemoryRun:
    """Read documents in memory."""
    with watch.stage("read"):
        read = in_memory.read(source, config, ids=ids)
    config = in_memory.with_dimension(read, config)
    return MemoryRun(read=read, config=config, plan=plan_for(config))


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class MemoryRun:
    """A run on documents in memory; the tables of the report stay in memory, too."""

    read: in_memory.Source
    config: Config
    plan: Plan

    @property
    def source(self) -> in_memory.InMemoryDocuments:
        """The documents, as one part."""
        return in_memory.InMemoryDocuments(self.read.documents, self.read.original.num_rows)

    @property
    def engine(self) -> LocalEngine:
        """An engine without a memory limit."""
        return LocalEngine(self.config.threads)

    def results(self, outcome: pipeline.Outcome, watch: Watch) -> Results:
        """Build the tables, with ids instead of rows."""
        read, selection, row_pairs = self.read, outcome.selection, None
        with watch.stage("report"):
            tables = self._tables(selection, outcome.clustered) | {"selection": selection}
            if outcome.row_pairs is not None:
                row_pairs = pa.Table.from_batches(outcome.row_pairs, outcome.pair_columns)
                tables["pairs"] = self._name_pairs(row_pairs)
        audited = partial(self._audited, outcome.plan)
        load = partial(_load, read, self._kept_rows(selection), tables)
        bare = dataclasses.replace(outcome, row_pairs=None, find_priorities=None)
        return Results(
            counts=Counts(
                rows=RowCounts(read.documents.num_rows, read.rejected.num_rows, self._first_rejected),
                text_bytes=pc.sum(pc.binary_length(read.documents.column("text"))).as_py() or 0,
                removed=selection.num_rows,
                below=count_below(selection, self.config.threshold),
                spared=outcome.clustered.num_rows - selection.num_rows,
            ),
            num_pairs=None if row_pairs is None else row_pairs.num_rows,
            columns=read.columns,
            load=load,
            select_again=partial(self._select_again, bare, row_pairs) if outcome.selects else None,
            audit=lambda watch: measure(audited(load), self.engine, watch),
            audited=audited,
        )

    def publish(self, report: Report) -> None:
        """Do nothing: the report is the output."""

    def _first_rejected(self) -> str:
        row, reason = (self.read.rejected.column(name)[0].as_py() for name in ("row", "reason"))
        return f"row {row}, because {reason}"

    def _kept_rows(self, selection: pa.Table) -> npt.NDArray[np.int64]:
        rows = self.read.documents.column("row").to_numpy()
        kept: npt.NDArray[np.int64] = rows[~np.isin(rows, selection.column("row").to_numpy(), assume_unique=True)]
        return kept

    def _tables(self, selection: pa.Table, clustered: pa.Table) -> dict[str, pa.Table]:
        ids, rows = self.read.ids, self.read.documents.column("row").to_numpy()
        kept_rows = rows.copy()
        kept_rows[np.searchsorted(rows, clustered.column("row").to_numpy())] = clustered.column("kept_row").to_numpy()
        removed = [self._ids(selection, "row"), self._ids(selection, "kept_row"), selection.column("similarity")]
        sizes = pa.array(ClusterSizes(clustered).of(rows))
        clusters = [ids.take(pa.array(rows)), ids.take(pa.array(kept_rows)), sizes]
        columns = schema.removed(ids.type)
        if self.read.has_repeated_ids:
            removed += [selection.column("row"), selection.column("kept_row")]
            columns = schema.with_rows(columns, "row", "kept_row")
        return {
            "removed": pa.table(removed, schema=columns).combine_chunks(),
            "clusters": pa.table(clusters, schema=schema.clusters(ids.type)),
            "rejected": self.read.rejected,
        }

    def _name_pairs(self, row_pairs: pa.Table) -> pa.Table:
        named = [self._ids(row_pairs, "row_a"), self._ids(row_pairs, "row_b"), *row_pairs.columns[2:]]
        columns = schema.with_shares(schema.pairs(self.read.ids.type), row_pairs.schema)
        if self.read.has_repeated_ids:
            named += row_pairs.columns[:2]
            columns = schema.with_rows(columns, "row_a", "row_b")
        return pa.table(named, schema=columns)

    def _ids(self, table: pa.Table, column: str) -> pa.Array:
        return self.read.ids.take(schema.one_array(table.column(column)))

    def _select_again(self, outcome: pipeline.Outcome, stored: pa.Table, report: Report, threshold: float) -> Report:
        """Report on the stored pairs of similarity >= `threshold`, with the bands, rows and filter of the run."""
        plan, watch = dataclasses.replace(outcome.plan, threshold=threshold), Watch()
        bands, rows = plan.bands or None, plan.rows or None  # the exact method has none
        config = Config.of(report.config, threshold=threshold, audit=False, bands=bands, rows=rows)
        row_pairs = stored.filter(pc.greater_equal(stored.column("similarity"), threshold))
        documents = self.read.documents
        members = select_again(documents, row_pairs, config)
        at = np.searchsorted(documents.column("row").to_numpy(), members.column("row").to_numpy())
        priority = documents.column("priority").to_numpy()[at]
        chosen = dataclasses.replace(
            outcome,
            plan=plan,
            selection=thin_table(members, priority, config.per_cluster),
            members=members,
            row_pairs=iter(row_pairs.to_batches()),
        )
        warn_of_recall(plan, watch)
        return report_on(chosen, MemoryRun(read=self.read, config=config, plan=plan), watch)

    def _audited(self, plan: Plan, load: Callable[[str], pa.Table | None]) -> Audited:
        """Return the run as an audit sees it; `load` returns what it reported, by name."""

        def reported(table: pa.Table, *ends: tuple[str, str]) -> Iterator[pa.Table]:
            rows = [
                table.column(row)
                if row in table.column_names
                else pc.index_in(table.column(doc_id), self.read.ids).cast(pa.int64())
                for doc_id, row in ends
            ]
            yield pa.table([*rows, table.column("similarity")], schema=schema.ROW_PAIRS)

        pairs = load("pairs")

        return Audited(
            documents=self.source,
            plan=plan,
            config=self.config,
            num_documents=self.read.documents.num_rows,
            removed=partial(reported, load("removed"), ("doc_id", "row"), ("kept_id", "kept_row")),
            listed=None if pairs is None else partial(reported, pairs, ("doc_a", "row_a"), ("doc_b", "row_b")),
            name=self._name_pairs,
        )


def _load(
    read: in_memory.Source, kept_rows: npt.NDArray[np.int64], tables: dict[str, pa.Table], name: str
) -> pa.Table | None:
    if name == "kept":
        return in_memory.with_ids(read).take(pa.array(kept_rows))
    if name == "mask":
        is_kept = np.zeros(read.original.num_rows, np.bool_)
        is_kept[kept_rows] = True
        return pa.table({"is_kept": is_kept})
    if name == "texts":
        rows = read.documents.column("row")
        return pa.table(
            {"doc_id": read.ids.take(schema.one_array(rows)), "row": rows, "text": read.documents.column("text")}
        )
    return tables.get(name)
