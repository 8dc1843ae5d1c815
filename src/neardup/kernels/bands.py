"""Signatures to band keys, and band keys to links: who shares a bucket."""

import numba
import numpy as np

KEY_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
FINAL_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
HALF = np.uint64(32)


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


@numba.njit(cache=True, nogil=True)
def star_links(keys, rows, smallest):
    """Write for each key the smallest row among its equals: a star per bucket, linear in the keys.

    keys      uint64[num_keys]
    rows      int64 [num_keys]  the row each key belongs to
    smallest  int64 [num_keys]  written
    """
    bits = 1
    while (1 << bits) < 2 * keys.size:
        bits += 1
    shift, last = np.uint64(64 - bits), (1 << bits) - 1
    owner = np.full(1 << bits, -1, np.int64)
    first = np.empty(keys.size, np.int64)
    for at in range(keys.size):
        place = np.int64((keys[at] * KEY_MULTIPLIER) >> shift)
        while owner[place] >= 0 and keys[owner[place]] != keys[at]:
            place = (place + 1) & last
        if owner[place] < 0:
            owner[place] = at
            smallest[at] = rows[at]
        first[at] = owner[place]
        smallest[first[at]] = min(smallest[first[at]], rows[at])
    for at in range(keys.size):
        smallest[at] = smallest[first[at]]
