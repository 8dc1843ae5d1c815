"""Exact k-nearest-neighbour search for every measure, over documents in memory.

Sets are searched by posting lists; everything else by comparing every query with every document,
block by block. Matrix products only select the candidates for the exact comparison, so their
rounding never affects a result.
"""

from __future__ import annotations

import dataclasses
import queue
from collections.abc import Iterator
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from neardup.kernels import neighbours as kernel
from neardup.kernels.similarity import NOBODY, Bits, Points, Sets, Vectors, Weights
from neardup.measures.base import num_docs_of
from neardup.search.inverted_index import F64, I64, Compared, InvertedIndex, as_bags

# Queries per call and documents per block; fixed, so that results do not depend on the number of
# threads.
SPAN: Final = 256
_BLOCK: Final = 4096
# Upper bounds on sums of weights are raised by this factor, because the exact sums are added in
# another order.
_SLACK: Final = 1 + 1e-9
Best = tuple[F64, I64]
_Scratch = tuple[I64, F64, I64, I64]


_ROOM: Final = 32
# Positions of queries and of their neighbours, and the similarities.
Listed = tuple[I64, I64, F64]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class SearchOptions:
    """Return at most k documents per query, each with a similarity above `above`.

    share: what the shared items of two sets are divided by, as the kernel names it.
    block: how many documents a query is compared with at once.
    room: initial capacity for the neighbours of a query in one block, if all are listed.
    """

    k: int
    above: float
    share: int = int(kernel.OF_UNION)
    block: int = _BLOCK
    room: int = _ROOM


class Finder(Protocol):
    """Searches for spans of queries."""

    def find(self, start: int, stop: int) -> Best:
        """Return similarities and positions of the best, one row per query, best first, padded with NOBODY."""

    def find_all(self, start: int, stop: int) -> Listed:
        """Return all documents above the similarity, in any order."""


def finder_for(docs: Compared, queries: Compared | None, options: SearchOptions) -> Finder:
    """Return the finder for the type of items; without queries, every document is a query."""
    kinds: dict[type, Any] = {
        Sets: SetFinder,
        Weights: SetFinder,
        Bits: BitFinder,
        Vectors: VectorFinder,
        Points: PointFinder,
    }
    finder: Finder = kinds[type(docs.items)](docs, queries, options)
    return finder


def _nothing(num_queries: int, k: int, above: float) -> Best:
    return np.full((num_queries, k), above), np.full((num_queries, k), NOBODY)


def own_docs(docs: Compared, queries: Compared | None) -> I64:
    """Return the position of each query among the documents, NOBODY if it is not one of them."""
    if queries is None:
        return np.arange(num_docs_of(docs.items))
    return np.full(num_docs_of(queries.items), NOBODY)


class SetFinder:
    """Finds the nearest sets, weighted or not, by Jaccard or by containment."""

    def __init__(self, docs: Compared, queries: Compared | None, options: SearchOptions) -> None:
        self._options = options
        self._own = own_docs(docs, queries)
        index = InvertedIndex(docs)
        asked = None if queries is None else as_bags(queries)
        self._docs = index.bags
        self._queries = index.bags if asked is None else asked
        self._postings = index.postings
        self._walks = index.walks(asked)
        slack = _SLACK if isinstance(docs.items, Weights) else 1.0
        self._rule = options.share, slack
        self._scratches: queue.SimpleQueue[_Scratch] = queue.SimpleQueue()

    def find(self, start: int, stop: int) -> Best:
        """Answer the queries from start to stop."""
        best = _nothing(stop - start, self._options.k, self._options.above)
        scratch = self._scratch()
        bags = self._queries, self._docs, self._walks, self._postings, self._own
        kernel.nearest_sets(*bags, (start, stop), self._rule, scratch, *best)
        self._scratches.put(scratch)
        return best

    def find_all(self, start: int, stop: int) -> Listed:
        """List the neighbours of the queries from start to stop; retry with a larger buffer if it is too small."""
        room = self._options.room * (stop - start)
        scratch = self._scratch()
        bags = self._queries, self._docs, self._walks, self._postings, self._own
        while True:
            values = np.empty(room)
            ends = np.empty((2, room), np.int64)
            count = kernel.list_sets(
                *bags, (start, stop), self._rule, self._options.above, scratch, values, ends
            )
            if count <= room:
                break
            room = count
        self._scratches.put(scratch)
        return ends[0, :count], ends[1, :count], values[:count]

    def shares(self, at: I64, docs_at: I64) -> tuple[F64, F64]:
        """Return the share of each query that its neighbour contains, and the reverse."""
        shared = np.empty(at.size)
        kernel.shared_items(self._queries, self._docs, np.stack([at, docs_at]), shared)
        return shared / self._queries.totals[at], shared / self._docs.totals[docs_at]

    def _scratch(self) -> _Scratch:
        """Return scratch memory that no other thread is using."""
        try:
            return self._scratches.get_nowait()
        except queue.Empty:
            num_docs = self._docs.totals.size
            seen = np.zeros(num_docs, np.int64)
            shared = np.empty(num_docs)
            met = np.empty(num_docs, np.int64)
            return seen, shared, met, np.zeros(1, np.int64)


