"""The keep order: the document of a cluster with the smallest priority is kept, ties by row, for every source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import StartOverError
from neardup.io.columns.scores import SCORES

I64 = npt.NDArray[np.int64]
SORTED: Final = pa.schema([("is_missing", pa.bool_()), *SCORES, ("row", pa.int64())])


def priorities(keep: str, rows: I64, texts: pa.Array | None = None) -> I64:
    """Return the priority of every row; if a column decides, all are 0 until scores are ranked."""
    if keep == "last":
        return -rows
    if keep == "longest":
        lengths: I64 = (
            pc.binary_length(texts).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        )
        return -lengths
    return np.zeros(rows.size, np.int64)


def unsorted(scores: pa.StructArray, rows: I64) -> pa.RecordBatch:
    """Return scores and their rows as SORTED, not sorted yet."""
    number, rest, text = scores.flatten()
    is_missing = pc.and_(pc.is_null(number), pc.is_null(text))
    return pa.record_batch([is_missing, number, rest, text, pa.array(rows)], schema=SORTED)


def sort_keys(keep: str) -> list[tuple[str, str]]:
    """Return the sort keys of scores: the best first, rows without a score last, ties by row."""
    direction = "descending" if keep.startswith("max:") else "ascending"
    return [
        ("is_missing", "ascending"),
        *((field.name, direction) for field in SCORES),
        ("row", "ascending"),
    ]


def rank(batches: Iterable[pa.RecordBatch], num_rows: int, keep: str) -> I64:
    """Return the rank of every row in sorted batches; 0 for rows that are in none."""
    ranks: I64 = np.zeros(num_rows, np.int64)
    next_rank = 0
    has_number = False
    has_text = False
    for batch in batches:
        is_scored = pc.invert(batch.column("is_missing"))
        has_text |= batch.column("text").null_count < batch.num_rows
        has_number |= pc.any(pc.and_(is_scored, pc.is_null(batch.column("text")))).as_py() or False
        ranks[batch.column("row").to_numpy()] = np.arange(next_rank, next_rank + batch.num_rows)
        next_rank += batch.num_rows
    if has_number and has_text:
        raise mixed_kinds(keep)
    return ranks


def mixed_kinds(keep: str) -> StartOverError:
    """Return the error for a column that holds numbers and texts."""
    return StartOverError(
        f"`keep` orders by {keep.partition(':')[2]!r}, which contains both numbers and texts",
        hint="give the column one type",
    )
