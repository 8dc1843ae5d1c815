"""Benchmark items in documents, exactly: spans that cover enough of the words of an item, in order with gaps."""

from __future__ import annotations

import abc
import copy
import threading
from typing import Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from neardup.kernels import coverage

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
# Items of fewer words are not searched: too much text has their words by chance.
MIN_WORDS: Final = 8
# Shorter items must be covered as a whole, without a gap: one changed word could be the answer.
MIN_LONG: Final = 20
# The most other words between two neighbouring words of a long item.
MAX_GAP: Final = 5
# What a word weighs: from one that every document has to one that no document has. Even the rarest
# word of an item of MIN_LONG words is less than a fifth of its weight, so that one edit, wherever it
# is, leaves a score of .8.
COMMON_WEIGHT: Final = 16
RARE_WEIGHT: Final = 64
# Below this threshold a single word could be a match.
MIN_THRESHOLD: Final = 0.25
# The columns of what `find` returns.
DOC, ITEM, WEIGHT, FIRST, LAST, ITEM_FIRST, ITEM_LAST, MATCHED = range(8)
_ROOM: Final = 1 << 10


class ItemSearch(abc.ABC):
    """Finds the items of benchmarks in documents: count the words of all documents first, then `weigh`, then `find`.

    min_words: items of fewer words are not searched.
    """

    min_words: ClassVar[int]

    def __init__(self, words: U64, ends: I64) -> None:
        """Take the word hashes of all items end to end; item i owns words[ends[i]:ends[i + 1]]."""
        self.vocabulary, numbered = np.unique(words, return_inverse=True)
        self._words = numbered.astype(np.int64)
        self._ends = ends
        self._capacity = 2 * self.vocabulary.size + 8
        room = self._capacity + self.vocabulary.size + 1
        self._table = np.zeros(room, np.uint64)
        self._numbers = np.zeros(room, np.int64)
        coverage.fill_numbers(self.vocabulary, self._capacity, self._table, self._numbers)
        self._lock = threading.Lock()
        # How many documents have each word of the vocabulary, and how many documents there are.
        self.counts = np.zeros(self.vocabulary.size, np.int64)
        self.num_documents = 0
        # The score of a span is its share of the total weight of the item.
        self.totals = np.zeros(ends.size - 1, np.int64)

    def __getstate__(self) -> dict[str, Any]:
        """Leave the lock out: another process has its own."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take everything but the lock."""
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def uncounted(self) -> Self:
        """Return a search for the same items that has counted nothing yet."""
        other = copy.copy(self)
        other.set_counts(np.zeros_like(self.counts), 0)
        return other

    def add_counts(self, counts: I64, num_documents: int) -> None:
        """Add what another search for the same items has counted."""
        with self._lock:
            self.counts += counts
            self.num_documents += num_documents

    @property
    def sizes(self) -> I64:
        """The number of words of every item."""
        sizes: I64 = np.diff(self._ends)
        return sizes

    @property
    def is_too_short(self) -> npt.NDArray[np.bool_]:
        """Which items have too few words to be searched."""
        return self.sizes < self.min_words

    def count(self, words: U64, ends: I64) -> None:
        """Count the documents that have each word of the items; document d owns words[ends[d]:ends[d + 1]]."""
        counts = np.zeros_like(self.counts)
        last_doc = np.full(self.vocabulary.size, -1)
        coverage.count_documents(self._numbered(words), ends, last_doc, counts)
        with self._lock:
            self.counts += counts
            self.num_documents += ends.size - 1

    def set_counts(self, counts: I64, num_documents: int) -> None:
        """Replace the counts of the words of the vocabulary, and of documents."""
        self.counts = counts
        self.num_documents = num_documents

    @abc.abstractmethod
    def weigh(self) -> None:
        """Weigh the words of items, and choose what to look for."""

    @abc.abstractmethod
    def find(self, words: U64, ends: I64) -> I64:
        """Return the spans of documents that cover items, sorted by document, item and position."""

    def _numbered(self, words: U64) -> I64:
        numbered = np.empty(words.size, np.int64)
        coverage.number_words(words, self._capacity, self._table, self._numbers, numbered)
        return numbered


