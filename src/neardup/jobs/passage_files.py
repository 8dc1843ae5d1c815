"""Repeated passages of files: the tables, and the rows of the input without the passages or with marks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.events import Watch
from neardup.io.columns.text_edits import CutTexts, PassageMarks, TextEdits
from neardup.io.finished import passage_tables
from neardup.io.storage.table_writer import TableWriter
from neardup.io.storage.workspace import Reusable
from neardup.jobs.output import RunFolder
from neardup.jobs.passages import Found, find, place_columns, repeated_rows, report_values
from neardup.jobs.start import begin
from neardup.jobs.stored_pairs import load_run
from neardup.jobs.text_files import ROWS_AT_ONCE, TextFiles
from neardup.report import PassagesReport, Report

I64 = npt.NDArray[np.int64]
# Bytes of text of passages that are written at once.
_TEXT_AT_ONCE: Final = 8 << 20


class PassagesFolder(RunFolder):
    """The output folder of `neardup passages`."""

    command: ClassVar = "passages"
    tables: ClassVar = ("passages", "repeated", "removed")
    # Anchors do not depend on what is done with the passages.
    reusable: ClassVar = Reusable(
        frozenset({"cut", "keep", "min_count", "min_left", "mark", "dry_run"}),
        ("sketch", "names", "rejected"),
    )

    def load(self, name: str) -> pa.Table | None:
        """Return a published table by name, None if it was not stored."""
        return passage_tables.load_table(self.target, name)


def find_in_files(
    paths: Sequence[str], config: Config, watch: Watch, out: str, *, engine: Any = None
) -> Report:
    """Find the repeated passages of files and write them to a folder.

    A run that an earlier start has already published is loaded.
    """
    output = PassagesFolder(out)
    output.has_kept = config.cut or config.mark
    with begin(output, paths, config, watch) as setup:
        if setup is None:
            return load_run(output.target)
        if config.engine == "spark":
            from neardup.jobs.text_files_on_spark import PassagesOnSpark

            return PassagesOnSpark(setup, engine).run(watch)
        return RepeatedInFiles(setup).run(watch)


class RepeatedInFiles(TextFiles):
    """A search for repeated passages in files."""

    def run(self, watch: Watch) -> PassagesReport:
        """Find, write and publish."""
        folder = self.workspace.folder / "places"
        found = find(self.source, self.config, self.engine, watch, folder)
        self.source.release()
        documents, rejected = self.check_rejected(watch)
        gone = found.left_over(self.config.min_left) if self.config.cut else found.counts.rows[:0]
        with watch.stage("write", found.places.docs.size, "places") as advance:
            self.write_table("passages", lambda path: self._write_passages(path, found, advance))
            self.write_table("repeated", lambda path: self._write_repeated(path, found))
            if self.config.cut:
                self.write_table("removed", lambda path: self.write_removed(path, gone))
            self.write_table("rejected", self.write_rejected)
            if self.writes_kept:
                self.write_kept(gone, lambda at: self._edits_of(at, found))
        return self.publish(
            PassagesReport(
                **report_values(found, self.config, watch),
                **self.file_values(),
                documents=documents + rejected,
                num_kept=documents - gone.size,
                num_removed=gone.size,
                num_rejected=rejected,
            )
        )

    def _edits_of(self, at: int, found: Found) -> TextEdits:
        """Return the changes of the rows of a file."""
        first, stop = self.layout.file_first_rows[at : at + 2].tolist()
        column = next(iter(self.layout.columns[at].text), None)
        cuts = found.cuts.of(first, stop)
        if self.config.cut and self.config.html:
            return TextEdits(column=column, marks=CutTexts(texts=self.texts_of(at), cuts=cuts))
        if self.config.cut:
            return TextEdits(column=column, cuts=cuts)
        counts = found.counts
        own = slice(*np.searchsorted(counts.rows, [first, stop]).tolist())
        words = np.zeros(stop - first, np.int64)
        totals = np.ones(stop - first, np.int64)
        words[counts.rows[own] - first] = counts.repeated[own]
        totals[counts.rows[own] - first] = np.maximum(counts.words[own], 1)
        spans = slice(*np.searchsorted(found.spans.docs, [first, stop]).tolist())
        marks = PassageMarks(
            words=words,
            shares=words / totals,
            rows=found.spans.docs[spans] - first,
            starts=found.locator.spans.starts[spans],
            ends=found.locator.spans.ends[spans],
        )
        return TextEdits(column=column, marks=marks)

    def _write_passages(self, path: Path, found: Found, advance: Callable[[int], None]) -> None:
        columns = schema.passages(pa.string(), has_files=True)
        places = found.places
        with TableWriter(path, columns) as writer:
            for first in range(0, places.docs.size, ROWS_AT_ONCE):
                own = slice(first, min(first + ROWS_AT_ONCE, places.docs.size))
                values = place_columns(found, own)
                values |= self.named("doc_id", "file", "row", places.docs[own])
                values |= self.named("source_id", "source_file", "source_row", places.sources[own])
                writer.write(pa.table(values))
                advance(own.stop - own.start)

    def _write_repeated(self, path: Path, found: Found) -> None:
        with TableWriter(path, schema.REPEATED) as writer:
            for own in _slices_of_text(found):
                writer.write(repeated_rows(found, own))


def _slices_of_text(found: Found) -> Iterator[slice]:
    """Cut the passages, in the order of their ids, into slices with about _TEXT_AT_ONCE of text."""
    sizes = found.locator.texts.bytes_of(found.passages.order)
    ends = np.cumsum(sizes)
    first = 0
    while first < sizes.size:
        before = int(ends[first - 1]) if first else 0
        stop = int(np.searchsorted(ends, before + _TEXT_AT_ONCE, side="right"))
        stop = min(max(stop, first + 1), first + ROWS_AT_ONCE)
        yield slice(first, stop)
        first = stop
