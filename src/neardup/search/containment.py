"""Containment, exactly: which documents contain others, or reference documents."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.errors import DataError
from neardup.kernels import containment as kernel
from neardup.kernels.similarity import Sets
from neardup.measures import jaccard
from neardup.search.inverted_index import BYTES_A_SHINGLE, I64, Compared, InvertedIndex
from neardup.search.prefix_index import PrefixIndex, pick

# Initial capacity for pairs; if a batch has more, it is searched again with room for all of them.
ROOM: Final = 1 << 14


def collect_sets(batches: Iterable[pa.RecordBatch], room: int) -> tuple[I64, I64, Sets]:
    """Load all sets into memory: rows, groups and shingles; raise if their index exceeds `room` bytes (0: no limit)."""
    rows = []
    groups = []
    shingles = []
    sizes = []
    num_shingles = 0
    for batch in batches:
        rows.append(batch.column("row").to_numpy())
        groups.append(batch.column("group").to_numpy())
        sizes.append(batch.column("num_shingles").to_numpy())
        shingles.append(batch.column("shingles").flatten().to_numpy().view(np.uint64))
        num_shingles += shingles[-1].size
        if room and num_shingles * BYTES_A_SHINGLE > room:
            raise DataError(
                f"containment is found in memory, and the index of these documents exceeds the available "
                f"{room / 1e9:.1f} GB",
                hint="pass a larger `memory`, or fewer documents",
            )
    if not rows:
        none = np.empty(0, np.int64)
        return none, none, Sets(np.empty(0, np.uint64), np.zeros(1, np.int64))
    ends = np.cumsum(np.r_[0, np.concatenate(sizes)], dtype=np.int64)
    sets = Sets(np.concatenate(shingles), ends)
    return np.concatenate(rows), np.concatenate(groups), sets


class ContainmentIndex:
    """An inverted index of all documents with shingles, which finds the documents that contain a given one."""

    def __init__(
        self, rows: I64, groups: I64, sets: Sets, *, num_references: int, threshold: float
    ) -> None:
        self._rows = rows
        self._threshold = threshold
        self._num_references = num_references
        self._first_own = int(np.searchsorted(rows, num_references))
        index = InvertedIndex(Compared(sets, groups))
        # Arrays that the kernel does not read are not kept.
        unread = np.empty(0)
        self._docs = index.bags._replace(weights=unread, totals=unread)
        self._postings = index.postings._replace(keys=np.empty(0, np.uint64), weights=unread)
        self._walks = index.walks()._replace(weights=unread)
        self._sizes = np.diff(index.bags.ends)
        self._scratches = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        """Return the index without scratch memory, to send it to another process."""
        return {name: value for name, value in vars(self).items() if name != "_scratches"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _scratches=threading.local())

    def find_containers(
        self, batch: pa.RecordBatch, *, only_against: bool = False
    ) -> pa.RecordBatch:
        """Find the documents that contain those of a batch; return the pairs as schema.CONTAINMENT_BATCHES.

        With `only_against`, only pairs of a reference document and an input document.
        """
        needles = np.searchsorted(self._rows, batch.column("row").to_numpy())
        found = np.empty((ROOM, 3), np.int64)
        count = 0
        compared = 0
        while True:
            count, compared = kernel.find_containers(
                self._docs,
                self._walks,
                self._postings,
                needles,
                self._first_own,
                self._threshold,
                self._scratch(),
                found,
            )
            if count <= found.shape[0]:
                break
            found = np.empty((count, 3), np.int64)
        listed = self._pairs(found[:count])
        if only_against:
            listed = listed.filter(pc.less(listed.column("row_a"), self._num_references))
        return as_one_row(listed, compared)

    def _scratch(self) -> tuple[I64, I64]:
        if not hasattr(self._scratches, "seen"):
            self._scratches.seen = np.zeros(self._rows.size, np.int64), np.zeros(1, np.int64)
        scratch: tuple[I64, I64] = self._scratches.seen
        return scratch

    def _pairs(self, found: I64) -> pa.RecordBatch:
        first = np.minimum(found[:, 0], found[:, 1])
        second = np.maximum(found[:, 0], found[:, 1])
        num_shared = found[:, 2]
        in_second = num_shared / self._sizes[first]
        in_first = num_shared / self._sizes[second]
        larger = np.maximum(in_second, in_first)
        return schema.batch_of(
            schema.CONTAINMENT_PAIRS,
            *(self._rows[first], self._rows[second], larger, in_second, in_first),
        )


class ReferenceIndex:
    """An inverted index of reference documents, which finds those that the documents of a batch contain."""

    def __init__(self, rows: I64, sets: Sets, *, threshold: float) -> None:
        """Take the rows of the reference documents, ascending, and their sets; shingles are salted by group."""
        self._rows = rows
        self._threshold = threshold
        self._sets = jaccard.raw_sets(*sets)
        self._index = PrefixIndex.of(self._sets, threshold, np.zeros(rows.size, np.int64))

    def find_contained(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Replace documents by the pairs in which they contain a reference document, as schema.CONTAINMENT_BATCHES."""
        lists = batch.column("shingles")
        shingles = lists.flatten().to_numpy().view(np.uint64)
        sizes = lists.value_lengths().to_numpy()
        docs = Sets(shingles, np.r_[0, np.cumsum(sizes)])
        no_groups = np.zeros(batch.num_rows, np.int64)
        candidates = self._index.find_candidates(docs, no_groups, 0, self._index.nothing_seen())
        doc_numbers, at = np.unique(candidates[:, 0], return_inverse=True)
        own = jaccard.raw_sets(*pick(*docs, doc_numbers))
        shared = np.empty(candidates.shape[0], np.int64)
        pairs = np.stack([at.reshape(-1), candidates[:, 1]], axis=1)
        kernel.count_shared(own, self._sets, pairs, self._threshold, shared)
        is_contained = shared >= 0
        shared = shared[is_contained]
        doc = pairs[is_contained, 0]
        reference = pairs[is_contained, 1]

        share = shared / np.diff(self._sets.ends)[reference]
        own_share = shared / np.diff(own.ends)[doc]
        rows = batch.column("row").to_numpy()[doc_numbers[doc]]
        found = schema.batch_of(
            schema.CONTAINMENT_PAIRS, self._rows[reference], rows, share, share, own_share
        )
        return as_one_row(found, candidates.shape[0])


def choose_best(pairs: pa.RecordBatch) -> pa.RecordBatch:
    """Choose for every document the contained one with the largest share, ties by row, as CONTAINMENT_SELECTION."""
    reference, rows, share, _, own_share = (
        pairs.column(name).to_numpy() for name in schema.CONTAINMENT_PAIRS.names
    )
    order = np.lexsort((reference, -share, rows))
    rows_in_order = rows[order]
    is_first = np.ones(rows.size, np.bool_)
    is_first[1:] = rows_in_order[1:] != rows_in_order[:-1]
    best = order[is_first]
    return schema.batch_of(
        schema.CONTAINMENT_SELECTION,
        *(rows[best], reference[best], share[best], own_share[best], share[best]),
    )


def as_one_row(pairs: pa.RecordBatch, num_compared: int) -> pa.RecordBatch:
    """Return the pairs of a batch, and how many were compared, as schema.CONTAINMENT_BATCHES."""
    listed = pa.LargeListArray.from_arrays([0, pairs.num_rows], pairs.to_struct_array())
    columns = [pa.array([num_compared]), pa.array([pairs.num_rows]), listed]
    return pa.record_batch(columns, schema=schema.CONTAINMENT_BATCHES)
