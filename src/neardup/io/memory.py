"""Documents that are in memory already: lists, dicts, Arrow, pandas, polars, Hugging Face datasets."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, ValuesView
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.io.html import html_to_text

TEXT_COLUMNS: Final = ("text", "content", "body")
ID_COLUMNS: Final = ("id", "url")
# What Arrow raises for Python values that it cannot put in one column.
_CONVERSION_ERRORS: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)
# Arrow can neither take nor sort the rows of a view; the plain type holds the same values.
_PLAIN_TYPES: Final = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """What was read.

    documents: the usable rows, as schema.DOCUMENTS; rejected: the others, with the reason;
    ids: the id of every row; original: the rows as they came in; columns: which of its columns were taken.
    """

    documents: pa.Table
    rejected: pa.Table
    ids: pa.Array
    original: pa.Table
    columns: dict[str, str]


def read(source: Any, config: Config, *, ids: Sequence[Any] | None = None) -> Source:
    """Take any in-memory source apart into documents and rejected rows."""
    columns: dict[str, str] = {}
    if isinstance(source, Mapping) and not _is_from(source, "datasets"):
        if ids is not None:
            raise DataError(
                "`ids` must be left out for a dict: its keys are the ids", hint="pass list(source.values())"
            )
        ids, source = list(source), list(source.values())
    values, original = _one_column(source), None
    if values is None:
        original, values = _as_table(source, config)
        names = original.column_names
        columns["text"] = _choose(names, config.text_column, "text_column", TEXT_COLUMNS) or _no_text(names)
        values = original.column(columns["text"]) if values is None else values
        if ids is not None and config.id_column is not None:
            raise ConfigError("`ids` and `id_column` both name the documents", hint="leave one of them out")
        id_column = _choose(names, config.id_column, "id_column", ID_COLUMNS) if ids is None else None
        if id_column is not None:
            columns["id"], ids = id_column, original.column(id_column)
    texts, reasons = _usable(values, columns.get("text"))
    named = pa.array(np.arange(len(texts))) if ids is None else _as_ids(ids, len(texts))
    if original is None:
        _no_columns(config)
        original = pa.table({"doc_id": named, "text": texts})
    rejected = _rejected(reasons, config)
    texts = html_to_text(texts) if config.html else texts
    documents = pa.table(
        [pa.array(np.arange(len(texts))), texts, _priority(original, texts, config)], schema=schema.DOCUMENTS
    )
    if reasons:  # a filter copies every text, so not for nothing
        documents = documents.filter(texts.is_valid())
    return Source(documents=documents, rejected=rejected, ids=named, original=original, columns=columns)


def _is_from(source: Any, package: str) -> bool:
    """Whether a class comes from a package, without importing it."""
    return any(kind.__module__.partition(".")[0] == package for kind in type(source).__mro__)


def _one_column(source: Any) -> pa.ChunkedArray | list[Any] | None:
    """Return the values of a source that is one column of texts, None for what may be a table."""
    if isinstance(source, (str, bytes, bytearray)):
        raise DataError(
            f"`source` must be a collection of documents, got one {type(source).__name__}",
            hint="put it in a list: [text]; neardup.compare(a, b) compares two texts",
        )
    if isinstance(source, (set, frozenset)):
        raise DataError("`source` must have an order, got a set", hint="pass sorted(source)")
    if isinstance(source, pa.ChunkedArray):
        return source
    if isinstance(source, pa.Array):
        return pa.chunked_array([source])
    if isinstance(source, np.ndarray):
        if source.ndim != 1:
            raise DataError(f"`source` must be a one-dimensional array of texts, got shape {source.shape}")
        return source.tolist()
    # Asked of the class: a polars LazyFrame resolves its whole query to name its columns.
    if not hasattr(type(source), "columns"):
        if _is_from(source, "pandas") and hasattr(source, "isna"):
            return _pandas_values(source)
        if _is_from(source, "polars") and hasattr(source, "to_list"):
            return source.to_list()
    if isinstance(source, (Sequence, ValuesView, Iterator)) and not hasattr(source, "__arrow_c_stream__"):
        return list(source)
    return None


def _pandas_values(column: Any) -> list[Any]:
    """The values of a pandas column; what pandas takes for missing (NaN, NaT, NA) is None."""
    values, is_missing = column.tolist(), column.isna().tolist()
    return [None if missing else value for value, missing in zip(values, is_missing, strict=True)]


def _as_table(source: Any, config: Config) -> tuple[pa.Table, list[Any] | None]:
    """Return the table, and its texts apart where a pandas column holds what no Arrow column can."""
    if _is_from(source, "pandas") and hasattr(type(source), "columns"):
        return _pandas_table(source, config)
    table = _arrow_table(source)
    for at, field in enumerate(table.schema):
        plain = _plain(table.column(at), field.name)
        if plain.type != field.type:
            table = table.set_column(at, field.with_type(plain.type), plain)
    return table, None


def _pandas_table(frame: Any, config: Config) -> tuple[pa.Table, list[Any] | None]:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False), None
    except _CONVERSION_ERRORS as error:
        names = list(map(str, frame.columns))
        name = _choose(names, config.text_column, "text_column", TEXT_COLUMNS) or _no_text(names)
        texts = _pandas_values(frame.iloc[:, names.index(name)])
        reasons = [None if text is None else _reason_against(text) for text in texts]
        if not any(reasons) or len(set(names)) < len(names):
            raise DataError(
                f"the frame cannot become an Arrow table: {'; '.join(map(str, error.args))}",
                hint="give every column one type and its own name, or pass fewer: frame[['id', 'text']]",
            ) from error
        usable = [None if reason else text for text, reason in zip(texts, reasons, strict=True)]
        table, _ = _pandas_table(frame.assign(**{name: usable}), config)
        return table, texts


def _plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return a column whose rows can be taken."""
    kind = column.type
    if kind in _PLAIN_TYPES:
        return column.cast(_PLAIN_TYPES[kind])
    if pa.types.is_dictionary(kind) and kind.value_type in _PLAIN_TYPES:
        values = _PLAIN_TYPES[kind.value_type]
        chunks = [pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(values)) for part in column.chunks]
        return pa.chunked_array(chunks, pa.dictionary(kind.index_type, values))
    try:
        column.slice(0, 0).take(pa.array([], pa.int64()))
    except pa.ArrowNotImplementedError as error:
        raise DataError(f"column {name!r} has rows that Arrow cannot take: {kind}", hint="cast or drop it") from error
    return column


