"""Before stage 3 of 6, with method="auto": estimate the cost of the exact join from a sample of all shingles.

A shingle is sampled by its own hash, so it is sampled in every document that contains it, and its
count is as accurate as in the exact join. The sample is taken in the first pass, so choosing the
method reads nothing again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.kernels import distinct
from neardup.measures.base import U64, group_salts
from neardup.stages.prefix import U8

I64 = npt.NDArray[np.int64]
# One in this many shingles is sampled; a power of two.
SAMPLED_OF: Final = 16
# The low bits select the sample, because the high bits index the counts.
_MASK: Final = np.uint64(SAMPLED_OF - 1)
# Few shingles of a document are sampled, so the share of rare ones is smoothed: _PRIOR
# pseudo-counts of _PRIOR_SHARE.
_PRIOR: Final = 0.25
_PRIOR_SHARE: Final = 0.5


class Sampler:
    """Samples the sets on their way into memory; a drop-in for `hold`, to which it passes them on, if there is one."""

    def __init__(self, hold: Callable[[U64], int] | None) -> None:
        self._hold = hold
        self._sampled_at: list[I64] = []
        self._values: list[U64] = []
        self._num_seen = 0

    def __call__(self, values: U64) -> int:
        """Sample the sets of the next documents."""
        sampled_at = np.empty(values.size, np.int64)
        sampled = np.empty(values.size, np.uint64)
        count = distinct.sample_shingles(values, _MASK, sampled_at, sampled)
        self._sampled_at.append(sampled_at[:count] + self._num_seen)
        self._values.append(sampled[:count].copy())
        self._num_seen += values.size
        return 0 if self._hold is None else self._hold(values)

    def lists(self, sizes: I64, groups: I64) -> pa.LargeListArray:
        """Return the sampled shingles of every document; `sizes` has the size of every set seen."""
        sampled_at = np.concatenate([*self._sampled_at, np.empty(0, np.int64)])
        values = np.concatenate([*self._values, np.empty(0, np.uint64)])
        set_ends = np.cumsum(np.r_[0, sizes])
        ends = np.searchsorted(sampled_at, set_ends)
        if groups.any():
            values ^= np.repeat(group_salts(groups), np.diff(ends))
        return pa.LargeListArray.from_arrays(pa.array(ends), pa.array(values.view(np.int64)))


def measure(sketches: pa.RecordBatch, counts: U8, threshold: float) -> pa.RecordBatch:
    """Estimate how much work each document is for the exact join.

    Args:
        sketches: the columns row, num_shingles and shingles (the sampled ones).
        counts: counts of the sampled shingles, as `prefix.count` fills them.
        threshold: the least similarity of a pair.
    """
    sizes = sketches.column("num_shingles").to_numpy()
    lists = sketches.column("shingles")
    ends = lists.offsets.to_numpy()
    values = lists.values.to_numpy().view(np.uint64)
    num_bits = counts.size.bit_length() - 1
    counters = (values >> np.uint64(64 - num_bits)).view(np.int64)
    rare_before = np.r_[0, np.cumsum(counts[counters] < 2)]
    num_rare = np.diff(rare_before[ends])
    num_sampled = np.diff(ends)
    own = sizes * (num_rare + _PRIOR * _PRIOR_SHARE) / (num_sampled + _PRIOR)
    # The prefix size of the kernel, up to rounding.
    prefixes = sizes - np.ceil(threshold * sizes) + 1
    shown = np.rint(np.maximum(prefixes - own, 0)).astype(np.int64)
    is_linked = (shown > 0).astype(np.int64)
    rows = sketches.column("row").to_numpy()
    return schema.batch_of(
        schema.CONTENTS, rows, np.ones_like(sizes), shown, is_linked, is_linked * sizes
    )
