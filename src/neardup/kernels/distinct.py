"""Shingle hashes to sets: distinct, sorted, digested, or numbered by repetition.

The table of hash_sets.py holds its keys almost in order: scanning it and one insertion sort give
the sorted set in linear time. A document whose hashes were constructed to collide is sorted
instead, with the same result.
"""

import numpy as np

from neardup.kernels.compilation import inner, kernel
from neardup.kernels.digests import (
    FACTOR_ONE,
    add_to_digest,
    factor_of,
    multiply_modulo,
    remainder_of,
)
from neardup.kernels.hash_sets import (
    ZERO,
    capacity_for,
    fill,
    home_of,
    largest_set,
    max_steps,
    probe,
    table_for,
)
from neardup.kernels.mixing import HALF
from neardup.kernels.sorting import clear, order_of, sort_values

ONE = np.uint64(1)
NAME_MULTIPLIER = np.uint64(0x9FB21C651E98DF25)
REPETITION_MULTIPLIER = np.uint64(0xC2B2AE3D27D4EB4F)


@inner
def _mark_firsts(values, is_first):
    """Mark the first occurrence of every value, by sorting, so that no input is slow."""
    order = order_of(values)
    for at in range(order.size):
        is_first[order[at]] = at == 0 or values[order[at]] != values[order[at - 1]]


@inner
def _fill_in_order(shingles, start, end, table, capacity, to, key):
    """Write distinct shingles to shingles[to:] in order of appearance, and digest them.

    Returns their end, where to resume, the last slot, and both halves of the digest. The position
    to resume is before `end` only if probing took too many steps.
    """
    # Unsigned, because Numba checks a signed index for being negative. No branch on whether a
    # shingle is new.
    steps = max_steps(end - start)
    wide = np.uint64(capacity)
    at = np.uint64(start)
    stop = np.uint64(end)
    front = np.uint64(to)
    # Read once: the compiler cannot know that the key does not change as shingles are written.
    low_multiplier = key[0]
    low_point = key[1]
    high_multiplier = key[3]
    high_point = key[4]
    low = ONE
    high = ONE
    while at < stop and steps >= 0:
        shingle = shingles[at]
        index = ((shingle >> HALF) * wide) >> HALF
        found = table[index]
        while found != ZERO and found != shingle:
            index += ONE
            steps -= 1
            found = table[index]
        table[index] = shingle
        shingles[front] = shingle
        is_new = found == ZERO
        front += np.uint64(is_new)
        low = multiply_modulo(
            low, factor_of(shingle, low_multiplier, low_point) if is_new else FACTOR_ONE
        )
        high = multiply_modulo(
            high, factor_of(shingle, high_multiplier, high_point) if is_new else FACTOR_ONE
        )
        at += ONE
    # Keys that were probed past the capacity lie behind it without a gap.
    last = capacity
    while table[last] != ZERO:
        last += 1
    return np.int64(front), np.int64(at), last, low, high


@inner
def _go_on_by_sorting(shingles, start, to, at, end):
    """Finish what `_fill_in_order` began: shingles[start:to] are already distinct, those from `at` on remain."""
    values = np.empty(to - start + end - at, np.uint64)
    for position in range(to - start):
        values[position] = shingles[start + position]
    for position in range(end - at):
        values[to - start + position] = shingles[at + position]
    is_first = np.empty(values.size, np.bool_)
    _mark_firsts(values, is_first)
    for position in range(to - start, values.size):
        shingles[to] = values[position]
        to += is_first[position]
    return to


@kernel
def digest_sets(shingles, ends, key, digests, sizes):
    """Write the size and a 128-bit digest of the set of distinct shingles of every document.

    shingles  uint64[num_shingles]   all documents end to end, with repetitions, in any order; the distinct ones of
                                     each are written to the front, end to end
    ends      int64 [num_docs + 1]   document d owns shingles[ends[d]:ends[d + 1]]
    key       uint64[KEY_SIZE]       of kernels/keys.py
    digests   uint64[num_docs, 2]    written; equal sets have equal digests
    sizes     int64 [num_docs]       written; number of distinct shingles
    """
    table = table_for(ends)
    to = np.int64(0)
    for doc in range(ends.size - 1):
        start = to
        capacity = capacity_for(ends[doc + 1] - ends[doc])
        to, at, last, low, high = _fill_in_order(
            shingles, ends[doc], ends[doc + 1], table, capacity, start, key
        )
        clear(table, last + 1)
        if at < ends[doc + 1]:
            digested = to
            to = _go_on_by_sorting(shingles, start, to, at, ends[doc + 1])
            low, high = add_to_digest(shingles, digested, to, key, low, high)
        digests[doc, 0] = remainder_of(low)
        digests[doc, 1] = remainder_of(high)
        sizes[doc] = to - start


@inner
def _sort_table(table, last, scanned, distinct, first):
    """Clear a table up to the last slot used, and write its keys in order; return their end."""
    to = first
    # No branch on whether the slot is free, which would be unpredictable.
    for index in range(last + 1):
        scanned[to - first] = table[index]
        to += table[index] != ZERO
    clear(table, last + 1)
    for position in range(to - first):
        key = scanned[position]
        at = first + position
        while at > first and distinct[at - 1] > key:
            distinct[at] = distinct[at - 1]
            at -= 1
        distinct[at] = key
    return to


