"""Binary contents for measures that do not compare texts: vectors, and items with weights."""

from __future__ import annotations

import sys

import pyarrow as pa

from neardup.config import Config
from neardup.config.checks import VECTOR_MEASURES
from neardup.io.columns.vector_columns import vector_contents
from neardup.io.columns.weights import WEIGHTED_ITEMS, weighted_contents


def column_type(config: Config) -> pa.DataType | None:
    """Return the Arrow type for Python values of the contents; None for texts."""
    if config.measure in VECTOR_MEASURES:
        return pa.large_list(pa.float64())
    return WEIGHTED_ITEMS if config.measure == "weighted" else None


def content_type(config: Config) -> pa.DataType:
    """Return the Arrow type of contents in batches of documents."""
    if column_type(config) is None:
        return pa.large_string()
    return pa.large_binary()


def dimension_of(contents: pa.Array, config: Config) -> int:
    """Return the dimension of the first vector: its numbers or bits."""
    content = contents[0].as_py()
    if config.measure == "hamming":
        return int.from_bytes(content[:8], sys.byteorder)
    return len(content) // 8


def contents_of(column: pa.Array, config: Config) -> tuple[pa.Array, dict[int, str]]:
    """Return the contents of every row, and the reason for each unusable row."""
    if config.measure == "weighted":
        return weighted_contents(column, config.seed)
    found = vector_contents(column, config)
    return found.contents, found.reasons
