"""Repeated paragraphs or lines of files: the table of what goes, and the rows of the input without it or with marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.events import Watch
from neardup.io.columns.text_edits import PassageMarks, TextEdits
from neardup.io.finished import passage_tables
from neardup.io.storage.table_writer import TableWriter
from neardup.io.storage.workspace import Reusable, Workspace
from neardup.jobs.output import RunFolder
from neardup.jobs.sections import TABLE, Found, find, report_values
from neardup.jobs.start import begin
from neardup.jobs.stored_pairs import load_run
from neardup.jobs.text_files import ROWS_AT_ONCE, TextFiles
from neardup.report import PartsReport, Report

I64 = npt.NDArray[np.int64]


class PartsFolder(RunFolder):
    """The output folder of `neardup dedup --level`."""

    command: ClassVar = "dedup"
    tables: ClassVar = ("removed_parts", "removed")
    stores_sets: ClassVar = False
    # Digests do not depend on what is done with equal ones.
    reusable: ClassVar = Reusable(
        frozenset({"keep", "per_cluster", "min_count", "min_left", "mark", "dry_run"}),
        (TABLE, "names", "rejected"),
    )

    def load(self, name: str) -> pa.Table | None:
        """Return a published table by name, None if it was not stored."""
        return passage_tables.load_table(self.target, name)

    def load_draft(self, workspace: Workspace, name: str) -> pa.Table | None:
        """Return a table that is not published yet."""
        return passage_tables.load_removed_parts(workspace.folder / "out", name)


def deduplicate_files(
    paths: Sequence[str], config: Config, watch: Watch, out: str, *, page: str | None, engine: Any
) -> Report:
    """Remove repeated sections from files; a run that an earlier start has already published is loaded."""
    output = PartsFolder(out, page=page)
    with begin(output, paths, config, watch) as setup:
        if setup is None:
            return load_run(output.target)
        if config.engine == "spark":
            from neardup.jobs.text_files_on_spark import SectionsOnSpark

            return SectionsOnSpark(setup, engine).run(watch)
        return SectionsOfFiles(setup).run(watch)


class SectionsOfFiles(TextFiles):
    """A search for repeated sections in files."""

    def run(self, watch: Watch) -> PartsReport:
        """Find, write and publish."""
        folder = self.workspace.folder / "grouped"
        found = find(self.source, self.config, self.engine, watch, folder)
        self.source.release()
        documents, rejected = self.check_rejected(watch)
        gone = found.left_over(self.config.min_left)
        if self.config.mark:
            gone = gone[:0]
        with watch.stage("write", found.num_removed, "sections") as advance:
            self.write_table("removed_parts", lambda path: self._write_parts(path, found, advance))
            self.write_table("removed", lambda path: self.write_removed(path, gone))
            self.write_table("rejected", self.write_rejected)
            if self.writes_kept:
                spans = self._marked(found) if self.config.mark else None
                self.write_kept(gone, lambda at: self._edits_of(at, found, spans))
        report = PartsReport(
            **report_values(found, self.config, watch),
            **self.file_values(),
            documents=documents + rejected,
            num_kept=documents - gone.size,
            num_removed=gone.size,
            num_rejected=rejected,
        )
        self.setup.output.write_page(self.workspace, report)
        return self.publish(report)

    def _write_parts(self, path: Path, found: Found, advance: Callable[[int], None]) -> None:
        columns = schema.removed_parts(pa.string(), has_files=True)
        with TableWriter(path, columns) as writer:
            for docs, kept_docs, values in found.listed():
                for first in range(0, docs.size, ROWS_AT_ONCE):
                    own = slice(first, first + ROWS_AT_ONCE)
                    named = {name: values[name][own] for name in values}
                    named |= self.named("doc_id", "file", "row", docs[own])
                    named |= self._kept(kept_docs[own])
                    writer.write(pa.table(named).select(columns.names).cast(columns))
                    advance(docs[own].size)

    def _kept(self, docs: pa.Array) -> dict[str, pa.Array]:
        """Return the columns that name the documents with the places that stay, null where none does."""
        rows = docs.drop_null().to_numpy()
        named = self.named("kept_id", "kept_file", "kept_row", rows)
        is_kept = docs.is_valid().to_numpy(zero_copy_only=False)
        at = pa.array(np.cumsum(is_kept) - 1, mask=~is_kept)
        return {name: pa.array(column).take(at) for name, column in named.items()}

    def _marked(self, found: Found) -> tuple[I64, I64, I64]:
        """Return the rows, starts and ends of all removed sections, in code points."""
        parts = [
            np.stack([removed.docs, removed.columns["start"], removed.columns["end"]])
            for removed in found.removed(("start", "end"))
        ]
        rows, starts, ends = np.concatenate([np.empty((3, 0), np.int64), *parts], axis=1)
        return rows, starts, ends

    def _edits_of(self, at: int, found: Found, spans: tuple[I64, I64, I64] | None) -> TextEdits:
        """Return the changes of the rows of a file."""
        first, stop = self.layout.file_first_rows[at : at + 2].tolist()
        column = next(iter(self.layout.columns[at].text), None)
        if spans is None:
            return TextEdits(column=column, cuts=found.cuts.of(first, stop))
        counts = found.counts
        own = slice(*np.searchsorted(counts.rows, [first, stop]).tolist())
        words = np.zeros(stop - first, np.int64)
        totals = np.ones(stop - first, np.int64)
        words[counts.rows[own] - first] = counts.gone[own]
        totals[counts.rows[own] - first] = np.maximum(counts.words[own], 1)
        rows, starts, ends = spans
        chosen = slice(*np.searchsorted(rows, [first, stop]).tolist())
        marks = PassageMarks(
            words=words,
            shares=words / totals,
            rows=rows[chosen] - first,
            starts=starts[chosen],
            ends=ends[chosen],
        )
        return TextEdits(column=column, marks=marks)
