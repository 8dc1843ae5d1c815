"""The posting lists of a hot component: the rarest shingles of its documents, in an order common to all.

Two sets of similarity >= t share one of their rarest n - ceil(t n) + 1 shingles, the prefix.
"""

import numpy as np

from neardup.kernels.bounds import prefix_size
from neardup.kernels.compilation import inner, kernel
from neardup.kernels.distinct import sort_set
from neardup.kernels.hash_sets import ZERO, bits_for, find_firsts, find_firsts_by_sorting, table_for
from neardup.kernels.prefix import count_shingles, shift_for

MAX_COUNT_BITS = 26


@kernel
def number_lists(keys, numbers):
    """Give equal keys equal numbers, from 0 in order of appearance; return how many numbers there are.

    keys     uint64[num_keys]
    numbers  int64 [num_keys]  written
    """
    bits = bits_for(keys.size)
    if not find_firsts(keys, np.uint64(64 - bits), ZERO, np.empty(1 << bits, np.int64), numbers):
        find_firsts_by_sorting(keys, numbers)
    count = 0
    for at in range(keys.size):
        is_first = numbers[at] == at
        numbers[at] = count if is_first else numbers[numbers[at]]
        count += is_first
    return count


@inner
def _count_shingles(shingles, start, end):
    """Count the shingles of a component in a saturating table; it only defines an order, so collisions are harmless."""
    bits = 1
    while (1 << bits) < end - start and bits < MAX_COUNT_BITS:
        bits += 1
    counts = np.zeros(1 << bits, np.uint8)
    count_shingles(shingles[start:end], counts)
    return counts, shift_for(counts)


@kernel
def rank_prefixes(shingles, ends, threshold, ranked, ranked_ends):
    """Write the rarest shingles of every document in (count, hash) order, the same order in every document.

    shingles     uint64[num_shingles]  distinct in each document
    ends         int64 [num_docs + 1]
    threshold    float64
    ranked       uint64[num_shingles]  written; a count and the top 56 bits of a hash in one number
    ranked_ends  int64 [num_docs + 1]  written; as many of each document as every partner must share one of
    """
    counts, shift = _count_shingles(shingles, ends[0], ends[-1])
    starts = np.empty(257, np.int64)
    table = table_for(ends)
    ordered = np.empty(table.size, np.uint64)
    by_count = np.empty(table.size, np.uint64)
    ranked_ends[0] = to = 0
    for doc in range(ends.size - 1):
        sort_set(shingles, ends[doc], ends[doc + 1], table, by_count, ordered, 0)
        for count in range(257):
            starts[count] = 0
        for at in range(ends[doc + 1] - ends[doc]):
            starts[np.int64(counts[np.int64(ordered[at] >> shift)]) + 1] += 1
        for count in range(256):
            starts[count + 1] += starts[count]
        # They are sorted, so a counting sort by count suffices.
        for at in range(ends[doc + 1] - ends[doc]):
            count = np.int64(counts[np.int64(ordered[at] >> shift)])
            by_count[starts[count]] = (np.uint64(count) << np.uint64(56)) | (
                ordered[at] >> np.uint64(8)
            )
            starts[count] += 1
        for at in range(prefix_size(ends[doc + 1] - ends[doc], threshold)):
            ranked[to] = by_count[at]
            to += 1
        ranked_ends[doc + 1] = to
