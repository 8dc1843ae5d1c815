"""Scores to keep by, in columns that sort alike whatever file or batch they came in."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import DataError

# A number, the integer it is (a double is not exact from 2**53 on; 0 for what is no integer), or a text.
SCORES: Final = pa.struct([("number", pa.float64()), ("integer", pa.int64()), ("text", pa.string())])
_MAX_INTEGER: Final = 2**63


def sortable_values(values: list[Any]) -> pa.Array:
    """Return Python values as scores; None, NaN and what is neither number nor text is no score."""
    return pa.array([None if value is None else _sortable_value(value) for value in values], SCORES)


def _sortable_value(value: Any) -> tuple[float | None, int | None, str | None] | None:
    if isinstance(value, str):
        return None, None, value
    if not isinstance(value, (int, float)) or value != value:
        return None
    try:
        number = float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf"), 0, None
    is_integer = value == number if isinstance(value, int) and abs(value) < 2**53 else number.is_integer()
    return number, int(value) if is_integer and abs(value) < _MAX_INTEGER else 0, None


def sortable_column(column: pa.Array) -> pa.Array:
    """Return a column of any type that has an order as scores."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), SCORES)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return _scores(None, None, column.cast(pa.string()), column)
    if pa.types.is_temporal(kind):
        return _integers(_microseconds(column), column)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return _integers(column.cast(pa.int64()), column)
    if pa.types.is_boolean(kind):
        return _integers(column.cast(pa.int8()).cast(pa.int64()), column)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or kind == pa.uint64():
        return _floats(column.cast(pa.float32() if pa.types.is_float16(kind) else pa.float64(), safe=False))
    raise DataError(f"`keep` orders by a column that cannot be sorted: {kind}", hint="use a number, text or date")


def _microseconds(column: pa.Array) -> pa.Array:
    """Bring every unit of time to one scale."""
    kind = column.type
    if pa.types.is_date(kind):
        column = column.cast(pa.timestamp("us"))
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz), safe=False)
    elif pa.types.is_time(kind):
        column = column.cast(pa.time64("us"), safe=False)
    elif pa.types.is_duration(kind):
        column = column.cast(pa.duration("us"), safe=False)
    else:
        raise DataError(f"`keep` orders by a column that cannot be sorted: {kind}", hint="use a number, text or date")
    return column.cast(pa.int64())


def _integers(integers: pa.Array, column: pa.Array) -> pa.Array:
    return _scores(integers.cast(pa.float64(), safe=False), integers, None, column)


def _floats(numbers: pa.Array) -> pa.Array:
    numbers = numbers.cast(pa.float64())
    numbers = pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
    values = numbers.fill_null(0.5).to_numpy(zero_copy_only=False)
    is_integer = (np.floor(values) == values) & (np.abs(values) < _MAX_INTEGER)
    integers = np.where(is_integer, values, 0).astype(np.int64)
    return _scores(numbers, pa.array(integers), None, numbers)


def _scores(number: pa.Array | None, integer: pa.Array | None, text: pa.Array | None, column: pa.Array) -> pa.Array:
    given = zip((number, integer, text), SCORES, strict=True)
    parts = [pa.nulls(len(column), field.type) if part is None else part for part, field in given]
    return pa.StructArray.from_arrays(parts, fields=list(SCORES), mask=column.is_null())
