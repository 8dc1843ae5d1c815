"""Stage 3 of 6 where the method is open, before the links: what a sample of all shingles tells of the exact join.

A shingle is in the sample by its own hash, so that it is there of every document that has it, and its count is as true
as that of the exact join. The sample is taken in the first pass: nothing has to be read again to choose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.measures.base import U64, group_salts
from neardup.stages.prefix import U8

I64 = npt.NDArray[np.int64]
# One shingle of so many is sampled, a power of two.
SAMPLED_OF: Final = 16
# By the last bits of the hash: counts go by the first.
_MASK: Final = np.uint64(SAMPLED_OF - 1)
# A document shows few shingles: to the share of rare ones among them this one is added, as so many shingles more.
_PRIOR: Final = 0.25
_PRIOR_SHARE: Final = 0.5


class Sampler:
    """Stands where sets are held: takes the sample out of what goes by, and passes it on to be held, if it is."""

    def __init__(self, hold: Callable[[U64], int] | None) -> None:
        self._hold = hold
        self._places: list[I64] = []
        self._values: list[U64] = []
        self._num_seen = 0

    def __call__(self, values: U64) -> int:
        """Take the sample out of the sets of the next documents."""
        chosen = np.flatnonzero((values & _MASK) == 0)
        self._places.append(chosen + self._num_seen)
        self._values.append(values[chosen])
        self._num_seen += values.size
        return 0 if self._hold is None else self._hold(values)

    def lists(self, sizes: I64, groups: I64) -> pa.LargeListArray:
        """Return the sample of every document; `sizes` are those of all sets that went by."""
        places = np.concatenate([*self._places, np.empty(0, np.int64)])
        values = np.concatenate([*self._values, np.empty(0, np.uint64)])
        ends = np.searchsorted(places, np.cumsum(np.r_[0, sizes]))
        if groups.any():
            values ^= np.repeat(group_salts(groups), np.diff(ends))
        return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(values.view(np.int64)))


def measure(sketches: pa.RecordBatch, counts: U8, threshold: float) -> pa.RecordBatch:
    """Estimate for every document what the exact join has to do.

    Args:
        sketches: the columns row, num_shingles and shingles, the sampled ones.
        counts: of the sampled shingles, as `prefix.count` leaves them.
        threshold: of similarity.
    """
    sizes, lists = sketches.column("num_shingles").to_numpy(), sketches.column("shingles")
    ends, values = lists.offsets.to_numpy(), lists.values.to_numpy().view(np.uint64)
    shift = np.uint64(64 - (counts.size.bit_length() - 1))
    is_rare = counts[(values >> shift).view(np.int64)] < 2
    rare = np.diff(np.r_[0, np.cumsum(is_rare)][ends])
    own = sizes * (rare + _PRIOR * _PRIOR_SHARE) / (np.diff(ends) + _PRIOR)
    # As the kernel has it, but for what a double may add.
    prefixes = sizes - np.ceil(threshold * sizes) + 1
    shown = np.rint(np.maximum(prefixes - own, 0)).astype(np.int64)
    is_linked = (shown > 0).astype(np.int64)
    columns = [np.ones_like(sizes), shown, is_linked, is_linked * sizes]
    return pa.record_batch([sketches.column("row"), *map(pa.array, columns)], schema=schema.CONTENTS)
