"""The values of Arrow columns of any type, as Python values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.io.columns.column_checks import column_at, outer_column, storage


def values_in(table: pa.Table, name: str, rows: npt.NDArray[np.int64]) -> list[Any]:
    """Return the values of a column of a table, or of a dotted path into one, in some rows."""
    outer = outer_column(table.schema, name)
    if outer is None or not rows.size:
        return [None] * rows.size
    taken = table.select([outer]).take(pa.array(rows)).combine_chunks().to_batches()[0]
    return values_of(column_at(taken, name), np.arange(rows.size))


def values_of(column: pa.Array | None, rows: npt.NDArray[np.int64]) -> list[Any]:
    """Return some values of a column; one that Python cannot represent is returned as the error that says why.

    The objects of a struct lack the fields that are null: Arrow gives every object the fields of
    all others.

    >>> values_of(pa.array([{"a": 1}, {"b": 2}]), np.array([1, 0]))
    [{'b': 2}, {'a': 1}]
    """
    if column is None:
        return [None] * rows.size
    column = storage(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_timestamp(column.type):  # Python has no nanoseconds
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    taken = column.take(pa.array(rows))
    try:
        values: list[Any] = taken.to_pylist(maps_as_pydicts="strict")
    except (ValueError, OverflowError, KeyError):
        values = [_value(scalar) for scalar in taken]
    if pa.types.is_struct(column.type):
        return [_without_nulls(value) for value in values]
    return values


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py(maps_as_pydicts="strict")
    except (ValueError, OverflowError, KeyError) as error:
        return error


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value
