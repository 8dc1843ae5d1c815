"""The notes of the first pass over a part: ids, scores and rejected rows, streamed to disk."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.io import records
from neardup.io.columns.scores import SCORES
from neardup.io.records import BATCH_ROWS, Records
from neardup.io.storage.workspace import Workspace

# The most small batches to combine into one.
_MANY_BATCHES: Final = 256
_NAMES: Final = pa.schema([("row", pa.int64()), ("id", pa.string())])
_SCORED_NAMES: Final = pa.schema([*_NAMES, ("score", SCORES)])
_REJECTED: Final = pa.schema([("row", pa.int64()), ("reason", pa.string())])


def joined(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Combine small batches, such as those of many small files, to about BATCH_BYTES."""
    waiting: list[pa.RecordBatch] = []
    size = num_rows = 0
    for batch in batches:
        if waiting and (size + batch.nbytes > records.BATCH_BYTES or num_rows + batch.num_rows > BATCH_ROWS):
            yield schema.one_batch(waiting, batch.schema)
            waiting, size, num_rows = [], 0, 0
        waiting.append(batch)
        size, num_rows = size + batch.nbytes, num_rows + batch.num_rows
    if waiting:
        yield schema.one_batch(waiting, waiting[0].schema)


class Notes:
    """Writes the notes of a part."""

    def __init__(self, part: int, config: Config, workspace: Workspace) -> None:
        self._names, self._rejected = f"names/{part:06}.arrow", f"rejected/{part:06}.arrow"
        self._workspace, self._has_scores = workspace, config.keep_column is not None
        self._facts: dict[str, Any] = {"piece_rows": [], "documents": 0, "rejected": 0, "id_bytes": 0, "text_bytes": 0}
        self._found: set[str] = set()
        self._columns = _SCORED_NAMES if self._has_scores else _NAMES

    def __enter__(self) -> Notes:
        self._stack = contextlib.ExitStack()
        self._writers = [
            self._stack.enter_context(_NoteWriter(self._workspace.draft(name), columns))
            for name, columns in ((self._names, self._columns), (self._rejected, _REJECTED))
        ]
        return self

    def add(self, first_row: int, found: Records) -> None:
        """Add a batch."""
        names = [pa.array(found.rows + first_row), found.ids]
        scores = [pa.nulls(len(found.rows), SCORES) if found.scores is None else found.scores]
        self._writers[0].write(pa.record_batch(names + scores * self._has_scores, schema=self._columns))
        rows, reasons = [first_row + row for row, _ in found.rejected], [reason for _, reason in found.rejected]
        self._writers[1].write(
            pa.record_batch([pa.array(rows, pa.int64()), pa.array(reasons, pa.string())], schema=_REJECTED)
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
