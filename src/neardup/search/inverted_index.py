"""The inverted index that exact searches share: posting lists of items, and the lists of a query, shortest first."""

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
        hashes = items.shingles[np.lexsort((items.shingles, owners_of(ends)))]
        weights = np.ones(hashes.size)
    totals = np.add.reduceat(np.r_[weights, 0.0], ends[:-1]) * (np.diff(ends) > 0)
    return Bags(hashes, weights, ends, totals, docs.groups)


def lists_of(hashes: U64) -> tuple[U64, I64, I64]:
    """Return the distinct hashes, ascending, the ends of their posting lists, and the positions in the lists.

    Positions ascend within each list.
    """
    order = np.argsort(hashes, kind="stable")
    keys, starts = np.unique(hashes[order], return_index=True)
    return keys, np.r_[starts, order.size].astype(np.int64), order


def postings_of(bags: Bags) -> Postings:
    """Return the posting list of every item: the documents that have it."""
    keys, ends, order = lists_of(bags.hashes)
    return Postings(keys, ends, owners_of(bags.ends)[order], bags.weights[order])


def walks_of(queries: Bags, postings: Postings, *, is_own: bool) -> Walks:
    """Return the posting lists of every query, shortest first, ties by hash; `is_own` drops lists of length 1."""
    keys = postings.keys
    is_listed, at = find_sorted(keys, queries.hashes)
    lengths = np.diff(postings.ends)[at] if keys.size else np.zeros(at.size, np.int64)
    is_listed &= lengths > is_own
    owners, lists, lengths = owners_of(queries.ends)[is_listed], at[is_listed], lengths[is_listed]
    order = np.lexsort((lists, lengths, owners))
    ends = np.searchsorted(owners, np.arange(queries.ends.size)).astype(np.int64)
    return Walks(lists[order], queries.weights[is_listed][order], ends)
