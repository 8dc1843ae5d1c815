"""Matrices with one row per document and one column per item: arrays of bool or weights, SciPy sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.io.columns.vector_columns import as_column

_NUMBERS = "biuf"


def is_matrix(source: Any) -> bool:
    """Whether a source is an array with rows and columns, or a sparse matrix; checked without importing SciPy."""
    return (isinstance(source, np.ndarray) and source.ndim == 2) or _is_sparse(source)


def are_signatures(rows: list[Any], num_perm: int) -> bool:
    """Whether rows look like signatures: arrays of as many slots each."""
    return bool(rows) and all(
        isinstance(row, np.ndarray) and row.dtype == np.uint32 and row.shape == (num_perm,)
        for row in rows
    )


def signatures_error(argument: str) -> DataError:
    """Return the error for signatures in place of documents."""
    return DataError(
        f"`{argument}` is an array of uint32, as signatures are, which cannot be compared as documents",
        hint="pass the documents themselves; neardup.estimate(a, b) compares two signatures, and "
        ".astype('int64') makes numbers of items of them",
    )


def item_column(matrix: Any, config: Config) -> pa.Array:
    """Return a matrix as a column of items, named by column number, with weights if the measure uses them."""
    is_weighted = config.measure == "weighted"
    if config.multiset:
        raise ConfigError(
            "`multiset` counts items that repeat in a list, but `items` is a matrix",
            hint="measure='weighted' compares a matrix of counts",
        )
    if matrix.dtype.kind not in _NUMBERS:
        raise DataError(f"`items` must be a matrix of bool or numbers, got the type {matrix.dtype}")
    if _is_sparse(matrix):
        return _sparse_column(matrix, is_weighted=is_weighted)
    if is_weighted:
        return as_column(matrix)
    if isinstance(matrix, np.ma.MaskedArray) and np.ma.getmaskarray(matrix).any():
        raise DataError(
            "`items` has masked entries, but an item must be present or absent",
            hint="pass matrix.filled()",
        )
    if matrix.dtype.kind == "b":
        rows, columns = np.nonzero(matrix)
        return _lists(np.bincount(rows, minlength=matrix.shape[0]), pa.array(columns))
    return _item_numbers(matrix)


def _item_numbers(matrix: npt.NDArray[Any]) -> pa.Array:
    """Read whole numbers as item numbers, unless they look like a matrix of 0 and 1."""
    if matrix.dtype.kind == "f":
        raise DataError(
            f"`items` must be a matrix of bool, or of weights with measure='weighted', got {matrix.dtype}",
            hint="matrix != 0 makes every nonzero entry an item of its row",
        )
    if matrix.size and matrix.min() >= 0 and matrix.max() <= 1:
        raise DataError(
            f"`items` is a matrix of 0 and 1 of the type {matrix.dtype}, which would be read as item numbers",
            hint="pass matrix.astype(bool): one row per document, True where it has the item of that column",
        )
    if matrix.dtype == np.uint32:
        raise signatures_error("items")
    num_rows, num_columns = matrix.shape
    return _lists(np.full(num_rows, num_columns), pa.array(matrix.reshape(-1)))


def _is_sparse(source: Any) -> bool:
    return (
        hasattr(source, "tocsr")
        and hasattr(source, "nnz")
        and len(getattr(source, "shape", ())) == 2
    )


def _sparse_column(matrix: Any, *, is_weighted: bool) -> pa.Array:
    rows = matrix.tocsr(copy=True)  # summing duplicates changes a matrix in place
    rows.sum_duplicates()
    values = np.asarray(rows.data)
    if not is_weighted and not np.isfinite(values).all():
        raise DataError(
            "`items` has entries that are NaN or infinite",
            hint="set them to zero, or leave them out",
        )
    is_there = values != 0
    owners = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))[is_there]
    lengths = np.bincount(owners, minlength=rows.shape[0])
    items = pa.array(np.asarray(rows.indices)[is_there].astype(np.int64))
    if not is_weighted:
        return _lists(lengths, items)
    weights = pa.array(values[is_there].astype(np.float64))
    return _lists(lengths, pa.StructArray.from_arrays([items, weights], ["item", "weight"]))


def _lists(lengths: npt.NDArray[np.int64], values: pa.Array) -> pa.Array:
    offsets = np.r_[0, np.cumsum(lengths)].astype(np.int64)
    return pa.LargeListArray.from_arrays(pa.array(offsets), values)
