"""Documents in memory: lists, dicts, Arrow, pandas, polars and Hugging Face datasets."""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, ValuesView
from numbers import Real
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.config.checks import VECTOR_MEASURES
from neardup.errors import ConfigError, DataError
from neardup.io import records
from neardup.io.columns.arrow_rows import items_texts, joined_texts
from neardup.io.columns.column_checks import (
    checked_ids,
    choose,
    column_at,
    hash_groups,
    keep_priority,
    likeliest_text,
    named_columns,
    reason_against,
    usable_texts,
)
from neardup.io.columns.common_groups import URL_COLUMN, common_keys
from neardup.io.columns.contents import column_type, contents_of, dimension_of
from neardup.io.columns.html import readable_texts
from neardup.io.columns.matrices import (
    are_signatures,
    is_matrix,
    item_column,
    signatures_error,
)
from neardup.io.columns.python_rows import (
    as_table,
    columns_of,
    is_baskets,
    is_dicts,
    is_pairs,
    item_rows,
    split_pairs,
    values_at,
)
from neardup.io.columns.rejected_rows import RejectedRow
from neardup.io.columns.vector_columns import VECTOR_COLUMNS, as_column, rows_as_column
from neardup.io.columns.whole_rows import rename_doc_id
from neardup.io.documents.frames import as_arrow, is_from, pandas_values

if TYPE_CHECKING:
    from neardup.io.columns.text_cuts import TextCuts

TEXT_COLUMNS: Final = ("text", "content", "body")
ID_COLUMNS: Final = ("id", "url")
# The name that the library's own tables use.
IN_MEMORY_ID_COLUMNS: Final = (*ID_COLUMNS, "doc_id")
# A shuffled dataset has one chunk per row; chunks are the unit of work, so smaller ones than this
# are combined.
MIN_CHUNK_BYTES: Final = 1 << 20
BATCH_ROWS: Final = records.BATCH_ROWS
# How many rows are read to guess which column holds prose.
_SAMPLED_ROWS: Final = 1000


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class InMemorySource:
    """The result of reading a source.

    documents: the usable rows, as schema.DOCUMENTS; rejected: the others, with the reason;
    ids: the id of every row; original: the rows unchanged; columns: which of its columns were used;
    has_repeated_ids: whether an id names several rows;
    references: the documents of `against`, which are then ahead of the others in `documents` and `ids`.
    """

    documents: pa.Table
    rejected: pa.Table
    ids: pa.Array
    original: pa.Table
    columns: dict[str, str]
    has_repeated_ids: bool
    references: InMemorySource | None = None

    @property
    def num_references(self) -> int:
        """The number of rows of the reference documents."""
        return 0 if self.references is None else len(self.references.ids)

    @property
    def num_own(self) -> int:
        """The number of documents of the input."""
        num_documents: int = self.documents.num_rows
        if self.references is not None:
            num_documents -= self.references.documents.num_rows
        return num_documents

    def own_documents(self) -> pa.Table:
        """Return the documents of the input; their rows follow those of the reference documents."""
        return self.documents.slice(self.documents.num_rows - self.num_own)

    def first_rejected(self) -> RejectedRow:
        """Name the first rejected row."""
        first = self.rejected.slice(0, 1).to_pylist()[0]
        in_file = "" if first["file"] is None else f"{first['file']} "
        return RejectedRow(f"{in_file}row {first['row']}", first["reason"])


class ItemSets(NamedTuple):
    """The argument `items=`: sets to compare instead of texts."""

    values: Any


class _Taken(NamedTuple):
    """The contents of a source before they are checked.

    original: None if the source is one column; reasons: why rows are unusable regardless of their
    values;
    unfilled: the column of `original` that still has to be filled with the values;
    nested: columns of `original` that were extracted from its structs, and are not part of the
    source.
    """

    values: Any
    ids: Any
    original: pa.Table | None
    columns: dict[str, str]
    reasons: dict[int, str]
    unfilled: str | None = None
    nested: tuple[str, ...] = ()


