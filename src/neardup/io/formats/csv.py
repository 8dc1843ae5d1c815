"""CSV and TSV with a header, parsed record by record; newlines inside quotes belong to the field."""

from __future__ import annotations

import csv
import io
import itertools
import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any, BinaryIO, Final, NamedTuple, Self

import pyarrow as pa

from neardup.config import Config
from neardup.errors import DataError
from neardup.io import records
from neardup.io.columns import gather
from neardup.io.columns.oversize import SKIPPED_AT_ONCE, max_row_bytes, passed, reason_against_size
from neardup.io.columns.rejected_rows import BROKEN_CSV, NO_COLUMN, OPEN_QUOTE
from neardup.io.formats.registry import endings
from neardup.io.records import (
    MARK_COLUMNS,
    Columns,
    Edits,
    InputFile,
    Records,
    Verdicts,
)
from neardup.io.streams import check_unchanged, copy_file, open_input, open_output_like

# The marks of a kept document: kept, and neither a kept id nor a similarity.
_KEPT_MARKS: Final = ("true", "", "")


class _Row(NamedTuple):
    """One record: its original bytes, its fields, and the reason if it cannot be used."""

    raw: bytes
    fields: list[str]
    reason: str | None


def split(file: InputFile) -> list[tuple[int, int]]:
    """Return the file as one span: where a record begins depends on all quotes before it."""
    return [(0, file.size)]


def column_names(file: InputFile, config: Config) -> list[str]:
    """Return the header; empty for an empty file."""
    with open_input(file) as stream:
        header = _header(file, _rows(stream, file, config))
    return header.fields if header else []


def read(
    file: InputFile,
    span: tuple[int, int],  # noqa: ARG001
    columns: Columns,
    config: Config,
) -> Iterator[Records]:
    """Read the records after the header, batch by batch."""
    with open_input(file) as stream:
        rows = _rows(stream, file, config)
        header = _header(file, rows)
        if header is not None:
            yield from _batches(rows, _Taker(header.fields, columns, config), config)
    check_unchanged(file)


def table(file: InputFile, config: Config, *, without: Collection[str] = ()) -> pa.Table:
    """Return all records after the header, every field as text, without some columns."""
    with open_input(file) as stream:
        rows = _rows(stream, file, config)
        header = _header(file, rows)
        names = header.fields if header else []
        columns: list[list[str | None]] = [[] for _ in names]
        for row in rows:
            is_whole = row.reason is None and len(row.fields) == len(names)
            for position, column in enumerate(columns):
                column.append(row.fields[position] if is_whole else None)
    arrays = []
    chosen = []
    for name, column in zip(names, columns, strict=True):
        if name not in without:
            chosen.append(name)
            arrays.append(pa.array(column, pa.large_string()))
    return pa.Table.from_arrays(arrays, names=chosen)


