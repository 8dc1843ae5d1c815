"""Items with weights: converts Arrow columns of maps, pairs or vectors to the contents that weighted Jaccard takes.

An item is hashed once, here, with the key of the seed; contents are pairs of words, its hash and
its weight as a 64-bit float.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.io.columns.column_checks import is_list, is_valid, list_lengths, storage
from neardup.io.records import ITEM_END
from neardup.kernels import shingle
from neardup.kernels.keys import shingle_key
from neardup.kernels.unicode import load_table

Reasons = dict[int, str]
# Two such sums can be added without overflow.
LARGEST_SUM: Final = 1e300
WEIGHTED_ITEMS: Final = pa.large_list(
    pa.struct([("item", pa.large_string()), ("weight", pa.float64())])
)


def weighted_contents(column: pa.Array, seed: int) -> tuple[pa.Array, Reasons]:
    """Convert a column of maps, of lists of pairs, or of vectors to contents, with the reason for each bad row."""
    column = storage(column)
    if pa.types.is_map(column.type):
        column = column.cast(pa.list_(pa.struct([column.type.key_field, column.type.item_field])))
    if is_list(column.type) and _is_number(storage(column.flatten()).type):
        column = _numbered(column)
    reasons: Reasons = dict.fromkeys(np.flatnonzero(~is_valid(column)).tolist(), "items are null")
    pairs = _pairs(column)
    if pairs is None:
        for row in np.flatnonzero(is_valid(column)).tolist():
            reasons[row] = f"items are {column.type}, not items with weights"
        no_items = np.zeros(len(column), np.int64)
        return _contents(np.empty(0, np.uint64), np.empty(0), no_items), reasons
    items, weights = pairs
    lengths = list_lengths(column)
    rows = np.repeat(np.arange(len(column)), lengths)
    for row, reason in _unusable(items, weights, rows, len(column)):
        reasons.setdefault(row, reason)
    numbers = weights.to_numpy(zero_copy_only=False)
    is_usable = ~np.isin(rows, list(reasons))
    lengths[list(reasons)] = 0
    hashes = _hashes(items.filter(pa.array(is_usable)), seed)
    return _contents(hashes, numbers[is_usable], lengths), reasons


def _unusable(
    items: pa.Array, weights: pa.Array, rows: npt.NDArray[np.int64], num_rows: int
) -> Iterator[tuple[int, str]]:
    """Yield rows that cannot be used, each with a reason; only the first one of a row counts."""
    numbers = weights.to_numpy(zero_copy_only=False)
    is_good = np.isfinite(numbers) & (numbers >= 0) & is_valid(items)
    for at in np.flatnonzero(~is_good).tolist():
        yield int(rows[at]), _reason(items[at].as_py(), weights[at].as_py())
    with np.errstate(over="ignore"):
        totals = np.bincount(rows, numbers, num_rows)
    for row in np.flatnonzero(totals > LARGEST_SUM).tolist():
        yield row, f"weights add up to {totals[row]:g}, more than {LARGEST_SUM:g}"
    holds_end = pc.match_substring(items, ITEM_END).fill_null(False)
    for at in np.flatnonzero(holds_end.to_numpy(zero_copy_only=False)).tolist():
        item = items[at].as_py()
        yield int(rows[at]), f"item {item!r} holds the character {ITEM_END!r}"


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _numbered(column: pa.Array) -> pa.Array:
    """Turn vectors of weights into items, named by their positions; a weight of 0 is not an item."""
    lengths = list_lengths(column)
    weights = storage(column.flatten()).cast(pa.float64(), safe=False)
    rows = np.repeat(np.arange(lengths.size), lengths)
    starts = np.cumsum(lengths) - lengths
    positions = np.arange(rows.size) - np.repeat(starts, lengths)
    is_item = (weights.to_numpy(zero_copy_only=False) != 0) | ~is_valid(weights)
    num_items = np.bincount(rows[is_item], minlength=lengths.size)
    ends = pa.array(np.r_[0, np.cumsum(num_items)].astype(np.int64))
    items = [pa.array(positions[is_item]), weights.filter(pa.array(is_item))]
    pairs = pa.StructArray.from_arrays(items, ["item", "weight"])
    return pa.LargeListArray.from_arrays(ends, pairs, mask=pa.array(~is_valid(column)))


def _pairs(column: pa.Array) -> tuple[pa.Array, pa.Array] | None:
    """All items and all weights, concatenated."""
    kind = column.type
    if not (
        is_list(kind) and pa.types.is_struct(kind.value_type) and kind.value_type.num_fields == 2
    ):
        return None
    items, weights = map(storage, column.flatten().flatten())
    if pa.types.is_nested(items.type) or not _is_number(weights.type):
        return None
    return items.cast(pa.large_string()), weights.cast(pa.float64(), safe=False)


def _reason(item: str | None, weight: float | None) -> str:
    if item is None:
        return "an item is null"
    if weight is None:
        return f"the weight of item {item!r} is null"
    if np.isnan(weight):
        wrong = "NaN"
    elif np.isinf(weight):
        wrong = "infinite"
    else:
        wrong = f"{weight:g}, below 0"
    return f"the weight of item {item!r} is {wrong}"


def _hashes(items: pa.Array, seed: int) -> npt.NDArray[np.uint64]:
    """Hash the bytes of every item."""
    if not len(items):
        return np.empty(0, np.uint64)
    nothing = pa.scalar("", pa.large_string())
    ended = pc.binary_join_element_wise(items, nothing, pa.scalar(ITEM_END, pa.large_string()))
    _, offsets, data = ended.buffers()
    bounds = np.frombuffer(offsets, np.int64)[ended.offset : ended.offset + len(ended) + 1]
    hashes = np.empty(len(ended) + 1, np.uint64)
    ends = np.empty(2, np.int64)
    source = np.frombuffer(data, np.uint8)
    source.flags.writeable = False
    shingle.shingle_items(
        source,
        bounds[[0, -1]].copy(),
        tuple(load_table()),
        1,
        shingle_key(seed),
        False,
        hashes,
        ends,
        np.empty(1, np.bool_),
    )
    return hashes[: ends[-1]]


def _contents(
    hashes: npt.NDArray[np.uint64], weights: npt.NDArray[np.float64], lengths: npt.NDArray[np.int64]
) -> pa.Array:
    words = np.stack([hashes, weights.astype(np.float64).view(np.uint64)], axis=1)
    offsets: npt.NDArray[np.int64] = np.r_[0, np.cumsum(16 * lengths)].astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(words))]
    return pa.Array.from_buffers(pa.large_binary(), lengths.size, buffers)
