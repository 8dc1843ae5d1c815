"""Weighted sets to signatures: a slot of two sets agrees with a chance equal to their weighted Jaccard similarity.

Consistent weighted sampling (Ioffe, 2010): for every slot and item three random numbers, drawn from the item's hash,
make a grid of weights; the grid point below the item's weight gets a random rank, and the item of lowest rank, with its
grid point, is the slot. Two sets choose the same point with chance sum of minima / sum of maxima.
"""

import numba
import numpy as np

HALF = np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)
STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
SECOND_MULTIPLIER = np.uint64(0x94D049BB133111EB)
TO_UNIT = 2.0**-32
NO_ITEMS = np.uint32(0xFFFFFFFF)
# Called by kernels only: without the wrappers for Python it compiles in half the time.
_inner = numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@_inner
def _mix(value):
    value = (value ^ (value >> np.uint64(30))) * FIRST_MULTIPLIER
    value = (value ^ (value >> np.uint64(27))) * SECOND_MULTIPLIER
    return value ^ (value >> np.uint64(31))


@_inner
def _unit(bits):
    """A number between 0 and 1, and neither, from 32 bits."""
    return (np.float64(bits) + 0.5) * TO_UNIT


@numba.njit(cache=True, nogil=True)
def sample_weighted(hashes, log_weights, ends, signatures):
    """Write one signature per document.

    hashes       uint64 [num_items]           all documents end to end
    log_weights  float64[num_items]           the natural logarithms of the weights
    ends         int64  [num_docs + 1]        document d owns the items [ends[d], ends[d + 1])
    signatures   uint32 [num_docs, num_perm]  written; NO_ITEMS in every slot of an empty document
    """
    ranks = np.empty(signatures.shape[1])
    for doc in range(signatures.shape[0]):
        for slot in range(ranks.size):
            ranks[slot], signatures[doc, slot] = np.inf, NO_ITEMS
        for at in range(ends[doc], ends[doc + 1]):
            state, log_weight = hashes[at], log_weights[at]
            for slot in range(ranks.size):
                state += STEP
                one = _mix(state)
                two = _mix(one ^ STEP)
                spread = -np.log(_unit(one >> HALF) * _unit(one & LOW_HALF))
                height = np.log(-np.log(_unit(two >> HALF) * _unit(two & LOW_HALF)))
                shift = _unit(_mix(two ^ STEP) >> HALF)
                level = np.floor(log_weight / spread + shift)
                rank = height - spread * (level - shift) - spread
                if rank < ranks[slot]:
                    ranks[slot] = rank
                    chosen = _mix(one ^ np.uint64(np.int64(level)))
                    signatures[doc, slot] = np.uint32(chosen >> HALF)
