"""The notes of the first pass over files: ids, scores and rejected rows of every part, streamed to disk."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.io import records
from neardup.io.columns import keep_order
from neardup.io.columns.scores import SCORES
from neardup.io.documents.layout import FileLayout
from neardup.io.records import BATCH_ROWS, Records
from neardup.io.storage.workspace import Workspace, read_batches

I64 = npt.NDArray[np.int64]

# The most small batches to combine into one.
_MANY_BATCHES: Final = 256
_NAMES: Final = pa.schema([("row", pa.int64()), ("id", pa.string())])
_SCORED_NAMES: Final = pa.schema([*_NAMES, ("score", SCORES)])
_TEXTS: Final = pa.schema([*_NAMES, ("text", pa.large_string())])
_REJECTED: Final = pa.schema([("row", pa.int64()), ("reason", pa.string())])


def joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine small batches, such as those of many small files, to about BATCH_BYTES."""
    waiting: list[pa.RecordBatch] = []
    size = num_rows = 0
    for batch in batches:
        is_large = size + batch.nbytes > records.BATCH_BYTES
        is_long = num_rows + batch.num_rows > BATCH_ROWS
        if waiting and (is_large or is_long):
            yield schema.one_batch(waiting, batch.schema)
            waiting = []
            size = 0
            num_rows = 0
        waiting.append(batch)
        size += batch.nbytes
        num_rows += batch.num_rows
    if waiting:
        yield schema.one_batch(waiting, waiting[0].schema)


