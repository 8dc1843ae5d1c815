"""Decontamination of files: the tables, and the rows of the input without what contains items, or with marks."""

from __future__ import annotations

import itertools
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
from neardup.io.finished.word_counts import write_counts
from neardup.io.storage.table_writer import TableWriter, write_rejected
from neardup.jobs.decontaminate import (
    Found,
    benchmark_table,
    find,
    hit_columns,
    item_table,
    read_items,
    report_values,
)
from neardup.jobs.output import RunFolder
from neardup.jobs.start import begin
from neardup.jobs.stored_pairs import load_run
from neardup.jobs.text_files import ROWS_AT_ONCE, TextFiles
from neardup.report import ContaminationReport, Report

I64 = npt.NDArray[np.int64]


class ContaminationFolder(RunFolder):
    """The output folder of `neardup decontaminate`."""

    command: ClassVar = "decontaminate"
    stores_sets: ClassVar = False
    tables: ClassVar = ("contaminated", "items", "benchmarks", "removed", "weights")

    def load(self, name: str) -> pa.Table | None:
        """Return a published table by name, None if it was not stored."""
        return passage_tables.load_table(self.target, name)


def find_in_files(
    paths: Sequence[str], config: Config, watch: Watch, out: str, *, engine: Any = None
) -> Report:
    """Find the items of benchmarks in files and write what was found to a folder.

    A run that an earlier start has already published is loaded.
    """
    output = ContaminationFolder(out)
    output.has_kept = config.remove or config.cut or config.mark
    with begin(output, paths, config, watch) as setup:
        if setup is None:
            return load_run(output.target)
        if config.engine == "spark":
            from neardup.jobs.text_files_on_spark import ContaminationOnSpark

            return ContaminationOnSpark(setup, engine).run(watch)
        return ContaminatedFiles(setup).run(watch)


class ContaminatedFiles(TextFiles):
    """A search for items of benchmarks in files."""

    reads_references: ClassVar = False

    def run(self, watch: Watch) -> ContaminationReport:
        """Find, write and publish."""
        with watch.stage("read"):
            items = read_items(self.setup.references, self.config, watch)
        found = find(self.source, items, self.config, self.engine, watch)
        self.source.release()
        documents, rejected = self.check_rejected(watch)
        gone = found.gone(self.config)
        with watch.stage("write", found.hits.num_rows, "spans") as advance:
            self.write_table("contaminated", lambda path: self._write_hits(path, found, advance))
            self.write_table("items", lambda path: _write(path, item_table(found)))
            self.write_table("benchmarks", lambda path: _write(path, benchmark_table(found)))
            if self.config.remove or self.config.cut:
                self.write_table("removed", lambda path: self.write_removed(path, gone))
            self.write_table("weights", lambda path: write_counts(path, found.counts, self.config))
            self.write_table("rejected", lambda path: self._write_rejected(path, found))
            if self.writes_kept:
                self.write_kept(gone, lambda at: self._edits_of(at, found))
        return self.publish(
            ContaminationReport(
                **report_values(found, self.config, watch),
                **self.file_values(),
                documents=documents + rejected,
                num_kept=documents - gone.size,
                num_removed=gone.size,
                num_rejected=rejected,
            )
        )

    def _write_rejected(self, path: Path, found: Found) -> None:
        """Write the rejected rows of the benchmarks, then those of the input."""
        own = self.source.notes.rejected()
        write_rejected(path, itertools.chain([found.items.rejected], own))

    def _edits_of(self, at: int, found: Found) -> TextEdits:
        """Return the changes of the rows of a file."""
        first, stop = self.layout.file_first_rows[at : at + 2].tolist()
        column = next(iter(self.layout.columns[at].text), None)
        if self.config.remove:
            return TextEdits(column=column)
        if self.config.cut:
            return TextEdits(column=column, cuts=found.cuts.of(first, stop))
        own = slice(*np.searchsorted(found.rows, [first, stop]).tolist())
        words = np.zeros(stop - first, np.int64)
        totals = np.ones(stop - first, np.int64)
        words[found.rows[own] - first] = found.covered[own]
        totals[found.rows[own] - first] = found.num_words[own]
        spans = slice(*np.searchsorted(found.spans.docs, [first, stop]).tolist())
        marks = PassageMarks(
            words=words,
            shares=words / totals,
            rows=found.spans.docs[spans] - first,
            starts=found.span_bounds.starts[spans],
            ends=found.span_bounds.ends[spans],
        )
        return TextEdits(column=column, marks=marks)

    def _write_hits(self, path: Path, found: Found, advance: Callable[[int], None]) -> None:
        rows = found.column("row")
        with TableWriter(path, schema.contaminated(pa.string(), has_files=True)) as writer:
            for first in range(0, rows.size, ROWS_AT_ONCE):
                own = slice(first, min(first + ROWS_AT_ONCE, rows.size))
                values = hit_columns(found, own)
                values |= self.named("doc_id", "file", "row", rows[own])
                writer.write(pa.table(values))
                advance(own.stop - own.start)


def _write(path: Path, table: pa.Table) -> None:
    with TableWriter(path, table.schema) as writer:
        writer.write(table)
