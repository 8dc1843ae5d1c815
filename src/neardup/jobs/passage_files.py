"""Repeated passages of files: the tables, and the rows of the input without the passages or with marks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import MIN_MEMORY, Config
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.limits import Memory, return_freed
from neardup.errors import ConfigError
from neardup.events import Watch
from neardup.io.columns.text_edits import PassageMarks, TextEdits
from neardup.io.documents.file_reader import FileReader
from neardup.io.documents.kept_rows import KeptRows
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.row_cache import RowCache
from neardup.io.documents.row_names import RowNames
from neardup.io.documents.stdin import STDIN_PATH
from neardup.io.finished import passage_tables
from neardup.io.storage.table_writer import TableWriter, write_rejected
from neardup.jobs.output import RunFolder, write_report
from neardup.jobs.passages import Found, find, place_columns, repeated_rows, report_values
from neardup.jobs.rejections import all_rejected, first_rejected, most_rejected
from neardup.jobs.start import RunSetup, begin
from neardup.jobs.stored_pairs import load_run
from neardup.report import PassagesReport, Report

I64 = npt.NDArray[np.int64]
# Rows that are named and written at once.
_ROWS_AT_ONCE: Final = 1 << 15
# Bytes of text of passages that are written at once.
_TEXT_AT_ONCE: Final = 8 << 20


class PassagesFolder(RunFolder):
    """The output folder of `neardup passages`."""

    command: ClassVar = "passages"
    tables: ClassVar = ("passages", "repeated", "removed")

    def load(self, name: str) -> pa.Table | None:
        """Return a published table by name, None if it was not stored."""
        return passage_tables.load_table(self.target, name)


def find_in_files(paths: Sequence[str], config: Config, watch: Watch, out: str) -> Report:
    """Find the repeated passages of files and write them to a folder.

    A run that an earlier start has already published is loaded.
    """
    output = PassagesFolder(out)
    output.has_kept = config.cut or config.mark
    with begin(output, paths, config, watch) as setup:
        if setup is None:
            return load_run(output.target)
        return _FilesRun(setup).run(watch)


class _FilesRun:
    """A search for passages in files."""

    def __init__(self, setup: RunSetup) -> None:
        config = setup.config
        self.setup = setup
        self.config = config
        self.workspace = setup.workspace
        self.engine = LocalEngine(config.threads, setup.workspace, config.memory)
        # Readers need a memory limit even if the user set none.
        limited = Config.of(config, memory=max(MIN_MEMORY, Memory(config.memory).limit))
        return_freed(limited.memory or MIN_MEMORY)
        # Marks of passages are not those of duplicates.
        limited = Config.of(limited, mark=False)
        self.layout = FileLayout(setup.references + setup.own, len(setup.references), limited)
        self._check_formats()
        self.source = FileReader(self.layout, setup.workspace, self.engine.room() // 4)
        self.names = RowNames(self.layout, self.source.notes)

    def run(self, watch: Watch) -> PassagesReport:
        """Find, write and publish."""
        folder = self.workspace.folder / "places"
        found = find(self.source, self.config, self.engine, watch, folder)
        self.source.release()
        documents, rejected = self._check_rejected(watch)
        gone = found.left_over(self.config.min_left) if self.config.cut else found.counts.rows[:0]
        with watch.stage("write", found.places.docs.size, "places") as advance:
            self._write_table("passages", lambda path: self._write_passages(path, found, advance))
            self._write_table("repeated", lambda path: self._write_repeated(path, found))
            if self.config.cut:
                self._write_table("removed", lambda path: self._write_removed(path, gone))
            self._write_table("rejected", self._write_rejected)
            if self.writes_kept:
                self._write_kept(found, gone)
        report = PassagesReport(
            **report_values(found, self.config, watch),
            documents=documents + rejected,
            num_kept=documents - gone.size,
            num_removed=gone.size,
            num_rejected=rejected,
            bytes_read=self.source.notes.count("text_bytes"),
            columns=self.layout.columns_taken(),
            load=self.setup.output.load,
            out=str(self.setup.output.target),
            inputs=self._inputs(),
            files=self.setup.output.files(self.workspace),
            largest=(),
        )
        write_report(self.workspace, report)
        self.setup.output.publish(self.workspace)
        return report

    @property
    def writes_kept(self) -> bool:
        """Whether the rows of the input are written."""
        return (self.config.cut or self.config.mark) and not self.config.dry_run

    def _check_formats(self) -> None:
        """Raise if marks cannot be added to a file."""
        for at in self.layout.own_files():
            if self.config.mark and not self.layout.columns[at].text:
                path = self.layout.files[at].path
                raise ConfigError(
                    f"`mark` adds columns to every row, but {path} has no columns",
                    hint="leave `mark` out: passages.parquet lists the places",
                )

    def _write_kept(self, found: Found, gone: I64) -> None:
        """Write the rows of every file of the input with the changes."""
        nothing = np.zeros(gone.size)
        selection = pa.table([gone, gone, nothing], schema=schema.SELECTION)
        kept = KeptRows(self.layout, self.source.notes, selection, RowCache())

        def write(at: int) -> None:
            edits = self._edits_of(at, found)
            self.workspace.checkpoint(
                f"out/kept/{self.layout.files[at].name}",
                lambda path: kept.write_edited(at, str(path), edits),
            )

        self.engine.side_by_side(write, self.layout.own_files())

    def _edits_of(self, at: int, found: Found) -> TextEdits:
        """Return the changes of the rows of a file."""
        first, stop = self.layout.file_first_rows[at : at + 2].tolist()
        column = next(iter(self.layout.columns[at].text), None)
        if self.config.cut:
            return TextEdits(column=column, cuts=found.cuts.of(first, stop))
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

    def _check_rejected(self, watch: Watch) -> tuple[int, int]:
        """Count the documents and the rejected rows; warn of many."""
        notes = self.source.notes
        documents = notes.count("documents")
        rejected = notes.count("rejected")
        if rejected and not documents:
            raise all_rejected(rejected, first_rejected(notes))
        if rejected > documents:
            message = most_rejected(rejected, documents + rejected, first_rejected(notes))
            watch.warn(message, is_urgent=True)
        return documents, rejected

    def _inputs(self) -> tuple[dict[str, Any], ...]:
        return tuple(
            entry | {"path": STDIN_PATH, "modified": ""}
            if entry["path"] == self.setup.spooled
            else entry
            for entry in self.layout.summary()
        )

    def _write_table(self, name: str, write: Callable[[Path], None]) -> None:
        self.workspace.checkpoint(self.setup.output.drafts[name], write)

    def _write_rejected(self, path: Path) -> None:
        write_rejected(path, self.source.notes.rejected())

    def _write_passages(self, path: Path, found: Found, advance: Callable[[int], None]) -> None:
        columns = schema.passages(pa.string(), has_files=True)
        places = found.places
        with TableWriter(path, columns) as writer:
            for first in range(0, places.docs.size, _ROWS_AT_ONCE):
                own = slice(first, min(first + _ROWS_AT_ONCE, places.docs.size))
                values = place_columns(found, own)
                values |= self._named("doc_id", "file", "row", places.docs[own])
                values |= self._named(
                    "source_id", "source_file", "source_row", places.sources[own]
                )
                writer.write(pa.table(values))
                advance(own.stop - own.start)

    def _named(self, doc_id: str, file: str, row: str, rows: I64) -> dict[str, Any]:
        """Return the ids, files and row numbers of rows as columns of these names."""
        distinct, at = np.unique(rows, return_inverse=True)
        files, numbers = self.names.locate(rows)
        ids = self.names.ids_of(distinct).take(pa.array(at))
        return {doc_id: ids, file: files, row: numbers}

    def _write_repeated(self, path: Path, found: Found) -> None:
        with TableWriter(path, schema.REPEATED) as writer:
            for own in _slices_of_text(found):
                writer.write(repeated_rows(found, own))

    def _write_removed(self, path: Path, rows: I64) -> None:
        columns = schema.left_over(pa.string(), has_files=True)
        with TableWriter(path, columns) as writer:
            for first in range(0, rows.size, _ROWS_AT_ONCE):
                own = rows[first : first + _ROWS_AT_ONCE]
                values = self._named("doc_id", "file", "row", own)
                for name in ("kept_id", "similarity", "kept_file", "kept_row"):
                    values[name] = pa.nulls(own.size, columns.field(name).type)
                writer.write(pa.table(values))


def _slices_of_text(found: Found) -> Iterator[slice]:
    """Cut the passages, in the order of their ids, into slices with about _TEXT_AT_ONCE of text."""
    sizes = found.locator.texts.bytes_of(found.passages.order)
    ends = np.cumsum(sizes)
    first = 0
    while first < sizes.size:
        before = int(ends[first - 1]) if first else 0
        stop = int(np.searchsorted(ends, before + _TEXT_AT_ONCE, side="right"))
        stop = min(max(stop, first + 1), first + _ROWS_AT_ONCE)
        yield slice(first, stop)
        first = stop