def write(file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:
    """Write the header and the kept records byte for byte; with config.mark, all documents with marks."""
    if verdicts.leaves_all and not config.mark:
        copy_file(file, target)
        check_unchanged(file)
        return
    check_unchanged(file)
    if verdicts.edits is not None:
        _write_edited(file, target, verdicts, config, verdicts.edits)
        return
    delimiter = _delimiter(file, config)
    with open_input(file) as stream, open_output_like(file, target) as output:
        rows = _rows(stream, file, config)
        header = _header(file, rows)
        if header is not None:
            if config.mark:
                output.write(_with_fields(header.raw, MARK_COLUMNS.names, delimiter))
            else:
                output.write(header.raw)
        marks = _marks(verdicts) if config.mark else {}
        sizes = verdicts.sizes(0, verdicts.is_kept.size)
        for number, row in enumerate(rows):
            is_kept = verdicts.is_kept[number]
            if is_kept and not config.mark:
                output.write(row.raw)
            elif is_kept or number in marks:
                fields = _KEPT_MARKS if is_kept else marks[number]
                output.write(_with_fields(row.raw, [*fields, str(sizes[number])], delimiter))
    check_unchanged(file)


def _write_edited(
    file: InputFile, target: str, verdicts: Verdicts, config: Config, edits: Edits
) -> None:
    """Write the header and the kept records with the changes of the run; others stay byte for byte."""
    delimiter = _delimiter(file, config)
    touched = set(edits.touched(0, verdicts.is_kept.size))
    with open_input(file) as stream, open_output_like(file, target) as output:
        rows = _rows(stream, file, config)
        header = _header(file, rows)
        at = -1
        if header is not None:
            at = header.fields.index(edits.column) if edits.column in header.fields else -1
            names = [] if edits.marks is None else edits.marks.schema.names
            output.write(_with_fields(header.raw, names, delimiter) if names else header.raw)
        for number, row in enumerate(rows):
            if not verdicts.is_kept[number]:
                continue
            raw = row.raw
            if number in touched:
                [row.fields[at]] = edits.cut([number], [row.fields[at]])
                raw = _as_record(row.fields, raw, delimiter)
            if edits.marks is not None:
                raw = _with_fields(raw, edits.marks.cells(number), delimiter)
            output.write(raw)
    check_unchanged(file)


def _as_record(fields: list[str], raw: bytes, delimiter: str) -> bytes:
    """Return fields as a record with the line end of another."""
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=delimiter, lineterminator="\r\n").writerow(fields)
    return buffer.getvalue().removesuffix("\r\n").encode() + raw[len(raw.rstrip(b"\r\n")) :]


def _delimiter(file: InputFile, config: Config) -> str:
    if config.delimiter:
        return config.delimiter
    return "\t" if endings(file.name)[0] == ".tsv" else ","


def _rows(stream: BinaryIO, file: InputFile, config: Config) -> Iterator[_Row]:
    """Yield every record of a file, the header first."""
    _allow_any_length()
    delimiter = _delimiter(file, config)
    lines = _Lines(stream, max_row_bytes(config))
    # Strict: otherwise an unclosed quote silently swallows rows until the next quote.
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        fields = []
        reason = None
        try:
            fields = next(reader)
        except StopIteration:
            return
        except _TooLongError:
            size = _read_past_record(lines.end_record(), stream, delimiter)
            yield _Row(b"", [], reason_against_size(passed(size, file, config).size, config))
            continue
        except csv.Error as error:
            reason = _reason(error, lines.taken)
        raw = b"".join(lines.end_record())
        yield _Row(raw, fields, gather.reason_against_bytes(raw, config) or reason)


class _TooLongError(Exception):
    """A record is longer than the limit."""


class _Lines:
    """Decodes the lines of a stream one by one, and collects their bytes in `taken` until the record is complete."""

    def __init__(self, stream: BinaryIO, most: int) -> None:
        self._stream = stream
        self._most = most
        self._encoding = "utf-8-sig"
        self._size = 0
        self.taken: list[bytes] = []

    def end_record(self) -> list[bytes]:
        """Return the lines of a complete record, and start the next."""
        taken = self.taken
        self.taken = []
        self._size = 0
        return taken

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> str:
        line = self._stream.readline(max(1, self._most + 1 - self._size))
        if not line:
            raise StopIteration
        self.taken.append(line)
        self._size += len(line)
        if self._size - line.endswith(b"\n") > self._most:
            raise _TooLongError
        encoding = self._encoding
        self._encoding = "utf-8"
        # Invalid UTF-8 must not end the record; the row is rejected once it is complete.
        return line.decode(encoding, errors="surrogateescape")


def _read_past_record(taken: list[bytes], stream: BinaryIO, delimiter: str) -> int:
    """Skip to the next record; return the size of this one, of which `taken` was read, without the last newline."""
    quotes = _Quotes(delimiter)
    size = 0
    piece = b""
    for piece in itertools.chain(taken, iter(lambda: stream.readline(SKIPPED_AT_ONCE), b"")):
        size += len(piece)
        quotes.follow(piece)
        if piece.endswith(b"\n") and not quotes.is_open:
            break
    return size - piece.endswith(b"\n")


