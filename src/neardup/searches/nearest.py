"""The nearest documents of each, exactly, whatever the measure: an object that holds all documents answers queries.

Sets are found by postings, all else by comparing every query with every document, a block at a time. Products of
matrices only tell whom to compare exactly, so their rounding never shows in a result.
"""

from __future__ import annotations

import dataclasses
import queue
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from neardup.kernels import neighbours as kernel
from neardup.kernels import verify
from neardup.measures.base import num_docs_of

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
# Queries that are answered at once, and documents in a block; fixed, so that no number depends on the threads.
SPAN: Final = 256
BLOCK: Final = 4096
# Bytes that an item of a set takes in the index and on the way there, at most.
BYTES_A_SHINGLE: Final = 112
# What a bound by sums of weights is raised by: they are added in another order than the exact ones.
_SLACK: Final = 1 + 1e-9
Best = tuple[F64, I64]
_Scratch = tuple[I64, F64, I64, I64]


class Compared(NamedTuple):
    """Documents to compare: their items, and the group of each."""

    items: verify.Items
    groups: I64


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Ask:
    """What is asked for: at most k documents for each query, each of similarity above `above`."""

    k: int
    above: float
    is_containment: bool = False


class Finder(Protocol):
    """Answers spans of queries."""

    def find(self, start: int, stop: int) -> Best:
        """Return similarities and places of the best, a row a query, the most similar first; NOBODY behind them."""


def finder_for(docs: Compared, queries: Compared | None, ask: Ask) -> Finder:
    """Choose how neighbours are found; without queries every document asks for its own."""
    kinds: dict[type, Any] = {
        verify.Sets: SetFinder,
        verify.Weights: SetFinder,
        verify.Bits: BitFinder,
        verify.Vectors: VectorFinder,
        verify.Points: PointFinder,
    }
    finder: Finder = kinds[type(docs.items)](docs, queries, ask)
    return finder


def _nothing(num_queries: int, ask: Ask) -> Best:
    return np.full((num_queries, ask.k), ask.above), np.full((num_queries, ask.k), kernel.NOBODY)


def own_places(docs: Compared, queries: Compared | None) -> I64:
    """Return which document each query is itself."""
    if queries is None:
        return np.arange(num_docs_of(docs.items))
    return np.full(num_docs_of(queries.items), kernel.NOBODY)


class Bags(NamedTuple):
    """Weighted sets as the kernel takes them: items in the order of their hashes, weights, ends, sums, groups."""

    hashes: npt.NDArray[np.uint64]
    weights: F64
    ends: I64
    totals: F64
    groups: I64


def as_bags(docs: Compared) -> Bags:
    """Return sets of any kind with weights; an item without one counts 1."""
    items = docs.items
    if isinstance(items, verify.Weights):
        hashes, weights, ends = items
    else:
        assert isinstance(items, verify.Sets)  # noqa: S101 - finder_for has seen to it
        ends = items.ends
        hashes = items.shingles[np.lexsort((items.shingles, _owners(ends)))]
        weights = np.ones(hashes.size)
    totals = np.add.reduceat(np.r_[weights, 0.0], ends[:-1]) * (np.diff(ends) > 0)
    return Bags(hashes, weights, ends, totals, docs.groups)


def _owners(ends: I64) -> I64:
    return np.repeat(np.arange(ends.size - 1), np.diff(ends))


class Index(NamedTuple):
    """Postings: documents of every distinct item, ascending, with its weight there; ascending keys."""

    keys: npt.NDArray[np.uint64]
    ends: I64
    members: I64
    weights: F64


def index_of(bags: Bags) -> Index:
    """List the documents of every item."""
    order = np.argsort(bags.hashes, kind="stable")
    keys, starts = np.unique(bags.hashes[order], return_index=True)
    return Index(keys, np.r_[starts, order.size].astype(np.int64), _owners(bags.ends)[order], bags.weights[order])


def walks_of(queries: Bags, index: Index, *, is_own: bool) -> tuple[I64, F64, I64]:
    """Return the lists that every query walks, the shortest first, ties by hash; a list of itself alone is left out."""
    at = np.minimum(np.searchsorted(index.keys, queries.hashes), max(index.keys.size - 1, 0))
    lengths = np.diff(index.ends)[at] if index.keys.size else np.zeros(at.size, np.int64)
    is_listed = (index.keys[at] == queries.hashes) & (lengths > is_own) if index.keys.size else lengths > 0
    owners, lists, lengths = _owners(queries.ends)[is_listed], at[is_listed], lengths[is_listed]
    order = np.lexsort((lists, lengths, owners))
    ends = np.searchsorted(owners, np.arange(queries.ends.size)).astype(np.int64)
    return lists[order], queries.weights[is_listed][order], ends


