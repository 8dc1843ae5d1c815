"""A run from files to files on one machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from neardup import pipeline
from neardup.config import MIN_MEMORY, Config
from neardup.engines.base import no_progress
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.limits import Memory, return_freed
from neardup.events import Tally, Watch
from neardup.io.documents.file_reader import Advance, DocumentFilter, FileReader
from neardup.io.documents.file_results import FileResults
from neardup.io.documents.kept_rows import KeptRows
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.row_cache import RowCache
from neardup.io.documents.row_names import RowNames
from neardup.io.storage.table_writer import write_rejected, write_rows
from neardup.jobs.file_run import FileRun
from neardup.jobs.rejections import count_not_utf8, first_rejected
from neardup.jobs.run import Counts, Results, RowCounts
from neardup.jobs.start import RunSetup
from neardup.jobs.stored_pairs import select_stored, write_order
from neardup.jobs.templates import warn_of_templates
from neardup.measures.registry import holds_items
from neardup.report import Audit, Report, count_references

if TYPE_CHECKING:  # few runs have decisions or are audited
    from neardup.io.finished.decision_file import Decided
    from neardup.jobs.audit import Reported

# With at least this much memory left, tables are written in parallel with the kept rows.
_ROOM_FOR_TABLES: Final = 1 << 30


class LocalFiles(FileRun[pa.Table]):
    """Files on one machine."""

    source: FileReader
    engine: LocalEngine

    def __init__(self, setup: RunSetup, document_filter: DocumentFilter | None = None) -> None:
        config = setup.config
        engine = LocalEngine(config.threads, setup.workspace, config.memory)
        room_for_texts = 0 if holds_items(config) else engine.room() // 4
        # Readers need a memory limit even if the user set none.
        limited = Config.of(config, memory=max(MIN_MEMORY, Memory(config.memory).limit))
        return_freed(limited.memory or MIN_MEMORY)
        layout = FileLayout(setup.references + setup.own, len(setup.references), limited)
        self._row_cache = RowCache()
        if setup.output.has_kept and not config.dry_run:
            self._row_cache = RowCache(engine.room() // 4, layout.total)
        self._common_shingles: int | None = None
        self._weights: dict[str, int] | None = None
        self._decided: Decided | None = None
        if config.decisions is not None:
            from neardup.io.finished.decision_file import match_decisions

            self._decided = match_decisions(layout.files, layout.num_reference_files, limited)
        reader = FileReader(
            layout,
            setup.workspace,
            room_for_texts,
            row_cache=self._row_cache,
            fixed=self._decided.fixed if self._decided else None,
            document_filter=document_filter,
        )
        self.names = RowNames(layout, reader.notes)
        super().__init__(setup, reader, layout, engine)

    def ignore_common(self, watch: Watch) -> None:
        """Count the common shingles, and read the documents without them from now on."""
        import pyarrow.parquet as pq

        from neardup.jobs import common_shingles  # few runs count them
        from neardup.measures.remaining import CommonShingles

        def make(path: Path) -> None:
            folder = self.workspace.folder / "common"
            documents = common_shingles.FilesToCount(self.layout)
            found = common_shingles.count_common(documents, self.config, self.engine, watch, folder)
            write_rows(path, [found], found.schema)

        path = self.workspace.checkpoint(self.output.drafts["common"], make)
        common = CommonShingles(pq.read_table(path), self.config)
        self._common_shingles = common.num_shingles
        self.source.compared = common.compared

    def weigh(self, watch: Watch) -> None:
        """Count the shingles, and read the documents with their weights from now on."""
        import pyarrow.parquet as pq

        from neardup.jobs import common_shingles, idf_weights  # few runs weigh shingles
        from neardup.measures.idf import IdfWeights

        def make(path: Path) -> None:
            folder = self.workspace.folder / "counted"
            documents = common_shingles.FilesToCount(self.layout)
            found = idf_weights.count_shingles(documents, self.config, self.engine, watch, folder)
            pq.write_table(found, path)

        path = self.workspace.checkpoint("weights.parquet", make)
        weights = IdfWeights(pq.read_table(path), self.config)
        self._weights = weights.counts()
        self.source.compared = weights.compared

    def count_not_utf8(self) -> int:
        """Count the rows that were rejected because they are not in UTF-8."""
        return count_not_utf8(self.source.notes)

    def results(self, outcome: pipeline.PipelineOutcome[pa.Table], watch: Watch) -> Results:
        """Write the tables; stored pairs allow a new selection, and the files can be read again for an audit."""
        if self._decided is not None:
            from neardup.jobs.decisions import apply_decisions

            outcome = apply_decisions(outcome, self.source, self._decided, self.config, watch)
        warn_of_templates(outcome, self.source, self.config, watch)
        if self.config.text_out is not None:
            from neardup.jobs.text_out import draft_name, write_texts  # few runs write them

            self.workspace.checkpoint(
                draft_name(self.config),
                lambda path: write_texts(path, self.names, self.source.notes),
            )
        if self.config.passages:
            from neardup.jobs.pair_passages import with_passages_of_files

            outcome = with_passages_of_files(
                outcome, self.source, self.config, self.engine, self.workspace.folder
            )
        if not self.config.audit and not self.config.passages:
            self.source.release()
        results = super().results(outcome, watch)
        if not self.config.audit and self.config.passages:
            self.source.release()
        return dataclasses.replace(
            results, common_shingles=self._common_shingles, weights=self._weights
        )

    def select_again(
        self, outcome: pipeline.PipelineOutcome[pa.Table]
    ) -> Callable[[Report, float], Report] | None:
        """Return the function that selects again among the stored pairs, unless nothing was selected."""
        return select_stored if outcome.selects else None

    def audit(self, reported: Reported, watch: Watch) -> Audit:
        """Measure the recall with the reader of the run, which is then no longer needed."""
        from neardup.jobs.audit import audited_files, measure

        try:
            return measure(audited_files(self.source, reported, self.config), self.engine, watch)
        finally:
            self.source.release()

    def write_steps(self) -> tuple[int | None, str]:
        """Return the bytes of the input, which are written again or left out; or pairs, whose number is not known."""
        if not self.writes_kept:
            return None, "pairs"
        return sum(self.layout.files[at].size for at in self.layout.own_files()), "bytes"

    def write(self, outcome: pipeline.PipelineOutcome[pa.Table], advance: Advance) -> None:
        """Write every table once, and the kept rows."""
        written = self._results_of(outcome)
        tables = self._table_writers(written)
        pairs: list[Callable[[], None]] = []
        if self.config.pairs:
            advance_pairs = no_progress if self.writes_kept else advance
            pairs.append(lambda: self._write_pairs(outcome, written, advance_pairs))
        # Marks look up kept ids as well; two writers that need different ids would evict each
        # other's.
        is_beside = (
            self.writes_kept and not self.config.mark and self.engine.room() > _ROOM_FOR_TABLES
        )
        if not is_beside:
            for write_table in [*tables, *pairs]:
                write_table()
        if self.writes_kept:
            tally = Tally(advance)
            kept_rows = KeptRows(self.layout, self.source.notes, outcome.selection, self._row_cache)
            jobs = written.writers_of_kept(kept_rows, self.workspace, tally)
            if is_beside:  # short ones last, so that all threads end at about the same time
                jobs = [*pairs, *jobs, *tables]
            with tally.polled():
                self.engine.side_by_side(lambda number: jobs[number](), range(len(jobs)))

    def _results_of(self, outcome: pipeline.PipelineOutcome[pa.Table]) -> FileResults:
        return FileResults(self.names, outcome.selection, outcome.clustered, self.engine.room)

    def _table_writers(self, written: FileResults) -> list[Callable[[], None]]:
        """Return functions that write the tables other than pairs, to be called in any order and in parallel."""

        def write_rejected_rows(path: Path) -> None:
            write_rejected(path, self.source.notes.rejected())

        return [
            lambda: self.write_table("clusters", written.write_clusters),
            lambda: self.write_table("removed", written.write_removed),
            lambda: self.write_table("rejected", write_rejected_rows),
        ]

    def _write_pairs(
        self, outcome: pipeline.PipelineOutcome[pa.Table], written: FileResults, advance: Advance
    ) -> None:
        row_pairs = outcome.row_pairs or ()
        self.write_table(
            "pairs",
            lambda path: written.write_pairs(row_pairs, outcome.pair_columns, advance, path),
        )
        pairs = self.workspace.folder / self.output.drafts["pairs"]
        self.write_table(
            "order", lambda path: write_order(path, pairs, self.source, outcome, self.engine)
        )

    def count(self, outcome: pipeline.PipelineOutcome[pa.Table]) -> Counts:
        """Add up the counts of the parts."""
        rows = self._count_rows(references=False)
        text_bytes = self.source.notes.count("text_bytes")
        kept_rows = outcome.selection.column("kept_row")
        return Counts.of(
            outcome,
            rows,
            text_bytes,
            self.config.threshold,
            removed_against=count_references(kept_rows, self.source.num_references),
            against=self._count_rows(references=True),
        )

    def _count_rows(self, *, references: bool) -> RowCounts:
        notes = self.source.notes
        documents = notes.count("documents", references=references)
        rejected = notes.count("rejected", references=references)
        return RowCounts(documents, rejected, lambda: first_rejected(notes, references=references))

    def largest(self, outcome: pipeline.PipelineOutcome[pa.Table]) -> tuple[dict[str, Any], ...]:
        """Name the largest clusters."""
        return self._results_of(outcome).largest(self.config.per_cluster)
