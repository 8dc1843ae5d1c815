"""Signatures to band keys, and band keys to links: who shares a bucket."""

import numba
import numpy as np

KEY_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
FINAL_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
HALF = np.uint64(32)
# Keys of a part, about: their table stays in a core's cache.
PART_KEYS, MAX_PART_BITS = 1 << 14, 10
# Steps of probing that a part has before its table gives way to a sort: random keys take 1 a key or less.
STEPS_BASE, STEPS_PER_KEY = 1 << 10, 8
# Called by kernels only: without the wrappers for Python it compiles in half the time.
_inner = numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@numba.njit(cache=True, nogil=True)
def band_keys(signatures, rows, keys):
    """Write one key per band; equal keys name one bucket, and the band number is part of the key.

    signatures  uint32[num_docs, num_perm]
    rows        int64                       rows of a band; bands * rows <= num_perm
    keys        uint64[num_docs, bands]     written
    """
    for doc in range(keys.shape[0]):
        for band in range(keys.shape[1]):
            key = np.uint64(band + 1) * FINAL_MULTIPLIER
            for row in range(band * rows, (band + 1) * rows):
                key = (key ^ np.uint64(signatures[doc, row])) * KEY_MULTIPLIER
                key ^= key >> HALF
            key *= FINAL_MULTIPLIER
            keys[doc, band] = key ^ (key >> np.uint64(31))


@_inner
def _partition(keys, rows, bits, parted_keys, parted_rows):
    """Copy keys and rows so that keys with equal top bits, once mixed, stand together; return the ends of the parts."""
    shift = np.uint64(64 - bits)
    ends = np.zeros((1 << bits) + 1, np.int64)
    for at in range(keys.size):
        ends[np.int64((keys[at] * KEY_MULTIPLIER) >> shift) + 1] += 1
    for part in range(1 << bits):
        ends[part + 1] += ends[part]
    to = ends[:-1].copy()
    for at in range(keys.size):
        part = np.int64((keys[at] * KEY_MULTIPLIER) >> shift)
        parted_keys[to[part]], parted_rows[to[part]] = keys[at], rows[at]
        to[part] += 1
    return ends


@_inner
def _find_firsts(keys, shift, above, owners, firsts):
    """Write to firsts[at] the first place of a key equal to keys[at]; return False if probing took too many steps.

    owners: -1 in 2**bits places; shift: 64 - bits; above: top bits, once mixed, that all keys share
    """
    last = owners.size - 1
    steps, at = STEPS_BASE + STEPS_PER_KEY * keys.size, 0
    while at < keys.size and steps >= 0:
        home = np.int64(((keys[at] * KEY_MULTIPLIER) << above) >> shift)
        place = home
        while owners[place] >= 0 and keys[owners[place]] != keys[at]:
            place = (place + 1) & last
        steps -= (place - home) & last
        if owners[place] < 0:
            owners[place] = at
        firsts[at] = owners[place]
        at += 1
    return steps >= 0


@_inner
def _find_firsts_by_sorting(keys, firsts):
    """As `_find_firsts`, in time n log n whatever the keys are."""
    order = np.argsort(keys, kind="mergesort")
    for at in range(order.size):
        is_new = at == 0 or keys[order[at]] != keys[order[at - 1]]
        firsts[order[at]] = order[at] if is_new else firsts[order[at - 1]]


@numba.njit(cache=True, nogil=True)
def star_links(keys, rows, linked, smallest):
    """Write a star per bucket: every row but the smallest of its bucket, and that smallest; return how many.

    Linear in the keys; they are parted first, so that the table of a part stays in the cache.

    keys      uint64[num_keys]
    rows      int64 [num_keys]  the row each key belongs to
    linked    int64 [num_keys]  written from the front: rows that share a bucket with a smaller one
    smallest  int64 [num_keys]  written from the front: the smallest row of that bucket
    """
    part_bits = 1
    while part_bits < MAX_PART_BITS and (keys.size >> part_bits) > PART_KEYS:
        part_bits += 1
    parted_keys, parted_rows = np.empty(keys.size, np.uint64), np.empty(keys.size, np.int64)
    ends = _partition(keys, rows, part_bits, parted_keys, parted_rows)
    largest = 0
    for part in range(ends.size - 1):
        largest = max(largest, ends[part + 1] - ends[part])
    bits = 1
    while (1 << bits) < 2 * largest:
        bits += 1
    shift, above = np.uint64(64 - bits), np.uint64(part_bits)
    owners, firsts, lows = np.empty(1 << bits, np.int64), np.empty(largest, np.int64), np.empty(largest, np.int64)
    count = 0
    for part in range(ends.size - 1):
        start, stop = ends[part], ends[part + 1]
        part_keys, part_rows = parted_keys[start:stop], parted_rows[start:stop]
        owners[:] = -1
        if not _find_firsts(part_keys, shift, above, owners, firsts):
            _find_firsts_by_sorting(part_keys, firsts)
        for at in range(stop - start):
            first = firsts[at]
            lows[first] = part_rows[at] if first == at else min(lows[first], part_rows[at])
        for at in range(stop - start):
            low = lows[firsts[at]]
            if part_rows[at] != low:
                linked[count], smallest[count] = part_rows[at], low
                count += 1
    return count
