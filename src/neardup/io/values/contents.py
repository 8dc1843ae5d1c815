"""What measures compare that is no text: columns of vectors, or of items with weights, as binary contents."""

from __future__ import annotations

import sys

import pyarrow as pa

from neardup.checks import VECTOR_MEASURES
from neardup.config import Config
from neardup.io.values.vector_columns import vector_contents
from neardup.io.values.weights import WEIGHTED_ITEMS, weighted_contents


def column_type(config: Config) -> pa.DataType | None:
    """Return the type of the column that contents are made of, as Python values become it; None for texts."""
    if config.measure in VECTOR_MEASURES:
        return pa.large_list(pa.float64())
    return WEIGHTED_ITEMS if config.measure == "weighted" else None


def content_type(config: Config) -> pa.DataType:
    """Return the type of what documents are compared by, in batches of them."""
    return pa.large_string() if column_type(config) is None else pa.large_binary()


def dimension_of(contents: pa.Array, config: Config) -> int:
    """Return how many numbers or bits the first of some contents has."""
    content = contents[0].as_py()
    return int.from_bytes(content[:8], sys.byteorder) if config.measure == "hamming" else len(content) // 8


def contents_of(column: pa.Array, config: Config) -> tuple[pa.Array, dict[int, str]]:
    """Return the contents of every row, and the reason for each that has none."""
    if config.measure == "weighted":
        return weighted_contents(column, config.seed)
    found = vector_contents(column, config)
    return found.contents, found.reasons
