"""Stage 2 of 6: group documents with equal shingle sets into classes; only the representative continues."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from neardup import schema
from neardup.kernels import bands


def collapse(sketches: pa.RecordBatch) -> pa.RecordBatch:
    """Return the representative of every copy: the member of its class with the best keep priority, ties by row.

    Representatives and documents without a copy have no row in the result.
    """
    rows, priority, low, high = (
        sketches.column(name).to_numpy()
        for name in ("row", "priority", "digest_low", "digest_high")
    )
    # Most digests are unique: half of the digest finds the rows that may have copies, and only
    # those are sorted.
    linked = np.empty_like(rows)
    smallest = np.empty_like(rows)
    count = bands.star_links(low.view(np.uint64), rows, linked, smallest)
    has_like = np.isin(rows, np.concatenate([linked[:count], smallest[:count]]))
    rows, priority, low, high = (column[has_like] for column in (rows, priority, low, high))
    order = np.lexsort((rows, priority, high, low))
    low, high = low[order], high[order]
    is_copy = np.zeros(rows.size, np.bool_)
    is_copy[1:] = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
    first_of_class = np.maximum.accumulate(np.where(is_copy, 0, np.arange(rows.size)))
    ordered = rows[order]
    return pa.record_batch(
        [pa.array(ordered[is_copy]), pa.array(ordered[first_of_class[is_copy]])],
        schema=schema.CLASSES,
    )


def separate(
    copies: pa.Table, verified: pa.Table | None, *, num_references: int
) -> Iterator[pa.RecordBatch]:
    """Split classes led by a reference document: the first input document of each becomes a representative itself.

    Reference documents (rows below `num_references`) are not compared with each other, so none of
    them can represent an input document where every pair counts. `copies` holds whole classes, with
    the num_shingles of their representatives; documents without shingles are never compared, so
    their classes stay whole.
    """
    del verified
    rows, representatives, num_shingles = (
        copies.column(name).to_numpy() for name in ("row", "representative", "num_shingles")
    )
    is_moved = (representatives < num_references) & (rows >= num_references) & (num_shingles > 0)
    moved = rows[is_moved]
    _, classes = np.unique(representatives[is_moved], return_inverse=True)
    firsts = np.full(classes.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(firsts, classes, moved)
    is_copy = moved != firsts[classes]
    columns = [
        np.concatenate([rows[~is_moved], moved[is_copy]]),
        np.concatenate([representatives[~is_moved], firsts[classes[is_copy]]]),
    ]
    yield pa.record_batch([pa.array(column) for column in columns], schema=schema.CLASSES)
