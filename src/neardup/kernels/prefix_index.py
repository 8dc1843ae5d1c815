"""An index of the least frequent shingles of a few sets, through which many documents are streamed.

Two sets of similarity >= t share k of any n - ceil(t n) + k shingles of either, so only that many
of each indexed set
are indexed: infrequent ones, with the smallest hashes. Most shingles of a document are then ruled
out by their top bits alone.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels.bounds import least_share
from neardup.kernels.compilation import inner, kernel
from neardup.kernels.hash_sets import largest_set
from neardup.kernels.mixing import GOLDEN_MULTIPLIER

Array = npt.NDArray[Any]
SIX = np.uint64(6)
IN_WORD = np.uint64(63)
ONE = np.uint64(1)


class PrefixArrays(NamedTuple):
    """The indexed shingles of some sets, and what a partner of each of them must have.

    coarse, fine        uint64[]                bitmaps by top bits: of the shingle, and of the shingle spread over all
                                                64-bit numbers, because most indexed shingles are
                                                small
    coarse_/fine_shift  uint64                  64 less the number of these bits
    spreads             uint64[num_lists]       the indexed shingles spread, ascending
    lists               int64 [num_lists]       the list of each
    starts              int64 [2**bits + 1]     spreads[starts[p]:starts[p + 1]] have the top bits p
    shift               uint64                  64 - bits
    list_ends, members  int64 [num_lists + 1], int64[]  list l is the sets members[list_ends[l]:list_ends[l + 1]]
    least               int64 [num_sets]        the minimum number of shingles of a partner
    needed              int64 [num_sets]        the minimum number of indexed shingles that a partner shares
    groups              int64 [num_sets]        the group that a partner must have
    """

    coarse: Array
    coarse_shift: np.uint64
    fine: Array
    fine_shift: np.uint64
    spreads: Array
    lists: Array
    starts: Array
    shift: np.uint64
    list_ends: Array
    members: Array
    least: Array
    needed: Array
    groups: Array


@kernel
def least_sizes(sizes, threshold, least):
    """Write the size of the smallest subset that is still similar to each set.

    sizes      int64[num_sets]
    threshold  float64
    least      int64[num_sets]  written; least / size >= threshold, in doubles
    """
    for at in range(sizes.size):
        least[at] = least_share(sizes[at], threshold)


@inner
def _set_bit(bits, bit):
    bits[bit >> SIX] |= ONE << (bit & IN_WORD)


@inner
def _bit(bits, bit):
    return np.int64((bits[bit >> SIX] >> (bit & IN_WORD)) & ONE)


@inner
def pass_filters(shingles, start, end, index, passed):
    """Write the shingles that pass both filters, without branches."""
    coarse = index.coarse
    coarse_shift = index.coarse_shift
    fine = index.fine
    fine_shift = index.fine_shift
    to = 0
    for at in range(start, end):
        passed[to] = shingles[at]
        to += _bit(coarse, shingles[at] >> coarse_shift)
    count = to
    to = 0
    for at in range(count):
        shingle = passed[at]
        passed[to] = shingle
        to += _bit(fine, (shingle * GOLDEN_MULTIPLIER) >> fine_shift)
    return to


@kernel
def fill_index(keys, index):
    """Set the bits of every key in two filters, and write the keys sorted, with the start of each range of top bits.

    There is no probing: a binary search takes O(log n) steps, whatever the keys are.

    keys   uint64[num_keys]  distinct shingles
    index  PrefixArrays             coarse and fine, all zero, spreads, lists and starts are written
    """
    spreads = index.spreads
    lists = index.lists
    starts = index.starts
    shift = index.shift
    all_spreads = keys * GOLDEN_MULTIPLIER
    order = np.argsort(all_spreads, kind="mergesort")
    starts[:] = 0
    for at in range(keys.size):
        number = order[at]
        lists[at] = number
        spreads[at] = all_spreads[number]
        _set_bit(index.coarse, keys[number] >> index.coarse_shift)
        _set_bit(index.fine, spreads[at] >> index.fine_shift)
        starts[np.int64(spreads[at] >> shift) + 1] += 1
    for address in range(starts.size - 1):
        starts[address + 1] += starts[address]


@inner
def find_list(shingle, index):
    """Return the number of the list of a shingle, or -1."""
    spreads = index.spreads
    starts = index.starts
    spread = shingle * GOLDEN_MULTIPLIER
    address = np.int64(spread >> index.shift)
    low, high = starts[address], starts[address + 1]
    while low < high:
        middle = (low + high) >> 1
        if spreads[middle] < spread:
            low = middle + 1
        else:
            high = middle
    if low < starts[address + 1] and spreads[low] == spread:
        return index.lists[low]
    return np.int64(-1)


@kernel
def find_candidates(shingles, ends, groups, index, first_doc, seen, found):
    """Write the candidate pairs: documents and sets of a group that share enough indexed shingles; return their number.

    shingles   uint64[num_shingles]  all documents end to end, with repetitions, in any order
    ends       int64 [num_docs + 1]  document d owns shingles[ends[d]:ends[d + 1]]
    groups     int64 [num_docs]
    index      PrefixArrays                 as `fill_index` leaves it
    first_doc  int64                 added to documents in `seen`, so that it serves for many calls
    seen       (int64[num_lists], int64[num_sets], int64[num_sets])  the last document that met each list and each
               set, and how many shingles it shared with the set; overwritten
    found      int64 [room, 2]       written: document, set; what is beyond its room is only counted
    """
    list_ends = index.list_ends
    members = index.members
    least = index.least
    needed = index.needed
    set_groups = index.groups
    seen_lists, seen_sets, shared = seen
    passed = np.empty(largest_set(ends) + 1, np.uint64)
    count = 0
    for doc in range(ends.size - 1):
        stamp = first_doc + doc
        num_shingles = ends[doc + 1] - ends[doc]
        for at in range(pass_filters(shingles, ends[doc], ends[doc + 1], index, passed)):
            number = find_list(passed[at], index)
            if number < 0 or seen_lists[number] == stamp:
                continue
            seen_lists[number] = stamp
            for member in range(list_ends[number], list_ends[number + 1]):
                other = members[member]
                if seen_sets[other] != stamp:
                    seen_sets[other] = stamp
                    shared[other] = 0
                shared[other] += 1
                if (
                    shared[other] == needed[other]
                    and num_shingles >= least[other]
                    and groups[doc] == set_groups[other]
                ):
                    if count < found.shape[0]:
                        found[count, 0] = doc
                        found[count, 1] = other
                    count += 1
    return count
