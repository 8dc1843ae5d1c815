"""Stage 3 of 6: link documents that share a bucket or, in the exact join, a prefix shingle."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup import schema
from neardup.kernels import bands
from neardup.kernels import lists as list_kernel
from neardup.kernels import prefix as prefix_kernel


def link(band: pa.RecordBatch) -> pa.RecordBatch:
    """Turn the rows and keys of a band into one star per bucket; a bucket with a single document has no links."""
    rows, keys = (column.to_numpy() for column in band.columns)
    linked = np.empty_like(rows)
    smallest = np.empty_like(rows)
    count = bands.star_links(keys.view(np.uint64), rows, linked, smallest)
    return schema.batch_of(schema.LINKS, linked[:count], smallest[:count])


def link_prefixes(postings: pa.RecordBatch, threshold: float) -> pa.RecordBatch:
    """Link documents that share a prefix shingle, unless their sizes or its positions rule the pair out."""
    # Copies, because Numba compiles the kernel a second time for read-only arrays.
    rows = postings.column("row").to_numpy().copy()
    sizes = postings.column("num_shingles").to_numpy().copy()
    positions = postings.column("place").to_numpy().copy()
    keys = postings.column("key").to_numpy().copy()
    lists = np.empty_like(rows)
    docs = np.empty_like(rows)
    list_kernel.number_lists(keys.view(np.uint64), lists)
    parents = np.arange(list_kernel.number_lists(rows.view(np.uint64), docs))
    prefix_kernel.join_lists(lists, docs, rows, sizes, positions, threshold, parents)
    row_of = np.empty_like(parents)
    row_of[docs] = rows
    is_linked = parents != np.arange(parents.size)
    return schema.batch_of(schema.LINKS, row_of[is_linked], row_of[parents[is_linked]])
