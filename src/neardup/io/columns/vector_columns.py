"""Vectors of numbers or bits: converts Arrow columns of lists to the contents that vector measures take.

Numbers become 64-bit floats, so that they are compared exactly as given. Bits become 64-bit words,
preceded by one word with their number.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.config import Config
from neardup.config.distances import LARGEST_NUMBER
from neardup.errors import DataError
from neardup.io.columns.column_checks import is_bytes, is_list, is_valid, list_lengths, storage

VECTOR_COLUMNS: Final = ("vector", "embedding")
_WORD_BYTES: Final = 8
Reasons = dict[int, str]


class VectorContents(NamedTuple):
    """Contents as large_binary, empty for rejected rows, and the dimension of the others."""

    contents: pa.Array
    reasons: Reasons
    dimension: int | None


def vector_contents(column: pa.Array, config: Config) -> VectorContents:
    """Convert a column of vectors to contents; reject those that differ in dimension from the first or the setting."""
    column = storage(column)
    reasons: Reasons = dict.fromkeys(np.flatnonzero(~is_valid(column)).tolist(), "vector is null")
    values: npt.NDArray[Any]
    if config.packed:
        values, lengths = _bytes(column, reasons)
        dimensions = 8 * lengths
    else:
        values, lengths = _numbers(column, reasons)
        dimensions = lengths
    _reject_values(values, lengths, config, reasons)
    dimension = config.dimension or _first_usable(dimensions, reasons)
    what = "bits" if config.measure == "hamming" else "numbers"
    for row in np.flatnonzero(dimensions != dimension).tolist():
        reasons.setdefault(row, f"vector has {int(dimensions[row])} {what}, not {dimension}")

    is_usable = np.ones(len(column), np.bool_)
    is_usable[list(reasons)] = False
    if is_usable.all():
        rows = values
    else:
        rows = values[np.repeat(is_usable, lengths)]
    if rows.size:
        rows = rows.reshape(int(is_usable.sum()), -1)
    else:
        rows = np.empty((0, 0))
    words: npt.NDArray[Any]
    if config.measure == "hamming":
        words = _bit_words(rows, dimension, config)
    else:
        words = rows + 0.0  # -0.0 becomes 0.0
    return VectorContents(_contents(words, is_usable), reasons, dimension or None)


def as_column(array: npt.NDArray[Any]) -> pa.Array:
    """Return a matrix as a column of vectors, one per row, without a copy if its type allows."""
    if array.dtype.kind not in "fiub":
        raise DataError(
            f"`source` must be an array of numbers or bits, got the type {array.dtype}",
            hint="convert it with array.astype('float32')",
        )
    if array.dtype.itemsize <= _WORD_BYTES:
        plain = array.dtype.newbyteorder("=")
    else:
        plain = np.dtype(np.float64)
    flat = np.ascontiguousarray(array, plain).reshape(-1)
    if flat.dtype == np.bool_:
        flat = flat.view(np.uint8)
    if not array.shape[1]:
        raise DataError(f"`source` must have at least one number in a row, got shape {array.shape}")
    if isinstance(array, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(array).reshape(-1)
    else:
        mask = None
    return pa.FixedSizeListArray.from_arrays(pa.array(flat, mask=mask), array.shape[1])


def unmasked(value: Any) -> Any:
    """Return a masked array as a list with None for masked entries; Arrow would read the values under the mask."""
    if isinstance(value, np.ma.MaskedArray):
        return value.tolist()
    return value


def rows_as_column(rows: list[Any]) -> tuple[pa.Array, Reasons]:
    """Convert vectors given as Python values to a column; also return the reason for each invalid one."""
    rows = list(map(unmasked, rows))
    try:
        column = pa.array(rows)
        if is_list(column.type) or pa.types.is_null(column.type) or pa.types.is_binary(column.type):
            return column, {}
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        pass  # some row is at fault; it is located below
    reasons: Reasons = {}
    usable: list[list[float] | None] = []
    for row, value in enumerate(rows):
        try:
            numbers = value if value is None else _as_numbers(value)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            reasons[row] = f"vector is not a list of numbers: {_shown(value)}"
            numbers = None
        usable.append(numbers)
    return pa.array(usable, pa.large_list(pa.float64())), reasons


def _as_numbers(value: Any) -> list[float]:
    numbers = pa.array(list(value))
    if isinstance(value, (str, bytes)) or not _is_numeric(numbers.type):
        raise TypeError
    cast: list[float] = numbers.cast(pa.float64(), safe=False).to_pylist()
    return cast


def _shown(value: Any) -> str:
    text = repr(value)
    if len(text) > 40:
        return f"{text[:37]}..."
    return text


def _bytes(
    column: pa.Array, reasons: Reasons
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """The bytes of each row, from a column of bytes or of lists of them."""
    if is_bytes(column.type):
        column = column.cast(pa.large_binary())
        lengths = pc.binary_length(column).fill_null(0).to_numpy().astype(np.int64)
        joined = b"".join(value for value in column.to_pylist() if value is not None)
        return np.frombuffer(joined, np.uint8), lengths
    values, lengths = _numbers(column, reasons)
    rows = np.repeat(np.arange(len(column)), lengths)
    is_byte = (values >= 0) & (values <= 255) & (values == np.floor(values))
    for at in np.flatnonzero(~is_byte).tolist():
        reason = f"{values[at]:g} is not a byte: packed bits are whole numbers from 0 to 255"
        reasons.setdefault(int(rows[at]), reason)
    return np.where(is_byte, values, 0).astype(np.uint8), lengths


def _numbers(
    column: pa.Array, reasons: Reasons
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """All numbers concatenated, NaN for a null, and how many each row has."""
    kind = column.type
    flat = storage(column.flatten()) if is_list(kind) else None
    if flat is None or not _is_numeric(flat.type):
        hint = "; pass packed to read it as bits" if is_bytes(kind) else ""
        for row in np.flatnonzero(is_valid(column)).tolist():
            reasons.setdefault(row, f"vector is {kind}, not a list of numbers{hint}")
        return np.empty(0), np.zeros(len(column), np.int64)
    lengths = list_lengths(column)
    if pa.types.is_float16(flat.type):
        flat = flat.cast(pa.float32())
    values = flat.cast(pa.float64(), safe=False)
    if values.null_count:
        rows = np.repeat(np.arange(len(column)), lengths)
        for at in np.flatnonzero(~is_valid(values)).tolist():
            reasons.setdefault(int(rows[at]), "vector contains a null")
    return values.to_numpy(zero_copy_only=False), lengths


def _is_numeric(kind: pa.DataType) -> bool:
    tests = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_decimal,
        pa.types.is_null,
    )
    return any(test(kind) for test in tests)


def _reject_values(
    values: npt.NDArray[Any], lengths: npt.NDArray[np.int64], config: Config, reasons: Reasons
) -> None:
    """Reject empty vectors, zero vectors, NaN or infinite numbers, and bits other than 0 and 1."""
    for row in np.flatnonzero(lengths == 0).tolist():
        reasons.setdefault(row, "vector is empty")
    if config.packed:
        return
    if config.measure == "cosine":
        so_far = np.r_[0, np.cumsum(values != 0)]
        ends = np.cumsum(lengths)
        num_nonzero = so_far[ends] - so_far[ends - lengths]
        for row in np.flatnonzero(num_nonzero == 0).tolist():
            reasons.setdefault(row, "vector is zero, so it has no direction")
    is_bit = config.measure == "hamming"
    if is_bit:
        is_good = (values == 0) | (values == 1)
    else:
        is_good = np.isfinite(values)
    if config.measure == "euclidean":
        is_good &= np.abs(values) <= LARGEST_NUMBER
    bad = np.flatnonzero(~is_good)
    if not bad.size:
        return
    ends = np.cumsum(lengths)
    rows = np.searchsorted(ends, bad, side="right")
    for row, at in zip(rows.tolist(), bad.tolist(), strict=True):
        position = at - int(ends[row] - lengths[row]) + 1
        wrong = _wrong(values[at], is_bit=is_bit)
        reasons.setdefault(row, f"element {position} of the vector is {wrong}")


def _wrong(value: float, *, is_bit: bool) -> str:
    if is_bit:
        return f"{value:g}, neither 0 nor 1"
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "infinite"
    return f"{value:g}, beyond {LARGEST_NUMBER:g}, where squares overflow"


def _first_usable(dimensions: npt.NDArray[np.int64], reasons: Reasons) -> int:
    for row, dimension in enumerate(dimensions.tolist()):
        if row not in reasons:
            return int(dimension)
    return 0


def _bit_words(rows: npt.NDArray[Any], dimension: int, config: Config) -> npt.NDArray[np.uint64]:
    """Pack the bits of every row into words, preceded by a word with their number."""
    if config.packed:
        packed = rows
    else:
        packed = np.packbits(rows.astype(np.uint8), axis=1)
    num_missing = -packed.shape[1] % _WORD_BYTES
    padded = np.pad(packed, ((0, 0), (_WORD_BYTES, num_missing)))
    words = padded.view(np.uint64)
    words[:, 0] = dimension
    return words


def _contents(words: npt.NDArray[Any], is_usable: npt.NDArray[np.bool_]) -> pa.Array:
    row_bytes = words.shape[1] * _WORD_BYTES if words.size else 0
    sizes = np.where(is_usable, row_bytes, 0)
    offsets: npt.NDArray[np.int64] = np.r_[0, np.cumsum(sizes)].astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(words))]
    return pa.Array.from_buffers(pa.large_binary(), is_usable.size, buffers)
