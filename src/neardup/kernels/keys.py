"""The secrets that kernels hash with: those of the seed, and those of digests, which no seed determines.

BLAKE2b derives secrets from the seed, so that one known secret reveals nothing about the others or
the seed. Digests decide without a comparison which documents are equal, so their key is secret even
if the seed is public: it is drawn from the operating system, and appears in no result.
"""

from __future__ import annotations

import functools
import hashlib
import os
from typing import Final

import numpy as np
import numpy.typing as npt

from neardup.kernels import digests, shingle

U64 = npt.NDArray[np.uint64]
_SECRET_BYTES: Final = 8
DIGEST_SECRET_BYTES: Final = _SECRET_BYTES * digests.KEY_SIZE


@functools.lru_cache(maxsize=16)
def shingle_key(seed: int) -> U64:
    """Return the key of the kernels in shingle.py."""
    key = _draw(seed, b"shingles", shingle.KEY_SIZE)
    # 3 modulo 8: powers of the base minus 1 then have the fewest possible factors of 2.
    key[-2:] = key[-2:] & ~np.uint64(7) | np.uint64(3)
    return _frozen(key)


def draw_secret() -> bytes:
    """Return random bytes for `digest_key`."""
    return os.urandom(DIGEST_SECRET_BYTES)


@functools.cache
def own_secret() -> bytes:
    """Return the secret of this process: its digests can be compared with each other."""
    return draw_secret()


@functools.lru_cache(maxsize=16)
def digest_key(secret: bytes) -> U64:
    """Return the key of the kernels in digests.py."""
    key = np.frombuffer(secret, "<u8").astype(np.uint64)
    multipliers = key[0::3]
    multipliers |= np.uint64(1)
    # Points are below 2**59, and scaled as factors are.
    points = key.reshape(2, 3)[:, 1:]
    points &= np.uint64((1 << 59) - 1)
    points <<= digests.SCALE_BITS
    return _frozen(key)


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
