"""An index of a few sets, through which many documents are streamed: those of a sample, or of reference documents.

It is not an `InvertedIndex`: documents are not indexed, most of their shingles must be ruled out
without a lookup, and only the least frequent shingles of each set are indexed. Its posting lists
are made by the same function.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from neardup.kernels import prefix_index as kernel
from neardup.kernels.similarity import Sets
from neardup.search.inverted_index import I64, U64, lists_of, owners_of

# A set indexes one extra shingle per this many; a partner must then share as many more, and few
# others do.
_SHARE: Final = 8
# Shingles that occur in more sets than this are indexed last.
_FREQUENT: Final = 4
# Bits that address the coarse filter, which fits in the L1 cache; bits of the fine filter and index
# slots per shingle.
_COARSE: Final = 16
_FINE_BITS: Final = 16
_INDEX_PLACES: Final = 4
FIRST_ROOM: Final = 1 << 12
# The last document that met each list and each set, and how many shingles it shared with the set.
Seen = tuple[I64, ...]


class PrefixIndex:
    """Finds the sets that may be similar to, or contained in, each document of a stream.

    A partner has at least `least` shingles of a set in common, and `needed` of those indexed.
    """

    def __init__(self, sets: Sets, least: I64, needed: I64, groups: I64) -> None:
        """Index enough shingles of each set to find every partner: infrequent ones first, then by the smallest hash."""
        chosen, owners = _least_frequent(sets, least, needed)
        keys, list_ends, items = lists_of(chosen)
        fine_bits = _address_bits(keys.size * _FINE_BITS)
        bits = _address_bits(keys.size * _INDEX_PLACES)
        self.arrays = kernel.PrefixArrays(
            coarse=np.zeros((1 << _COARSE) // 64, np.uint64),
            coarse_shift=np.uint64(64 - _COARSE),
            fine=np.zeros((1 << fine_bits) // 64, np.uint64),
            fine_shift=np.uint64(64 - fine_bits),
            spreads=np.empty(keys.size, np.uint64),
            lists=np.empty(keys.size, np.int64),
            starts=np.empty((1 << bits) + 1, np.int64),
            shift=np.uint64(64 - bits),
            list_ends=list_ends,
            members=owners[items],
            least=least,
            needed=needed,
            groups=groups,
        )
        kernel.fill_index(keys, self.arrays)

    @classmethod
    def of(cls, sets: Sets, threshold: float, groups: I64) -> PrefixIndex:
        """Index sets, sorted and distinct, to find every document that shares at least `threshold` of one of them."""
        sizes = np.diff(sets.ends)
        least = np.empty(sizes.size, np.int64)
        kernel.least_sizes(sizes, threshold, least)
        needed = np.minimum(sizes // _SHARE + 1, least)
        return cls(sets, least, needed, groups)

    def nothing_seen(self) -> Seen:
        """Return what `find_candidates` remembers of a batch, at its beginning."""
        num_lists = self.arrays.list_ends.size
        num_sets = self.arrays.least.size
        return np.full(num_lists, -1), np.full(num_sets, -1), np.full(num_sets, -1)

    def find_candidates(self, docs: Sets, groups: I64, start: int, seen: Seen) -> I64:
        """Return candidate pairs that share enough indexed shingles: position of the document, number of the set.

        start: the position of the first document in its batch, where `seen` serves for several
        calls.
        """
        room = FIRST_ROOM
        while True:
            found = np.empty((room, 2), np.int64)
            count = kernel.find_candidates(*docs, groups, self.arrays, start, seen, found)
            if count <= room:
                return found[:count]
            room = count
            for last in seen:
                last.fill(-1)


def _address_bits(num_addresses: int) -> int:
    """How many bits of a hash give this many addresses, at least 64."""
    return int(max(num_addresses, 64) - 1).bit_length()


def _least_frequent(sets: Sets, least: I64, needed: I64) -> tuple[U64, I64]:
    """Return the shingles of each set to index, and which set each belongs to."""
    _, inverse, counts = np.unique(sets.shingles, return_inverse=True, return_counts=True)
    sizes = np.diff(sets.ends)
    owners = owners_of(sets.ends)
    prefixes = sizes - least + needed
    frequency = np.where(counts > _FREQUENT, counts, 0)[inverse]
    # Stable, because the shingles of a set are already sorted.
    by_owner = owners * (frequency.max(initial=0) + 1)
    order = np.argsort(by_owner + frequency, kind="stable")
    rank_in_set = np.arange(order.size) - np.repeat(sets.ends[:-1], sizes)
    order = order[rank_in_set < np.repeat(prefixes, sizes)]
    return sets.shingles[order], owners[order]


def pick(shingles: U64, ends: I64, docs: I64) -> tuple[U64, I64]:
    """Copy the shingles of some documents."""
    sizes = ends[docs + 1] - ends[docs]
    picked_ends = np.r_[0, np.cumsum(sizes)]
    moved_by = ends[docs] - picked_ends[:-1]
    items = np.arange(picked_ends[-1]) + np.repeat(moved_by, sizes)
    return shingles[items], picked_ends