def read(source: Any, config: Config, *, ids: Sequence[Any] | None = None) -> InMemorySource:
    """Split any in-memory source into documents and rejected rows."""
    taken = _take(source, config, ids)
    role = _role(config)
    values = taken.values
    odd = taken.reasons
    if role != "text" and isinstance(values, list):
        values, bad = rows_as_column(values) if role == "vector" else item_rows(values, config)
        odd = bad | odd
    texts, reasons = (
        usable_texts(values, taken.columns.get("text"))
        if role == "text"
        else _contents(values, config)
    )
    reasons |= odd
    if texts.num_chunks > 1 and texts.nbytes < MIN_CHUNK_BYTES * texts.num_chunks:
        texts = pa.chunked_array([schema.one_array(texts)])
    if taken.ids is None:
        named = pa.array(np.arange(len(texts)))
    else:
        named = checked_ids(taken.ids, len(texts), reasons)
    original = _original(taken, named, role, texts if role == "text" else values, config)
    if config.html:
        readable, unreadable = readable_texts(texts, config)
        texts = pa.chunked_array([readable])
        reasons = unreadable | reasons
    if config.asks_code:
        from neardup.io.columns.code import code_texts  # few runs compare code

        texts = pa.chunked_array([code_texts(texts, None, config)[0]])
    rejected = _rejected(reasons, config)
    documents = pa.table(
        [
            pa.array(np.arange(len(texts))),
            texts,
            keep_priority(original, texts, config),
            _groups(original, config),
            *_common(original, named, config),
        ],
        schema=schema.documents(texts.type, has_common=config.ignore_common is not None),
    )
    if reasons:  # filtering copies every text
        is_usable = np.ones(len(texts), np.bool_)
        is_usable[list(reasons)] = False
        documents = documents.filter(pa.array(is_usable))
    given = pa.array([]) if taken.ids is None else named.drop_null()
    return InMemorySource(
        documents=documents,
        rejected=rejected,
        ids=named,
        original=original.drop_columns(list(taken.nested)),
        columns=taken.columns,
        has_repeated_ids=len(given.unique()) < len(given),
    )


def _original(taken: _Taken, ids: pa.Array, role: str, contents: Any, config: Config) -> pa.Table:
    """Return the original rows; those of a single column get their ids as names."""
    if taken.original is None:
        _no_columns(config)
        return pa.table({"doc_id": ids, role: contents})
    if taken.unfilled is None:
        return taken.original
    return taken.original.set_column(
        taken.original.column_names.index(taken.unfilled), taken.unfilled, contents
    )


def _take(source: Any, config: Config, ids: Any) -> _Taken:
    """Find the contents and the ids of a source, and the columns they come from."""
    is_items = isinstance(source, ItemSets)
    source = source.values if is_items else source
    if isinstance(source, Mapping) and not is_from(source, "datasets"):
        _check_lists(list(source.values()), config)
        if ids is not None:
            raise DataError(
                "`ids` must be left out for a dict: its keys are the ids",
                hint="pass list(source.values())",
            )
        return _Taken(list(source.values()), list(source), None, {}, {})
    if is_items and is_matrix(source):
        return _Taken(item_column(source, config), ids, None, {}, {})
    values = _one_column(source, is_vector=config.measure in VECTOR_MEASURES)
    if isinstance(values, list):
        _check_lists(values, config)
    if isinstance(values, list) and is_pairs(values, of_texts=_role(config) == "text"):
        _no_other_ids(ids, "the (id, text) tuples")
        ids, values, reasons = split_pairs(values)
        return _Taken(values, ids, None, {}, reasons)
    if (
        isinstance(values, list)
        and is_dicts(values)
        and not (is_items or is_baskets(values, config))
    ):
        return _take_dicts(values, config, ids)
    if values is not None:
        return _Taken(values, ids, None, {}, {})
    original, values = as_arrow(
        source,
        lambda names: _one_content(names, config),
        lambda contents: _unusable(contents, config),
    )
    nested = _nested(original.column_names, config)
    for name in nested:
        parts = [column_at(batch, name) for batch in original.to_batches()]
        if parts and parts[0] is not None:
            original = original.append_column(name, pa.chunked_array(parts))
    found = tuple(name for name in nested if name in original.column_names)
    return _take_columns(original, values, config, ids)._replace(nested=found)


def _nested(names: list[str], config: Config) -> tuple[str, ...]:
    """The columns that settings name by a path into a struct or a dict."""
    paths = (name for _, name in named_columns(config) if name not in names)
    return tuple(
        dict.fromkeys(path for path in paths if "." in path and path.partition(".")[0] in names)
    )