@inner
def sort_set(shingles, start, end, table, scanned, distinct, first):
    """Write the distinct ones of shingles[start:end] to distinct[first:] in ascending order; return where they end.

    table    uint64[]               as `table_for` allocates it; free before and after
    scanned  uint64[end - start + 1]  overwritten
    """
    last, steps = fill(table, shingles, start, end)
    if steps >= 0:
        return _sort_table(table, last, scanned, distinct, first)
    clear(table, last + 1)
    for position in range(end - start):
        scanned[position] = shingles[start + position]
    sort_values(scanned, np.empty(end - start, np.uint64), end - start)
    to = first
    for position in range(end - start):
        if to == first or distinct[to - 1] != scanned[position]:
            distinct[to] = scanned[position]
            to += 1
    return to


@kernel
def sort_sets(shingles, ends, distinct, distinct_ends):
    """Write the distinct shingles of every document in ascending order.

    shingles       uint64[num_shingles]  as for `digest_sets`
    ends           int64 [num_docs + 1]
    distinct       uint64[num_shingles]  written from the front
    distinct_ends  int64 [num_docs + 1]  written; document d owns distinct[distinct_ends[d]:distinct_ends[d + 1]]
    """
    table = table_for(ends)
    scanned = np.empty(largest_set(ends) + 1, np.uint64)
    to = distinct_ends[0] = 0
    for doc in range(ends.size - 1):
        to = sort_set(shingles, ends[doc], ends[doc + 1], table, scanned, distinct, to)
        distinct_ends[doc + 1] = to


@kernel
def sample_shingles(shingles, mask, positions, sampled):
    """Select the shingles that have none of the bits of a mask; return how many there are.

    shingles   uint64[num_shingles]
    mask       uint64
    positions  int64 [num_shingles]  written from the front; where they are in `shingles`
    sampled    uint64[num_shingles]  written from the front
    """
    count = np.uint64(0)
    for at in range(np.uint64(shingles.size)):
        shingle = shingles[at]
        positions[count] = at
        sampled[count] = shingle
        # No branch, which would be mispredicted once in 16 times.
        count += np.uint64((shingle & mask) == ZERO)
    return np.int64(count)


@kernel
def gather_sets(shingles, starts, gathered, ends):
    """Copy sets from arbitrary offsets, end to end.

    shingles  uint64[num_shingles]
    starts    int64 [num_docs]       where each set starts
    gathered  uint64[total]          written
    ends      int64 [num_docs + 1]   set d goes to gathered[ends[d]:ends[d + 1]]
    """
    for doc in range(starts.size):
        start = starts[doc]
        to = ends[doc]
        for position in range(ends[doc + 1] - to):
            gathered[to + position] = shingles[start + position]


@inner
def _repetition(shingle, number):
    """Return the shingle that stands for the n-th repetition of another."""
    mixed = shingle * NAME_MULTIPLIER + np.uint64(number) * REPETITION_MULTIPLIER
    mixed = (mixed ^ (mixed >> HALF)) * NAME_MULTIPLIER
    mixed ^= mixed >> np.uint64(29)
    return mixed if mixed != ZERO else ONE


@inner
def _number_by_table(shingles, start, end, table, counts, originals):
    """Rename the repetitions of one document; return the remaining probing steps, negative if there were too many."""
    capacity = capacity_for(end - start)
    steps = max_steps(end - start)
    at = start
    last = capacity
    while at < end and steps >= 0:
        shingle = originals[at - start] = shingles[at]
        home = home_of(shingle, capacity)
        index = probe(table, shingle, home)
        table[index] = shingle
        steps -= index - home
        last = max(last, index)
        if counts[index]:
            shingles[at] = _repetition(shingle, counts[index])
        counts[index] += 1
        at += 1
    clear(table, last + 1)
    clear(counts, last + 1)
    if steps < 0:
        for position in range(at - start):
            shingles[start + position] = originals[position]
    return steps


@inner
def _number_by_sorting(shingles, start, end):
    """Like `_number_by_table`, but in O(n log n) for any shingles."""
    values = np.empty(end - start, np.uint64)
    for at in range(end - start):
        values[at] = shingles[start + at]
    order = order_of(values)
    number = 0
    for at in range(1, order.size):
        if values[order[at]] == values[order[at - 1]]:
            number = number + 1
        else:
            number = 0
        if number:
            shingles[start + order[at]] = _repetition(values[order[at]], number)


@kernel
def number_repetitions(shingles, ends):
    """Turn bags into sets, in place: the n-th repetition of a shingle becomes a shingle of its own.

    shingles  uint64[num_shingles]  as for `digest_sets`; overwritten
    ends      int64 [num_docs + 1]
    """
    table = table_for(ends)
    counts = np.zeros(table.size, np.int64)
    originals = np.empty(largest_set(ends) + 1, np.uint64)
    for doc in range(ends.size - 1):
        if _number_by_table(shingles, ends[doc], ends[doc + 1], table, counts, originals) < 0:
            _number_by_sorting(shingles, ends[doc], ends[doc + 1])
