"""Documents that are in memory already: lists, dicts, Arrow, pandas, polars, Hugging Face datasets."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, ValuesView
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.checks import VECTOR_MEASURES
from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.io.formats import base as records
from neardup.io.values.arrow_rows import items_texts, joined_texts
from neardup.io.values.columns import (
    CONVERSION_ERRORS,
    choose,
    hash_groups,
    keep_priority,
    plain,
    reason_against,
    unique_ids,
    usable_texts,
)
from neardup.io.values.contents import column_type, contents_of, dimension_of
from neardup.io.values.gather import RowError, item_string, weighted_items
from neardup.io.values.html import readable_texts
from neardup.io.values.vector_columns import VECTOR_COLUMNS, as_column, rows_as_column, unmasked

TEXT_COLUMNS: Final = ("text", "content", "body")
ID_COLUMNS: Final = ("id", "url")
# A shuffled dataset comes with a chunk per row; work goes by chunks, so smaller ones than this are joined.
MIN_CHUNK_BYTES: Final = 1 << 20
BATCH_ROWS: Final = records.BATCH_ROWS


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


class _Taken(NamedTuple):
    """What a source gives before it is checked; original: None where the source is one column."""

    values: Any
    ids: Any
    original: pa.Table | None
    columns: dict[str, str]


def read(source: Any, config: Config, *, ids: Sequence[Any] | None = None) -> Source:
    """Take any in-memory source apart into documents and rejected rows."""
    taken = _take(source, config, ids)
    role, values, odd = _role(config), taken.values, dict[int, str]()
    if role != "text" and isinstance(values, list):
        values, odd = rows_as_column(values) if role == "vector" else _item_rows(values, config)
    texts, reasons = usable_texts(values, taken.columns.get("text")) if role == "text" else _contents(values, config)
    reasons |= odd
    if texts.num_chunks > 1 and texts.nbytes < MIN_CHUNK_BYTES * texts.num_chunks:
        texts = pa.chunked_array([schema.one_array(texts)])
    named = pa.array(np.arange(len(texts))) if taken.ids is None else unique_ids(taken.ids, len(texts))
    original = taken.original
    if original is None:
        _no_columns(config)
        original = pa.table({"doc_id": named, role: texts if role == "text" else values})
    if config.html:
        readable, unreadable = readable_texts(texts, config)
        texts, reasons = pa.chunked_array([readable]), unreadable | reasons
    rejected = _rejected(reasons, config)
    documents = pa.table(
        [pa.array(np.arange(len(texts))), texts, keep_priority(original, texts, config), _groups(original, config)],
        schema=schema.documents(texts.type),
    )
    if reasons:  # a filter copies every text, so not for nothing
        is_usable = np.ones(len(texts), np.bool_)
        is_usable[list(reasons)] = False
        documents = documents.filter(pa.array(is_usable))
    return Source(documents=documents, rejected=rejected, ids=named, original=original, columns=taken.columns)


def _take(source: Any, config: Config, ids: Any) -> _Taken:
    """Find the contents and the ids of a source, and the columns that they come from."""
    if isinstance(source, Mapping) and not is_from(source, "datasets"):
        if ids is not None:
            raise DataError(
                "`ids` must be left out for a dict: its keys are the ids", hint="pass list(source.values())"
            )
        ids, source = list(source), list(source.values())
    values = _one_column(source, is_vector=config.measure in VECTOR_MEASURES)
    if values is not None:
        return _Taken(values, ids, None, {})
    original, values = _as_table(source, config)
    names = original.column_names
    chosen = _content_names(names, config)
    columns = {_role(config): " + ".join(chosen)}
    if values is None:
        values = original.column(chosen[0]) if len(chosen) == 1 else _joined(original, chosen)
    if ids is not None and config.id_column is not None:
        raise ConfigError("`ids` and `id_column` both name the documents", hint="leave one of them out")
    id_column = choose(names, config.id_column, "id_column", ID_COLUMNS) if ids is None else None
    if id_column is not None:
        columns["id"], ids = id_column, original.column(id_column)
    return _Taken(values, ids, original, columns)


def with_dimension(read: Source, config: Config) -> Config:
    """Return the settings with the dimension of the vectors that were read, where none is set."""
    if config.measure not in VECTOR_MEASURES or not read.documents.num_rows:
        return config
    contents = read.documents.column("text").slice(0, 1)
    return Config.of(config, dimension=dimension_of(schema.one_array(contents), config))


class InMemoryDocuments:
    """Documents in memory, as one part of a run."""

    num_parts = 1
    num_ahead = num_ahead_parts = 0
    unit = "documents"
    stops_at_first = False

    def __init__(self, documents: pa.Table, num_rows: int) -> None:
        self._documents = documents
        self.total, self.num_rows = documents.num_rows, num_rows
        self.first_rows = np.array([0, num_rows])

    def read(self, part: int, advance: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        """Cut the documents into batches that stay in a core's reach."""
        del part
        for batch in self._documents.to_batches(max_chunksize=BATCH_ROWS):
            if batch.num_rows:
                for start, stop in records.runs(np.cumsum(records.text_bytes(batch.column("text")))):
                    yield batch.slice(start, stop - start)
                    advance(stop - start)

    def has_read(self, part: int) -> bool:
        """Nothing was read by an earlier start."""
        del part
        return False

    def skip(self, part: int, advance: Callable[[int], None]) -> None:
        """Nothing was read by an earlier start."""

    def settle(self, sort: Any) -> None:
        """Rows and priorities are final from the start."""

    def place(self, part: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows and priorities are final from the start."""
        del part
        return batch


def _role(config: Config) -> str:
    """What documents are made of: text, items or vectors."""
    return "vector" if config.measure in VECTOR_MEASURES else "text" if config.items_column is None else "items"


def _contents(values: pa.Array | pa.ChunkedArray | list[Any], config: Config) -> tuple[pa.ChunkedArray, dict[int, str]]:
    """Return the contents of a column of items or vectors, and the reason for each row that is unusable."""
    column = schema.one_array(values) if isinstance(values, pa.ChunkedArray) else values
    contents, reasons = items_texts(column) if column_type(config) is None else contents_of(column, config)
    return pa.chunked_array([contents]), reasons


def _item_rows(rows: list[Any], config: Config) -> tuple[pa.Array, dict[int, str]]:
    """Return items that came as Python values as a column; the reason for every row that has none."""
    is_weighted, reasons = config.measure == "weighted", dict[int, str]()
    take = weighted_items if is_weighted else _items
    usable: list[Any] = []
    for row, value in enumerate(rows):
        if isinstance(value, Mapping) and not is_weighted:
            raise DataError(
                f"the items of row {row} are a dict, whose weights the measure {config.measure!r} does not compare",
                hint="pass measure='weighted', or list(items) to compare the items alone",
            )
        try:
            usable.append(None if value is None else take(unmasked(value)))
        except RowError as error:
            reasons[row] = str(error)
            usable.append(None)
    kind = column_type(config) or pa.large_list(pa.large_string())
    try:
        return pa.array(usable, kind), reasons
    except UnicodeEncodeError:
        pass  # a lone surrogate somewhere: found and named below
    for row, items in enumerate(usable):
        try:
            pa.array([items], kind)
        except UnicodeEncodeError as error:
            reasons[row] = f"an item is not valid Unicode: lone surrogate at character {error.start}: {error.object!a}"
            usable[row] = None
    return pa.array(usable, kind), reasons


def _items(value: Any) -> list[str]:
    """Return the items of a row as strings; a text is cut at white space."""
    if isinstance(value, str):
        return value.split()
    if not isinstance(value, (Collection, np.ndarray)):
        raise RowError(f"items are {type(value).__name__}, not a collection")
    items = []
    for item in value.tolist() if isinstance(value, np.ndarray) else value:
        try:
            items.append(item_string(item))
        except TypeError as error:
            raise RowError(f"{error}: {reprlib.repr(item)}") from error
    return items


def is_from(source: Any, package: str) -> bool:
    """Whether a class comes from a package, without importing it."""
    return any(kind.__module__.partition(".")[0] == package for kind in type(source).__mro__)


def _one_column(source: Any, *, is_vector: bool = False) -> pa.ChunkedArray | list[Any] | None:
    """Return the values of a source that is one column, None for what may be a table."""
    if isinstance(source, (str, bytes, bytearray)):
        raise DataError(
            f"`source` must be a collection of documents, got one {type(source).__name__}",
            hint="put it in a list: [text]; neardup.compare(a, b) compares two texts",
        )
    if isinstance(source, (set, frozenset)):
        raise DataError("`source` must have an order, got a set", hint="pass sorted(source)")
    if isinstance(source, (pa.Array, pa.ChunkedArray)):
        return _chunks(source)
    if isinstance(source, np.ndarray):
        return _array_values(source, is_vector=is_vector)
    # Asked of the class: a polars LazyFrame resolves its whole query to name its columns.
    if not hasattr(type(source), "columns"):
        if is_from(source, "pandas") and hasattr(source, "isna"):
            return _pandas_values(source) if source.dtype == object else _chunks(pa.Array.from_pandas(source))
        if is_from(source, "polars") and hasattr(source, "to_arrow"):
            return _chunks(source.to_arrow())
    if isinstance(source, (Sequence, ValuesView, Iterator)) and not hasattr(source, "__arrow_c_stream__"):
        return list(source)
    return None


def _array_values(source: npt.NDArray[Any], *, is_vector: bool) -> pa.ChunkedArray | list[Any]:
    if source.ndim == 2 and is_vector:
        return _chunks(as_column(source))
    if source.ndim != 1:
        wanted = "an array of vectors, a row each" if is_vector else "a one-dimensional array of texts"
        hint = None if is_vector else "measure='cosine', 'euclidean' or 'hamming' compares vectors"
        raise DataError(f"`source` must be {wanted}, got shape {source.shape}", hint=hint)
    values: list[Any] = source.tolist()
    return values


def _chunks(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _pandas_values(column: Any) -> list[Any]:
    """The values of a pandas column; what pandas takes for missing (NaN, NaT, NA) is None."""
    values, is_missing = column.tolist(), column.isna().tolist()
    return [None if missing else value for value, missing in zip(values, is_missing, strict=True)]


def _as_table(source: Any, config: Config) -> tuple[pa.Table, list[Any] | None]:
    """Return the table, and its texts apart where a pandas column holds what no Arrow column can."""
    if is_from(source, "pandas") and hasattr(type(source), "columns"):
        return _pandas_table(source, config)
    table = _arrow_table(source)
    for at, field in enumerate(table.schema):
        column = plain(table.column(at), field.name)
        if column.type != field.type:
            table = table.set_column(at, field.with_type(column.type), column)
    return table, None


def _pandas_table(frame: Any, config: Config) -> tuple[pa.Table, list[Any] | None]:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False), None
    except CONVERSION_ERRORS as error:
        names = list(map(str, frame.columns))
        name = _text_names(names, config)[0]
        texts = _pandas_values(frame.iloc[:, names.index(name)])
        reasons = [None if text is None else reason_against(text) for text in texts]
        if not any(reasons) or len(set(names)) < len(names):
            raise DataError(
                f"the frame cannot become an Arrow table: {'; '.join(map(str, error.args))}",
                hint="give every column one type and its own name, or pass fewer: frame[['id', 'text']]",
            ) from error
        usable = [None if reason else text for text, reason in zip(texts, reasons, strict=True)]
        table, _ = _pandas_table(frame.assign(**{name: usable}), config)
        return table, texts


def _arrow_table(source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    hint = None
    if is_from(source, "datasets"):
        if isinstance(source, Mapping):
            raise DataError(
                f"`source` must be one dataset, got the splits {', '.join(map(str, source))}",
                hint=f"choose one: source[{next(iter(source), 'train')!r}]",
            )
        if hasattr(source, "num_rows"):
            return source.with_format("arrow")[:]
        hint = "pass the texts: (row['text'] for row in source)"
    elif is_from(source, "polars"):
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
        ("vector_column", config.vector_column),
        ("id_column", config.id_column),
        ("keep", config.keep_column),
        ("group_column", config.group_column),
    ):
        if column is not None:
            raise ConfigError(
                f"`{setting}` names the column {column!r}, but the source has no columns",
                hint="pass a table, or leave the setting out",
            )


def _content_names(names: list[str], config: Config) -> tuple[str, ...]:
    if config.measure in VECTOR_MEASURES:
        chosen = choose(names, config.vector_column, "vector_column", VECTOR_COLUMNS)
        if chosen is None:
            raise DataError(
                f"no column named {', '.join(VECTOR_COLUMNS)} in the source",
                hint=f"name the one with the vectors: vector_column=... (the columns are {', '.join(names) or 'none'})",
            )
        return (chosen,)
    if config.items_column is not None:
        return (choose(names, config.items_column, "items_column", ()) or "",)
    return _text_names(names, config)


def _text_names(names: list[str], config: Config) -> tuple[str, ...]:
    asked = config.text_column if isinstance(config.text_column, tuple) else (config.text_column,)
    return tuple(choose(names, name, "text_column", TEXT_COLUMNS) or _no_text(names) for name in asked)


def _joined(original: pa.Table, names: tuple[str, ...]) -> pa.ChunkedArray:
    """Several text columns as one, joined by a newline."""
    parts = [joined_texts(batch, names)[0] for batch in original.select(list(names)).to_batches()]
    return pa.chunked_array(parts, pa.large_string())


def _groups(original: pa.Table, config: Config) -> pa.Array:
    column = choose(original.column_names, config.group_column, "group_column", ())
    if column is None:
        return pa.array(np.zeros(original.num_rows, np.int64))
    return pa.array(hash_groups(original.column(column), config.seed))


def _rejected(reasons: dict[int, str], config: Config) -> pa.Table:
    if config.strict and reasons:
        row = min(reasons)
        raise DataError(
            f"row {row} cannot be used: {reasons[row]}",
            hint="leave out strict=True to set such rows aside and go on",
        )
    rows = sorted(reasons)
    return pa.table([[None] * len(rows), rows, [reasons[row] for row in rows]], schema=schema.REJECTED)