def _one_content(names: list[str], config: Config) -> str | None:
    chosen = content_names([*names, *_nested(names, config)], config)
    return chosen[0] if len(chosen) == 1 and chosen[0] in names else None


def _unusable(contents: list[Any], config: Config) -> Collection[int]:
    """Return the rows whose contents cannot be compared."""
    role = _role(config)
    if role == "text":
        return [row for row, text in enumerate(contents) if reason_against(text) is not None]
    return (rows_as_column(contents) if role == "vector" else item_rows(contents, config))[1]


def _take_dicts(rows: list[Any], config: Config, ids: Any) -> _Taken:
    columns, reasons = columns_of(rows)
    nested = _nested(list(columns), config)
    columns |= {name: values_at(rows, name) for name in nested}
    content = _one_content(list(columns), config)
    values = None if content is None else columns[content]
    taken = _take_columns(as_table(columns, content), values, config, ids)
    return taken._replace(reasons=reasons, unfilled=content, nested=nested)


def _take_columns(original: pa.Table, values: Any, config: Config, ids: Any) -> _Taken:
    """Find the contents, unless known, and the ids among the columns of a table."""
    names = original.column_names
    chosen = content_names(names, config, original)
    columns = {_role(config): " + ".join(chosen)}
    if values is None:
        if len(chosen) == 1:
            values = original.column(chosen[0])
        else:
            values = _joined(original, chosen)
    if config.id_column is not None:
        _no_other_ids(ids, "`id_column`")
    if ids is None:
        id_column = choose(names, config.id_column, "id_column", IN_MEMORY_ID_COLUMNS)
    else:
        id_column = None
    if id_column is not None:
        columns["id"] = id_column
        ids = original.column(id_column)
    return _Taken(values, ids, original, columns, {})


def _no_other_ids(ids: Any, named_by: str) -> None:
    if ids is not None:
        raise ConfigError(f"`ids` and {named_by} both give the ids", hint="leave one of them out")


def with_ids(read: InMemorySource) -> pa.Table:
    """Return the original rows with their ids as `doc_id`; another column of that name is renamed."""
    original = read.original
    names = read.original.column_names
    if read.columns.get("id") == "doc_id" or (not read.columns and "doc_id" in names):
        return original
    own_ids = read.ids.slice(read.num_references)
    return rename_doc_id(original).add_column(0, "doc_id", own_ids)


def with_cut_texts(read: InMemorySource, cuts: TextCuts, gone: npt.NDArray[np.int64]) -> pa.Table:
    """Return the pages that are not gone, with ids, and their texts without some spans in a column of its own."""
    from neardup.io.columns.text_cuts import in_rows  # it has kernels that few runs call

    table = with_ids(read)
    rows = read.documents.column("row").to_numpy()
    texts = in_rows(schema.one_array(read.documents.column("text")), rows, table.num_rows)
    [field] = records.CUT_TEXTS
    if field.name in table.column_names:
        table = table.drop_columns([field.name])
    table = table.append_column(field, cuts.apply(texts))
    return table.take(pa.array(rows[~np.isin(rows, gone, assume_unique=True)]))


def without_spans(read: InMemorySource, cuts: TextCuts, gone: npt.NDArray[np.int64]) -> pa.Table:
    """Return the documents with their ids, without some spans of their texts, and without the rows that are gone."""
    table = with_ids(read)
    name = read.columns.get("text", "text")
    texts = schema.one_array(read.original.column(name)).cast(pa.large_string())
    at = table.schema.get_field_index(name)
    kind = table.schema.field(at).type
    table = table.set_column(at, name, cuts.apply(texts).cast(kind))
    rows = read.documents.column("row").to_numpy()
    return table.take(pa.array(rows[~np.isin(rows, gone, assume_unique=True)]))


def with_dimension(read: InMemorySource, config: Config) -> Config:
    """Return the settings with the dimension of the vectors that were read, unless it is set."""
    if config.measure not in VECTOR_MEASURES or not read.documents.num_rows:
        return config
    contents = read.documents.column("text").slice(0, 1)
    return Config.of(config, dimension=dimension_of(schema.one_array(contents), config))


