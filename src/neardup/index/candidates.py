"""The documents of a segment that share a bucket with a query and pass all filters, the cheapest filter first.

A filter only omits documents that the comparison would reject, so it does not change an answer.
Pages of one template share buckets by the ten thousand although they are not similar; most of them
have similar signatures too.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from neardup.index.segment import Segment
from neardup.index.sketches import Sketches, damaged
from neardup.kernels import bitmaps, lookup
from neardup.kernels.similarity import Sets
from neardup.measures.base import I64

# Pairs that are looked up before they are filtered (16 MB), so that a batch of queries stays within
# memory.
_PAIRS_AT_ONCE: Final = 1 << 20
# The most documents whose signatures are requested before they are compared (16 MB at 128 slots).
_SIGNATURES_AT_ONCE: Final = 1 << 15
# With fewer documents than this, writing the bitmaps of a query takes as long as comparing it with
# them.
_MIN_FOR_BITMAPS: Final = 64


class CandidateSearch:
    """Finds the candidates of queries in one segment.

    threshold: the least similarity of sets, 0 where sizes do not matter; request_pages: whether to
    request pages before they are read.
    """

    def __init__(
        self,
        segment: Segment,
        asked: Sketches,
        threshold: float,
        min_agreement: int,
        *,
        request_pages: bool = False,
    ) -> None:
        self._segment = segment
        self._asked = asked
        self._threshold = threshold
        self._min_agreement = min_agreement
        self._request_pages = request_pages

    def find(self) -> tuple[I64, I64]:
        """Return queries and documents."""
        queries, docs, begin = self._look_up(0)
        queries, docs = self._keep_similar(queries, docs)
        if begin >= self._asked.sizes.size:
            return queries, docs
        parts = [(queries, docs)]
        while begin < self._asked.sizes.size:
            queries, docs, begin = self._look_up(begin)
            parts.append(self._keep_similar(queries, docs))
        queries, docs = (np.concatenate(column) for column in zip(*parts, strict=True))
        return queries, docs

    def _keep_similar(self, queries: I64, docs: I64) -> tuple[I64, I64]:
        """Omit documents that a filter rejects."""
        if docs.size >= _MIN_FOR_BITMAPS:
            queries, docs = self._keep_possible(queries, docs)
        if docs.size:
            queries, docs = self._keep_agreeing(queries, docs)
        return queries, docs

    def _look_up(self, begin: int) -> tuple[I64, I64, int]:
        """Return queries and documents that share a bucket, and the query to go on with."""
        stored = self._segment.arrays
        queries, docs, begin, is_sound = lookup.look_up(
            self._asked.keys,
            self._asked.sizes,
            stored["keys"],
            stored["docs"],
            stored["directory"],
            stored["sizes"],
            self._threshold,
            begin,
            _PAIRS_AT_ONCE,
        )
        if not is_sound:
            raise damaged(f"a posting of {self._segment.path} points to no document")
        return queries, docs, begin

    def _keep_possible(self, queries: I64, docs: I64) -> tuple[I64, I64]:
        """Omit documents whose bitmaps differ too much, for queries that share buckets with many documents."""
        stored = self._segment.arrays
        items = self._asked.items
        if "bitmaps" not in stored or not isinstance(items, Sets):
            return queries, docs
        ends = np.cumsum(np.bincount(queries, minlength=self._asked.sizes.size))
        starts = np.r_[0, ends[:-1]]
        is_kept = np.ones(docs.size, np.bool_)
        for query in np.flatnonzero(ends - starts >= _MIN_FOR_BITMAPS).tolist():
            part = slice(starts[query], ends[query])
            if self._request_pages:
                self._segment.request_bitmaps(docs[part])
            shingles = items.shingles[items.ends[query] : items.ends[query + 1]]
            bitmaps.mark_possible(
                shingles,
                stored["ends"],
                stored["bitmaps"],
                docs[part],
                self._threshold,
                is_kept[part],
            )
        return queries[is_kept], docs[is_kept]

    def _keep_agreeing(self, queries: I64, docs: I64) -> tuple[I64, I64]:
        """Omit documents whose signatures do not agree enough."""
        if not self._min_agreement or not self._segment.layout.has_slots:
            return queries, docs
        is_agreeing = np.empty(docs.size, np.bool_)
        signatures = self._segment.arrays["signatures"]
        for first in range(0, docs.size, _SIGNATURES_AT_ONCE):
            part = slice(first, first + _SIGNATURES_AT_ONCE)
            if self._request_pages:
                self._segment.request("signatures", docs[part], docs[part] + 1)
            lookup.mark_agreeing(
                self._asked.signatures,
                signatures,
                queries[part],
                docs[part],
                self._min_agreement,
                is_agreeing[part],
            )
        return queries[is_agreeing], docs[is_agreeing]
