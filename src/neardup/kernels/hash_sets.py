"""Hash tables of 64-bit hashes, safe against adversarial input.

The table of one set: the slot of a hash is the hash scaled to the table, with linear probing, so
the table keeps its keys almost in order. Shingle hashes are finalised and never zero, so zero marks
a free slot.

The table of many keys: owners of slots; keys are mixed first.

Anyone who knows the constants, or the seed, can construct hashes that collide. So probing steps are
counted: if they exceed a few per key, callers sort instead, with the same result.
"""

import numpy as np

from neardup.kernels.compilation import inner
from neardup.kernels.mixing import GOLDEN_MULTIPLIER, HALF
from neardup.kernels.sorting import order_of

ZERO = np.uint64(0)
MAX_SPARSE = 1 << 14
# Random hashes take at most 1 step per key. The insertion sort of a table takes no more steps than
# probing did, because a key is behind a larger one only if it probed past it.
STEPS_BASE = 1 << 10
STEPS_PER_KEY = 8
# The owner of a free slot.
FREE = -1


@inner
def max_steps(count):
    """Return the most probing steps allowed for this many keys together."""
    return np.int64(STEPS_BASE + STEPS_PER_KEY * count)


@inner
def capacity_for(count):
    """A load factor of a quarter, so that most keys find a free slot at once; two thirds beyond the cache size."""
    return 4 * count + 8 if count <= MAX_SPARSE else count + (count >> 1) + 8


@inner
def largest_set(ends):
    """Return the size of the largest of the concatenated sets."""
    largest = np.int64(0)
    for doc in range(ends.size - 1):
        largest = max(largest, ends[doc + 1] - ends[doc])
    return largest


@inner
def table_for(ends):
    """Allocate a table that fits any of the sets, with extra slots for keys that probe past the capacity."""
    largest = largest_set(ends)
    return np.zeros(
        max(capacity_for(largest), capacity_for(min(largest, MAX_SPARSE))) + largest + 1, np.uint64
    )


@inner
def home_of(key, capacity):
    """Return the home slot of a key."""
    return np.int64(((key >> HALF) * np.uint64(capacity)) >> HALF)


@inner
def probe(table, key, index):
    """Return the slot of the key, or the free slot where it belongs, probing from its home slot on."""
    while table[index] != ZERO and table[index] != key:
        index += 1
    return index


@inner
def fill(table, keys, start, stop):
    """Insert keys[start:stop] into an empty table; return (last slot used, steps left), the latter < 0 if too many."""
    capacity = capacity_for(stop - start)
    steps = max_steps(stop - start)
    last = np.int64(0)
    at = start
    while at < stop and steps >= 0:
        home = home_of(keys[at], capacity)
        index = probe(table, keys[at], home)
        table[index] = keys[at]
        steps -= index - home
        last = max(last, index)
        at += 1
    return last, steps


@inner
def bits_for(count):
    """Return the number of bits that index a table of this many keys with at least half of the slots free."""
    bits = 1
    while (1 << bits) < 2 * count:
        bits += 1
    return bits


@inner
def find_firsts(keys, shift, above, owners, firsts):
    """Write to firsts[at] the first position of a key equal to keys[at]; return False if probing took too many steps.

    keys    uint64[num_keys]
    shift   uint64            64 - bits
    above   uint64            the number of top bits, after mixing, that are equal in all keys
    owners  int64 [2**bits]   overwritten
    firsts  int64 [num_keys]  written
    """
    for index in range(owners.size):
        owners[index] = FREE
    last = owners.size - 1
    steps = max_steps(keys.size)
    at = 0
    while at < keys.size and steps >= 0:
        home = np.int64(((keys[at] * GOLDEN_MULTIPLIER) << above) >> shift)
        index = home
        while owners[index] >= 0 and keys[owners[index]] != keys[at]:
            index = (index + 1) & last
        steps -= (index - home) & last
        if owners[index] < 0:
            owners[index] = at
        firsts[at] = owners[index]
        at += 1
    return steps >= 0


@inner
def find_firsts_by_sorting(keys, firsts):
    """Like `find_firsts`, but in O(n log n) for any keys."""
    order = order_of(keys)
    for at in range(order.size):
        is_new = at == 0 or keys[order[at]] != keys[order[at - 1]]
        firsts[order[at]] = order[at] if is_new else firsts[order[at - 1]]