class InMemoryDocuments:
    """Documents in memory, as one part of a run; reference documents are a part of their own ahead of it."""

    unit = "documents"
    stops_at_first = False

    def __init__(self, documents: pa.Table, num_rows: int, num_references: int = 0) -> None:
        self.total = documents.num_rows
        self.num_rows = num_rows
        self.num_references = num_references
        self.num_reference_parts = int(num_references > 0)
        self._documents = documents
        bounds = [0, num_references, num_rows] if num_references else [0, num_rows]
        self.first_rows = np.array(bounds)
        self.num_parts = len(bounds) - 1

    def read(self, part: int, advance: Callable[[int], None]) -> Iterator[pa.RecordBatch]:
        """Yield the documents in batches that fit in the cache of a core."""
        documents = self._documents
        if self.num_parts > 1:
            rows = documents.column("row").to_numpy()
            first, stop = np.searchsorted(rows, self.first_rows[part : part + 2]).tolist()
            documents = documents.slice(first, stop - first)
        for batch in documents.to_batches(max_chunksize=BATCH_ROWS):
            if batch.num_rows:
                for start, stop in records.runs(
                    np.cumsum(records.text_bytes(batch.column("text")))
                ):
                    yield batch.slice(start, stop - start)
                    advance(stop - start)

    def has_read(self, part: int) -> bool:
        """Nothing was read by an earlier start."""
        del part
        return False

    def skip(self, part: int, advance: Callable[[int], None]) -> None:
        """Nothing was read by an earlier start."""

    def finish_reading(self, sort: Any) -> None:
        """Rows and priorities are final from the start."""

    def renumber(self, part: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows and priorities are final from the start."""
        del part
        return batch


def _role(config: Config) -> str:
    """The kind of contents: text, items or vector."""
    if config.measure in VECTOR_MEASURES:
        return "vector"
    if config.items_column is None:
        return "text"
    return "items"


def _contents(
    values: pa.Array | pa.ChunkedArray | list[Any], config: Config
) -> tuple[pa.ChunkedArray, dict[int, str]]:
    """Return the contents of a column of items or vectors, and the reason for each unusable row."""
    if isinstance(values, pa.ChunkedArray):
        column = schema.one_array(values)
    else:
        column = values
    contents, reasons = (
        items_texts(column) if column_type(config) is None else contents_of(column, config)
    )
    return pa.chunked_array([contents]), reasons


def _one_column(source: Any, *, is_vector: bool = False) -> pa.ChunkedArray | list[Any] | None:
    """Return the values of a source that is a single column, None if it may be a table."""
    if isinstance(source, (str, bytes, bytearray)):
        raise DataError(
            f"`source` must be a collection of documents, got one {type(source).__name__}",
            hint="put it in a list: [text]; neardup.compare(a, b) compares two texts",
        )
    if isinstance(source, (set, frozenset)):
        raise DataError("`source` must be ordered, got a set", hint="pass sorted(source)")
    if isinstance(source, (pa.Array, pa.ChunkedArray)):
        return _chunks(source)
    if isinstance(source, np.ndarray):
        return _array_values(source, is_vector=is_vector)
    # Looked up on the class, because a polars LazyFrame resolves its whole query to name its
    # columns.
    if not hasattr(type(source), "columns"):
        if is_from(source, "pandas") and hasattr(source, "isna"):
            if source.dtype == object:
                return pandas_values(source)
            return _chunks(pa.Array.from_pandas(source))
        if is_from(source, "polars") and hasattr(source, "to_arrow"):
            return _chunks(source.to_arrow())
    if isinstance(source, (Sequence, ValuesView, Iterator)) and not hasattr(
        source, "__arrow_c_stream__"
    ):
        return list(source)
    return None


def _check_lists(values: list[Any], config: Config) -> None:
    """Raise if documents are given as lists, and the settings compare something else."""
    role = _role(config)
    if role != "vector" and are_signatures(values, config.num_perm):
        raise signatures_error("items" if role == "items" else "source")
    first = next((value for value in values if value is not None), None)
    if role != "text" or not isinstance(first, (list, np.ndarray)) or len(first) == 0:
        return
    if isinstance(first, list):
        are_numbers = all(isinstance(value, Real) for value in first)
    else:
        are_numbers = first.dtype.kind in "biuf"
    if are_numbers:
        hint = (
            "measure='cosine' or 'euclidean' compares vectors, measure='hamming' bits, "
            "and items= sets of whole numbers"
        )
    else:
        hint = "items= compares sets of items"
    raise DataError(
        f"the documents are lists of {'numbers' if are_numbers else 'values'}, not texts: {reprlib.repr(first)}",
        hint=hint,
    )


def _array_values(source: npt.NDArray[Any], *, is_vector: bool) -> pa.ChunkedArray | list[Any]:
    if source.ndim == 2 and is_vector:
        return _chunks(as_column(source))
    if source.ndim == 2 and source.dtype == np.uint32:
        raise signatures_error("source")
    if source.ndim != 1:
        if is_vector:
            wanted = "an array of vectors, one per row"
        else:
            wanted = "a one-dimensional array of texts"
        if is_vector:
            hint = None
        else:
            hint = "measure='cosine', 'euclidean' or 'hamming' compares vectors"
        raise DataError(f"`source` must be {wanted}, got shape {source.shape}", hint=hint)
    values: list[Any] = source.tolist()
    return values


def _chunks(column: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    if isinstance(column, pa.ChunkedArray):
        return column
    return pa.chunked_array([column])


def _no_text(names: list[str], table: pa.Table | None) -> str:
    if table is not None:
        texts = table.slice(0, _SAMPLED_ROWS).combine_chunks()
    else:
        texts = pa.table({})
    likely = likeliest_text(
        (field.name, texts.column(at))
        for at, field in enumerate(texts.schema)
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    )
    raise DataError(
        f"no column named {', '.join(TEXT_COLUMNS)} in the source",
        hint=f"name the one with the text: text_column={likely or next(iter(names), 'text')!r}"
        f" (the columns are {', '.join(names) or 'none'})",
    )


def _no_columns(config: Config) -> None:
    """Raise if a setting names a column: a source that is one column of texts has no others."""
    for setting, column in named_columns(config):
        if setting != "items_column":  # it may be the column of `items=`
            raise ConfigError(
                f"`{setting}` names the column {column!r}, but the source has no columns",
                hint="pass a table, or leave the setting out",
            )


def content_names(
    names: list[str], config: Config, table: pa.Table | None = None
) -> tuple[str, ...]:
    """Return the columns to compare: those that the settings name, or the usual ones; `table` helps to guess a hint."""
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
    asked: tuple[str | None, ...]
    if isinstance(config.text_column, tuple):
        asked = config.text_column
    else:
        asked = (config.text_column,)
    return tuple(
        choose(names, name, "text_column", TEXT_COLUMNS) or _no_text(names, table) for name in asked
    )


def _joined(original: pa.Table, names: tuple[str, ...]) -> pa.ChunkedArray:
    """Several text columns as one, joined by a newline."""
    parts = [joined_texts(batch, names)[0] for batch in original.select(list(names)).to_batches()]
    return pa.chunked_array(parts, pa.large_string())


def _groups(original: pa.Table, config: Config) -> pa.Array:
    column = choose(original.column_names, config.group_column, "group_column", ())
    if column is None:
        return pa.array(np.zeros(original.num_rows, np.int64))
    return pa.array(hash_groups(original.column(column), config.seed))


def _common(original: pa.Table, ids: pa.Array, config: Config) -> list[pa.Array]:
    """The groups of `ignore_common`, if it is set."""
    if config.ignore_common is None:
        return []
    if config.common_by == "file":
        raise ConfigError(
            "`common_by` 'file' needs files, got documents in memory",
            hint="name a column, or leave `common_by` out",
        )
    column = choose(original.column_names, config.common_column, "common_by", ())
    if config.common_by == "host" and URL_COLUMN in original.column_names:
        column = URL_COLUMN
    values = None if column is None else original.column(column)
    if values is not None:
        values = schema.one_array(values).cast(pa.string())
    return [pa.array(common_keys(ids, values, config))]


def _rejected(reasons: dict[int, str], config: Config) -> pa.Table:
    if config.strict and reasons:
        row = min(reasons)
        raise DataError(
            f"row {row} cannot be used: {reasons[row]}",
            hint="leave out strict=True to skip such rows and list them as rejected",
        )
    rows = sorted(reasons)
    return pa.table(
        [[None] * len(rows), rows, [reasons[row] for row in rows]], schema=schema.REJECTED
    )
