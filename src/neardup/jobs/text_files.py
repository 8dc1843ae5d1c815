"""A search in the texts of files: reading, naming rows, and writing the rows of the input with changes."""

from __future__ import annotations

import abc
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import MIN_MEMORY, Config
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.limits import Memory, return_freed
from neardup.errors import ConfigError
from neardup.events import Watch
from neardup.io.columns.text_cuts import in_rows
from neardup.io.columns.text_edits import TextEdits
from neardup.io.documents.file_reader import FileReader, read_span
from neardup.io.documents.kept_rows import KeptRows
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.row_cache import RowCache
from neardup.io.documents.row_names import RowNames
from neardup.io.documents.stdin import STDIN_PATH
from neardup.io.storage.table_writer import TableWriter, write_rejected
from neardup.jobs.output import write_report
from neardup.jobs.rejections import all_rejected, first_rejected, most_rejected
from neardup.jobs.start import RunSetup
from neardup.report import Report

I64 = npt.NDArray[np.int64]
R = TypeVar("R", bound=Report)
# Rows that are named and written at once.
ROWS_AT_ONCE: Final = 1 << 15


class TextFiles(abc.ABC):
    """A search in the texts of files, for repeated passages or for items of benchmarks.

    reads_references: whether the files of `against` are documents as those of the input are.
    """

    reads_references: ClassVar = True

    def __init__(self, setup: RunSetup, engine: LocalEngine | None = None) -> None:
        config = setup.config
        self.setup = setup
        self.config = config
        self.workspace = setup.workspace
        self.engine = engine or LocalEngine(config.threads, setup.workspace, config.memory)
        # Readers need a memory limit even if the user set none.
        limited = Config.of(config, memory=max(MIN_MEMORY, Memory(config.memory).limit))
        return_freed(limited.memory or MIN_MEMORY)
        # Marks of texts are not those of duplicates.
        limited = Config.of(limited, mark=False)
        if self.reads_references:
            self.layout = FileLayout(setup.references + setup.own, len(setup.references), limited)
        else:
            self.layout = FileLayout(setup.own, 0, limited)
        self._check_formats()
        self.source = FileReader(self.layout, setup.workspace, self.engine.room() // 4)
        self.names = RowNames(self.layout, self.source.notes)

    @abc.abstractmethod
    def run(self, watch: Watch) -> Report:
        """Find, write and publish."""

    @property
    def writes_kept(self) -> bool:
        """Whether the rows of the input are written."""
        return self.setup.output.has_kept and not self.config.dry_run

    def check_rejected(self, watch: Watch) -> tuple[int, int]:
        """Count the documents and the rejected rows; warn of many."""
        notes = self.source.notes
        documents = notes.count("documents")
        rejected = notes.count("rejected")
        if rejected and not documents:
            raise all_rejected(rejected, first_rejected(notes), self.config)
        if rejected > documents:
            first = first_rejected(notes)
            message = most_rejected(rejected, documents + rejected, first, self.config)
            watch.warn(message, is_urgent=True)
        return documents, rejected

    def file_values(self) -> dict[str, Any]:
        """Return the fields of the report that say which files were read and written."""
        return {
            "bytes_read": self.source.notes.count("text_bytes"),
            "columns": self.layout.columns_taken(),
            "load": self.setup.output.load,
            "out": str(self.setup.output.target),
            "inputs": self._inputs(),
            "files": self.setup.output.files(self.workspace),
            "largest": (),
        }

    def publish(self, report: R) -> R:
        """Write report.json, and make the output visible."""
        write_report(self.workspace, report)
        self.setup.output.publish(self.workspace)
        return report

    def write_table(self, name: str, write: Callable[[Path], None]) -> None:
        """Write a table, unless an interrupted run has."""
        self.workspace.checkpoint(self.setup.output.drafts[name], write)

    def write_rejected(self, path: Path) -> None:
        """Write the rejected rows."""
        write_rejected(path, self.source.notes.rejected())

    def write_removed(self, path: Path, rows: I64) -> None:
        """Write the documents that are not kept, for which no other one stands."""
        columns = schema.left_over(pa.string(), has_files=True)
        with TableWriter(path, columns) as writer:
            for first in range(0, rows.size, ROWS_AT_ONCE):
                own = rows[first : first + ROWS_AT_ONCE]
                values = self.named("doc_id", "file", "row", own)
                for name in ("kept_id", "similarity", "kept_file", "kept_row"):
                    values[name] = pa.nulls(own.size, columns.field(name).type)
                writer.write(pa.table(values))

    def write_kept(self, gone: I64, edits_of: Callable[[int], TextEdits]) -> None:
        """Write the rows of every file of the input but those that are gone, with the changes of the file."""
        nothing = np.zeros(gone.size)
        selection = pa.table([gone, gone, nothing], schema=schema.SELECTION)
        kept = KeptRows(self.layout, self.source.notes, selection, RowCache())

        def write(at: int) -> None:
            edits = edits_of(at)
            self.workspace.checkpoint(
                f"out/kept/{self.layout.files[at].name}",
                lambda path: kept.write_edited(at, str(path), edits),
            )

        self.engine.side_by_side(write, self.layout.own_files())

    def named(self, doc_id: str, file: str, row: str, rows: I64) -> dict[str, Any]:
        """Return the ids, files and row numbers of rows as columns of these names."""
        distinct, at = np.unique(rows, return_inverse=True)
        files, numbers = self.names.locate(rows)
        ids = self.names.ids_of(distinct).take(pa.array(at))
        return {doc_id: ids, file: files, row: numbers}

    def texts_of(self, at: int) -> pa.ChunkedArray:
        """Return the texts of all rows of a file as they were compared, from a mapped file; null for no document."""
        path = str(self.workspace.folder / f"texts-{at}.arrow")
        columns = pa.schema([("text", pa.large_string())])
        begin, end = self.layout.file_pieces[at : at + 2].tolist()
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, columns) as writer:
            for number in range(begin, end):
                _, span = self.layout.piece(number)
                for found in read_span(self.layout, at, span):
                    texts = in_rows(found.texts, found.rows, found.num_rows)
                    writer.write_batch(pa.record_batch([texts], schema=columns))
        with pa.memory_map(path) as mapped:
            return pa.ipc.open_file(mapped).read_all().column("text")

    def _check_formats(self) -> None:
        """Raise if columns cannot be added to a file."""
        for at in self.layout.own_files():
            if self.layout.columns[at].text:
                continue
            path = self.layout.files[at].path
            if self.config.mark:
                raise ConfigError(
                    f"`mark` adds columns to every row, but {path} has no columns",
                    hint="leave `mark` out: the tables list what was found",
                )
            if self.config.cut and self.config.html:
                raise ConfigError(
                    f"`cut` with `html` adds a column with the text to every row, but {path} has no columns",
                    hint="store the pages as JSON Lines or Parquet, or leave `cut` out",
                )

    def _inputs(self) -> tuple[dict[str, Any], ...]:
        return tuple(
            entry | {"path": STDIN_PATH, "modified": ""}
            if entry["path"] == self.setup.spooled
            else entry
            for entry in self.layout.summary()
        )
