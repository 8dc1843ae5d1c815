"""JSON Lines: one object per line. Lines are decoded one by one, so that a bad line affects no other.

Most of a line is its text. If every line of a block has one, a kernel extracts the texts directly
as UTF-8, and only the rest of each line is decoded here. A block with a blank or bad line takes the
slower path, which reports reasons.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import UNSET, UnsetType

from neardup.config import Config
from neardup.errors import DataError
from neardup.io.columns import gather, whole_rows
from neardup.io.columns.gather import RowError
from neardup.io.columns.json_reasons import (
    kind_of,
    reason_against_items,
    reason_against_json,
    reason_against_numbers,
    reason_against_texts,
)
from neardup.io.columns.oversize import Oversize
from neardup.io.formats import lines
from neardup.io.formats.registry import endings
from neardup.io.records import (
    MARK_COLUMNS,
    Columns,
    Edits,
    InputFile,
    Records,
    Verdicts,
)
from neardup.io.streams import check_unchanged
from neardup.kernels import json_text

split = lines.split

# The number of rows from which the columns of a file are read.
NUM_SAMPLE_ROWS: Final = 100
_ONE_TEXT: Final = str
_TEXT_OF_SEVERAL: Final = str | None | UnsetType
_ITEMS: Final = list[str | int | float | bool] | str
_WEIGHTED_ITEMS: Final = dict[str, float] | list[tuple[str | int | float | bool, float]]
_NUMBERS: Final = list[float]
_SCALAR: Final = str | int | float | bool | None | UnsetType
# The exceptions of decoding a line or extracting its text.
_ROW_ERRORS: Final = (msgspec.DecodeError, RecursionError, RowError)


# Row numbers, decoded rows and texts of documents.
_Taken = tuple[Sequence[int], list[Any], pa.Array]


class _Decoder(Protocol):
    def decode(self, line: bytes, /) -> Any: ...


def column_names(file: InputFile, config: Config) -> list[str]:
    """Return the columns of the first rows, in order of appearance."""
    blocks = lines.line_blocks(file, (0, file.size), config)
    first = next((block for block in blocks if isinstance(block, bytes)), b"")
    sample = first.split(b"\n", NUM_SAMPLE_ROWS)[:NUM_SAMPLE_ROWS]
    _check_no_document(file, sample)
    return names_in(sample)


def names_in(sample: Iterable[bytes]) -> list[str]:
    """Return the columns of some objects, in order of appearance."""
    names: dict[str, None] = {}
    decoder = msgspec.json.Decoder(dict[str, msgspec.Raw])
    for line in sample:
        try:
            names |= dict.fromkeys(decoder.decode(line))
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            continue  # rejected with a reason when it is read
    return list(names)


def _check_no_document(file: InputFile, sample: list[bytes]) -> None:
    """Raise for a .json file that is a single JSON document, whose lines are not rows."""
    first = next((line.strip() for line in sample if line.strip()), b"")
    if endings(file.name)[0] == ".json" and (first == b"{" or first.startswith(b"[")):
        if first.startswith(b"["):
            kind = "array"
            hint = "pass format='json'"
        else:
            kind = "object"
            hint = "convert it, for example with jq -c ."
        raise DataError(
            f"{file.path} is a single JSON {kind}, not JSON Lines (one object per line)", hint=hint
        )


def read(
    file: InputFile, span: tuple[int, int], columns: Columns, config: Config
) -> Iterator[Records]:
    """Read the lines that begin in a span, batch by batch."""
    rows = Rows(columns, config)
    for block in lines.line_blocks(file, span, config):
        if isinstance(block, Oversize):
            yield gather.oversize_records(block.size, config)
        else:
            yield from rows.batches(block, config)
    check_unchanged(file)


def table(file: InputFile, config: Config, *, without: Collection[str] = ()) -> pa.Table:
    """Return all lines with all columns but some."""
    blocks: list[pa.Table] = []
    for block in lines.line_blocks(file, (0, file.size), config):
        groups: Iterable[list[bytes]]
        if isinstance(block, Oversize):
            groups = [[b""]]
        else:
            groups = lines.row_groups(block)
        blocks += [objects(group, without) for group in groups]
    return whole_rows.joined(blocks or [objects([])])


def objects(group: Iterable[bytes], without: Collection[str] = ()) -> pa.Table:
    """Return objects with all their columns but some; a blank or bad one has none."""
    decoder = msgspec.json.Decoder(dict[str, Any])
    rows = []
    for line in group:
        try:
            row = decoder.decode(line)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            row = {}
        for name in without:
            row.pop(name, None)
        rows.append(row)
    return whole_rows.table_of(rows)


def write(file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:
    """Write the kept lines byte for byte; with config.mark, the lines of all documents with marks."""
    edits = verdicts.edits
    if edits is not None and not edits.is_empty:
        lines.write_edited(file, target, verdicts, config, edited_objects)
        return
    if not config.mark:
        lines.write_kept(file, target, verdicts, config)
        return

    def marked(block: bytes, bounds: npt.NDArray[np.int64], first: int) -> bytes:
        marks = marks_of(verdicts, first, first + len(bounds) - 1)
        parts = []
        for row in sorted(marks):
            start, stop = bounds[row - first : row - first + 2]
            parts.append(with_mark(block[start:stop], marks[row]))
        return b"".join(parts)

    lines.write_rendered(file, target, marked, config)


def edited_objects(objects: list[bytes], rows: list[int], edits: Edits) -> list[bytes]:
    """Return objects with the changes of their rows, which ascend; other values stay as they are."""
    path = _path_of(edits.column or "", objects)
    changed = set(edits.touched(rows[0], rows[-1] + 1)) if rows else set()
    touched = [at for at, row in enumerate(rows) if row in changed]
    texts = [_text_at(objects[at], path) for at in touched]
    new = edits.cut([rows[at] for at in touched], texts)
    written = list(objects)
    for at, text in zip(touched, new, strict=True):
        written[at] = _with_text(objects[at], path, text)
    if edits.marks is not None:
        first = rows[0] if rows else 0
        marks = edits.marks.values(first, rows[-1] + 1) if rows else []
        for at, row in enumerate(rows):
            written[at] = with_mark(
                written[at], _passage_mark(edits.marks.schema.names, marks[row - first])
            )
    return written


def _path_of(column: str, objects: list[bytes]) -> list[str]:
    """Return the names that lead to the text: one, unless the column is a dotted path into objects."""
    if any(column in names_in([line]) for line in objects[:1]) or "." not in column:
        return [column]
    return column.split(".")


def _text_at(line: bytes, path: list[str]) -> str:
    value = msgspec.Raw(line)
    for name in path:
        value = msgspec.json.decode(value, type=dict[str, msgspec.Raw])[name]
    return msgspec.json.decode(value, type=str)


def _with_text(line: bytes, path: list[str], text: str) -> bytes:
    """Return an object with another text, and with the line end of the line."""
    fields = msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    if len(path) == 1:
        fields[path[0]] = msgspec.Raw(msgspec.json.encode(text))
    else:
        fields[path[0]] = msgspec.Raw(_with_text(bytes(fields[path[0]]), path[1:], text))
    end = line[len(line.rstrip(b" \t\r\n")) :]
    return msgspec.json.encode(fields) + end


def _passage_mark(names: list[str], values: Any) -> bytes:
    named = zip(names, values, strict=True)
    return b"".join(
        b', "%b": %b' % (name.encode(), msgspec.json.encode(value)) for name, value in named
    )


def with_mark(line: bytes, mark: bytes) -> bytes:
    """Put a mark before the closing brace of an object."""
    brace = line.rindex(b"}")
    return line[:brace] + mark + line[brace:]


def marks_of(verdicts: Verdicts, start: int, stop: int) -> dict[int, bytes]:
    """The marks of each document from `start` to `stop`, to insert before its closing brace."""
    sizes = verdicts.sizes(start, stop).tolist()
    marks = {}
    for at in np.flatnonzero(verdicts.is_kept[start:stop]).tolist():
        marks[start + at] = _mark(True, None, None, sizes[at])
    low, high = np.searchsorted(verdicts.removed, [start, stop]).tolist()
    rows = verdicts.removed[low:high].tolist()
    kept_ids = verdicts.kept_ids.slice(low, high - low).to_pylist()
    similarities = verdicts.similarities[low:high].tolist()
    for row, kept_id, similarity in zip(rows, kept_ids, similarities, strict=True):
        marks[row] = _mark(False, kept_id, similarity, sizes[row - start])
    return marks


def _mark(is_kept: bool, kept_id: str | None, similarity: float | None, cluster_size: int) -> bytes:
    values = (is_kept, kept_id, similarity, cluster_size)
    parts = []
    for name, value in zip(MARK_COLUMNS.names, values, strict=True):
        parts.append(b', "%b": %b' % (name.encode(), msgspec.json.encode(value)))
    return b"".join(parts)


class Rows:
    """Decodes the columns that are used."""

    def __init__(self, columns: Columns, config: Config) -> None:
        self._columns = columns
        self._config = config
        kinds: dict[str, Any] = {}
        if columns.items is not None:
            if config.measure == "weighted":
                kinds[columns.items] = _WEIGHTED_ITEMS
            else:
                kinds[columns.items] = _ITEMS
        if columns.vector is not None:
            kinds[columns.vector] = _NUMBERS
        for name in columns.text:
            if len(columns.text) == 1:
                kinds[name] = _ONE_TEXT
            else:
                kinds[name] = _TEXT_OF_SEVERAL
        for name in filter(None, (columns.id, columns.score, columns.group, columns.common)):
            kinds.setdefault(name, _SCALAR)
        for name in columns.others:
            kinds.setdefault(name, Any | UnsetType)
        self._fields = {name: f"field_{position}" for position, name in enumerate(kinds)}
        self._strict = self._decoder(kinds)
        self._loose = self._decoder(dict.fromkeys(kinds, Any | UnsetType))
        self._take_text = self._text_taker()
        self._name = self._name_to_cut()
        # Of `_cut`, for every block.
        self._room: tuple[Any, Any] = (np.empty(0, np.int64), np.empty(0, np.uint8))

    def batches(self, block: bytes, config: Config) -> Iterator[Records]:
        """Decode the lines of a block: all at once, or one by one if one of them is blank or bad."""
        is_valid = gather.is_utf8(block)
        if is_valid and (cut := self._cut(block)):
            rows, texts = cut
            for first in range(0, len(rows), gather.MAX_ROWS):
                group = rows[first : first + gather.MAX_ROWS]
                taken = range(len(group)), group, texts.slice(first, len(group))
                yield self._records(len(group), taken, [], set(), config)
            return
        for group in lines.row_groups(block):
            yield self.records(group, config, is_valid=is_valid)

    def records(self, group: list[bytes], config: Config, *, is_valid: bool) -> Records:
        """Decode some objects, each from its own bytes."""
        rejected: list[tuple[int, str]] = []
        found: set[str] = set()
        taken = self._all_at_once(group) if is_valid else None
        if taken is None:
            taken = self._one_by_one(group, is_valid, rejected, found)
        return self._records(len(group), taken, rejected, found, config)

    def _records(
        self,
        num_rows: int,
        taken: _Taken,
        rejected: list[tuple[int, str]],
        found: set[str],
        config: Config,
    ) -> Records:
        columns = self._columns
        numbers, rows, texts = taken
        values = gather.Values(
            rows=numbers,
            texts=texts,
            ids=self._column(columns.id, rows),
            scores=self._column(columns.score, rows),
            groups=self._column(columns.group, rows),
            common=self._column(columns.common, rows),
            others={name: self._values(name, rows) for name in columns.others},
        )
        found |= {name for name in self._fields if self._is_found(name, rows)}
        return gather.records_of(num_rows, values, rejected, found=frozenset(found), config=config)

    def _name_to_cut(self) -> npt.NDArray[np.uint8] | None:
        """The name of the only text column, if it has no other role."""
        columns = self._columns
        scalars = (columns.id, columns.score, columns.group, columns.common)
        others = (columns.items, *scalars, *columns.others)
        if columns.items is not None or len(columns.text) != 1:
            return None
        (name,) = columns.text
        if "." in name or name in others:
            return None
        return np.frombuffer(name.encode(errors="surrogatepass"), np.uint8)

    def _cut(self, block: bytes) -> tuple[list[Any], pa.Array] | None:
        """The rows and texts of a block; None if a line does not have exactly one text, or is malformed."""
        if self._name is None:
            return None
        # Arrow's allocator reuses freed memory, while NumPy makes the system zero new pages each
        # time.
        texts = pa.allocate_buffer(len(block) + json_text.BLOCK, resizable=True)
        num_ends = json_text.most_lines(len(block), self._name.size) + 1
        if num_ends > self._room[0].size or len(block) > self._room[1].size:
            self._room = np.empty(num_ends, np.int64), np.empty(len(block), np.uint8)
        ends = self._room[0][:num_ends]
        rest = self._room[1][: len(block)]
        source = np.frombuffer(block, np.uint8)
        target = np.frombuffer(texts, np.uint8)
        num_rest = json_text.cut_texts(source, self._name, target, ends, rest)
        if num_rest == json_text.ODD:
            return None
        lines_without_text = rest[:num_rest].tobytes().removesuffix(b"\n").split(b"\n")
        try:
            rows = list(map(self._strict.decode, lines_without_text))
        except _ROW_ERRORS:
            return None
        offsets = ends[: len(rows) + 1].copy()
        texts.resize(int(offsets[-1]), shrink_to_fit=True)
        buffers = [None, pa.py_buffer(offsets), texts]
        return rows, pa.Array.from_buffers(pa.large_string(), len(rows), buffers)

    def _all_at_once(self, group: list[bytes]) -> _Taken | None:
        try:
            rows = list(map(self._strict.decode, group))
            texts = gather.text_array(list(map(self._take_text, rows)), self._config)
        except _ROW_ERRORS:
            return None
        return range(len(rows)), rows, texts

    def _one_by_one(
        self, group: list[bytes], is_valid: bool, rejected: list[tuple[int, str]], found: set[str]
    ) -> _Taken:
        numbers = []
        rows = []
        texts = []
        for number, line in enumerate(group):
            if not is_valid and (broken := gather.reason_against_bytes(line, self._config)):
                rejected.append((number, broken))
            elif line.strip():
                try:
                    row = self._strict.decode(line)
                    texts.append(self._take_text(row))
                except _ROW_ERRORS as error:
                    rejected.append((number, self._reason(line, error, found)))
                else:
                    numbers.append(number)
                    rows.append(row)
        return numbers, rows, gather.text_array(texts, self._config)

    def _decoder(self, kinds: dict[str, Any]) -> _Decoder:
        required = (_ONE_TEXT, _ITEMS, _WEIGHTED_ITEMS, _NUMBERS)
        fields: list[Any] = []
        for name, kind in kinds.items():
            if kind in required:
                fields.append((self._fields[name], kind))
            else:
                fields.append((self._fields[name], kind, UNSET))
        rename = {field: name for name, field in self._fields.items()}
        try:
            if not any("." in name for name in kinds):  # it may be a path into an object
                return msgspec.json.Decoder(
                    msgspec.defstruct("Row", fields, rename=rename, gc=False)
                )
        except ValueError:  # a name with a quote, a backslash or a control character
            pass
        return _AnyNames(msgspec.defstruct("Row", fields), self._fields)

    def _text_taker(self) -> Callable[[Any], Any]:
        if self._columns.vector is not None:
            return operator.attrgetter(self._fields[self._columns.vector])
        if self._columns.items is not None:
            items = operator.attrgetter(self._fields[self._columns.items])
            take: Callable[[Any], Any]
            if self._config.measure == "weighted":
                take = gather.weighted_items
            else:
                take = gather.items_text
            return lambda row: take(items(row))
        fields = [self._fields[name] for name in self._columns.text]
        if len(fields) == 1:
            return operator.attrgetter(fields[0])
        return lambda row: _joined(row, fields)

    def _column(self, name: str | None, rows: list[Any]) -> list[Any] | None:
        return None if name is None else self._values(name, rows)

    def _values(self, name: str, rows: list[Any]) -> list[Any]:
        take = operator.attrgetter(self._fields[name])
        values = map(take, rows)
        return [None if value is UNSET else value for value in values]

    def _is_found(self, name: str, rows: list[Any]) -> bool:
        take = operator.attrgetter(self._fields[name])
        return any(value is not UNSET for value in map(take, rows))

    def _reason(self, line: bytes, error: Exception, found: set[str]) -> str:
        """Return why a line is rejected, and record which columns it has."""
        try:
            row = self._loose.decode(line)
        except (msgspec.DecodeError, RecursionError) as broken:
            return reason_against_json(line, broken)
        values = {name: getattr(row, field) for name, field in self._fields.items()}
        found |= {name for name, value in values.items() if value is not UNSET}
        reason = reason_against_texts([(name, values[name]) for name in self._columns.text])
        if self._columns.items is not None:
            reason = reason_against_items(
                self._columns.items, values[self._columns.items], self._config
            )
        if self._columns.vector is not None:
            reason = reason_against_numbers(self._columns.vector, values[self._columns.vector])
        columns = self._columns
        scalars = (columns.id, columns.score, columns.group, columns.common)
        for name in filter(None, scalars):
            if reason is None and isinstance(values[name], (list, dict)):
                reason = f"column {name!r} is {kind_of(values[name])}, not one value"
        return reason or str(error)


class _AnyNames:
    """Decodes rows with a column whose name msgspec does not support, or that is nested in an object."""

    def __init__(self, row: type[Any], fields: dict[str, str]) -> None:
        self._row = row
        self._fields = fields
        self._decoder = msgspec.json.Decoder(dict[str, Any])

    def decode(self, line: bytes, /) -> Any:
        values = self._decoder.decode(line)
        taken = {}
        for name, field in self._fields.items():
            value = _value_at(values, name)
            if value is not UNSET:
                taken[field] = value
        return msgspec.convert(taken, self._row)


def _value_at(values: dict[str, Any], name: str) -> Any:
    """Return the value of a column, by its name or a dotted path."""
    if name in values:
        return values[name]
    for step in name.split("."):
        if not isinstance(values, dict) or step not in values:
            return UNSET
        values = values[step]
    return values


def _joined(row: Any, fields: list[str]) -> str:
    texts = [text for field in fields if isinstance(text := getattr(row, field), str)]
    if not texts:
        raise RowError("no text")
    return "\n".join(texts)
