"""The secrets that kernels hash with, derived from the seed.

BLAKE2b derives them, so that one known secret reveals nothing about the others or the seed.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Final

import numpy as np
import numpy.typing as npt

from neardup.kernels import shingle, vectors

U64 = npt.NDArray[np.uint64]
_SECRET_BYTES: Final = 8


@functools.lru_cache(maxsize=16)
def shingle_key(seed: int) -> U64:
    """Return the key of the kernels in shingle.py."""
    key = _draw(seed, b"shingles", shingle.KEY_SIZE)
    # 3 modulo 8: powers of the base minus 1 then have the fewest possible factors of 2.
    key[-2:] = key[-2:] & ~np.uint64(7) | np.uint64(3)
    return _frozen(key)


@functools.lru_cache(maxsize=16)
def digest_key(seed: int) -> U64:
    """Return the key of `digest_words` in vectors.py."""
    return _frozen(_draw(seed, b"digests", vectors.KEY_SIZE))


def group_key(seed: int) -> bytes:
    """Return the key that the names of groups are hashed with."""
    return _draw(seed, b"groups", 1).astype("<u8").tobytes()


def _draw(seed: int, purpose: bytes, count: int) -> U64:
    """Derive secrets for one purpose from a seed of 64 bits."""
    drawn = b"".join(
        hashlib.blake2b(
            int(seed).to_bytes(8, "little"),
            digest_size=_SECRET_BYTES,
            salt=number.to_bytes(2, "little"),
            person=purpose,
        ).digest()
        for number in range(count)
    )
    return np.frombuffer(drawn, "<u8").astype(np.uint64)


def _frozen(key: U64) -> U64:
    key.flags.writeable = False
    return key