class SetFinder:
    """Finds the nearest sets, weighted or not, by Jaccard or by containment."""

    def __init__(self, docs: Compared, queries: Compared | None, ask: Ask) -> None:
        self._ask, self._own = ask, own_places(docs, queries)
        self._docs = as_bags(docs)
        self._queries = self._docs if queries is None else as_bags(queries)
        index = index_of(self._docs)
        self._walks = walks_of(self._queries, index, is_own=queries is None)
        self._lists = index[1:]
        self._rule = ask.is_containment, _SLACK if isinstance(docs.items, verify.Weights) else 1.0
        self._scratches: queue.SimpleQueue[_Scratch] = queue.SimpleQueue()

    def find(self, start: int, stop: int) -> Best:
        """Answer the queries from start to stop."""
        best = _nothing(stop - start, self._ask)
        scratch = self._scratch()
        span = start, stop
        kernel.nearest_sets(
            self._queries, self._docs, self._walks, self._lists, self._own, span, self._rule, scratch, *best
        )
        self._scratches.put(scratch)
        return best

    def _scratch(self) -> _Scratch:
        """Return one that no other thread has now."""
        try:
            return self._scratches.get_nowait()
        except queue.Empty:
            num_docs = self._docs.totals.size
            met = np.empty(num_docs, np.int64)
            return np.zeros(num_docs, np.int64), np.empty(num_docs), met, np.zeros(1, np.int64)


class _AllPairs:
    """Compares every query with every document, a block at a time."""

    def __init__(self, docs: Compared, queries: Compared | None, ask: Ask) -> None:
        self._ask, self._own = ask, own_places(docs, queries)
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
        best = _nothing(stop - start, self._ask)
        for first in range(0, self._num_docs, BLOCK):
            self._compare((start, stop), (first, min(first + BLOCK, self._num_docs)), best)
        return best


class BitFinder(_AllPairs):
    """Finds the nearest bit vectors."""

    def _load(self, docs: verify.Bits, queries: verify.Bits) -> None:
        self._bits = queries.words, np.ascontiguousarray(docs.words.T), docs.num_bits

    def _compare(self, span: tuple[int, int], block: tuple[int, int], best: Best) -> None:
        kernel.nearest_bits(*self._bits, self._own, self._groups, span, block, *best)


class VectorFinder(_AllPairs):
    """Finds the vectors of the smallest angle."""

    def _load(self, docs: verify.Vectors, queries: verify.Vectors) -> None:
        self._docs, self._queries = (docs.values, docs.norms), (queries.values, queries.norms)
        self._units, self._query_units = (_unit(*vectors) for vectors in (self._docs, self._queries))
        # A sum of so many products of 32-bit numbers is off by no more than this, three times over.
        self._margin = 3 * (docs.values.shape[1] + 4) * 2.0**-24

    def _compare(self, span: tuple[int, int], block: tuple[int, int], best: Best) -> None:
        products = self._query_units[slice(*span)] @ self._units[slice(*block)].T
        kernel.nearest_vectors(
            products, self._queries, self._docs, self._own, self._groups, self._margin, span, block[0], *best
        )


def _unit(values: F64, norms: F64) -> npt.NDArray[np.float32]:
    return (values / norms[:, None]).astype(np.float32)


class PointFinder(_AllPairs):
    """Finds the vectors of the smallest distance."""

    def _load(self, docs: verify.Points, queries: verify.Points) -> None:
        self._docs, self._queries = ((points.values, _lengths(points.values)) for points in (docs, queries))
        self._margin = 4 * (docs.values.shape[1] + 4) * 2.0**-53

    def _compare(self, span: tuple[int, int], block: tuple[int, int], best: Best) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            products = self._queries[0][slice(*span)] @ self._docs[0][slice(*block)].T
        kernel.nearest_points(
            products, self._queries, self._docs, self._own, self._groups, self._margin, span, block[0], *best
        )


def _lengths(values: F64) -> F64:
    with np.errstate(over="ignore"):
        lengths: F64 = np.sqrt((values * values).sum(axis=1))
    return lengths
