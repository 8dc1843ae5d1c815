"""Hamming similarity of bit vectors, the share of equal bits: a slot is a randomly chosen bit, so p = 1 - d/m.

Contents are 64-bit words: first the number of bits, then the bits as `numpy.packbits` packs them,
padded with zeros.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from neardup.config import Config
from neardup.kernels import similarity as kernel
from neardup.measures import base
from neardup.theory.plan import Plan

FORMAT: Final = "bits-1"


def signature_format(config: Config) -> str:
    """Name the format of a signature: equal names mean comparable signatures."""
    return f"{FORMAT} dimension-{config.dimension} perm-{config.num_perm} seed-{config.seed}"


def sketch(
    contents: pa.Array,
    plan: Plan,
    config: Config,
    groups: base.I64 | None = None,
    hold: base.Hold | None = None,
    secret: bytes | None = None,
) -> base.Sketched:
    """Return size, digest and band keys of every bit vector."""
    del hold
    rows = base.content_rows(contents)
    bits = items(contents, config)

    def slots_of(run: slice) -> base.U8:
        return _sampled(bits, run, plan, config)

    return base.sketch_rows(rows, slots_of, plan, groups, secret)


def items(contents: pa.Array, config: Config) -> kernel.Bits:
    """Return the words of the bit vectors, and how many bits each has."""
    del config
    rows = base.content_rows(contents)
    words = np.ascontiguousarray(rows[:, 1:])
    num_bits = int(rows[0, 0]) if rows.size else 0
    return kernel.Bits(words, num_bits)


def sign(items: kernel.Bits, plan: Plan, config: Config) -> tuple[base.Signatures, base.Slots]:
    """Return no signatures, because comparing them is no faster than comparing all bits, and the sampled bits."""
    num_docs = base.num_docs_of(items)

    def slots_of(run: slice) -> base.U8:
        return _sampled(items, run, plan, config)

    sampled = base.slots_of_all(num_docs, plan.bands * plan.rows, slots_of)
    no_signatures = np.empty((num_docs, 0), np.uint32)
    return no_signatures, sampled


def _sampled(bits: kernel.Bits, run: slice, plan: Plan, config: Config) -> base.U8:
    positions = sample_positions(config.seed, bits.num_bits, plan.bands * plan.rows)
    word_numbers = (positions >> np.uint64(6)).astype(np.int64)
    words = bits.words[run][:, word_numbers]
    # `packbits` stores the first of eight bits as the most significant.
    first_of_byte = positions & np.uint64(56)
    shifts = first_of_byte | (np.uint64(7) - (positions & np.uint64(7)))
    sampled = (words >> shifts) & np.uint64(1)
    return sampled.astype(np.uint8)


def sample_positions(seed: int, num_bits: int, num_slots: int) -> base.U64:
    """Draw the positions of the sampled bits, with replacement."""
    slots = np.arange(num_slots, dtype=np.uint64)
    drawn = base.mix(slots ^ base.salt(seed))
    return drawn % np.uint64(max(num_bits, 1))
