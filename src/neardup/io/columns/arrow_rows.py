"""Rows of columnar files: from Arrow batches to records when reading; selected and marked by verdicts when writing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.config import Config
from neardup.errors import DataError, StartOverError
from neardup.io.columns.column_checks import (
    column_at,
    is_bytes,
    is_list,
    is_valid,
    list_lengths,
    storage,
)
from neardup.io.columns.column_values import values_of
from neardup.io.columns.contents import column_type, contents_of
from neardup.io.columns.html import readable_texts
from neardup.io.columns.oversize import long_values
from neardup.io.columns.rejected_rows import NO_COLUMN, NOT_UTF8
from neardup.io.columns.scores import SCORES, UnsortableError, sortable_column
from neardup.io.records import (
    BATCH_BYTES,
    ITEM_END,
    MARK_COLUMNS,
    PART_BYTES,
    Columns,
    Edits,
    InputFile,
    Records,
    Verdicts,
    runs,
)
from neardup.io.streams import is_remote, open_input

_BYTE_TYPES: Final = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
# A column as strings, and the reason for each value that cannot be one, which is null.
# A slice costs as much as copying a few rows.
_ROWS_A_SLICE: Final = 16
_Strings = tuple[pa.Array, dict[int, str]]


@contextlib.contextmanager
def readable(file: InputFile, kind: str) -> Iterator[None]:
    """Turn the errors of pyarrow about a broken file into one line that names the file."""
    try:
        yield
    except UnsortableError as error:
        raise StartOverError(
            f"{file.path}: {error}", hint="order by a number, a text or a date"
        ) from error
    except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"{file.path} is not a readable {kind} file: {reason}", hint="repair it or leave it out"
        ) from error


@contextlib.contextmanager
def opened(file: InputFile, kind: str, *, memory_map: bool = False) -> Iterator[Any]:
    """Open a file with random access for pyarrow."""
    with readable(file, kind):
        if is_remote(file.path):
            source: Any = pa.PythonFile(open_input(file), "r")
        else:
            if memory_map:
                source = pa.memory_map(file.path)
            else:
                source = pa.OSFile(file.path)
    with source:
        yield source


def join_parts(sizes: Sequence[float]) -> list[tuple[int, int]]:
    """Combine consecutive parts of the given sizes to spans of about PART_BYTES; a larger one is a span of its own."""
    spans: list[tuple[int, int]] = []
    first = 0
    total = 0.0
    for index, size in enumerate(sizes):
        if index > first and total + size > PART_BYTES:
            spans.append((first, index))
            first = index
            total = 0.0
        total += size
    return [*spans, (first, len(sizes))] if sizes else []


def wanted_names(columns: Columns) -> list[str]:
    """Return the distinct columns needed for records."""
    names = (*columns.text, columns.items, columns.vector)
    names = (*names, columns.id, columns.score, columns.group, columns.common, *columns.others)
    return list(dict.fromkeys(name for name in names if name is not None))


def pieces(batch: pa.RecordBatch, num_bytes: int) -> Iterator[pa.RecordBatch]:
    """Split a batch into pieces of about this many bytes, without a copy."""
    num_rows = max(1, batch.num_rows * num_bytes // max(batch.nbytes, 1))
    for first in range(0, batch.num_rows, num_rows):
        yield batch.slice(first, num_rows)


def decoded_pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Split a batch into pieces of about BATCH_BYTES, with dictionaries decoded.

    Ordered categories stay encoded, because `keep` ranks them by position.
    """
    encoded = [
        index for index, kind in enumerate(batch.schema.types) if pa.types.is_dictionary(kind)
    ]
    if not encoded or not batch.num_rows:
        # Batches are planned to have about BATCH_BYTES; cutting those that have a little more
        # leaves a tiny piece.
        if batch.nbytes > 2 * BATCH_BYTES:
            yield from pieces(batch, BATCH_BYTES)
        else:
            yield batch
        return
    sizes = np.full(batch.num_rows, batch.nbytes // batch.num_rows, np.int64)
    for index in encoded:
        sizes += _decoded_bytes(batch.column(index))
    for first, stop in runs(np.cumsum(sizes)):
        piece = batch.slice(first, stop - first)
        for index in encoded:
            if not batch.schema.types[index].ordered:
                decoded = piece.column(index).dictionary_decode()
                piece = piece.set_column(index, batch.schema.names[index], decoded)
        yield piece


def _decoded_bytes(column: pa.DictionaryArray) -> npt.NDArray[np.int64]:
    """Return the bytes of every value of a dictionary-encoded column."""
    values = column.dictionary
    if _is_text(values.type):
        lengths = pc.binary_length(values.cast(_BYTE_TYPES.get(values.type, values.type)))
    else:
        lengths = pa.array(np.full(len(values), values.nbytes // max(len(values), 1)))
    taken: npt.NDArray[np.int64] = (
        lengths.cast(pa.int64()).take(column.indices).fill_null(0).to_numpy()
    )
    return taken


def batch_records(batch: pa.RecordBatch, columns: Columns, config: Config) -> Records:
    """Extract the documents of a batch; a row without usable contents is rejected."""
    texts, reasons = _texts(batch, columns, config)
    reasons |= dict(long_values(texts, config))
    if config.html and columns.items is None:
        texts, unreadable = readable_texts(texts, config)
        reasons = unreadable | reasons
    if config.asks_code:
        from neardup.io.columns.code import code_texts  # few runs compare code

        texts, _ = code_texts(texts, None, config)
    ids = _names(batch, columns.id, "id is", reasons)
    if columns.group is None:
        groups = None
    else:
        groups = _names(batch, columns.group, "group is", reasons)
    if columns.common is None:
        common = None
    else:
        common = _names(batch, columns.common, f"{columns.common!r} is", reasons)
    scores = None if columns.score is None else _scores(batch, columns.score)
    is_document = np.ones(batch.num_rows, np.bool_)
    is_document[list(reasons)] = False
    if reasons:  # a filter copies every text, so not for nothing
        texts = keep_values(texts, is_document)
        ids = keep_values(ids, is_document)
        scores = None if scores is None else keep_values(scores, is_document)
        groups = None if groups is None else keep_values(groups, is_document)
        common = None if common is None else keep_values(common, is_document)
    rows = np.flatnonzero(is_document)
    others = {name: values_of(column_at(batch, name), rows) for name in columns.others}
    if batch.num_rows:
        found = [name for name in wanted_names(columns) if column_at(batch, name) is not None]
    else:
        found = []
    return Records(
        num_rows=batch.num_rows,
        rows=rows,
        texts=texts,
        ids=ids,
        scores=scores,
        groups=groups,
        common=common,
        rejected=sorted(reasons.items()),
        found=frozenset(found),
        others=others,
    )


def _texts(batch: pa.RecordBatch, columns: Columns, config: Config) -> _Strings:
    """Extract the texts, items or vectors."""
    name = columns.items if columns.vector is None else columns.vector
    if name is None:
        return joined_texts(batch, columns.text)
    column = column_at(batch, name)
    if column is None:
        return _no_column(batch, (name,))
    if column_type(config) is None:
        return items_texts(column)
    return contents_of(column, config)


def _scores(batch: pa.RecordBatch, name: str) -> pa.Array:
    column = column_at(batch, name)
    if column is None:
        return pa.nulls(batch.num_rows, SCORES)
    return sortable_column(storage(column), name)


def _no_column(batch: pa.RecordBatch, names: tuple[str, ...]) -> _Strings:
    reason = f"{NO_COLUMN} {', '.join(map(repr, names))}"
    return pa.nulls(batch.num_rows, pa.large_string()), dict.fromkeys(range(batch.num_rows), reason)


def joined_texts(batch: pa.RecordBatch, names: tuple[str, ...]) -> _Strings:
    """Join the text columns that exist; also return the reason for every row without a usable text."""
    present = [column for name in names if (column := column_at(batch, name)) is not None]
    reasons: dict[int, str] = {}
    if not present:
        return _no_column(batch, names)
    parts = []
    for column in present:
        part, bad = _as_texts(column, "text is")
        parts.append(part)
        reasons = bad | reasons
    texts = parts[0]
    if len(parts) > 1:
        has_text = pa.array(np.logical_or.reduce([is_valid(part) for part in parts]))
        # A row of nulls alone would vanish from the join (pyarrow 26), so it joins an empty text.
        parts[0] = pc.if_else(has_text, parts[0], _large(""))
        joined = pc.binary_join_element_wise(*parts, _large("\n"), null_handling="skip")
        texts = pc.if_else(has_text, joined, _large(None))
    nulls = np.flatnonzero(~is_valid(texts)).tolist()
    return texts, dict.fromkeys(nulls, "text is null") | reasons


def _large(text: str | None) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _is_text(kind: pa.DataType) -> bool:
    return kind in _BYTE_TYPES or is_bytes(kind) or kind == pa.binary_view()


def _as_texts(column: pa.Array, subject: str) -> _Strings:
    """Convert strings, and bytes in UTF-8, to large_string."""
    column = storage(column)
    kind = column.type
    if pa.types.is_dictionary(kind):
        values, bad = _as_texts(column.dictionary, subject)
        return _by_dictionary(column.indices, values, bad)
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.large_string()), {}
    if not _is_text(kind):
        return _none_usable(column, f"{subject} {kind}, not text")
    try:
        column.validate(full=True)
        if kind in _BYTE_TYPES:
            return column.cast(pa.large_string()), {}
        texts = column.cast(pa.large_binary()).view(pa.large_string())
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return _decode(column, subject)
    return texts, {}


def _as_strings(column: pa.Array, subject: str) -> _Strings:
    """Convert scalar values of any type to strings."""
    is_uuid = getattr(column.type, "extension_name", None) == "arrow.uuid"
    if not is_uuid:
        column = storage(column)
    kind = column.type
    if pa.types.is_dictionary(kind):
        values, bad = _as_strings(column.dictionary, subject)
        return _by_dictionary(column.indices, values, bad)
    if _is_text(kind):
        return _as_texts(column, subject)
    if pa.types.is_nested(kind):
        return _none_usable(column, f"{subject} {kind}, not one value")
    try:
        if not is_uuid:  # Arrow would give its 16 bytes
            return column.cast(pa.large_string()), {}
    except pa.ArrowNotImplementedError:
        pass
    texts = [None if value is None else str(value) for value in column.to_pylist()]
    return pa.array(texts, pa.large_string()), {}


def _none_usable(column: pa.Array, reason: str) -> _Strings:
    """Reject every value that is not null for the same reason."""
    rejected = np.flatnonzero(is_valid(column)).tolist()
    return pa.nulls(len(column), pa.large_string()), dict.fromkeys(rejected, reason)


def _by_dictionary(indices: pa.Array, values: pa.Array, bad: dict[int, str]) -> _Strings:
    strings = values.take(indices)
    if not bad:
        return strings, {}
    codes = indices.cast(pa.int64()).fill_null(-1).to_numpy()
    rejected = np.flatnonzero(np.isin(codes, list(bad))).tolist()
    return strings, {row: bad[codes[row]] for row in rejected}


def _decode(column: pa.Array, subject: str) -> _Strings:
    """Find the values that are not valid UTF-8; raise for other damage to the column."""
    as_bytes = column.cast(_BYTE_TYPES.get(column.type, column.type))
    as_bytes.validate(full=True)
    texts: list[str | None] = []
    reasons = {}
    for row, value in enumerate(as_bytes.to_pylist()):
        try:
            texts.append(None if value is None else value.decode())
        except UnicodeDecodeError as error:
            texts.append(None)
            reasons[row] = f"{subject} {NOT_UTF8}: {error.reason} at byte {error.start}"
    return pa.array(texts, pa.large_string()), reasons


def items_texts(column: pa.Array) -> _Strings:
    """Concatenate the items of each row, each terminated by ITEM_END."""
    column = storage(column)
    reasons: dict[int, str] = {}
    if not is_list(column.type):
        column, reasons = _split_items(column)
    nulls = np.flatnonzero(~is_valid(column)).tolist()
    reasons = dict.fromkeys(nulls, "items are null") | reasons
    lengths = list_lengths(column)
    items, bad = _as_strings(column.flatten(), "an item is")
    row_of_item = np.repeat(np.arange(len(column)), lengths)
    for item, reason in _bad_items(items, bad):
        reasons.setdefault(int(row_of_item[item]), reason)
    ended = pc.binary_join_element_wise(
        items, _large(""), _large(ITEM_END), null_handling="replace"
    )
    return _joined(ended, lengths), reasons


def _split_items(column: pa.Array) -> _Strings:
    texts, reasons = _as_texts(column, "items are")
    split = pc.utf8_split_whitespace(texts)
    # Arrow returns empty items for leading and trailing white space.
    items = split.flatten()
    is_item = pc.binary_length(items).to_numpy(zero_copy_only=False) > 0
    parents = pc.list_parent_indices(split).to_numpy()[is_item]
    num_items = np.bincount(parents, minlength=len(split))
    offsets = pa.array(np.r_[0, np.cumsum(num_items)])
    kept = items.filter(pa.array(is_item))
    lists = pa.LargeListArray.from_arrays(offsets, kept, mask=texts.is_null())
    return lists, reasons


def _bad_items(items: pa.Array, bad: dict[int, str]) -> Iterator[tuple[int, str]]:
    yield from bad.items()
    if items.null_count:
        for item in np.flatnonzero(~is_valid(items)).tolist():
            yield item, "an item is null"
    holds_end = pc.match_substring(items, ITEM_END).fill_null(False)
    for item in np.flatnonzero(holds_end.to_numpy(zero_copy_only=False)).tolist():
        text = items[item].as_py()
        yield item, f"item {text!r} holds the character {ITEM_END!r}, the item separator"


def _joined(strings: pa.Array, lengths: npt.NDArray[np.int64]) -> pa.Array:
    """Join runs of strings of the given lengths, without copying bytes."""
    _, offsets, data = strings.buffers()
    if offsets:
        starts = np.frombuffer(offsets, np.int64)[strings.offset :]
    else:
        starts = np.zeros(1, np.int64)
    bounds = starts[np.r_[0, np.cumsum(lengths)]]
    return pa.LargeStringArray.from_buffers(
        len(lengths), pa.py_buffer(bounds), data or pa.py_buffer(b"")
    )


def _names(
    batch: pa.RecordBatch, name: str | None, subject: str, reasons: dict[int, str]
) -> pa.Array:
    column = None if name is None else column_at(batch, name)
    if column is None:
        return pa.nulls(batch.num_rows, pa.string())
    values, bad = _as_strings(column, subject)
    for row, reason in bad.items():
        reasons.setdefault(row, reason)
    return values.cast(pa.string())


def keep_values(column: pa.Array, is_kept: npt.NDArray[np.bool_]) -> pa.Array:
    """Return the selected values of an array of any type."""
    return keep_rows(pa.record_batch([column], ["values"]), is_kept).column(0)


def keep_rows(batch: pa.RecordBatch, is_kept: npt.NDArray[np.bool_]) -> pa.RecordBatch:
    """Return the selected rows of a batch, in order, with columns of any type."""
    if is_kept.all():
        return batch
    try:
        return batch.filter(pa.array(is_kept))
    except pa.ArrowNotImplementedError:
        # Views and run-end encoded values: Arrow can concatenate slices, not filter.
        runs = list(_runs(batch, is_kept))
        return pa.concat_batches(runs) if runs else batch.slice(0, 0)


def _runs(batch: pa.RecordBatch, is_kept: npt.NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
    """Iterate over the runs of consecutive selected rows, without copying them."""
    changes = np.flatnonzero(np.diff(is_kept, prepend=False, append=False))
    for first, stop in changes.reshape(-1, 2).tolist():
        yield batch.slice(first, stop - first)


def output_schema(schema: pa.Schema, *, mark: bool, edits: Edits | None = None) -> pa.Schema:
    """Return the schema of the written file; new marks replace those of an earlier run."""
    if edits is not None:
        return edits.schema_of(schema)
    if not mark:
        return schema
    fields = [field for field in schema if field.name not in MARK_COLUMNS.names]
    return pa.schema([*fields, *MARK_COLUMNS], schema.metadata)


def output_batches(
    file: InputFile,
    batches: Iterator[pa.RecordBatch],
    verdicts: Verdicts,
    *,
    mark: bool,
    in_slices: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the kept rows of a whole file; with `mark`, all its documents with marks.

    in_slices: where few rows are left out, yield what is between them as slices instead of copying
    it.
    """
    first = 0
    for batch in batches:
        stop = first + batch.num_rows
        if stop > len(verdicts.is_kept):
            break
        is_kept = verdicts.is_kept[first:stop]
        if verdicts.edits is not None:
            batch = verdicts.edits.edited(file, batch, first)
        leaves_out_few = np.count_nonzero(~is_kept) * _ROWS_A_SLICE <= batch.num_rows
        if in_slices and not mark and leaves_out_few:
            yield from _runs(batch, is_kept)
        else:
            if mark:
                chosen = _marked(batch, first, verdicts)
            else:
                chosen = keep_rows(batch, is_kept)
            if chosen.num_rows:
                yield chosen
        first = stop
    else:
        if first == len(verdicts.is_kept):
            return
    raise DataError(
        f"{file.path} no longer has the {len(verdicts.is_kept)} rows that were read",
        hint="run again when nothing else writes to the file",
    )


def _marked(batch: pa.RecordBatch, first: int, verdicts: Verdicts) -> pa.RecordBatch:
    """Append the marks to the rows from `first` on, and drop rows that are not documents."""
    stop = first + batch.num_rows
    is_kept = verdicts.is_kept[first:stop]
    low, high = np.searchsorted(verdicts.removed, [first, stop]).tolist()
    removed_at = np.full(batch.num_rows, -1, np.int64)
    removed_at[verdicts.removed[low:high] - first] = np.arange(low, high)
    is_removed = removed_at >= 0
    similarities = np.zeros(batch.num_rows)
    similarities[is_removed] = verdicts.similarities[low:high]
    kept_ids = verdicts.kept_ids.take(pa.array(removed_at, mask=~is_removed))
    marks = [
        pa.array(is_kept),
        kept_ids.cast(pa.string()),
        pa.array(similarities, mask=~is_removed),
        pa.array(verdicts.sizes(first, stop)),
    ]
    kept_columns = [
        column
        for field, column in zip(batch.schema, batch.columns, strict=True)
        if field.name not in MARK_COLUMNS.names
    ]
    marked = pa.record_batch([*kept_columns, *marks], schema=output_schema(batch.schema, mark=True))
    return keep_rows(marked, is_kept | is_removed)


def is_untouched(verdicts: Verdicts, config: Config) -> bool:
    """Whether the output equals the input, byte for byte."""
    return verdicts.leaves_all and not config.mark