class _AllPairs:
    """Compares every query with every document, block by block."""

    def __init__(self, docs: Compared, queries: Compared | None, options: SearchOptions) -> None:
        self._options = options
        self._own = own_docs(docs, queries)
        asking = docs if queries is None else queries
        self._groups = asking.groups, docs.groups
        self._num_docs = num_docs_of(docs.items)
        self._load(docs.items, asking.items)

    def _load(self, docs: Any, queries: Any) -> None:
        raise NotImplementedError

    def _compare(self, span: tuple[int, int], block: tuple[int, int], best: Best) -> None:
        raise NotImplementedError

    def find(self, start: int, stop: int) -> Best:
        """Answer the queries from start to stop."""
        best = _nothing(stop - start, self._options.k, self._options.above)
        for block in self._blocks():
            self._compare((start, stop), block, best)
        return best

    def find_all(self, start: int, stop: int) -> Listed:
        """List the neighbours of the queries from start to stop, block by block."""
        queries = []
        rows = []
        similarities = []
        for block in self._blocks():
            size = block[1] - block[0]
            for room in (min(self._options.room, size), size):
                values, docs_at = _nothing(stop - start, room, self._options.above)
                self._compare((start, stop), block, (values, docs_at))
                if (docs_at[:, -1] == NOBODY).all():
                    break
            at, ranks = np.nonzero(docs_at != NOBODY)
            queries.append(start + at)
            rows.append(docs_at[at, ranks])
            similarities.append(values[at, ranks])
        return np.concatenate(queries), np.concatenate(rows), np.concatenate(similarities)

    def _blocks(self) -> Iterator[tuple[int, int]]:
        for first in range(0, self._num_docs, self._options.block):
            yield first, min(first + self._options.block, self._num_docs)


class BitFinder(_AllPairs):
    """Finds the nearest bit vectors."""

    def _load(self, docs: Bits, queries: Bits) -> None:
        self._bits = queries.words, np.ascontiguousarray(docs.words.T), docs.num_bits

    def _compare(self, span: tuple[int, int], block: tuple[int, int], best: Best) -> None:
        kernel.nearest_bits(*self._bits, self._own, self._groups, span, block, *best)


class VectorFinder(_AllPairs):
    """Finds the vectors with the smallest angle."""

    def _load(self, docs: Vectors, queries: Vectors) -> None:
        self._docs = (docs.values, docs.norms)
        self._queries = (queries.values, queries.norms)
        self._units = _unit(docs)
        self._query_units = _unit(queries)
        # Three times the rounding error bound of a dot product of this length in 32-bit floats.
        self._margin = 3 * (docs.values.shape[1] + 4) * 2.0**-24

    def _compare(self, span: tuple[int, int], block: tuple[int, int], best: Best) -> None:
        products = self._query_units[slice(*span)] @ self._units[slice(*block)].T
        kernel.nearest_vectors(
            products,
            self._queries,
            self._docs,
            self._own,
            self._groups,
            self._margin,
            span,
            block[0],
            *best,
        )


def _unit(vectors: Vectors) -> npt.NDArray[np.float32]:
    return (vectors.values / vectors.norms[:, None]).astype(np.float32)


class PointFinder(_AllPairs):
    """Finds the vectors at the smallest distance."""

    def _load(self, docs: Points, queries: Points) -> None:
        self._docs = (docs.values, _lengths(docs.values))
        self._queries = (queries.values, _lengths(queries.values))
        self._margin = 4 * (docs.values.shape[1] + 4) * 2.0**-53

    def _compare(self, span: tuple[int, int], block: tuple[int, int], best: Best) -> None:
        queries, _ = self._queries
        docs, _ = self._docs
        with np.errstate(over="ignore", invalid="ignore"):
            products = queries[slice(*span)] @ docs[slice(*block)].T
        kernel.nearest_points(
            products,
            self._queries,
            self._docs,
            self._own,
            self._groups,
            self._margin,
            span,
            block[0],
            *best,
        )


def _lengths(values: F64) -> F64:
    with np.errstate(over="ignore"):
        lengths: F64 = np.sqrt((values * values).sum(axis=1))
    return lengths
