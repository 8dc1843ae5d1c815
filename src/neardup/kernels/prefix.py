"""The exact join: count shingles, compute prefixes, and link documents that may be similar.

Two sets with intersection / union >= t share one of the first n - ceil(t n) + 1 shingles of each,
in any order common to all sets; here the rarest come first. The position of the first shared one,
and both sizes, bound the similarity.
"""

import numpy as np

from neardup.kernels.bounds import is_in_reach, prefix_size
from neardup.kernels.compilation import inner, kernel
from neardup.kernels.hash_sets import largest_set
from neardup.kernels.sorting import order_of, sort_values
from neardup.kernels.union_find import find_root, join

MOST = 255
COUNT_SHIFT = np.uint64(56)
HASH_SHIFT = np.uint64(8)
# This many smaller documents of a list are examined one by one; the last of them represents the
# rest, so that the cost of a list is linear in its length.
WINDOW = 64


@inner
def shift_for(counts):
    """Return the shift that maps a shingle to its counter among 2**bits."""
    shift = np.uint64(64)
    num_counters = counts.size
    while num_counters > 1:
        num_counters >>= 1
        shift -= np.uint64(1)
    return shift


@kernel
def count_shingles(shingles, counts):
    """Count shingles by their first bits, up to MOST; a collision can only make a count too high.

    shingles  uint64[num_shingles]
    counts    uint8 [2**bits]       added to
    """
    shift = shift_for(counts)
    for shingle in shingles:
        counter = np.int64(shingle >> shift)
        counts[counter] += np.uint8(counts[counter] < MOST)


@kernel
def take_prefixes(shingles, ends, counts, threshold, docs, keys, positions):
    """Write the prefix of every document that may have a partner, without shingles that occur in no other document.

    A document without a shared prefix shingle cannot have a partner. Returns the number of shingles
    written.

    shingles   uint64[num_shingles]   distinct in each document, in any order
    ends       int64 [num_docs + 1]   document d owns shingles[ends[d]:ends[d + 1]]; none is empty
    counts     uint8 [2**bits]        as `count_shingles` leaves it; at least two bits
    threshold  float64
    docs       int64 [num_shingles]   written; the document
    keys       uint64[num_shingles]   written; the first 56 bits of the shingle
    positions  int64 [num_shingles]   written; its position in the order by count, then by key
    """
    shift = shift_for(counts)
    most = largest_set(ends)
    own_counts = np.empty(most, np.uint8)
    ranked = np.empty(most, np.uint64)
    spare = np.empty(most, np.uint64)
    frequencies = np.zeros(MOST + 1, np.int64)
    to = 0
    for doc in range(ends.size - 1):
        start = ends[doc]
        size = ends[doc + 1] - ends[doc]
        shown = prefix_size(size, threshold)
        num_own = 0
        for at in range(size):
            own_counts[at] = counts[np.int64(shingles[start + at] >> shift)]
            num_own += own_counts[at] < 2
            if num_own >= shown:  # most documents end here, long before their last shingle
                break
        if num_own >= shown:
            continue
        for at in range(size):
            frequencies[own_counts[at]] += 1
        last = 0
        passed = np.int64(0)
        while passed < shown:
            passed += frequencies[last]
            last += 1
        for at in range(size):
            frequencies[own_counts[at]] = 0
        taken = np.int64(0)
        for at in range(size):
            if 2 <= own_counts[at] < last:
                ranked[taken] = (np.uint64(own_counts[at]) << COUNT_SHIFT) | (
                    shingles[start + at] >> HASH_SHIFT
                )
                taken += 1
        sort_values(ranked, spare, taken)
        for at in range(shown - num_own):
            docs[to] = doc
            keys[to] = ranked[at] << HASH_SHIFT
            positions[to] = num_own + at
            to += 1
    return to


@inner
def _take(values, indexes):
    """Return the values at some indexes."""
    taken = np.empty(indexes.size, np.int64)
    for at in range(indexes.size):
        taken[at] = values[indexes[at]]
    return taken


@inner
def _sort_entries(entries, sizes, rows):
    """Sort entries by size, then by row."""
    if entries.size > WINDOW:
        by_row = _take(entries, order_of(_take(rows, entries)))
        ordered = _take(by_row, order_of(_take(sizes, by_row)))
        for at in range(entries.size):
            entries[at] = ordered[at]
        return
    for position in range(1, entries.size):
        entry = entries[position]
        at = position
        while at > 0 and (
            sizes[entries[at - 1]] > sizes[entry]
            or (sizes[entries[at - 1]] == sizes[entry] and rows[entries[at - 1]] > rows[entry])
        ):
            entries[at] = entries[at - 1]
            at -= 1
        entries[at] = entry


@inner
def _join_list(entries, docs, sizes, positions, threshold, smaller, parents):
    """Join the documents of one list that may be similar, each with those before it in order of size."""
    num_smaller = 0
    first = 0
    for entry in entries:
        size = sizes[entry]
        position = positions[entry]
        while first < num_smaller and sizes[smaller[first]] / size < threshold:
            first += 1
        window = max(first, num_smaller - WINDOW)
        for at in range(window, num_smaller):
            other = smaller[at]
            if is_in_reach(size, position, sizes[other], positions[other], threshold):
                join(parents, docs[entry], docs[other])
        # Of all sizes that fit, the smallest is in reach if any is. A document in reach beyond the
        # window is also in reach of the last one in it, which is no larger than this one, and may
        # itself be the smaller of a pair.
        if first < window and is_in_reach(
            size, position, sizes[smaller[first]], np.int64(0), threshold
        ):
            join(parents, docs[entry], docs[smaller[window - 1]])
        # With a larger partner, the remaining shingles must suffice as with a partner of its own
        # size.
        if is_in_reach(size, position, size, position, threshold):
            smaller[num_smaller] = entry
            num_smaller += 1


@kernel
def join_lists(lists, docs, rows, sizes, positions, threshold, parents):
    """Join the documents that may be similar judging by one list alone: by sizes, and positions in the two orders.

    lists      int64[num_entries]  the list of an entry, numbered from 0
    docs       int64[num_entries]  the document of an entry, numbered from 0
    rows       int64[num_entries]  the row of the document, which breaks ties
    sizes      int64[num_entries]  the shingles of the document
    positions  int64[num_entries]  the position of the entry in the order of the document
    threshold  float64
    parents    int64[num_docs]     parents[doc] == doc on entry; afterwards the smallest document it is joined with
    """
    num_lists = 0
    for number in lists:
        num_lists = max(num_lists, number + 1)
    starts = np.zeros(num_lists + 1, np.int64)
    for number in lists:
        starts[number + 1] += 1
    for number in range(num_lists):
        starts[number + 1] += starts[number]
    entries = np.empty(lists.size, np.int64)
    filled = np.empty(num_lists, np.int64)
    for number in range(num_lists):
        filled[number] = starts[number]
    for entry in range(lists.size):
        entries[filled[lists[entry]]] = entry
        filled[lists[entry]] += 1
    smaller = np.empty(lists.size, np.int64)
    for number in range(num_lists):
        own = entries[starts[number] : starts[number + 1]]
        if own.size > 1:
            _sort_entries(own, sizes, rows)
            _join_list(own, docs, sizes, positions, threshold, smaller, parents)
    for doc in range(parents.size):
        parents[doc] = find_root(parents, doc)
