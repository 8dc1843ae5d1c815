"""A run from files to files: what all engines share, and the adapter of the local engine."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import pipeline, schema
from neardup.config import MIN_MEMORY, Config
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.limits import Memory, return_freed
from neardup.events import Watch
from neardup.io.outputs import TableWriter, write_rejected
from neardup.io.sources.cluster_sizes import ClusterSizes
from neardup.io.sources.corpus import FileDocuments
from neardup.io.sources.kept_ids import KeptIds
from neardup.io.sources.parts import FileParts
from neardup.io.sources.stdin import STDIN_PATH
from neardup.measures.registry import holds_items
from neardup.report import Audit, Report, count_ahead, count_below, summarise_clusters
from neardup.runs.output import write_report
from neardup.runs.recall import audited_files, measure
from neardup.runs.run import Counts, Results, RowCounts
from neardup.runs.start import RunSetup
from neardup.runs.stored_pairs import select_stored, write_order
from neardup.theory.plan import Plan

NUM_LARGEST: Final = 10
CLUSTER_COLUMNS: Final = ("cluster_id", "documents", "weakest_id", "similarity")
_LEAST_ID_BYTES: Final = 8 << 20
# With so much memory left tables are written beside kept rows.
_ROOM_FOR_TABLES: Final = 1 << 30

Advance = Callable[[int], None]


class FileRun(abc.ABC):
    """A run on files, except for how an engine writes the tables; `source` reads the files of `parts`."""

    def __init__(self, setup: RunSetup, source: Any, parts: FileParts, engine: Any) -> None:
        self.output, self.workspace, self._spooled = setup.output, setup.workspace, setup.spooled
        self.config, self.plan = setup.config, setup.plan
        self.source, self.parts, self.engine = source, parts, engine

    @abc.abstractmethod
    def write(self, outcome: pipeline.Outcome, advance: Advance) -> None:
        """Write every table once, and the kept rows; `advance` counts input files."""

    @abc.abstractmethod
    def count(self, outcome: pipeline.Outcome) -> Counts:
        """Count the rows read and removed."""

    @abc.abstractmethod
    def largest(self, outcome: pipeline.Outcome) -> tuple[dict[str, Any], ...]:
        """Return the largest clusters, with CLUSTER_COLUMNS."""

    @property
    def writes_kept(self) -> bool:
        """Whether kept rows are written."""
        return self.output.has_kept and not self.config.dry_run

    def write_once(self, table: str, write: Callable[[Path], dict[str, int] | None]) -> None:
        """Write a table if it belongs to the output and an interrupted run has not written it yet."""
        if table in self.output.drafts:
            self.workspace.once(self.output.drafts[table], write)

    def results(self, outcome: pipeline.Outcome, watch: Watch) -> Results:
        """Write the tables, and collect what the report says about files."""
        num_files = len(self.parts.own_files()) if self.output.has_kept else None
        with watch.stage("write", num_files, "files") as advance:
            self.write(outcome, advance)
        pairs = self.workspace.facts(self.output.drafts["pairs"]) if self.config.pairs else {"num_pairs": None}
        return Results(
            counts=self.count(outcome),
            num_pairs=pairs["num_pairs"],
            columns=self.parts.columns_taken(),
            load=self.output.load,
            out=str(self.output.target),
            inputs=tuple(
                entry | {"path": STDIN_PATH, "modified": ""} if entry["path"] == self._spooled else entry
                for entry in self.source.summary()
            ),
            files=self.output.files(self.workspace),
            largest=self.largest(outcome),
        )

    def publish(self, report: Report) -> None:
        """Write report.json, and make the output visible."""
        write_report(self.workspace, report)
        self.output.publish(self.workspace)


class LocalFiles(FileRun):
    """Files on one machine."""

    source: FileDocuments
    engine: LocalEngine

    def __init__(self, setup: RunSetup) -> None:
        config = setup.config
        engine = LocalEngine(config.threads, setup.workspace, config.memory)
        room_for_texts = 0 if holds_items(config) else engine.room() // 4
        # Readers need a memory limit even if the user set none.
        limited = Config.of(config, memory=max(MIN_MEMORY, Memory(config.memory).limit))
        return_freed(limited.memory or MIN_MEMORY)
        documents = self.make_source(setup, limited, room_for_texts)
        super().__init__(setup, documents, documents, engine)

    def make_source(self, setup: RunSetup, limited: Config, room_for_texts: int) -> FileDocuments:
        """Return the documents of all files."""
        files = [*setup.ahead, *setup.own]
        return FileDocuments(files, len(setup.ahead), limited, setup.workspace, room_for_texts)

    def results(self, outcome: pipeline.Outcome, watch: Watch) -> Results:
        """Write the tables; stored pairs allow a new selection, and the files can be read again for an audit."""
        if not self.config.audit:
            self.source.release()
        results = super().results(outcome, watch)
        return dataclasses.replace(
            results,
            select_again=select_stored if outcome.selects else None,
            audit=partial(self._audit, outcome.plan, results),
        )

    def _audit(self, plan: Plan, results: Results, watch: Watch) -> Audit:
        load, num_documents = partial(self.output.load_draft, self.workspace), results.counts.rows.documents
        audited = audited_files(self.source, plan, self.config, load, num_documents, results.num_pairs)
        try:
            return measure(audited, self.engine, watch)
        finally:
            self.source.release()

    def write(self, outcome: pipeline.Outcome, advance: Advance) -> None:
        """Write every table once, and the kept rows."""
        kept_ids = self._kept_ids(outcome.selection)
        write_tables = partial(self._write_tables, outcome, kept_ids)
        # Marks ask for kept ids as well: two that ask for different ones would look them up again and again.
        is_beside = self.writes_kept and not self.config.mark and self.engine.room() > _ROOM_FOR_TABLES
        if not is_beside:
            write_tables()
        if self.writes_kept:
            self._write_kept(outcome, kept_ids, advance, [write_tables] * is_beside)

    def _kept_ids(self, selection: pa.Table) -> KeptIds:
        return KeptIds(selection.column("kept_row").to_numpy(), self.source.ids_of, self._ids_at_once())

    def _write_tables(self, outcome: pipeline.Outcome, kept_ids: KeptIds) -> None:
        self.write_once("removed", partial(self._write_removed, outcome.selection, kept_ids))
        self.write_once("clusters", partial(self._write_clusters, outcome.clustered))
        self.write_once("rejected", lambda path: write_rejected(path, self.source.rejected()))
        if self.config.pairs:
            self.write_once("pairs", partial(self._write_pairs, outcome))
            pairs = self.workspace.folder / self.output.drafts["pairs"]
            self.write_once("order", lambda path: write_order(path, pairs, self.source, outcome))

    def count(self, outcome: pipeline.Outcome) -> Counts:
        """Add up the counts of the parts."""
        return Counts(
            rows=self._count_rows(ahead=False),
            against=self._count_rows(ahead=True),
            text_bytes=self.source.count("text_bytes"),
            removed=outcome.selection.num_rows,
            below=count_below(outcome.selection, self.config.threshold),
            removed_against=count_ahead(outcome.selection.column("kept_row"), self.source.num_ahead),
            spared=outcome.clustered.num_rows - outcome.selection.num_rows,
        )

    def _count_rows(self, *, ahead: bool) -> RowCounts:
        documents, rejected = (self.source.count(fact, ahead=ahead) for fact in ("documents", "rejected"))
        return RowCounts(documents, rejected, partial(self._name_first, ahead=ahead))

    def _name_first(self, *, ahead: bool) -> str:
        batches = self.source.rejected(ahead=ahead)
        return name_rejected(next(row for batch in batches for row in batch.slice(0, 1).to_pylist()))

    def largest(self, outcome: pipeline.Outcome) -> tuple[dict[str, Any], ...]:
        """Name the largest clusters."""
        selection = outcome.selection
        rows, kept_rows = (selection.column(name).to_numpy() for name in ("row", "kept_row"))
        similarity = selection.column("similarity").to_numpy()
        kept, sizes, weakest = summarise_clusters(kept_rows, similarity, NUM_LARGEST, self.config.per_cluster)
        named, inverse = np.unique(np.r_[kept, rows[weakest]], return_inverse=True)
        ids = self.source.ids_of(named).take(pa.array(inverse)).to_pylist()
        members = zip(ids[: kept.size], sizes.tolist(), ids[kept.size :], similarity[weakest].tolist(), strict=True)
        return tuple(dict(zip(CLUSTER_COLUMNS, member, strict=True)) for member in members)

    def _ids_at_once(self) -> int:
        """The number of ids to load at once: every lookup scans all of them on disk, so as many as fit in memory."""
        return self.source.num_ids_within(max(_LEAST_ID_BYTES, self.engine.room() // 8))

    def _write_removed(self, selection: pa.Table, kept_ids: KeptIds, path: Path) -> None:
        at_once = self._ids_at_once()
        with TableWriter(path, schema.with_shares(schema.REMOVED_FROM_FILES, selection.schema)) as writer:
            for first in range(0, selection.num_rows, at_once):
                chosen = selection.slice(first, at_once)
                writer.write(self._removed(chosen, kept_ids.slice(first, chosen.num_rows)))

    def _removed(self, chosen: pa.Table, kept_ids: pa.Array) -> pa.Table:
        """Return some rows of the selection with ids, files and row numbers."""
        rows, kept_rows = (chosen.column(name).to_numpy() for name in ("row", "kept_row"))
        columns = [self.source.ids_of(rows), kept_ids, chosen.column("similarity"), *self.source.locate(rows)]
        columns += [*self.source.locate(kept_rows), *chosen.columns[len(schema.SELECTION) :]]
        return pa.table(columns, schema=schema.with_shares(schema.REMOVED_FROM_FILES, chosen.schema))

    def _write_clusters(self, clustered: pa.Table, path: Path) -> None:
        removed, kept_ids, sizes = (
            clustered.column("row").to_numpy(),
            self._kept_ids(clustered),
            ClusterSizes(clustered),
        )
        columns = schema.clusters(pa.string())
        with TableWriter(path, columns) as writer:
            for batch in self.source.own_names():
                rows, ids = batch.column("row").to_numpy(), batch.column("doc_id")
                begin, end = np.searchsorted(removed, [rows[0], rows[-1] + 1]).tolist() if rows.size else (0, 0)
                is_removed = pa.array(np.isin(rows, removed[begin:end], assume_unique=True))
                kept = pc.replace_with_mask(ids, is_removed, kept_ids.slice(begin, end - begin))
                writer.write(pa.record_batch([ids, kept, pa.array(sizes.of(rows))], schema=columns))

    def _write_pairs(self, outcome: pipeline.Outcome, path: Path) -> dict[str, int]:
        num_pairs, at_once = 0, self._ids_at_once()
        columns = schema.with_shares(schema.PAIRS_FROM_FILES, outcome.pair_columns)
        with TableWriter(path, columns) as writer:
            for batch in outcome.row_pairs or ():
                for named in self.source.name_pairs(batch, at_once):
                    writer.write(named)
                num_pairs += batch.num_rows
        return {"num_pairs": num_pairs}

    def _write_kept(
        self, outcome: pipeline.Outcome, kept_ids: KeptIds, advance: Advance, beside: list[Callable[[], None]]
    ) -> None:
        """Write the kept rows of every file, and what `beside` writes, in parallel."""
        documents, workspace, selection = self.source, self.workspace, outcome.selection
        sizes = ClusterSizes(outcome.clustered)
        groups = documents.write_groups()

        def write(number: int) -> None:
            group = groups[number]
            if len(group) == 1:
                name = f"out/kept/{documents.files[group[0]].name}"
                workspace.once(name, lambda path: documents.write(group[0], str(path), selection, kept_ids, sizes))
            else:
                self._write_texts(f"written/{number:06}", group, selection)
            advance(len(group))

        jobs: list[Callable[[], None]] = [*beside, *(partial(write, number) for number in range(len(groups)))]
        self.engine.side_by_side(lambda number: jobs[number](), range(len(jobs)))

    def _write_texts(self, name: str, group: range, selection: pa.Table) -> None:
        """Write many small files with one journal entry: an entry for each takes longer than writing them."""
        kept = self.workspace.folder / "out" / "kept"

        def write(path: Path) -> None:
            self.source.write_texts(group, kept, selection)
            path.write_text(self.source.digest_texts(group, kept, selection), "ascii")

        if self.workspace.has(name):
            known = (self.workspace.folder / name).read_text("ascii")
            if known != self.source.digest_texts(group, kept, selection):
                self.workspace.forget(name)
        self.workspace.once(name, write)


def name_rejected(row: Mapping[str, Any]) -> str:
    """Name a rejected row and the reason, given a row of schema.REJECTED."""
    return f"{row['file']} row {row['row']}, because {row['reason']}"
