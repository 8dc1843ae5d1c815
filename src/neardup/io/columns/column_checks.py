"""Checks on the columns of any source: valid texts, unique ids, sortable scores."""

from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.io.columns import keep_order
from neardup.io.columns.rejected_rows import NOT_UTF8, NOT_VALID
from neardup.io.columns.scores import sortable_column
from neardup.kernels.keys import group_key

# What Arrow raises for Python values that do not fit in one column.
CONVERSION_ERRORS: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)
# Arrow can neither take nor sort the rows of a view type; the plain type has the same values.
_PLAIN_TYPES: Final = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
_NULL: Final = "text is null"
_LIST_TESTS: Final = tuple(
    getattr(pa.types, f"is_{name}")
    for name in ("list", "large_list", "fixed_size_list", "list_view", "large_list_view")
)


def choose(names: list[str], asked: str | None, setting: str, usual: tuple[str, ...]) -> str | None:
    """Return the requested column, or the first of the usual ones that exists."""
    if asked is not None and asked not in names:
        raise ConfigError(
            f"`{setting}` names {asked!r}, which is not a column of the source",
            hint=f"the columns are {', '.join(names) or 'none'}",
        )
    chosen = asked
    if asked is None:
        chosen = next((name for name in usual if name in names), None)
    if chosen is not None and names.count(chosen) > 1:
        raise DataError(
            f"the source has {names.count(chosen)} columns named {chosen!r}",
            hint="rename all but one",
        )
    return chosen


def named_columns(config: Config) -> Iterator[tuple[str, str]]:
    """Iterate over the settings that name a column, and the columns that they name."""
    texts: tuple[str | None, ...]
    if isinstance(config.text_column, tuple):
        texts = config.text_column
    else:
        texts = (config.text_column,)
    named = [*(("text_column", name) for name in texts), ("items_column", config.items_column)]
    named += [("vector_column", config.vector_column), ("id_column", config.id_column)]
    named += [("keep", config.keep_column), ("group_column", config.group_column)]
    named += [("common_by", config.common_column)]
    return ((setting, name) for setting, name in named if name is not None)


