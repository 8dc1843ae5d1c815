"""Pairs of documents that share a few shingles, however long the rest of the two is: candidates for shared passages."""

from __future__ import annotations

import threading
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.kernels import sharing as kernel
from neardup.kernels.similarity import Sets
from neardup.search.containment import as_one_row
from neardup.search.inverted_index import I64, Compared, InvertedIndex

# Initial capacity for pairs; if a batch has more, it is searched again with room for all of them.
_ROOM: Final = 1 << 14


class SharingLimits(NamedTuple):
    """The shingles that a pair shares at least, and the documents of a shingle that count as its first ones."""

    least: int
    most: int


class SharingIndex:
    """An inverted index of all documents, which finds the earlier ones that share shingles with a given one."""

    def __init__(
        self, rows: I64, groups: I64, sets: Sets, *, num_references: int, limits: SharingLimits
    ) -> None:
        self._rows = rows
        self._num_references = num_references
        self._first_own = int(np.searchsorted(rows, num_references))
        self._limits = limits
        index = InvertedIndex(Compared(sets, groups))
        unread = np.empty(0)
        self._docs = index.bags._replace(weights=unread, totals=unread)
        self._postings = index.postings._replace(keys=np.empty(0, np.uint64), weights=unread)
        self._walks = index.walks()._replace(weights=unread)
        self._sizes = np.diff(index.bags.ends)
        self._scratches = threading.local()

    def find_sharing(self, batch: pa.RecordBatch, *, only_against: bool = False) -> pa.RecordBatch:
        """Find the earlier documents that share shingles with those of a batch, as schema.CONTAINMENT_BATCHES.

        With `only_against`, only pairs of a reference document and an input document.
        """
        needles = np.searchsorted(self._rows, batch.column("row").to_numpy())
        found = np.empty((_ROOM, 3), np.int64)
        while True:
            count, compared = kernel.find_sharing(
                self._docs,
                self._walks,
                self._postings,
                needles,
                self._first_own,
                tuple(self._limits),
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
        if not hasattr(self._scratches, "counts"):
            num_docs = self._rows.size
            self._scratches.counts = np.zeros(num_docs, np.int64), np.zeros(num_docs, np.int64)
        scratch: tuple[I64, I64] = self._scratches.counts
        return scratch

    def _pairs(self, found: I64) -> pa.RecordBatch:
        first = found[:, 0]
        second = found[:, 1]
        shared = found[:, 2]
        union = self._sizes[first] + self._sizes[second] - shared
        return schema.batch_of(
            schema.CONTAINMENT_PAIRS,
            *(self._rows[first], self._rows[second], shared / union),
            *(shared / self._sizes[first], shared / self._sizes[second]),
        )
