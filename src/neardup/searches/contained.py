"""Which reference documents a document contains, exactly; memory grows with the reference documents alone."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup import schema
from neardup.kernels import containers as kernel
from neardup.kernels.similarity import Sets
from neardup.measures import jaccard
from neardup.searches.audit_sample import build_index, find_candidates, least_shared, nothing_seen, pick
from neardup.searches.set_index import I64


class Contained:
    """An inverted index of reference documents, which finds those that the documents of a batch contain."""

    def __init__(self, rows: I64, sets: Sets, *, threshold: float) -> None:
        """Take the rows of the reference documents, ascending, and their sets; shingles are salted by group."""
        self._rows, self._threshold = rows, threshold
        self._sets = jaccard.raw_sets(*sets)
        # Shingles are salted by group.
        self._index = build_index(self._sets, *least_shared(self._sets, threshold), np.zeros(rows.size, np.int64))

    def find(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Replace documents by the pairs in which they contain a reference document, as schema.CONTAINERS."""
        lists = batch.column("shingles")
        docs = Sets(lists.flatten().to_numpy().view(np.uint64), np.r_[0, np.cumsum(lists.value_lengths().to_numpy())])
        no_groups = np.zeros(batch.num_rows, np.int64)
        candidates = find_candidates(self._index, docs, no_groups, 0, nothing_seen(self._index))
        places, at = np.unique(candidates[:, 0], return_inverse=True)
        own, shared = jaccard.raw_sets(*pick(*docs, places)), np.empty(candidates.shape[0], np.int64)
        pairs = np.stack([at.reshape(-1), candidates[:, 1]], axis=1)
        kernel.count_shared(own, self._sets, pairs, self._threshold, shared)
        pairs, shared = pairs[shared >= 0], shared[shared >= 0]
        share, own_share = shared / np.diff(self._sets.ends)[pairs[:, 1]], shared / np.diff(own.ends)[pairs[:, 0]]
        rows = batch.column("row").to_numpy()[places[pairs[:, 0]]]
        columns = [self._rows[pairs[:, 1]], rows, share, share, own_share]
        found = pa.record_batch([pa.array(column) for column in columns], schema=schema.CONTAINED)
        listed = pa.LargeListArray.from_arrays([0, found.num_rows], found.to_struct_array())
        columns = [pa.array([candidates.shape[0]]), pa.array([found.num_rows]), listed]
        return pa.record_batch(columns, schema=schema.CONTAINERS)


def choose_best(pairs: pa.RecordBatch) -> pa.RecordBatch:
    """Choose for every document the contained one with the largest share, ties by row, as schema.CONTAINING."""
    reference, rows, share, _, own_share = (pairs.column(name).to_numpy() for name in schema.CONTAINED.names)
    order = np.lexsort((reference, -share, rows))
    is_first = np.r_[True, rows[order][1:] != rows[order][:-1]] if rows.size else np.empty(0, np.bool_)
    best = order[is_first]
    columns = [rows[best], reference[best], share[best], own_share[best], share[best]]
    return pa.record_batch([pa.array(column) for column in columns], schema=schema.CONTAINING)