def plain(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return a column whose rows Arrow can take."""
    kind = column.type
    if kind in _PLAIN_TYPES:
        return column.cast(_PLAIN_TYPES[kind])
    if pa.types.is_dictionary(kind) and kind.value_type in _PLAIN_TYPES:
        values = _PLAIN_TYPES[kind.value_type]
        chunks = [
            pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(values))
            for part in column.chunks
        ]
        return pa.chunked_array(chunks, pa.dictionary(kind.index_type, values))
    try:
        column.slice(0, 0).take(pa.array([], pa.int64()))
    except pa.ArrowNotImplementedError as error:
        raise DataError(
            f"column {name!r} has values that Arrow cannot represent: {kind}",
            hint="cast or drop it",
        ) from error
    return column


def is_valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which rows are not null."""
    valid: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def list_lengths(column: pa.Array) -> npt.NDArray[np.int64]:
    """Return how many values each list has, 0 for a null."""
    lengths = pc.list_value_length(column).fill_null(0).to_numpy()
    return np.where(is_valid(column), lengths, 0).astype(np.int64)


def is_bytes(kind: pa.DataType) -> bool:
    """Whether a type holds bytes."""
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(test(kind) for test in tests)


def storage(column: pa.Array) -> pa.Array:
    """Return the storage of an extension type, with run-end encoding decoded."""
    while isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_run_end_encoded(column.type):
        return pc.run_end_decode(column)
    return column


def column_at(batch: pa.RecordBatch, name: str) -> pa.Array | None:
    """Take a column by its name, or by a dotted path into structs."""
    found = batch.schema.get_all_field_indices(name)
    if len(found) > 1:
        raise DataError(f"{len(found)} columns are named {name!r}", hint="rename all but one")
    if found:
        return batch.column(found[0])
    outer = outer_column(batch.schema, name)
    column = None if outer is None else batch.column(outer)
    for step in name.removeprefix(f"{outer}.").split(".") if column is not None else ():
        column = storage(column)
        if not pa.types.is_struct(column.type) or column.type.get_field_index(step) < 0:
            return None
        column = pc.struct_field(column, step)
    return column


def outer_column(columns: pa.Schema, name: str) -> str | None:
    """Return the top-level column of a name: itself, or the struct at the start of a dotted path."""
    if name in columns.names or "." not in name:
        return name if name in columns.names else None
    outer = name.partition(".")[0]
    return outer if columns.names.count(outer) == 1 else None


def likeliest_text(columns: Iterable[tuple[str, pa.Array]]) -> str | None:
    """Return the text column that looks most like prose: the one with the most words, or else the most bytes."""
    best: tuple[float, float, str | None] = 0.0, 0.0, None
    for name, texts in columns:
        num_rows = max(1, len(texts))
        num_bytes = (pc.sum(pc.binary_length(texts)).as_py() or 0) / num_rows
        num_spaces = (pc.sum(pc.count_substring(texts, " ")).as_py() or 0) / num_rows
        if (num_spaces, num_bytes) > best[:2]:
            best = num_spaces, num_bytes, name
    return best[2]


def is_list(kind: pa.DataType) -> bool:
    """Whether values of this type are lists of values."""
    return any(is_kind(kind) for is_kind in _LIST_TESTS)


def usable_texts(
    values: pa.ChunkedArray | list[Any], column: str | None
) -> tuple[pa.ChunkedArray, dict[int, str]]:
    """Return the texts, null if unusable, and the reason for each unusable row."""
    if isinstance(values, list):
        return _usable_values(values)
    # A column of nulls may have any type: in pandas it is float.
    if values.null_count == len(values):
        values = pa.chunked_array([pa.nulls(len(values), pa.large_string())])
    values = plain(values, column or "text")
    if pa.types.is_dictionary(values.type):
        kind = values.type.value_type
    else:
        kind = values.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        if column:
            raise DataError(
                f"column {column!r} must hold text, got {kind}",
                hint="choose another with text_column=",
            )
        raise DataError(
            f"`source` must hold text, got {kind}", hint="cast it to a string type first"
        )
    try:
        if values.type != pa.large_string():
            texts = values.cast(pa.large_string())
        else:
            texts = values
        texts.validate()
    except pa.ArrowException as error:
        raise DataError(f"the text column is a broken Arrow array: {error}") from error
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return _usable_values(_decode(texts))
    is_null = np.concatenate([np.empty(0, np.bool_), *map(_nulls, texts.chunks)])
    nulls = np.flatnonzero(is_null).tolist()
    return texts, dict.fromkeys(nulls, _NULL)


def _nulls(chunk: pa.Array) -> npt.NDArray[np.bool_]:
    if not chunk.null_count:
        return np.zeros(len(chunk), np.bool_)
    nulls: npt.NDArray[np.bool_] = chunk.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _decode(texts: pa.ChunkedArray) -> list[Any]:
    """The rows of a column with invalid UTF-8; an invalid row is replaced by its UnicodeDecodeError."""
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
            pass  # some value has a lone surrogate; it is located below
    reasons = {row: reason for row, value in enumerate(values) if (reason := reason_against(value))}
    texts = [None if row in reasons else value for row, value in enumerate(values)]
    return pa.chunked_array([pa.array(texts, pa.large_string())]), reasons


def reason_against(value: Any) -> str | None:
    """Return why a value is not a valid text; None if it is."""
    if value is None:
        return _NULL
    if isinstance(value, UnicodeDecodeError):
        return f"text is {NOT_UTF8}: {value.reason} at byte {value.start}"
    if not isinstance(value, str):
        return f"text is {type(value).__name__}, not str: {reprlib.repr(value)}"
    try:
        value.encode()
    except UnicodeEncodeError as error:
        return f"text is {NOT_VALID} Unicode: lone surrogate at character {error.start}"
    return None


def checked_ids(ids: Any, num_rows: int, rejected: Collection[int]) -> pa.Array:
    """Return ids as int64 or string; raise for mixed ids, and for null ids of rows that are not rejected."""
    named = _id_array(ids)
    if len(named) != num_rows:
        raise DataError(
            f"`ids` must have one id per document, got {len(named)} ids for {num_rows} documents",
            hint="list the ids in the order of the documents",
        )
    if pa.types.is_dictionary(named.type):
        kind = named.type.value_type
    else:
        kind = named.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view()
    if not (is_text or pa.types.is_integer(kind)) and len(named):
        raise DataError(
            f"ids must be all strings or all whole numbers, got {reprlib.repr(named[0].as_py())} ({kind})",
            hint="convert them with str()",
        )
    for row in np.flatnonzero(_nulls(named)).tolist():
        if row not in rejected:
            raise DataError(
                f"the id of row {row} is null", hint="give every document an id, or none"
            )
    try:
        named.validate(full=True)
        return named.cast(pa.string() if is_text else pa.int64())
    except pa.ArrowInvalid as error:
        raise DataError(
            f"ids must be valid UTF-8, or fit in a signed 64-bit integer: {error}",
            hint="convert them with str()",
        ) from error


def _id_array(ids: Any) -> pa.Array:
    if isinstance(ids, pa.ChunkedArray):
        return schema.one_array(ids)
    if isinstance(ids, (str, bytes, set, frozenset, Mapping)) or not isinstance(
        ids, (Iterable, pa.Array)
    ):
        raise DataError(
            f"`ids` must be a list of ids in the order of the documents, got {type(ids).__name__}",
            hint="id_column= takes the name of a column",
        )
    if isinstance(ids, pa.Array) or hasattr(ids, "dtype"):
        ids = ids
    else:
        ids = list(ids)
    try:
        return pa.array(ids)
    except CONVERSION_ERRORS as error:
        raise DataError(
            f"ids must be all strings or all whole numbers, {_odd_id(list(ids)) or f'got {error}'}",
            hint="convert them with str()",
        ) from error


def _odd_id(ids: list[Any]) -> str | None:
    """Describe the first id that Arrow does not support, on its own or together with the first id."""
    for row, value in enumerate(ids):
        try:
            pa.array([ids[0], value])
        except CONVERSION_ERRORS:
            beside = f", and {reprlib.repr(ids[0])} in row 0" if row else ""
            return f"got {reprlib.repr(value)} in row {row}{beside}"
    return None


def hash_groups(values: pa.Array | pa.ChunkedArray, seed: int) -> npt.NDArray[np.int64]:
    """Return a non-zero hash of every value; null is a value, too.

    seed: keys the hash, so that an attacker cannot construct two groups with the same hash.
    """
    if isinstance(values, pa.ChunkedArray):
        values = schema.one_array(values)
    else:
        values = values
    encoded = values.cast(pa.string()).dictionary_encode(null_encoding="encode")
    key = group_key(seed)
    hashes = np.array(
        [_hash_value(value, key) for value in encoded.dictionary.to_pylist()], np.int64
    )
    taken: npt.NDArray[np.int64] = hashes[encoded.indices.to_numpy()]
    return taken


def _hash_value(value: str | None, key: bytes) -> int:
    if value is None:
        named = b""
    else:
        named = b"=" + value.encode("utf-8", "surrogatepass")
    return (
        int.from_bytes(
            hashlib.blake2b(named, digest_size=8, key=key).digest(), "little", signed=True
        )
        or 1
    )


def keep_priority(original: pa.Table, texts: pa.ChunkedArray, config: Config) -> pa.Array:
    """Return the keep priority of every row of a table."""
    rows: npt.NDArray[np.int64] = np.arange(original.num_rows)
    column = choose(original.column_names, config.keep_column, "keep", ())
    if column is None:
        return pa.array(keep_order.priorities(config.keep, rows, texts))
    scores = schema.one_array(original.column(column).unify_dictionaries())
    table = pa.Table.from_batches([keep_order.unsorted(sortable_column(scores, column), rows)])
    ordered = table.sort_by(keep_order.sort_keys(config.keep))
    return pa.array(keep_order.rank(ordered.to_batches(), rows.size, config.keep))
