"""What the files of a run hold, in parts that can be read independently: pieces of large files, or many small files."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.config import Config
from neardup.config.checks import AUTO
from neardup.errors import DataError, StartOverError
from neardup.io.columns.column_checks import named_columns
from neardup.io.documents.column_choice import (
    choose_columns,
    choose_reference_columns,
    hint_of_columns,
    of_reference_settings,
    of_references,
)
from neardup.io.documents.file_list import FileList
from neardup.io.documents.text_size import num_text_bytes
from neardup.io.formats import registry as formats
from neardup.io.formats import text
from neardup.io.records import PART_BYTES, Columns, InputFile

I64 = npt.NDArray[np.int64]

# Small files share a part of about this size, because each part costs a few milliseconds in every
# stage.
JOINED_BYTES: Final = PART_BYTES


class FileLayout:
    """What many files hold: columns, pieces, parts and rows; the first `num_reference_files` are reference files.

    A piece is a span of a file; a part has many if they are small. Rows are numbered once all have
    been counted.
    others: columns that are no part of a run, but are read as well.
    """

    def __init__(
        self,
        files: Sequence[InputFile],
        num_reference_files: int,
        config: Config,
        others: tuple[str, ...] = (),
    ) -> None:
        self._others = others
        self.files = FileList(files)
        self.num_reference_files = num_reference_files
        self.config = config
        names = (file.name for file in self.files)
        self.file_names = pa.array(names, pa.string(), size=len(self.files))
        self.formats = [formats.load(file.format) for file in self.files]
        is_text = (form is text for form in self.formats)
        self.is_text = np.fromiter(is_text, np.bool_, len(self.files))
        self.columns = self._choose_columns()
        weights, expected = self._split()
        self.part_pieces = _join_pieces(weights, int(self.file_pieces[num_reference_files]))
        self.weights = [sum(expected[first:stop]) for first, stop in pairwise(self.part_pieces)]
        self.num_parts = len(self.weights)
        self.total = sum(expected)
        self.first_rows = np.zeros(0, np.int64)
        self.file_first_rows = self.first_rows

    def _choose_columns(self) -> list[Columns]:
        """Choose the columns of every file; text files, which have none, share one object."""
        of_text: Columns | None = None
        chosen: list[Columns] = []
        for at, (file, form) in enumerate(zip(self.files, self.formats, strict=True)):
            if at < self.num_reference_files:
                choose = choose_reference_columns
            else:
                choose = choose_columns
            if at == self.num_reference_files:
                of_text = None
            if form is not text or of_text is None:
                names = form.column_names(file, self.config)
                chosen.append(choose(file, names, self.config, self._others))
            else:
                chosen.append(of_text)
            if form is text:
                of_text = chosen[-1]
        return chosen

    def _split(self) -> tuple[list[int], list[int]]:
        """Split the files into pieces; return the size of each in the file, and approximately in text."""
        counts = [0]
        files = array("q")
        spans = array("q")
        sizes: list[int] = []
        of_text: list[int] = []
        for at, file in enumerate(self.files):
            found = self.formats[at].split(file)
            count = len(found)
            counts.append(count)
            files.extend([at] * count)
            spans.extend(chain.from_iterable(found))
            sizes += [file.size // max(count, 1)] * count
            # Progress counts text, which is larger than a compressed file.
            text_bytes = num_text_bytes(file, self.columns[at].text)
            of_text += [text_bytes // max(count, 1)] * count
        self.file_pieces: I64 = np.cumsum(counts, dtype=np.int64)
        self._piece_files: I64 = np.array(files, np.int64)
        self._piece_spans: I64 = np.array(spans, np.int64).reshape(-1, 2)
        return sizes, of_text

    def pieces_of(self, part: int) -> range:
        """Return the numbers of the pieces of a part."""
        first, stop = self.part_pieces[part : part + 2]
        return range(first, stop)

    def parts_of(self, files: range) -> range:
        """Return the numbers of the parts that have pieces of consecutive files."""
        begin, end = self.file_pieces[[files.start, files.stop]]
        first = int(np.searchsorted(self.part_pieces, begin, side="right")) - 1
        return range(first, int(np.searchsorted(self.part_pieces, end)))

    def piece(self, number: int) -> tuple[int, tuple[int, int]]:
        """Return the number of the file of a piece, and its span there."""
        first, stop = self._piece_spans[number].tolist()
        return int(self._piece_files[number]), (first, stop)

    def files_of(self, pieces: range) -> list[int]:
        """Return the numbers of the files of consecutive pieces."""
        numbers: list[int] = self._piece_files[pieces.start : pieces.stop].tolist()
        return numbers

    def number(self, piece_rows: Sequence[int]) -> None:
        """Number the rows of all parts, given the number of rows of each piece."""
        firsts = np.cumsum([0, *piece_rows], dtype=np.int64)
        self.first_rows = firsts[self.part_pieces]
        self.file_first_rows = firsts[self.file_pieces]

    def check_found(self, parts: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Raise if no row of the input has a requested column; `parts`: rows and columns found."""
        own = parts[self.num_reference_parts :]
        for setting, column in _missing(own, self.config):
            hint = self._hint_of(self.num_reference_files, self.config, column)
            raise StartOverError(
                f"`{setting}` names {column!r}, a column that no row of the input has", hint=hint
            )
        references = parts[: self.num_reference_parts]
        config = of_references(self.config)
        for setting, column in _missing(references, config):
            named = f"against_{setting}"
            if getattr(self.config, named, None) is not None:
                hint = of_reference_settings(self._hint_of(0, config, column))
                raise StartOverError(
                    f"`{named}` names {column!r}, a column that no row of `against` has", hint=hint
                )

    def _hint_of(self, at: int, config: Config, column: str) -> str:
        """Return the hint for a column that a file lacks."""
        names = self.formats[at].column_names(self.files[at], config) or []
        return hint_of_columns(self.files[at], names, config, column)

    @property
    def num_rows(self) -> int:
        """The number of rows of all files, known once all have been read."""
        return int(self.first_rows[-1])

    @property
    def num_references(self) -> int:
        """The number of rows of the reference files."""
        return int(self.file_first_rows[self.num_reference_files])

    @property
    def num_reference_parts(self) -> int:
        """The number of parts of the reference files."""
        return int(np.searchsorted(self.part_pieces, self.file_pieces[self.num_reference_files]))

    def locate(self, rows: I64) -> tuple[pa.Array, I64]:
        """Return the name of the file of each row, and its row number there, from 1."""
        at = self.files_at(rows)
        return self.file_names.take(pa.array(at)), rows - self.file_first_rows[at] + 1

    def files_at(self, rows: I64) -> I64:
        """Return the number of the file of each row."""
        # Empty files begin at the same row as the next file; the last one contains the row.
        at: I64 = np.searchsorted(self.file_first_rows[:-1], rows, side="right") - 1
        return at

    def rows_of(self, files: pa.Array, numbers: I64) -> I64:
        """Return the rows for files and row numbers, the inverse of `locate`."""
        return rows_in(files, numbers, self.file_names, self.file_first_rows)

    def columns_taken(self) -> dict[str, str]:
        """Return the columns of every role in the input files, comma-separated if files differ."""
        taken: dict[str, list[str]] = {}
        # Text files share one object, which is counted once.
        own = {id(self.columns[at]): self.columns[at] for at in self.own_files()}
        for columns in own.values():
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
                "ahead": at < self.num_reference_files,
            }
            | ({"encoding": file.encoding} if self.config.encoding == AUTO else {})
            for at, file in enumerate(self.files)
        )

    def own_files(self) -> range:
        """Return the numbers of the files of the input."""
        return range(self.num_reference_files, len(self.files))


