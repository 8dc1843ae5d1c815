"""Groups of rows: by key range, or from sorted batches split at group boundaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from neardup import schema as schemas

# 2**64 divided by the golden ratio. The keys of postings begin with a count, so most of them share
# their top bits: of 16 ranges, four held nearly everything.
_MIXER: Final = np.uint64(0x9E3779B97F4A7C15)


def in_range(
    batches: Iterable[pa.RecordBatch], column: str, number: int, ranges: int
) -> Iterator[pa.RecordBatch]:
    """Filter the rows whose mixed hash in `column` falls in the given one of `ranges` equal ranges."""
    if ranges == 1:
        yield from batches
        return
    shift = np.uint64(64 - ranges.bit_length() + 1)
    for batch in batches:
        hashes = batch.column(column).to_numpy().view(np.uint64)
        at = np.flatnonzero((hashes * _MIXER) >> shift == np.uint64(number))
        # NumPy takes numbers in a quarter of the time that Arrow filters them.
        yield pa.record_batch(
            [pa.array(values.to_numpy()[at]) for values in batch.columns], schema=batch.schema
        )


def whole_groups(batches: Iterable[pa.RecordBatch], by: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield sorted batches that end at a group boundary: the last group of a batch waits until it is complete."""
    collected: list[pa.RecordBatch] = []
    for batch in filter(len, batches):
        start = _last_group(batch, by)
        if collected and (start or _key(collected[0], by) != _key(batch, by)):
            yield schemas.one_batch([*collected, batch.slice(0, start)], batch.schema)
            collected = []
        elif start:
            yield batch.slice(0, start)
        collected.append(batch.slice(start))
    if collected:
        yield schemas.one_batch(collected, collected[0].schema)


def _last_group(batch: pa.RecordBatch, by: Sequence[str]) -> int:
    """Return the position where the last group of a batch begins."""
    is_last = np.ones(batch.num_rows, np.bool_)
    for name in by:
        values = batch.column(name).to_numpy()
        is_last &= values == values[-1]
    return int(np.argmax(is_last))


def headed_groups(batches: Iterable[pa.RecordBatch], by: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Prepend the first row of a group that is split between two batches to the second batch."""
    first: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if first is not None and _key(first, by) == _key(batch, by):
            batch = schemas.one_batch([first, batch], batch.schema)
        yield batch
        first = batch.slice(_last_group(batch, by), 1)


def _key(batch: pa.RecordBatch, by: Sequence[str]) -> tuple[Any, ...]:
    return tuple(batch.column(name)[0].as_py() for name in by)


def split_groups(batches: Iterable[pa.RecordBatch], by: str) -> Iterator[pa.Table]:
    """Yield one table per group; the rows of a group must be contiguous."""
    collected: list[pa.RecordBatch] = []
    for batch in batches:
        if not batch.num_rows:
            continue
        for start, stop in group_bounds(batch, by):
            piece = batch.slice(start, stop - start)
            if collected and collected[0].column(by)[0] != piece.column(by)[0]:
                yield pa.Table.from_batches(collected)
                collected = []
            collected.append(piece)
    if collected:
        yield pa.Table.from_batches(collected)


def group_bounds(batch: pa.RecordBatch, by: str) -> list[tuple[int, int]]:
    """Return the start and the end of every group of a batch."""
    values = batch.column(by).to_numpy()
    cuts = np.flatnonzero(np.r_[True, values[1:] != values[:-1], True]).tolist()
    return list(pairwise(cuts))
