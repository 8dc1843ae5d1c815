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
    rows = sketches.column("row").to_numpy()
    priority = sketches.column("priority").to_numpy()
    low = sketches.column("digest_low").to_numpy()
    high = sketches.column("digest_high").to_numpy()
    # Most digests are unique: half of the digest finds the rows that may have copies, and only
    # those are sorted.
    linked = np.empty_like(rows)
    smallest = np.empty_like(rows)
    count = bands.star_links(low.view(np.uint64), rows, linked, smallest)
    has_like = np.isin(rows, np.concatenate([linked[:count], smallest[:count]]))
    rows = rows[has_like]
    low = low[has_like]
    high = high[has_like]

    order = np.lexsort((rows, priority[has_like], high, low))
    rows = rows[order]
    low = low[order]
    high = high[order]
    is_copy = np.zeros(rows.size, np.bool_)
    is_copy[1:] = (low[1:] == low[:-1]) & (high[1:] == high[:-1])
    firsts = np.where(is_copy, 0, np.arange(rows.size))
    first_of_class = np.maximum.accumulate(firsts)
    representatives = rows[first_of_class]
    return schema.batch_of(schema.CLASSES, rows[is_copy], representatives[is_copy])


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
    rows = copies.column("row").to_numpy()
    representatives = copies.column("representative").to_numpy()
    num_shingles = copies.column("num_shingles").to_numpy()
    is_led = (representatives < num_references) & (rows >= num_references)
    is_moved = is_led & (num_shingles > 0)
    moved = rows[is_moved]
    _, classes = np.unique(representatives[is_moved], return_inverse=True)
    firsts = np.full(classes.max(initial=-1) + 1, np.iinfo(np.int64).max)
    np.minimum.at(firsts, classes, moved)
    moved_to = firsts[classes]
    is_copy = moved != moved_to
    yield schema.batch_of(
        schema.CLASSES,
        np.concatenate([rows[~is_moved], moved[is_copy]]),
        np.concatenate([representatives[~is_moved], moved_to[is_copy]]),
    )
