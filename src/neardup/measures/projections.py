"""Random Gaussian lines to project vectors on, derived from the seed, identical on every machine."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from neardup.config.checks import NUM_PERM_CHOICES
from neardup.measures.base import U64, mix, salt

# Lines are numbered as if every signature had this many slots, so that a shorter one is a prefix of
# a longer one.
_MAX_SLOTS: Final = NUM_PERM_CHOICES[-1]


def _units(numbers: U64) -> npt.NDArray[np.float64]:
    """Turn hashes into numbers in the open interval (0, 1)."""
    high = (numbers >> np.uint64(11)).astype(np.float64)
    return (high + 0.5) * 2.0**-53


@lru_cache(maxsize=4)
def gaussian_lines(seed: int, dimension: int, num_lines: int) -> npt.NDArray[np.float32]:
    """Return lines[dimension, num_lines] of independent standard normal numbers, by the Box-Muller transform.

    24 bits are random enough, and hide the last bit of the logarithm, in which machines may differ.
    """
    numbers: U64 = np.arange(dimension * _MAX_SLOTS, dtype=np.uint64)
    numbers = numbers.reshape(dimension, _MAX_SLOTS)[:, :num_lines]
    drawn = mix(numbers ^ salt(seed))
    radius = np.sqrt(-2 * np.log(_units(drawn)))
    angle = 2 * np.pi * _units(mix(drawn))
    lines: npt.NDArray[np.float32] = (radius * np.cos(angle)).astype(np.float32)
    lines.flags.writeable = False
    return lines


def uniform_shifts(seed: int, num_lines: int) -> npt.NDArray[np.float64]:
    """Return the offset of the buckets of each line, as a fraction of the bucket width."""
    numbers = np.arange(num_lines, dtype=np.uint64)
    return _units(mix(mix(numbers ^ salt(seed))))