def _missing(
    parts: Sequence[tuple[int, Sequence[str]]], config: Config
) -> Iterator[tuple[str, str]]:
    """Iterate over the settings that name a column, and the columns, that no row of some parts has."""
    found = {name for _, names in parts for name in names}
    if any(num_rows for num_rows, _ in parts):
        for setting, column in named_columns(config):
            if column not in found:
                yield setting, column


def rows_in(files: pa.Array, numbers: I64, names: pa.Array, first_rows: I64) -> I64:
    """Return the rows of a run for files and row numbers, given the names and the first row of all files."""
    at = pc.index_in(files, names).fill_null(-1).to_numpy()
    rows: I64 = first_rows[at] + numbers - 1
    is_there = np.zeros(at.size, np.bool_)
    if len(names):
        sizes = np.diff(first_rows)[at]
        is_there = (at >= 0) & (numbers >= 1) & (numbers <= sizes)
    if not is_there.all():
        first = int(np.flatnonzero(~is_there)[0])
        raise DataError(
            f"a table of the run names row {numbers[first]} of {files[first]}, which the run did not read",
            hint="run neardup again on the input files",
        )
    return rows


def _join_pieces(weights: Sequence[int], boundary: int) -> list[int]:
    """Combine pieces to parts of about JOINED_BYTES; return their ends. One part ends at the boundary."""
    ends = [0]
    size = 0
    for piece, weight in enumerate(weights):
        if piece > ends[-1] and (size + weight > JOINED_BYTES or piece == boundary):
            ends.append(piece)
            size = 0
        size += weight
    return [*ends, len(weights)] if weights else ends
