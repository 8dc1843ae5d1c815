"""The files of a run in parts that can be read independently: pieces of large files, or many small files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.errors import DataError, StaleError
from neardup.io.formats import registry as formats
from neardup.io.formats import text
from neardup.io.formats.base import PART_BYTES, InputFile, Records
from neardup.io.sources.column_choice import choose_columns, hint_of_columns
from neardup.io.sources.text_size import num_text_bytes
from neardup.io.streams import check_unchanged
from neardup.io.values import keep_order
from neardup.io.values.columns import hash_groups, named_columns

I64 = npt.NDArray[np.int64]

# Small files share a part of about this size, because each part costs a few milliseconds in every stage.
JOINED_BYTES: Final = PART_BYTES


class FileParts:
    """The parts of many files; the first `num_ahead_files` are reference files.

    A piece is a span of a file; a part has many if they are small. Rows are numbered once all have been counted.
    """

    def __init__(self, files: Sequence[InputFile], num_ahead_files: int, config: Config) -> None:
        self.files, self.num_ahead_files, self.config = files, num_ahead_files, config
        self.formats = [formats.load(file.format) for file in files]
        self.columns = [
            choose_columns(file, form.column_names(file, config), config)
            for file, form in zip(files, self.formats, strict=True)
        ]
        spans = [form.split(file) for file, form in zip(files, self.formats, strict=True)]
        self.pieces = [(at, span) for at in range(len(files)) for span in spans[at]]
        self.file_pieces: I64 = np.cumsum([0, *map(len, spans)], dtype=np.int64)
        weights = [files[at].size // len(spans[at]) for at, _ in self.pieces]
        self.part_pieces = _join_pieces(weights, int(self.file_pieces[num_ahead_files]))
        # Progress counts text, which takes more room than a compressed file.
        of_text = [num_text_bytes(file, columns.text) for file, columns in zip(files, self.columns, strict=True)]
        expected = [of_text[at] // len(spans[at]) for at, _ in self.pieces]
        self.weights = [sum(expected[first:stop]) for first, stop in pairwise(self.part_pieces)]
        self.num_parts, self.total = len(self.weights), sum(expected)
        self.first_rows = self.file_first_rows = np.zeros(0, np.int64)

    def records(self, at: int, span: tuple[int, int]) -> Iterator[Records]:
        """Read a span of a file."""
        return self.formats[at].read(self.files[at], span, self.columns[at], self.config)

    def read_pieces(self, part: int) -> Iterator[tuple[range, Iterator[tuple[int, Records]]]]:
        """Iterate over the pieces of a part: their numbers, and (first row in the part, records), to be read in turn.

        Pieces come one by one, except consecutive text files, which come together.
        """
        row = 0

        def rows(pieces: range) -> Iterator[tuple[int, Records]]:
            nonlocal row
            at, span = self.pieces[pieces.start]
            is_many = len(pieces) > 1
            files = [self.files[self.pieces[piece][0]] for piece in pieces]
            for found in text.read_all(files, self.config) if is_many else self.records(at, span):
                yield row, found
                row += found.num_rows
            if not is_many:  # otherwise each was checked when it was read
                check_unchanged(self.files[at])

        numbers = range(*self.part_pieces[part : part + 2])
        for is_text, alike in groupby(numbers, lambda piece: self.files[self.pieces[piece][0]].format == "text"):
            pieces = list(alike)
            step = len(pieces) if is_text else 1
            for first in range(pieces[0], pieces[-1] + 1, step):
                yield range(first, first + step), rows(range(first, first + step))

    def documents_of(self, found: Records, first_row: int) -> pa.RecordBatch:
        """Return records as schema.DOCUMENTS, with rows and priorities local to the part."""
        return documents_of(found, found.rows + first_row, self.config)

    def number(self, piece_rows: Sequence[int]) -> None:
        """Number the rows of all parts, given the number of rows of each piece."""
        firsts = np.cumsum([0, *piece_rows], dtype=np.int64)
        self.first_rows, self.file_first_rows = firsts[self.part_pieces], firsts[self.file_pieces]

    def check_found(self, parts: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Raise for a column that was asked for and no row of the input has; `parts`: rows and columns found."""
        own = parts[self.num_ahead_parts :]
        found = {name for _, names in own for name in names}
        config = self.config
        for setting, column in named_columns(config):
            if column not in found and any(num_rows for num_rows, _ in own):
                first = self.num_ahead_files
                names = self.formats[first].column_names(self.files[first], config) or []
                raise StaleError(
                    f"`{setting}` names {column!r}, which no row of the input has",
                    hint=hint_of_columns(self.files[first], names, config, column),
                )

    @property
    def num_rows(self) -> int:
        """The number of rows of all files, known once all have been read."""
        return int(self.first_rows[-1])

    @property
    def num_ahead(self) -> int:
        """The number of rows of the reference files."""
        return int(self.file_first_rows[self.num_ahead_files])

    @property
    def num_ahead_parts(self) -> int:
        """The number of parts of the reference files."""
        return int(np.searchsorted(self.part_pieces, self.file_pieces[self.num_ahead_files]))

    def locate(self, rows: I64) -> tuple[pa.Array, I64]:
        """Return the name of the file of each row, and its row number there, from 1."""
        at = self._files_of(rows)
        names = pa.array([file.name for file in self.files], pa.string())
        return names.take(pa.array(at)), rows - self.file_first_rows[at] + 1

    def name_rows(self, rows: I64) -> pa.Array:
        """Return the name of each row that has no id: file and number, the file alone where it is one document."""
        files, numbers = self.locate(rows)
        is_whole = np.array([file.format == "text" for file in self.files], np.bool_)[self._files_of(rows)]
        numbered = pc.binary_join_element_wise(files, pa.array(numbers).cast(pa.string()), ":")
        return pc.if_else(pa.array(is_whole), files, numbered)

    def _files_of(self, rows: I64) -> I64:
        # Of files without rows that begin at the same row, the last one has it.
        at: I64 = np.searchsorted(self.file_first_rows[:-1], rows, side="right") - 1
        return at

    def rows_of(self, files: pa.Array, numbers: I64) -> I64:
        """Return the rows for files and row numbers, the inverse of `locate`."""
        return rows_in(files, numbers, [file.name for file in self.files], self.file_first_rows)

    def columns_taken(self) -> dict[str, str]:
        """Return the columns of every role in the input files, comma-separated if files differ."""
        taken: dict[str, list[str]] = {}
        for columns in map(self.columns.__getitem__, self.own_files()):
            for role, name in columns.taken().items():
                if name not in taken.setdefault(role, []):
                    taken[role].append(name)
        return {role: ", ".join(names) for role, names in taken.items()}

    def summary(self) -> tuple[dict[str, Any], ...]:
        """Return name, path, version and rows of every file, reference files first."""
        firsts = self.file_first_rows
        return tuple(
            {
                "file": file.name,
                "path": file.path,
                "size": file.size,
                "modified": file.modified,
                "head": file.head,
                "rows": int(firsts[at + 1] - firsts[at]),
                "ahead": at < self.num_ahead_files,
            }
            for at, file in enumerate(self.files)
        )

    def own_files(self) -> range:
        """Return the numbers of the files of the input."""
        return range(self.num_ahead_files, len(self.files))


