"""Shingle hashes to sets: distinct, sorted, digested, or numbered by repetition.

A hash table whose place is the hash scaled to the table, with linear probing, holds its keys almost in order:
scanning it and one insertion sort give the sorted set in linear time. Shingle hashes are finalised and never zero, so
zero marks a free place.
"""

import numba
import numpy as np

ZERO = np.uint64(0)
ONE = np.uint64(1)
HALF = np.uint64(32)
MAX_SPARSE = 1 << 14
DIGEST_MULTIPLIER = np.uint64(0x9FB21C651E98DF25)
REPETITION_MULTIPLIER = np.uint64(0xC2B2AE3D27D4EB4F)
# Called by kernels only: without the wrappers for Python it compiles in half the time.
_inner = numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_inner
def _capacity(count):
    """Load of a quarter, where most keys find their place free at once; two thirds where that would leave the cache."""
    return 4 * count + 8 if count <= MAX_SPARSE else count + (count >> 1) + 8


@_inner
def _most(ends):
    most = 0
    for doc in range(ends.size - 1):
        most = max(most, ends[doc + 1] - ends[doc])
    return most


@_inner
def _table_for(ends):
    most = _most(ends)
    # Keys that probe past the end have room for all of them behind it.
    return np.zeros(max(_capacity(most), _capacity(min(most, MAX_SPARSE))) + most + 1, np.uint64)


@_inner
def _place(table, key, capacity):
    """Return the place of the key, or the free one where it belongs."""
    place = np.int64(((key >> HALF) * np.uint64(capacity)) >> HALF)
    while table[place] != ZERO and table[place] != key:
        place += 1
    return place


@numba.njit(cache=True, nogil=True)
def digest_sets(shingles, ends, digests, sizes):
    """Write the size and a 128-bit digest of the set of distinct shingles of every document.

    shingles  uint64[num_shingles]   all documents end to end, with repetitions, in any order; the distinct ones of
                                     each are written to the front, end to end
    ends      int64 [num_docs + 1]   document d owns shingles[ends[d]:ends[d + 1]]
    digests   uint64[num_docs, 2]    written; equal sets have equal digests
    sizes     int64 [num_docs]       written; number of distinct shingles
    """
    table, to = _table_for(ends), 0
    for doc in range(ends.size - 1):
        capacity = _capacity(ends[doc + 1] - ends[doc])
        start, last = to, capacity
        low, high = ZERO, ZERO
        for at in range(ends[doc], ends[doc + 1]):
            shingle = shingles[at]
            place = _place(table, shingle, capacity)
            if table[place] == ZERO:
                table[place] = shingle
                last = max(last, place)
                shingles[to] = shingle
                to += 1
                low += shingle
                mixed = (shingle ^ (shingle >> np.uint64(29))) * DIGEST_MULTIPLIER
                high += mixed ^ (mixed >> HALF)
        table[: last + 1] = ZERO
        digests[doc, 0], digests[doc, 1] = low, high
        sizes[doc] = to - start


@numba.njit(cache=True, nogil=True)
def sort_sets(shingles, ends, distinct, distinct_ends):
    """Write the distinct shingles of every document in ascending order.

    shingles       uint64[num_shingles]  as for `digest_sets`
    ends           int64 [num_docs + 1]
    distinct       uint64[num_shingles]  written from the front
    distinct_ends  int64 [num_docs + 1]  written; document d owns distinct[distinct_ends[d]:distinct_ends[d + 1]]
    """
    table = _table_for(ends)
    scanned = np.empty(_most(ends) + 1, np.uint64)
    to = distinct_ends[0] = 0
    for doc in range(ends.size - 1):
        capacity = _capacity(ends[doc + 1] - ends[doc])
        start, last = to, capacity
        for at in range(ends[doc], ends[doc + 1]):
            place = _place(table, shingles[at], capacity)
            table[place] = shingles[at]
            last = max(last, place)
        for place in range(last + 1):  # no branch on whether the place is free, which nobody could predict
            scanned[to - start] = table[place]
            to += table[place] != ZERO
        table[: last + 1] = ZERO
        for position in range(to - start):
            key, at = scanned[position], start + position
            while at > start and distinct[at - 1] > key:
                distinct[at] = distinct[at - 1]
                at -= 1
            distinct[at] = key
        distinct_ends[doc + 1] = to


@numba.njit(cache=True, nogil=True)
def gather_sets(shingles, starts, gathered, ends):
    """Copy sets that lie anywhere to stand end to end.

    shingles  uint64[num_shingles]
    starts    int64 [num_docs]       where each set starts
    gathered  uint64[total]          written
    ends      int64 [num_docs + 1]   set d goes to gathered[ends[d]:ends[d + 1]]
    """
    for doc in range(starts.size):
        size = ends[doc + 1] - ends[doc]
        gathered[ends[doc] : ends[doc + 1]] = shingles[starts[doc] : starts[doc] + size]


@numba.njit(cache=True, nogil=True)
def number_repetitions(shingles, ends):
    """Turn bags into sets, in place: the n-th repetition of a shingle becomes a shingle of its own.

    shingles  uint64[num_shingles]  as for `digest_sets`; overwritten
    ends      int64 [num_docs + 1]
    """
    table = _table_for(ends)
    repetitions = np.zeros(table.size, np.int64)
    for doc in range(ends.size - 1):
        capacity = _capacity(ends[doc + 1] - ends[doc])
        last = capacity
        for at in range(ends[doc], ends[doc + 1]):
            shingle = shingles[at]
            place = _place(table, shingle, capacity)
            table[place] = shingle
            last = max(last, place)
            if repetitions[place]:
                mixed = shingle * DIGEST_MULTIPLIER + np.uint64(repetitions[place]) * REPETITION_MULTIPLIER
                mixed = (mixed ^ (mixed >> HALF)) * DIGEST_MULTIPLIER
                mixed ^= mixed >> np.uint64(29)
                shingles[at] = mixed if mixed != ZERO else ONE
            repetitions[place] += 1
        table[: last + 1] = ZERO
        repetitions[: last + 1] = 0
