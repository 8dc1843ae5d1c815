"""Lists that the documents of a hot component are walked by: their rarest shingles, in one order for all.

Two sets of similarity >= t share one of their rarest n - ceil(t n) + 1 shingles, the prefix.
"""

import numba
import numpy as np

NOBODY = -1
MAX_COUNT_BITS = 26
# Shingle hashes are finalised and never zero, so zero marks a free place.
ZERO = np.uint64(0)
HALF = np.uint64(32)
MAX_SPARSE = 1 << 14
KEY_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
# Steps of probing before a table gives way to a sort: random hashes take 1 a key or less. An insertion sort takes no
# more steps than probing did, because a key can only stand behind a larger one that it was moved past.
STEPS_BASE, STEPS_PER_KEY = 1 << 10, 8
# Called by kernels only: without the wrappers for Python it compiles in half the time.
_inner = numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_inner
def _prefix_size(size, threshold):
    """How many of its rarest shingles a set must show so that every partner shares one."""
    overlap = np.int64(np.ceil(threshold * size))
    while overlap > 1 and (overlap - 1) / size >= threshold:
        overlap -= 1
    while overlap / size < threshold:
        overlap += 1
    return size - overlap + 1


@_inner
def _capacity(size):
    """Load of a quarter, where most shingles find their place at once; two thirds where that would leave the cache."""
    return 4 * size + 8 if size <= MAX_SPARSE else size + (size >> 1) + 8


@_inner
def _table_for(ends):
    """Allocate a table for any of the sets; those that are placed past the capacity have room behind it."""
    largest = np.int64(0)
    for doc in range(ends.size - 1):
        largest = max(largest, ends[doc + 1] - ends[doc])
    return np.zeros(max(_capacity(largest), _capacity(min(largest, MAX_SPARSE))) + largest + 1, np.uint64)


@_inner
def _fill(table, shingles, start, stop):
    """Put a set into an empty table; return (last place taken, steps of probing left), the latter < 0 if too many."""
    capacity, last, at = _capacity(stop - start), np.int64(0), start
    steps = np.int64(STEPS_BASE + STEPS_PER_KEY * (stop - start))
    while at < stop and steps >= 0:
        shingle = shingles[at]
        home = np.int64(((shingle >> HALF) * np.uint64(capacity)) >> HALF)
        place = home
        while table[place] != ZERO and table[place] != shingle:
            place += 1
        table[place] = shingle
        steps -= place - home
        last = max(last, place)
        at += 1
    return last, steps


@_inner
def _number_by_table(keys, numbers):
    """Number equal keys alike; return how many numbers there are, or -1 if probing took too many steps."""
    bits = 1
    while (1 << bits) < 2 * keys.size:
        bits += 1
    shift, last = np.uint64(64 - bits), (1 << bits) - 1
    owners = np.empty(1 << bits, np.int64)
    for place in range(owners.size):
        owners[place] = NOBODY
    count, steps = 0, STEPS_BASE + STEPS_PER_KEY * keys.size
    for at in range(keys.size):
        home = np.int64((keys[at] * KEY_MULTIPLIER) >> shift)
        place = home
        while owners[place] >= 0 and keys[owners[place]] != keys[at]:
            place = (place + 1) & last
        steps -= (place - home) & last
        if owners[place] < 0:
            owners[place] = at
            numbers[at] = count
            count += 1
        else:
            numbers[at] = numbers[owners[place]]
        if steps < 0:
            return -1
    return count


@_inner
def _number_by_sorting(keys, numbers):
    """As `_number_by_table`, in time n log n whatever the keys are."""
    order, owners = np.argsort(keys, kind="mergesort"), np.empty(keys.size, np.int64)
    for at in range(order.size):
        is_new = at == 0 or keys[order[at]] != keys[order[at - 1]]
        owners[order[at]] = order[at] if is_new else owners[order[at - 1]]
    count = 0
    for at in range(keys.size):
        numbers[at] = count if owners[at] == at else numbers[owners[at]]
        count += owners[at] == at
    return count


@numba.njit(cache=True, nogil=True)
def number_lists(keys, numbers):
    """Number equal keys alike, from 0 in order of appearance; return how many numbers there are.

    keys     uint64[num_keys]
    numbers  int64 [num_keys]  written
    """
    count = _number_by_table(keys, numbers)
    return count if count >= 0 else _number_by_sorting(keys, numbers)


@_inner
def _count_shingles(shingles, start, end):
    """Count the shingles of a component in a saturating table; it only sets an order, so collisions do no harm."""
    bits = 1
    while (1 << bits) < end - start and bits < MAX_COUNT_BITS:
        bits += 1
    shift = np.uint64(64 - bits)
    counts = np.zeros(1 << bits, np.uint8)
    for at in range(start, end):
        place = np.int64(shingles[at] >> shift)
        counts[place] += counts[place] < 255
    return counts, shift


@_inner
def _sort_set(table, shingles, start, stop, ordered):
    """Write a set in ascending order: by a table, and an insertion sort for the few out of place."""
    (last, steps), count = _fill(table, shingles, start, stop), 0
    if steps < 0:
        table[: last + 1] = ZERO
        order = np.argsort(shingles[start:stop], kind="mergesort")
        for at in range(order.size):
            ordered[at] = shingles[start + order[at]]
        return
    for place in range(last + 1):
        if table[place] == ZERO:
            continue
        shingle, at = table[place], count
        table[place] = ZERO
        while at > 0 and ordered[at - 1] > shingle:
            ordered[at] = ordered[at - 1]
            at -= 1
        ordered[at] = shingle
        count += 1


@numba.njit(cache=True, nogil=True)
def rank_prefixes(shingles, ends, threshold, ranked, ranked_ends):
    """Write the rarest shingles of every document in (count, hash) order, the same order in every document.

    shingles     uint64[num_shingles]  distinct in each document
    ends         int64 [num_docs + 1]
    threshold    float64
    ranked       uint64[num_shingles]  written; a count and the top 56 bits of a hash in one number
    ranked_ends  int64 [num_docs + 1]  written; as many of each document as every partner must share one of
    """
    counts, shift = _count_shingles(shingles, ends[0], ends[-1])
    starts, table = np.empty(257, np.int64), _table_for(ends)
    ordered, by_count = np.empty(table.size, np.uint64), np.empty(table.size, np.uint64)
    ranked_ends[0] = to = 0
    for doc in range(ends.size - 1):
        _sort_set(table, shingles, ends[doc], ends[doc + 1], ordered)
        for count in range(257):
            starts[count] = 0
        for at in range(ends[doc + 1] - ends[doc]):
            starts[np.int64(counts[np.int64(ordered[at] >> shift)]) + 1] += 1
        for count in range(256):
            starts[count + 1] += starts[count]
        for at in range(ends[doc + 1] - ends[doc]):  # they are in order, so counting places by count suffices
            count = np.int64(counts[np.int64(ordered[at] >> shift)])
            by_count[starts[count]] = (np.uint64(count) << np.uint64(56)) | (ordered[at] >> np.uint64(8))
            starts[count] += 1
        for at in range(_prefix_size(ends[doc + 1] - ends[doc], threshold)):
            ranked[to] = by_count[at]
            to += 1
        ranked_ends[doc + 1] = to
