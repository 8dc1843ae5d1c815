"""The inverted index that exact searches share: posting lists of items, the lists of a query, and shared counts."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.io.columns.sorted_search import find_sorted
from neardup.kernels.postings import Bags, Postings, Walks
from neardup.kernels.similarity import Items, Sets, Weights

F64 = npt.NDArray[np.float64]
I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
# The most bytes per item, in the index and while it is built.
BYTES_A_SHINGLE: Final = 112


class Compared(NamedTuple):
    """Documents to compare: their items, and the group of each."""

    items: Items
    groups: I64


def owners_of(ends: I64) -> I64:
    """Return which document every item belongs to."""
    return np.repeat(np.arange(ends.size - 1), np.diff(ends))


def as_bags(docs: Compared) -> Bags:
    """Return sets as weighted sets; items without a weight weigh 1."""
    items = docs.items
    if isinstance(items, Weights):
        hashes, weights, ends = items
    else:
        assert isinstance(items, Sets)  # noqa: S101 - other items have no index
        ends = items.ends
        order = np.lexsort((items.shingles, owners_of(ends)))
        hashes = items.shingles[order]
        weights = np.ones(hashes.size)
    # `reduceat` returns a single weight for an empty set.
    sums = np.add.reduceat(np.r_[weights, 0.0], ends[:-1])
    totals = sums * (np.diff(ends) > 0)
    return Bags(hashes, weights, ends, totals, docs.groups)


def lists_of(hashes: U64) -> tuple[U64, I64, I64]:
    """Return the distinct hashes, ascending, the ends of their posting lists, and the positions in the lists.

    Positions ascend within each list.
    """
    order = np.argsort(hashes, kind="stable")
    keys, starts = np.unique(hashes[order], return_index=True)
    ends = np.r_[starts, order.size].astype(np.int64)
    return keys, ends, order


class InvertedIndex:
    """The posting lists of sets, or of weighted sets: for every item, the documents that have it."""

    def __init__(self, docs: Compared) -> None:
        self.bags = as_bags(docs)
        keys, ends, order = lists_of(self.bags.hashes)
        owners = owners_of(self.bags.ends)
        self.postings = Postings(
            keys=keys, ends=ends, members=owners[order], weights=self.bags.weights[order]
        )

    def walks(self, queries: Bags | None = None) -> Walks:
        """Return the posting lists of every query, shortest first, ties by hash.

        Without queries, every document is one, and the lists of items that no other document has
        are left out.
        """
        asked = self.bags if queries is None else queries
        is_listed, at = find_sorted(self.postings.keys, asked.hashes)
        lengths = np.zeros(at.size, np.int64)
        if self.postings.keys.size:
            lengths = np.diff(self.postings.ends)[at]
        num_itself = 1 if queries is None else 0
        is_listed &= lengths > num_itself
        owners = owners_of(asked.ends)[is_listed]
        lists = at[is_listed]
        weights = asked.weights[is_listed]
        order = np.lexsort((lists, lengths[is_listed], owners))
        ends = np.searchsorted(owners, np.arange(asked.ends.size))
        return Walks(lists[order], weights[order], ends.astype(np.int64))

    def count_shared(self, sets: Sets) -> I64:
        """Count the items that sets share with the documents: one row per set, one column per document."""
        num_sets = sets.ends.size - 1
        num_docs = self.bags.totals.size
        is_listed, at = find_sorted(self.postings.keys, sets.shingles)
        lists = at[is_listed]
        starts = self.postings.ends[lists]
        counts = self.postings.ends[lists + 1] - starts
        before = np.cumsum(counts) - counts
        within = np.arange(counts.sum()) - np.repeat(before, counts)
        members = self.postings.members[np.repeat(starts, counts) + within]
        owners = np.repeat(owners_of(sets.ends)[is_listed], counts)
        cells = np.bincount(owners * num_docs + members, minlength=num_sets * num_docs)
        return cells.reshape(num_sets, num_docs)
