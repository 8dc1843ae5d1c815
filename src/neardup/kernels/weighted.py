"""Weighted sets to signatures: a slot of two sets agrees with a chance equal to their weighted Jaccard similarity.

Consistent weighted sampling (Ioffe, 2010): for every slot and item three random numbers, drawn from
the item's hash, make a grid of weights; the grid point below the item's weight gets a random rank,
and the item of lowest rank, with its grid point, is the slot. Two sets choose the same point with
chance sum of minima / sum of maxima.
"""

import numpy as np

from neardup.kernels.compilation import inner, kernel
from neardup.kernels.mixing import GOLDEN_MULTIPLIER, HALF, mix

LOW_HALF = np.uint64(0xFFFFFFFF)
TO_UNIT = 2.0**-32
NO_ITEMS = np.uint32(0xFFFFFFFF)


@inner
def _unit(bits):
    """A number in the open interval (0, 1), from 32 bits."""
    return (np.float64(bits) + 0.5) * TO_UNIT


@inner
def _draw(state, ones, spreads, heights, shifts):
    """Write the random numbers that an item has in every slot."""
    for slot in range(ones.size):
        state += GOLDEN_MULTIPLIER
        one = mix(state)
        two = mix(one ^ GOLDEN_MULTIPLIER)
        ones[slot] = one
        spreads[slot] = -np.log(_unit(one >> HALF) * _unit(one & LOW_HALF))
        heights[slot] = np.log(-np.log(_unit(two >> HALF) * _unit(two & LOW_HALF)))
        shifts[slot] = _unit(mix(two ^ GOLDEN_MULTIPLIER) >> HALF)


@kernel
def sample_weighted(hashes, log_weights, owners, ranks, signatures):
    """Write one signature per document; an item draws its random numbers once for all documents that have it.

    hashes       uint64 [num_items]           of all documents, ascending
    log_weights  float64[num_items]           the natural logarithms of the weights
    owners       int64  [num_items]           the document of each
    ranks        float64[num_docs, num_perm]  infinities; then the lowest rank in every slot
    signatures   uint32 [num_docs, num_perm]  NO_ITEMS in every slot; unchanged for an empty document
    """
    num_perm = signatures.shape[1]
    ones = np.empty(num_perm, np.uint64)
    spreads = np.empty(num_perm)
    heights = np.empty(num_perm)
    shifts = np.empty(num_perm)
    for at in range(hashes.size):
        if at == 0 or hashes[at] != hashes[at - 1]:
            _draw(hashes[at], ones, spreads, heights, shifts)
        doc = owners[at]
        log_weight = log_weights[at]
        for slot in range(num_perm):
            level = np.floor(log_weight / spreads[slot] + shifts[slot])
            rank = heights[slot] - spreads[slot] * (level - shifts[slot]) - spreads[slot]
            if rank < ranks[doc, slot]:
                ranks[doc, slot] = rank
                chosen = mix(ones[slot] ^ np.uint64(np.int64(level)))
                signatures[doc, slot] = np.uint32(chosen >> HALF)
