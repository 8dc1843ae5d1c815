"""The scores for `keep`, in columns that sort the same for every file and batch."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import StartOverError

# A number as a double plus the remainder that the double cannot hold (integers above 2**53), or a
# text.
SCORES: Final = pa.struct([("number", pa.float64()), ("rest", pa.int64()), ("text", pa.string())])
_FAR: Final = 2**116
_UNITS: Final = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_DAY: Final = 86_400 * 10**9


class UnsortableError(StartOverError):
    """The values of a column have no order."""


def sortable_values(values: list[Any]) -> pa.Array:
    """Return Python values as scores; None, NaN and values that are neither numbers nor texts are missing scores."""
    return pa.array(map(_sortable_value, values), SCORES)


def _sortable_value(value: Any) -> tuple[float | None, int | None, str | None] | None:
    if isinstance(value, str):
        return None, None, value
    if not isinstance(value, (int, float)) or value != value:
        return None
    try:
        number = float(value)
    except OverflowError:
        infinite = math.inf if value > 0 else -math.inf
        return infinite, 0, None
    # Beyond 2**116 the remainder cannot express the distance from a double.
    if isinstance(value, int) and abs(value) < _FAR:
        rest = int(value) - int(number)
    else:
        rest = 0
    return number, rest, None


def sortable_column(column: pa.Array, name: str = "it") -> pa.Array:
    """Return a column of any type that has an order as scores; ordered categories rank by their position."""
    if pa.types.is_dictionary(column.type) and column.type.ordered:
        return _integers(column.indices)
    if pa.types.is_dictionary(column.type):
        return sortable_column(column.dictionary, name).take(column.indices)
    kind = column.type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), SCORES)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return _scores(None, None, column.cast(pa.string()), column)
    if pa.types.is_boolean(kind):
        return _integers(column.cast(pa.int8()))
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return _integers(column)
    if pa.types.is_floating(kind):
        return _floats(column)
    if (
        pa.types.is_date(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_time(kind)
        or pa.types.is_duration(kind)
    ):
        return sortable_values(_nanoseconds(column))
    if pa.types.is_decimal(kind) or kind == pa.uint64():
        # Rare, so converted one by one: a double would round them.
        return sortable_values(list(map(_plain_number, column.to_pylist())))
    raise UnsortableError(
        f"`keep` orders by {name!r}, which cannot be sorted: {kind}",
        hint="use a number, text or date",
    )


def _plain_number(value: Any) -> int | float | None:
    if value is None:
        return None
    if value == value.__trunc__():
        return int(value)
    return float(value)


def _nanoseconds(column: pa.Array) -> list[int | None]:
    """Convert every unit of time to nanoseconds, as integers of any size."""
    kind = column.type
    if kind == pa.date32():
        unit = _DAY
    elif kind == pa.date64():
        unit = _UNITS["ms"]
    else:
        unit = _UNITS[kind.unit]
    integers = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return [None if value is None else value * unit for value in integers.to_pylist()]


def _integers(column: pa.Array) -> pa.Array:
    integers = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    numbers = integers.astype(np.float64)
    # The largest integers round to the double 2**63, which does not fit in a signed 64-bit integer.
    is_above = numbers >= 2.0**63
    rounded = np.where(is_above, 0, numbers).astype(np.int64)
    rest = np.where(is_above, integers - (2**63 - 1) - 1, integers - rounded)
    return _scores(pa.array(numbers), pa.array(rest), None, column)


def _floats(column: pa.Array) -> pa.Array:
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    numbers = column.cast(pa.float64())
    numbers = pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
    no_rest = pa.array(np.zeros(len(column), np.int64))
    return _scores(numbers, no_rest, None, numbers)


def _scores(
    number: pa.Array | None, rest: pa.Array | None, text: pa.Array | None, column: pa.Array
) -> pa.Array:
    parts = []
    for part, field in zip((number, rest, text), SCORES, strict=True):
        parts.append(pa.nulls(len(column), field.type) if part is None else part)
    return pa.StructArray.from_arrays(parts, fields=list(SCORES), mask=column.is_null())
