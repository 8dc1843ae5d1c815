"""From signatures to band keys, and from band keys to links between documents that share a bucket."""

import numpy as np

from neardup.kernels.compilation import inner, kernel, uncounted
from neardup.kernels.hash_sets import bits_for, find_firsts, find_firsts_by_sorting, largest_set
from neardup.kernels.mixing import FIRST_MULTIPLIER, GOLDEN_MULTIPLIER, HALF

# Approximate keys per partition, so that its hash table stays in the cache of a core.
PART_KEYS = 1 << 14
MAX_PART_BITS = 10


@kernel
def band_keys(signatures, rows, keys):
    """Write one key per band; equal keys name one bucket, and the band number is part of the key.

    signatures  uint32[num_docs, num_perm]
    rows        int64                       rows of a band; bands * rows <= num_perm
    keys        uint64[num_docs, bands]     written
    """
    for doc in range(keys.shape[0]):
        for band in range(keys.shape[1]):
            key = np.uint64(band + 1) * FIRST_MULTIPLIER
            for row in range(band * rows, (band + 1) * rows):
                key = (key ^ np.uint64(signatures[doc, row])) * GOLDEN_MULTIPLIER
                key ^= key >> HALF
            key *= FIRST_MULTIPLIER
            keys[doc, band] = key ^ (key >> np.uint64(31))


@uncounted
def shares_bucket(keys, doc, other_keys, other):
    """Whether two documents have a band key in common."""
    for band in range(keys.shape[1]):
        if keys[doc, band] == other_keys[other, band]:
            return True
    return False


@inner
def _partition(keys, rows, bits, parted_keys, parted_rows):
    """Partition keys and rows by the top bits of the mixed keys; return the ends of the partitions."""
    shift = np.uint64(64 - bits)
    ends = np.zeros((1 << bits) + 1, np.int64)
    for at in range(keys.size):
        ends[np.int64((keys[at] * GOLDEN_MULTIPLIER) >> shift) + 1] += 1
    for part in range(1 << bits):
        ends[part + 1] += ends[part]
    to = np.empty(1 << bits, np.int64)
    for part in range(1 << bits):
        to[part] = ends[part]
    for at in range(keys.size):
        part = np.int64((keys[at] * GOLDEN_MULTIPLIER) >> shift)
        parted_keys[to[part]] = keys[at]
        parted_rows[to[part]] = rows[at]
        to[part] += 1
    return ends


@kernel
def star_links(keys, rows, linked, smallest):
    """Write a star per bucket: every row except the smallest, linked to the smallest; return the number of links.

    Linear in the keys, which are partitioned first, so that the hash table of a partition stays in
    the cache.

    keys      uint64[num_keys]
    rows      int64 [num_keys]  the row each key belongs to
    linked    int64 [num_keys]  written from the front: rows that share a bucket with a smaller one
    smallest  int64 [num_keys]  written from the front: the smallest row of that bucket
    """
    part_bits = 1
    while part_bits < MAX_PART_BITS and (keys.size >> part_bits) > PART_KEYS:
        part_bits += 1
    parted_keys = np.empty(keys.size, np.uint64)
    parted_rows = np.empty(keys.size, np.int64)
    ends = _partition(keys, rows, part_bits, parted_keys, parted_rows)
    largest = largest_set(ends)
    bits = bits_for(largest)
    shift = np.uint64(64 - bits)
    above = np.uint64(part_bits)
    owners = np.empty(1 << bits, np.int64)
    firsts = np.empty(largest, np.int64)
    lows = np.empty(largest, np.int64)
    count = 0
    for part in range(ends.size - 1):
        start, stop = ends[part], ends[part + 1]
        part_keys = parted_keys[start:stop]
        part_rows = parted_rows[start:stop]
        if not find_firsts(part_keys, shift, above, owners, firsts):
            find_firsts_by_sorting(part_keys, firsts)
        for at in range(stop - start):
            first = firsts[at]
            if first == at:
                lows[first] = part_rows[at]
            else:
                lows[first] = min(lows[first], part_rows[at])
        for at in range(stop - start):
            low = lows[firsts[at]]
            if part_rows[at] != low:
                linked[count] = part_rows[at]
                smallest[count] = low
                count += 1
    return count