class BenchSearch(ItemSearch):
    """Finds items by the spans that cover enough of their words, in order with gaps."""

    min_words = MIN_WORDS

    def __init__(self, words: U64, ends: I64, threshold: float) -> None:
        """Take the word hashes of all items end to end; item i owns words[ends[i]:ends[i + 1]]."""
        super().__init__(words, ends)
        self._threshold = threshold
        self._items: coverage.BenchItems | None = None
        self._probes: coverage.Probes | None = None

    def weigh(self) -> None:
        """Weigh the words by how rare they are among the documents counted, and choose what to look for."""
        weights = weights_of(self.counts, self.num_documents)[self._words]
        sizes = self.sizes
        is_long = sizes >= MIN_LONG
        totals = np.add.reduceat(np.r_[weights, 0], self._ends[:-1]) * (sizes > 0)
        least = np.where(is_long, least_weights(totals, self._threshold), totals)
        gaps = np.where(is_long, MAX_GAP, 0)
        self._items = coverage.BenchItems(self._words, weights, self._ends, gaps, least)
        self.totals = totals
        self._probes = self._choose_probes()

    def find(self, words: U64, ends: I64) -> I64:
        """Return the spans of documents that cover items, sorted by document, item and position."""
        assert self._items is not None  # noqa: S101 - `weigh` comes first
        assert self._probes is not None  # noqa: S101
        numbered = self._numbered(words)
        regions = np.empty((_ROOM, 4), np.int64)
        while True:
            seen = np.full((self.sizes.size, 2), -1)
            last_at = np.full(self._probes.items.size, coverage.FAR_AWAY)
            count = coverage.find_regions(numbered, ends, self._probes, last_at, seen, regions)
            if count <= regions.shape[0]:
                break
            regions = np.empty((count, 4), np.int64)
        regions = _apart(regions[:count])
        starts = np.zeros(self.vocabulary.size, np.int64)
        counts = np.zeros(self.vocabulary.size, np.int64)
        found = np.empty((_ROOM, 8), np.int64)
        while True:
            count = coverage.cover_regions(numbered, regions, self._items, starts, counts, found)
            if count <= found.shape[0]:
                break
            found = np.empty((count, 8), np.int64)
        found = found[:count]
        return in_order(found, ends)

    def _choose_probes(self) -> coverage.Probes:
        """Choose the fewest of the heaviest words of every item of which each chain that counts has two.

        A chain that counts lacks at most `total - least` of the weight. So of words that weigh
        together more than that and their heaviest one, it has more than the heaviest one weighs.
        """
        assert self._items is not None  # noqa: S101
        items = self._items
        owners = np.repeat(np.arange(self.sizes.size), self.sizes)
        positions = np.arange(owners.size) - self._ends[owners]
        order = np.lexsort((positions, -items.weights, owners))
        weights = items.weights[order]
        before = np.cumsum(weights) - weights
        # Of the words of an item in this order: the weight of those ahead of each, and the heaviest.
        preceding = before - before[self._ends[owners]]
        heaviest = weights[self._ends[owners]]
        needed = (self.totals - items.least)[owners] + heaviest
        is_probe = (preceding <= needed) & ~self.is_too_short[owners]
        # Words are in order of items and positions.
        chosen = np.sort(order[is_probe])
        words = items.words[chosen]
        by_word = np.argsort(words, kind="stable")
        return coverage.Probes(
            ends=np.searchsorted(words[by_word], np.arange(self.vocabulary.size + 1)),
            numbers=by_word,
            items=owners[chosen],
            at=positions[chosen],
            steps=items.gaps + 1,
            sizes=self.sizes,
        )


def _apart(regions: I64) -> I64:
    """Unite regions of a document and an item that overlap; return them in order of document, item and position."""
    doc, item, first, behind = regions[np.lexsort(regions[:, [2, 1, 0]].T)].T
    is_new = np.ones(doc.size, np.bool_)
    is_new[1:] = (doc[1:] != doc[:-1]) | (item[1:] != item[:-1])
    # The farthest end so far, which later groups exceed.
    shift = np.cumsum(is_new) * (int(behind.max(initial=0)) + 1)
    farthest = np.maximum.accumulate(behind + shift) - shift
    is_new[1:] |= first[1:] >= farthest[:-1]
    starts = np.flatnonzero(is_new)
    lasts = np.append(starts[1:], doc.size)[: starts.size] - 1
    columns = doc[starts], item[starts], first[starts], farthest[lasts]
    return np.ascontiguousarray(np.stack(columns, axis=1))


def in_order(found: I64, ends: I64) -> I64:
    """Return spans sorted by document, item and position, with positions from the first word of the document."""
    found[:, [FIRST, LAST]] -= ends[found[:, DOC]][:, None]
    return found[np.lexsort((found[:, FIRST], found[:, ITEM], found[:, DOC]))]


def weights_of(counts: I64, num_documents: int) -> I64:
    """Return the weights of words that `counts` of the documents have: whole numbers, equal on all machines."""
    commonness = np.log2(counts + 1) / np.log2(num_documents + 2)
    rarity = 1 - np.minimum(commonness, 1)
    weights: I64 = np.rint(COMMON_WEIGHT + (RARE_WEIGHT - COMMON_WEIGHT) * rarity).astype(np.int64)
    return weights


def least_weights(totals: I64, threshold: float) -> I64:
    """Return the least weight with weight / total >= threshold, in doubles."""
    least: I64 = np.ceil(threshold * totals).astype(np.int64)
    safe = np.maximum(totals, 1)
    least = np.where((least - 1) / safe >= threshold, least - 1, least)
    least = np.where(least / safe < threshold, least + 1, least)
    at_least_one: I64 = np.maximum(least, 1)
    return at_least_one
