"""Conversion of Python values, such as lists of dicts or of (id, text) tuples, to columns."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Mapping
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.config import Config
from neardup.errors import DataError
from neardup.io.columns.column_checks import CONVERSION_ERRORS
from neardup.io.columns.contents import column_type
from neardup.io.columns.gather import RowError, item_string, weighted_items
from neardup.io.columns.rejected_rows import NOT_VALID
from neardup.io.columns.vector_columns import unmasked

Reasons = dict[int, str]


def is_dicts(rows: list[Any]) -> bool:
    """Whether rows are dicts: the first that is not None decides."""
    return isinstance(_first(rows), Mapping)


def is_baskets(rows: list[Any], config: Config) -> bool:
    """Whether dicts map items to weights, not columns to values: all numbers, and no key is the items column."""
    if config.measure != "weighted" or any(
        config.items_column in row for row in rows if isinstance(row, Mapping)
    ):
        return False
    first: Mapping[Any, Any] = next((row for row in rows if isinstance(row, Mapping) and row), {})
    return all(isinstance(weight, Real) for weight in first.values())


def is_pairs(rows: list[Any], *, of_texts: bool) -> bool:
    """Whether rows are (id, text) tuples, or (id, items) or (id, vector); two items or two numbers are not."""
    first = _first(rows)
    if (
        not isinstance(first, tuple)
        or len(first) != 2
        or not isinstance(first[0], (str, int, np.integer))
    ):
        return False
    return of_texts or (
        isinstance(first[1], (Collection, np.ndarray)) and not isinstance(first[1], str)
    )


def columns_of(rows: list[Any]) -> tuple[dict[str, list[Any]], Reasons]:
    """Return the values of dicts by column, None for missing ones, and the reason for each row that is not a dict."""
    reasons = {
        row: _reason(value, "a dict")
        for row, value in enumerate(rows)
        if not isinstance(value, Mapping)
    }
    names = dict.fromkeys(name for row in rows if isinstance(row, Mapping) for name in row)
    for name in names:
        if not isinstance(name, str):
            raise DataError(
                f"the names of columns must be strings, got {name!r}",
                hint="rename the keys of the dicts",
            )
    columns = {name: [_get(row, name) for row in rows] for name in names}
    return columns, reasons


def _get(row: Any, name: str) -> Any:
    return row.get(name) if isinstance(row, Mapping) else None


def values_at(rows: list[Any], path: str) -> list[Any]:
    """Return the values at a dotted path into nested dicts, None if a step of the path is missing.

    >>> values_at([{"page": {"text": "a"}}, {"page": None}, None], "page.text")
    ['a', None, None]
    """
    values = rows
    for step in path.split("."):
        values = [_get(value, step) for value in values]
    return values


def split_pairs(rows: list[Any]) -> tuple[list[Any], list[Any], Reasons]:
    """Return the ids and the contents of pairs, and the reason for each row that is not a pair."""
    ids: list[Any] = []
    contents: list[Any] = []
    reasons: Reasons = {}
    for row, value in enumerate(rows):
        if isinstance(value, tuple) and len(value) == 2:
            doc_id, content = value
        else:
            doc_id = content = None
            reasons[row] = _reason(value, "an (id, text) tuple")
        ids.append(doc_id)
        contents.append(content)
    return ids, contents, reasons


def as_table(columns: dict[str, list[Any]], content: str | None) -> pa.Table:
    """Return the columns as a table; the content column, which may hold anything, is still null."""
    arrays = {}
    for name, values in columns.items():
        try:
            if name == content:
                arrays[name] = pa.nulls(len(values))
            else:
                arrays[name] = pa.array(values)
        except CONVERSION_ERRORS as error:
            raise DataError(
                f"column {name!r} of the dicts cannot be converted to an Arrow column: {error}",
                hint="give its values one type, or leave it out of the dicts",
            ) from error
    return pa.table(arrays)


def item_rows(rows: list[Any], config: Config) -> tuple[pa.Array, Reasons]:
    """Convert items given as Python values to a column; also return the reason for each unusable row."""
    is_weighted = config.measure == "weighted"
    reasons = dict[int, str]()
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
        pass  # some item has a lone surrogate; it is located below
    for row, items in enumerate(usable):
        try:
            pa.array([items], kind)
        except UnicodeEncodeError as error:
            reasons[row] = (
                f"an item is {NOT_VALID} Unicode: lone surrogate at character {error.start}: {error.object!a}"
            )
            usable[row] = None
    return pa.array(usable, kind), reasons


def _items(value: Any) -> list[str]:
    """Return the items of a row as strings; a text is split at white space."""
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


def _first(rows: list[Any]) -> Any:
    return next((row for row in rows if row is not None), None)


def _reason(value: Any, wanted: str) -> str:
    if value is None:
        return "row is null"
    size = f" of {len(value)}" if isinstance(value, tuple) else ""
    return f"row is {type(value).__name__}{size}, not {wanted}"