class _Quotes:
    """Tracks the quotes of a record as csv.reader does, without storing it."""

    def __init__(self, delimiter: str) -> None:
        self._opening = delimiter.encode() + b'"'
        self._last = self._opening[:1]
        self.is_open = False
        self._is_broken = False  # if so, the record ends with its line

    def follow(self, piece: bytes) -> None:
        """Process a piece; a newline can only be its last byte."""
        # The byte before determines whether a quote opens a field, or what the last quote meant.
        piece = self._last + piece
        at = 1
        if self.is_open and self._last == b'"':
            at = self._after_quote(piece, 1)
        while not self._is_broken:
            if self.is_open:
                quote = piece.find(b'"', at)
                if quote < 0:
                    self._last = b" "
                    return
                if quote + 1 == len(piece):
                    self._last = b'"'
                    return
                at = self._after_quote(piece, quote + 1)
            else:
                opening = piece.find(self._opening, at - 1)
                end = piece.find(b"\r", at)
                if end >= 0 and (opening < 0 or end < opening):
                    self._is_broken = True
                elif opening < 0:
                    self._last = piece[-1:]
                    return
                else:
                    self.is_open = True
                    at = opening + 2

    def _after_quote(self, piece: bytes, at: int) -> int:
        """Distinguish a doubled quote from a closing one, which must be followed by a delimiter or a line end."""
        after = piece[at : at + 1]
        if after == b'"':
            return at + 1
        self.is_open = False
        self._is_broken = after not in (self._opening[:1], b"\n")
        return at + 1


def _allow_any_length() -> None:
    try:
        csv.field_size_limit(sys.maxsize)
    except OverflowError:  # where a C long has 32 bits
        csv.field_size_limit(2**31 - 1)


def _reason(error: csv.Error, taken: list[bytes]) -> str:
    lines = "line is" if len(taken) == 2 else f"{len(taken) - 1:,} lines are"
    if len(taken) > 1:
        swallowed = f", so the next {lines} taken as part of it"
    else:
        swallowed = ""
    if "unexpected end of data" in str(error):
        return f"{OPEN_QUOTE}{swallowed}"
    if "new-line character" in str(error):
        return f"a carriage return outside quotes{swallowed}"
    return f"{BROKEN_CSV}: {error}{swallowed}"


def _header(file: InputFile, rows: Iterator[_Row]) -> _Row | None:
    header = next((row for row in rows if row.reason or row.raw.strip(b" \r\n")), None)
    if header is not None and header.reason is not None:
        raise DataError(
            f"{file.path} has a header that cannot be used: {header.reason}",
            hint="the first row must name the columns, as UTF-8 with lines that end in a newline",
        )
    return header