class Notes:
    """The notes of all parts."""

    def __init__(self, layout: FileLayout, workspace: Workspace) -> None:
        self._layout = layout
        self._workspace = workspace

    def of_part(self, part: int) -> PartNotes:
        """Return what writes the notes of a part."""
        is_own = part >= self._layout.num_reference_parts
        return PartNotes(part, self._layout.config, self._workspace, is_own=is_own)

    def has(self, part: int) -> bool:
        """Whether an interrupted run has written the notes of a part, and they are intact."""
        files = [_names_file(part), _rejected_file(part)]
        if self._layout.config.text_out is not None and part >= self._layout.num_reference_parts:
            files.append(_texts_file(part))
        return all(self._workspace.has(name) for name in files)

    def facts(self) -> list[dict[str, Any]]:
        """Return the counts of every part, the rows of its pieces, and the columns found."""
        return [self._workspace.facts(_names_file(part)) for part in range(self._layout.num_parts)]

    def count(self, fact: str, *, references: bool = False) -> int:
        """Add up a count over the input, or over the reference files: documents, rejected, text_bytes, id_bytes."""
        facts = self.facts()
        return sum(facts[part][fact] for part in self._parts(references=references))

    def _parts(self, *, references: bool) -> range:
        first_own = self._layout.num_reference_parts
        if references:
            return range(first_own)
        return range(first_own, self._layout.num_parts)

    def ids(self, part: int) -> Iterator[tuple[I64, pa.Array]]:
        """Iterate over the documents of a part: their rows in the run, and their ids, null for those without one."""
        for batch in read_batches(self._path(_names_file(part))):
            yield self._placed(part, batch), batch.column("id")

    def ids_of_input(self) -> Iterator[tuple[I64, pa.Array]]:
        """Iterate over the documents of the input, as `ids` does."""
        for part in self._parts(references=False):
            yield from self.ids(part)

    def texts_of_input(self) -> Iterator[tuple[I64, pa.Array, pa.Array]]:
        """Iterate over the documents of the input: their rows in the run, their ids, and their texts."""
        for part in self._parts(references=False):
            for batch in read_batches(self._path(_texts_file(part))):
                yield self._placed(part, batch), batch.column("id"), batch.column("text")

    def rows(self, part: int) -> Iterator[I64]:
        """Iterate over the rows of the documents of a part, ascending."""
        for batch in read_batches(self._path(_names_file(part)), ["row"]):
            yield self._placed(part, batch)

    def scores(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the scores of all documents, as keep_order.SORTED, not sorted yet."""
        for part in range(self._layout.num_parts):
            for batch in read_batches(self._path(_names_file(part))):
                yield keep_order.unsorted(batch.column("score"), self._placed(part, batch))

    def rejected(self, *, references: bool = False) -> Iterator[pa.RecordBatch]:
        """Iterate over the rejected rows of the input, or of the reference files, as schema.REJECTED."""
        for part in self._parts(references=references):
            for batch in read_batches(self._path(_rejected_file(part))):
                files, numbers = self._layout.locate(self._placed(part, batch))
                columns = [files, pa.array(numbers), batch.column("reason")]
                yield pa.record_batch(columns, schema=schema.REJECTED)

    def _path(self, name: str) -> Path:
        return self._workspace.folder / name

    def _placed(self, part: int, batch: pa.RecordBatch) -> I64:
        """Return the rows in the run of the rows of a part."""
        rows: I64 = batch.column("row").to_numpy() + self._layout.first_rows[part]
        return rows


def _names_file(part: int) -> str:
    return f"names/{part:06}.arrow"


def _rejected_file(part: int) -> str:
    return f"rejected/{part:06}.arrow"


def _texts_file(part: int) -> str:
    return f"texts-out/{part:06}.arrow"


class PartNotes:
    """Writes the notes of a part; with `text_out`, also the texts of a part of the input."""

    def __init__(
        self, part: int, config: Config, workspace: Workspace, *, is_own: bool = True
    ) -> None:
        self._names = _names_file(part)
        self._rejected = _rejected_file(part)
        self._texts = _texts_file(part) if is_own and config.text_out is not None else None
        self._workspace = workspace
        self._has_scores = config.keep_column is not None
        self._columns = _SCORED_NAMES if self._has_scores else _NAMES
        self._facts: dict[str, Any] = {
            "piece_rows": [],
            "documents": 0,
            "rejected": 0,
            "id_bytes": 0,
            "text_bytes": 0,
        }
        self._found: set[str] = set()

    def __enter__(self) -> PartNotes:
        self._stack = contextlib.ExitStack()
        self._writers = [
            self._stack.enter_context(_NoteWriter(self._workspace.draft(name), columns))
            for name, columns in ((self._names, self._columns), (self._rejected, _REJECTED))
        ]
        self._text_writer = None
        if self._texts is not None:
            writer = _NoteWriter(self._workspace.draft(self._texts), _TEXTS)
            self._text_writer = self._stack.enter_context(writer)
        return self

    def add(self, first_row: int, found: Records) -> None:
        """Add a batch."""
        names = [pa.array(found.rows + first_row), found.ids]
        scores = [pa.nulls(len(found.rows), SCORES) if found.scores is None else found.scores]
        self._writers[0].write(
            pa.record_batch(names + scores * self._has_scores, schema=self._columns)
        )
        if self._text_writer is not None:
            self._text_writer.write(pa.record_batch([*names, found.texts], schema=_TEXTS))
        rows = [first_row + row for row, _ in found.rejected]
        reasons = [reason for _, reason in found.rejected]
        self._writers[1].write(
            pa.record_batch(
                [pa.array(rows, pa.int64()), pa.array(reasons, pa.string())], schema=_REJECTED
            )
        )
        self._facts["documents"] += len(found.rows)
        self._facts["rejected"] += len(found.rejected)
        self._facts["id_bytes"] += pc.sum(pc.binary_length(found.ids)).as_py() or 0
        self._facts["text_bytes"] += pc.sum(pc.binary_length(found.texts)).as_py() or 0
        self._found |= found.found

    def end_pieces(self, num_pieces: int, num_rows: int) -> None:
        """Record the number of rows of a piece, or of several with equally many."""
        self._facts["piece_rows"] += [num_rows // num_pieces] * num_pieces

    def __exit__(self, kind: Any, *_: object) -> None:
        self._stack.close()
        if kind is None:
            self._workspace.finish(self._rejected)
            if self._texts is not None:
                self._workspace.finish(self._texts)
            self._workspace.finish(self._names, self._facts | {"found": sorted(self._found)})


class _NoteWriter:
    """Writes an Arrow file, combining small batches."""

    def __init__(self, path: Path, columns: pa.Schema) -> None:
        self._writer = pa.ipc.new_file(str(path), columns)
        self._columns = columns
        self._waiting: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        self._waiting.append(batch)
        if batch.num_rows >= BATCH_ROWS // _MANY_BATCHES or len(self._waiting) >= _MANY_BATCHES:
            self._flush()

    def _flush(self) -> None:
        whole = schema.one_batch(self._waiting, self._columns)
        self._waiting = []
        if whole.num_rows:
            self._writer.write_batch(whole)

    def __enter__(self) -> _NoteWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._writer.close()
