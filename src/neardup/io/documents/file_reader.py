"""Documents in files, as the stages read them: at most twice, and numbered in input order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.errors import DataError
from neardup.io.columns import keep_order
from neardup.io.columns.column_checks import hash_groups
from neardup.io.columns.common_groups import common_keys
from neardup.io.documents.fixed_priorities import FixedPriorities
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.notes import Notes, PartNotes, joined
from neardup.io.documents.path_globs import path_ranks
from neardup.io.documents.row_cache import RowCache
from neardup.io.formats import text
from neardup.io.records import Records, text_bytes
from neardup.io.storage.workspace import Workspace
from neardup.io.streams import check_unchanged

I64 = npt.NDArray[np.int64]
Advance = Callable[[int], None]
Batches = Iterable[pa.RecordBatch]


class DocumentFilter(Protocol):
    """Leaves documents of a run out while they are read, the same ones in every pass."""

    def choose(self, part: int, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield the documents of a part that stay, in the first pass, and note on disk which ones do not."""

    def choose_again(self, part: int, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Yield the same documents of a part in a later pass."""

    def has_noted(self, part: int) -> bool:
        """Whether an interrupted run has noted which documents of a part do not stay."""

    def close(self) -> None:
        """Free what the first pass needs."""


class FileReader:
    """The documents of many files, read part by part; the first pass writes notes to disk.

    Up to `cache_bytes` bytes of text stay in memory for the second pass.
    """

    unit = "bytes"

    def __init__(
        self,
        layout: FileLayout,
        workspace: Workspace,
        cache_bytes: int = 0,
        *,
        row_cache: RowCache | None = None,
        fixed: FixedPriorities | None = None,
        document_filter: DocumentFilter | None = None,
    ) -> None:
        """Take what the files hold, and where notes go.

        Args:
            layout: the files.
            workspace: where the notes of the first pass are written.
            cache_bytes: bytes of text that may stay in memory.
            row_cache: takes the columns of the first pass that kept rows are later written from.
            fixed: priorities of single documents.
            document_filter: leaves documents out.
        """
        self.layout = layout
        self.notes = Notes(layout, workspace)
        self.total = layout.total
        self.num_parts = layout.num_parts
        self.num_reference_parts = layout.num_reference_parts
        self.stops_at_first = layout.config.strict
        self._cache_bytes = cache_bytes
        self._row_cache = row_cache or RowCache()
        self._fixed = fixed
        self._filter = document_filter
        # Replaces texts by what is compared instead.
        self.compared: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None
        self._priorities: I64 | None = None
        # Of every file, for an order by path.
        self._path_ranks: I64 | None = None
        self._cached: dict[int, list[pa.RecordBatch]] = {}
        self._lock = threading.Lock()

    @property
    def first_rows(self) -> I64:
        """The first row of every part, and the end of the last one; empty until rows are numbered."""
        return self.layout.first_rows

    @property
    def num_rows(self) -> int:
        """The number of rows of all files, known once all have been read."""
        return self.layout.num_rows

    @property
    def num_references(self) -> int:
        """The number of rows of the reference files."""
        return self.layout.num_references

    def read(self, part: int, advance: Advance) -> Iterator[pa.RecordBatch]:
        """Read the documents of a part; the first pass also writes ids, scores and rejected rows to disk."""
        for batch in self.read_texts(part, advance):
            yield batch if self.compared is None else self.compared(batch)

    def read_texts(self, part: int, advance: Advance) -> Iterator[pa.RecordBatch]:
        """Read the documents of a part with their texts, also where something else is compared."""
        if not self.first_rows.size:
            yield from self._read_first(part, advance)
            return
        for batch in self._cached.get(part) or self._read_again(part):
            yield self.renumber(part, batch)

    def _read_first(self, part: int, advance: Advance) -> Iterator[pa.RecordBatch]:
        weight = self.layout.weights[part]
        read_so_far: list[pa.RecordBatch] = []
        size = 0
        counted = 0
        with self.notes.of_part(part) as notes:
            batches = self._documents_noted(part, notes)
            if self._filter is not None:
                batches = self._filter.choose(part, batches)
            for batch in joined(batches):
                size += batch.nbytes
                read_so_far.append(batch)
                if size > self._cache_bytes:
                    read_so_far.clear()
                yield batch
                share = min(int(text_bytes(batch.column("text")).sum()), weight - counted)
                counted += share
                advance(share)
        self._cache_part(part, read_so_far, size)
        advance(weight - counted)

    def _documents_noted(self, part: int, notes: PartNotes) -> Iterator[pa.RecordBatch]:
        first_own_piece = self.layout.file_pieces[self.layout.num_reference_files]
        for pieces, rows in read_pieces(self.layout, part):
            num_rows = 0
            file = _file_of(self.layout, pieces)
            for first_row, found in rows:
                self._check_strict(pieces, num_rows, found)
                notes.add(first_row, found)
                if found.columns is not None and pieces.start >= first_own_piece:
                    self._row_cache.put(pieces.start, found.columns)
                yield documents_of(found, found.rows + first_row, self.layout.config, file)
                num_rows += found.num_rows
            notes.end_pieces(len(pieces), num_rows)

    def _read_again(self, part: int) -> Iterator[pa.RecordBatch]:
        batches = read_documents(self.layout, part)
        if self._filter is not None:
            batches = self._filter.choose_again(part, batches)
        return joined(batches)

    def _cache_part(self, part: int, batches: list[pa.RecordBatch], size: int) -> None:
        """Keep a part in memory for the second pass if there is room."""
        with self._lock:
            if batches and size <= self._cache_bytes:
                self._cached[part] = batches
                self._cache_bytes -= size

    def release(self) -> None:
        """Free the texts in memory; the second pass is over."""
        self._cached.clear()
        if self._filter is not None:
            self._filter.close()

    def has_read(self, part: int) -> bool:
        """Whether an interrupted run has read a part, and its notes are intact."""
        if not self.notes.has(part):
            return False
        return self._filter is None or self._filter.has_noted(part)

    def skip(self, part: int, advance: Advance) -> None:
        """Count a part that an interrupted run has read."""
        advance(self.layout.weights[part])

    def _check_strict(self, pieces: range, first_row: int, found: Records) -> None:
        """Raise for a rejected row if the settings say so; `first_row` counts from the first of the pieces."""
        if not (self.layout.config.strict and found.rejected):
            return
        row, reason = min(found.rejected)
        piece = pieces.start
        row += first_row
        if len(pieces) > 1:  # pieces of one row each
            piece = pieces[row]
            row = 0
        at, _ = self.layout.piece(piece)
        row += sum(
            self._count_rows(earlier) for earlier in range(int(self.layout.file_pieces[at]), piece)
        )
        raise DataError(
            f"{self.layout.files[at].path}, row {row + 1} cannot be used: {reason}",
            hint="leave out strict=True to skip such rows and list them as rejected",
        )

    def _count_rows(self, piece: int) -> int:
        """Count the rows of a piece, which another thread may not have read yet."""
        at, span = self.layout.piece(piece)
        return sum(found.num_rows for found in read_span(self.layout, at, span))

    def finish_reading(self, sort: Callable[..., Iterable[pa.RecordBatch]]) -> None:
        """Number the rows of all parts and compute their keep order."""
        facts = self.notes.facts()
        self.layout.number([rows for part in facts for rows in part["piece_rows"]])
        self.layout.check_found([(sum(part["piece_rows"]), part["found"]) for part in facts])
        config = self.layout.config
        if config.keep_globs:
            names = (file.name for file in self.layout.files)
            self._path_ranks = path_ranks(config.keep_globs, names)
        if config.keep_column is not None:
            ordered = sort(
                self.notes.scores(), keep_order.SORTED, keep_order.sort_keys(config.keep)
            )
            self._priorities = keep_order.rank(ordered, self.num_rows, config.keep)

    def renumber(self, part: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Turn rows and priorities local to a part into those of the whole run."""
        rows = batch.column("row").to_numpy() + self.first_rows[part]
        batch = batch.set_column(
            batch.schema.get_field_index("row"), batch.schema.field("row"), pa.array(rows)
        )
        at = batch.schema.get_field_index("priority")
        if at < 0:
            return batch
        priority = self._priorities_of(part, rows)
        if self._fixed is not None:
            if priority is None:
                priority = batch.column(at).to_numpy().copy()
            for fixed in np.unique(self._fixed.priorities).tolist():
                priority[np.isin(rows, self._fixed.rows_with(fixed, self.layout))] = fixed
        if priority is None:
            return batch
        return batch.set_column(at, "priority", pa.array(priority))

    def _priorities_of(self, part: int, rows: I64) -> I64 | None:
        """Return the priorities of rows of a part, None if those that are local to the part hold for the run."""
        if part < self.num_reference_parts:
            return np.full(rows.size, schema.REFERENCE_PRIORITY)
        if self._priorities is not None:
            return self._priorities[rows]
        if self.layout.config.keep == "last":
            return keep_order.priorities("last", rows)
        if self._path_ranks is not None:
            files = np.searchsorted(self.layout.file_first_rows, rows, side="right") - 1
            return self._path_ranks[files]
        return None


def read_span(layout: FileLayout, at: int, span: tuple[int, int]) -> Iterator[Records]:
    """Read a span of a file, given its number."""
    return layout.formats[at].read(layout.files[at], span, layout.columns[at], layout.config)


def read_pieces(
    layout: FileLayout, part: int
) -> Iterator[tuple[range, Iterator[tuple[int, Records]]]]:
    """Iterate over the pieces of a part: their numbers, and (first row in the part, records), to be read in turn.

    Pieces come one by one, except consecutive text files, which come together.
    """
    row = 0

    def rows(pieces: range) -> Iterator[tuple[int, Records]]:
        nonlocal row
        for found in _read_together(layout, pieces):
            yield row, found
            row += found.num_rows

    numbers = layout.pieces_of(part)
    is_text = layout.is_text[layout.files_of(numbers)]
    if len(numbers):
        cuts = [0, *(np.flatnonzero(np.diff(is_text)) + 1).tolist(), len(numbers)]
    else:
        cuts = [0]
    for begin, end in pairwise(cuts):
        alike = numbers[begin:end]
        step = len(alike) if is_text[begin] else 1
        for first in alike[::step]:
            pieces = range(first, first + step)
            yield pieces, rows(pieces)


def _read_together(layout: FileLayout, pieces: range) -> Iterator[Records]:
    """Read one piece, or several text files."""
    if len(pieces) > 1:
        files = (layout.files[number] for number in layout.files_of(pieces))
        yield from text.read_all(files, layout.config)  # which checks each file
        return
    at, span = layout.piece(pieces.start)
    yield from read_span(layout, at, span)
    check_unchanged(layout.files[at])


def read_documents(layout: FileLayout, part: int) -> Iterator[pa.RecordBatch]:
    """Read the documents of a part, with rows and priorities local to it."""
    for pieces, rows in read_pieces(layout, part):
        file = _file_of(layout, pieces)
        for first_row, found in rows:
            yield documents_of(found, found.rows + first_row, layout.config, file)


def _file_of(layout: FileLayout, pieces: range) -> str | None:
    """Name the file of some pieces; None for text files, each of which is one document."""
    at, _ = layout.piece(pieces.start)
    return None if layout.is_text[at] else layout.files[at].name


def documents_of(
    found: Records, rows: I64, config: Config, file: str | None = None
) -> pa.RecordBatch:
    """Return records as schema.DOCUMENTS, numbered by `rows`; `file` names their file, None for a text file."""
    if found.groups is None:
        groups = np.zeros(rows.size, np.int64)
    else:
        groups = hash_groups(found.groups, config.seed)
    priority = keep_order.priorities(config.keep, rows, found.texts)
    columns = [pa.array(rows), found.texts, pa.array(priority), pa.array(groups)]
    has_common = config.ignore_common is not None
    if has_common:
        columns.append(pa.array(common_keys(found.ids, found.common, config, file)))
    kinds = schema.documents(found.texts.type, has_common=has_common)
    return pa.record_batch(columns, schema=kinds)