def documents_of(found: Records, rows: I64, config: Config) -> pa.RecordBatch:
    """Return records as schema.DOCUMENTS, numbered by `rows`."""
    groups = np.zeros(rows.size, np.int64) if found.groups is None else hash_groups(found.groups, config.seed)
    priority = keep_order.priorities(config.keep, rows, found.texts)
    columns = [pa.array(rows), found.texts, pa.array(priority), pa.array(groups)]
    return pa.record_batch(columns, schema=schema.documents(found.texts.type))


def rows_in(files: pa.Array, numbers: I64, names: Sequence[str], first_rows: I64) -> I64:
    """Return the rows of a run for files and row numbers, given the names and the first row of all files."""
    at = pc.index_in(files, pa.array(names, pa.string())).fill_null(-1).to_numpy()
    rows: I64 = first_rows[at] + numbers - 1
    is_there = (at >= 0) & (numbers >= 1) & (numbers <= np.diff(first_rows)[at]) if names else np.zeros(at.size, bool)
    if not is_there.all():
        first = int(np.flatnonzero(~is_there)[0])
        raise DataError(
            f"a table of the run names row {numbers[first]} of {files[first]}, which the run has not read",
            hint="run neardup again on the input files",
        )
    return rows


def _join_pieces(weights: Sequence[int], boundary: int) -> list[int]:
    """Combine pieces to parts of about JOINED_BYTES; return their ends. One part ends at the boundary."""
    ends, size = [0], 0
    for piece, weight in enumerate(weights):
        if piece > ends[-1] and (size + weight > JOINED_BYTES or piece == boundary):
            ends.append(piece)
            size = 0
        size += weight
    return [*ends, len(weights)] if weights else ends