class _Taker:
    """Extracts the values of the columns from records."""

    def __init__(self, header: list[str], columns: Columns, config: Config) -> None:
        self.columns = columns
        self.num_fields = len(header)
        self.indices = {name: index for index, name in reversed(list(enumerate(header)))}
        named = (
            *columns.text,
            columns.items,
            columns.vector,
            columns.id,
            columns.score,
            columns.group,
            columns.common,
        )
        named += columns.others
        self.found = frozenset(name for name in named if name in self.indices)
        is_weighted = config.measure == "weighted"
        takes_items: Callable[[Any], Any]
        if is_weighted:
            takes_items = gather.weighted_items
        else:
            takes_items = gather.items_text
        if columns.vector is not None:
            self._take: Callable[[str], Any] = gather.numbers_of
        else:
            self._take = takes_items
        self._texts = [self.indices[name] for name in columns.text if name in self.indices]

    def text(self, row: _Row) -> Any:
        """Return the text, items or vector of a record; raise RowError with the reason if it has none."""
        if row.reason is not None:
            raise gather.RowError(row.reason)
        if len(row.fields) != self.num_fields:
            raise gather.RowError(
                f"the row has {len(row.fields)} fields, the header has {self.num_fields}"
            )
        name = self.columns.items or self.columns.vector
        if name is not None and name in self.indices:
            return self._take(row.fields[self.indices[name]])
        if not self._texts:
            wanted = (name,) if name else self.columns.text
            raise gather.RowError(f"{NO_COLUMN} {', '.join(map(repr, wanted))}")
        return "\n".join([row.fields[index] for index in self._texts])

    def column(self, name: str | None, rows: list[list[str]]) -> list[Any] | None:
        """Return the values of a column; an empty field is null."""
        return None if name is None else self.values(name, rows)

    def values(self, name: str, rows: list[list[str]]) -> list[Any]:
        """Return the values of a column; an empty field, or one of an absent column, is null."""
        index = self.indices.get(name)
        if index is None:
            return [None] * len(rows)
        return [fields[index] or None for fields in rows]


def _batches(rows: Iterator[_Row], taker: _Taker, config: Config) -> Iterator[Records]:
    batch: list[_Row] = []
    num_bytes = 0
    for row in rows:
        batch.append(row)
        num_bytes += len(row.raw)
        if num_bytes >= records.BATCH_BYTES or len(batch) >= gather.MAX_ROWS:
            yield _records(batch, taker, config)
            batch = []
            num_bytes = 0
    if batch:
        yield _records(batch, taker, config)


def _records(batch: list[_Row], taker: _Taker, config: Config) -> Records:
    numbers: list[int] = []
    texts: list[Any] = []
    rejected: list[tuple[int, str]] = []
    for number, row in enumerate(batch):
        if row.reason is None and not row.raw.strip(b" \r\n"):
            continue
        try:
            texts.append(taker.text(row))
            numbers.append(number)
        except gather.RowError as error:
            rejected.append((number, str(error)))
    rows = [batch[number].fields for number in numbers]
    scores = taker.column(taker.columns.score, rows)
    if scores is not None:
        scores = [None if score is None else _number(score) for score in scores]
    values = gather.Values(
        rows=numbers,
        texts=gather.text_array(texts, config),
        ids=taker.column(taker.columns.id, rows),
        scores=scores,
        groups=taker.column(taker.columns.group, rows),
        common=taker.column(taker.columns.common, rows),
        others={name: taker.values(name, rows) for name in taker.columns.others},
    )
    return gather.records_of(len(batch), values, rejected, found=taker.found, config=config)


def _number(score: str) -> int | float | str:
    """Parse a score as a number if possible, so that 10 is greater than 9."""
    if "_" in score:  # Python would skip it
        return score
    for kind in (int, float):
        try:
            return kind(score)
        except ValueError:
            continue
    return score


def _marks(verdicts: Verdicts) -> dict[int, list[str]]:
    rows = verdicts.removed.tolist()
    kept_ids = verdicts.kept_ids.to_pylist()
    similarities = verdicts.similarities.tolist()
    marks = {}
    for row, kept_id, similarity in zip(rows, kept_ids, similarities, strict=True):
        marks[row] = ["false", kept_id or "", repr(similarity)]
    return marks


def _with_fields(raw: bytes, fields: list[str], delimiter: str) -> bytes:
    """Append fields to a record, before its line end."""
    record = raw.rstrip(b"\r\n")
    buffer = io.StringIO()
    # With these line ends, the writer quotes fields that contain either of the two characters.
    csv.writer(buffer, delimiter=delimiter, lineterminator="\r\n").writerow(fields)
    added = delimiter + buffer.getvalue().removesuffix("\r\n")
    line_end = raw[len(record) :]
    return record + added.encode() + line_end