def _arrow_table(source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    hint = None
    if _is_from(source, "datasets"):
        if isinstance(source, Mapping):
            raise DataError(
                f"`source` must be one dataset, got the splits {', '.join(map(str, source))}",
                hint=f"choose one: source[{next(iter(source), 'train')!r}]",
            )
        if hasattr(source, "num_rows"):
            return source.with_format("arrow")[:]
        hint = "pass the texts: (row['text'] for row in source)"
    elif _is_from(source, "polars"):
        if hasattr(source, "to_arrow"):
            return source.to_arrow()
        hint = "pass source.collect()" if hasattr(source, "collect") else None
    elif hasattr(source, "__arrow_c_stream__"):
        try:
            return pa.table(source)
        except pa.ArrowInvalid as error:
            raise DataError(f"`source` gives an Arrow stream that is no table: {error}") from error
    raise DataError(
        "`source` must be a list of texts, a dict of id to text, or a table (Arrow, pandas, polars, datasets), "
        f"got {type(source).__name__}",
        hint=hint,
    )


def _choose(names: list[str], asked: str | None, setting: str, usual: tuple[str, ...]) -> str | None:
    """Return the column that was asked for, or the first of the usual ones that is there."""
    if asked is not None and asked not in names:
        raise ConfigError(
            f"`{setting}` names {asked!r}, which is no column of the source",
            hint=f"the columns are {', '.join(names) or 'none'}",
        )
    chosen = asked if asked is not None else next((name for name in usual if name in names), None)
    if chosen is not None and names.count(chosen) > 1:
        raise DataError(f"the source has {names.count(chosen)} columns named {chosen!r}", hint="rename all but one")
    return chosen


def _no_text(names: list[str]) -> str:
    raise DataError(
        f"no column named {', '.join(TEXT_COLUMNS)} in the source",
        hint=f"name the one with the text: text_column={next(iter(names), 'text')!r}"
        f" (the columns are {', '.join(names) or 'none'})",
    )


def _no_columns(config: Config) -> None:
    """A source that is one column of texts has no other column to name."""
    for setting, column in (
        ("text_column", config.text_column),
        ("id_column", config.id_column),
        ("keep", config.keep_column),
    ):
        if column is not None:
            raise ConfigError(
                f"`{setting}` names the column {column!r}, but the source has no columns",
                hint="pass a table, or leave the setting out",
            )


def _usable(values: pa.ChunkedArray | list[Any], column: str | None) -> tuple[pa.ChunkedArray, dict[int, str]]:
    """Return the texts, null where unusable, and the reason for each of those rows."""
    if isinstance(values, list):
        return _usable_values(values)
    if values.null_count == len(values):  # a column of nothing may have any type: pandas makes it a float one
        values = pa.chunked_array([pa.nulls(len(values), pa.large_string())])
    values = _plain(values, column or "text")
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        raise DataError(
            f"{f'column {column!r}' if column else '`source`'} must hold text, got {kind}",
            hint="choose another with text_column=" if column else "cast it to a string type first",
        )
    try:
        texts = values.cast(pa.large_string()) if values.type != pa.large_string() else values
        texts.validate()
    except pa.ArrowException as error:
        raise DataError(f"the text column is a broken Arrow array: {error}") from error
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return _usable_values(_decode(texts))
    nulls = np.flatnonzero(np.concatenate([_nulls(chunk) for chunk in texts.chunks] or [np.empty(0, np.bool_)]))
    return texts, dict.fromkeys(nulls.tolist(), _NULL)


_NULL: Final = "text is null"


def _nulls(chunk: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    if not chunk.null_count:
        return np.zeros(len(chunk), np.bool_)
    nulls: np.ndarray[Any, np.dtype[np.bool_]] = chunk.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _decode(texts: pa.ChunkedArray) -> list[Any]:
    """The rows of a column that is not all valid UTF-8; a row that is not stays bytes."""
    decoded: list[Any] = []
    as_bytes = texts.cast(pa.large_binary())
    try:
        as_bytes.validate(full=True)
    except pa.ArrowInvalid as error:
        raise DataError(f"the text column is a broken Arrow array: {error}") from error
    for value in as_bytes.to_pylist():
        try:
            decoded.append(None if value is None else value.decode())
        except UnicodeDecodeError as error:
            decoded.append(error)
    return decoded


def _usable_values(values: list[Any]) -> tuple[pa.ChunkedArray, dict[int, str]]:
    if all(issubclass(kind, str) for kind in set(map(type, values))):
        try:
            return pa.chunked_array([pa.array(values, pa.large_string())]), {}
        except UnicodeEncodeError:
            pass  # a lone surrogate somewhere: found and named below
    reasons = {row: reason for row, value in enumerate(values) if (reason := _reason_against(value))}
    texts = [None if row in reasons else value for row, value in enumerate(values)]
    return pa.chunked_array([pa.array(texts, pa.large_string())]), reasons


def _reason_against(value: Any) -> str | None:
    if value is None:
        return _NULL
    if isinstance(value, UnicodeDecodeError):
        return f"text is not valid UTF-8: {value.reason} at byte {value.start}"
    if not isinstance(value, str):
        return f"text is {type(value).__name__}, not str: {reprlib.repr(value)}"
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return f"text is not valid Unicode: lone surrogate at character {error.start}"
    return None


def _rejected(reasons: dict[int, str], config: Config) -> pa.Table:
    if config.strict and reasons:
        row = min(reasons)
        raise DataError(
            f"row {row} cannot be used: {reasons[row]}",
            hint="leave out strict=True to set such rows aside and go on",
        )
    rows = sorted(reasons)
    return pa.table([[None] * len(rows), rows, [reasons[row] for row in rows]], schema=schema.REJECTED)


def _as_ids(ids: Any, num_rows: int) -> pa.Array:
    """Return ids as int64 or string; duplicate, null and mixed ids raise."""
    named = _id_array(ids)
    if len(named) != num_rows:
        raise DataError(
            f"`ids` must be as many as the documents, got {len(named)} ids for {num_rows} documents",
            hint="give one id per document, in the same order",
        )
    kind = named.type.value_type if pa.types.is_dictionary(named.type) else named.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
    if not (is_text or pa.types.is_integer(kind)) and len(named):
        raise DataError(
            f"ids must be all strings or all whole numbers, got {reprlib.repr(named[0].as_py())} ({kind})",
            hint="convert them with str()",
        )
    if named.null_count:
        row = int(np.flatnonzero(_nulls(named))[0])
        raise DataError(f"the id of row {row} is null", hint="give every document an id, or none")
    counts = pc.value_counts(named)
    if len(counts) != len(named):
        twice = counts.filter(pc.greater(counts.field("counts"), 1))[0].as_py()
        raise DataError(
            f"ids must be unique, got {twice['values']!r} {twice['counts']} times",
            hint="name another column with id_column=, or leave ids out to name documents by position",
        )
    try:
        named.validate(full=True)
        return named.cast(pa.string() if is_text else pa.int64())
    except pa.ArrowInvalid as error:
        raise DataError(
            f"ids must be valid UTF-8, or fit in 64 bits with a sign: {error}", hint="convert them with str()"
        ) from error


def _id_array(ids: Any) -> pa.Array:
    if isinstance(ids, pa.ChunkedArray):
        return schema.one_array(ids)
    if isinstance(ids, (str, bytes, set, frozenset, Mapping)) or not isinstance(ids, (Iterable, pa.Array)):
        raise DataError(
            f"`ids` must be a list of ids in the order of the documents, got {type(ids).__name__}",
            hint="id_column= takes the name of a column",
        )
    ids = ids if isinstance(ids, pa.Array) or hasattr(ids, "dtype") else list(ids)
    try:
        return pa.array(ids)
    except _CONVERSION_ERRORS as error:
        raise DataError(
            f"ids must be all strings or all whole numbers, {_odd_id(list(ids)) or f'got {error}'}",
            hint="convert them with str()",
        ) from error


def _odd_id(ids: list[Any]) -> str | None:
    """Name the first id that no Arrow array holds, alone or beside the first one."""
    for row, value in enumerate(ids):
        try:
            pa.array([ids[0], value])
        except _CONVERSION_ERRORS:
            beside = f", and {reprlib.repr(ids[0])} in row 0" if row else ""
            return f"got {reprlib.repr(value)} in row {row}{beside}"
    return None


def _priority(original: pa.Table, texts: pa.ChunkedArray, config: Config) -> pa.Array:
    """Return each row's place in keep order; ties by row."""
    rows = np.arange(original.num_rows)
    order, column = config.keep.partition(":")[0], config.keep_column
    if order == "first":
        return pa.array(rows)
    if order == "last":
        return pa.array(rows[::-1].copy())
    if order == "longest":
        scores, direction = pc.binary_length(texts), "descending"
    else:
        scores = original.column(_choose(original.column_names, column, "keep", ()) or "")
        if pa.types.is_dictionary(scores.type) and not scores.type.ordered:
            scores = scores.cast(scores.type.value_type)
        direction = "descending" if order == "max" else "ascending"
    if pa.types.is_floating(scores.type):
        scores = pc.if_else(pc.is_nan(scores), pa.scalar(None, scores.type), scores)
    has_score = pc.is_valid(scores).to_numpy(zero_copy_only=False) if len(rows) else np.empty(0, np.bool_)
    scored = rows[has_score]
    try:
        places = pc.sort_indices(
            pa.table({"score": scores.filter(has_score), "row": scored}),
            sort_keys=[("score", direction), ("row", "ascending")],
        ).to_numpy()
    except (pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"`keep` orders by {column!r}, which cannot be sorted: {scores.type}", hint="use a number, text or date"
        ) from error
    priority = np.empty_like(rows)
    priority[np.r_[scored[places], rows[~has_score]]] = rows
    return pa.array(priority)
