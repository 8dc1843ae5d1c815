"""Cosine similarity of vectors: a slot is the side of a random hyperplane, so p = 1 - angle / pi.

Contents are the numbers of a vector as 64-bit floats. They are compared after scaling by a power of
two, which is exact and prevents overflow.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from neardup.config import Config
from neardup.kernels import similarity as kernel
from neardup.kernels import vectors
from neardup.measures import base
from neardup.measures.projections import gaussian_lines
from neardup.theory.plan import Plan

FORMAT: Final = "hyperplanes-1"
_WORD_BYTES: Final = 8


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
    """Return size, digest and band keys of every vector."""
    del hold
    rows = base.content_rows(contents)
    values = _scaled(rows.view(np.float64))
    num_slots = plan.bands * plan.rows

    def slots_of(run: slice) -> base.U8:
        return _sides(values[run], num_slots, config)

    return base.sketch_rows(rows, slots_of, plan, groups, secret)


def items(contents: pa.Array, config: Config) -> kernel.Vectors:
    """Return the scaled vectors with their norms."""
    values = _scaled(base.content_rows(contents).view(np.float64))
    norms = np.empty(values.shape[0])
    kernel.norms(values, norms)
    return kernel.Vectors(values, norms, config.num_perm)


def sign(items: kernel.Vectors, plan: Plan, config: Config) -> tuple[base.Signatures, base.Slots]:
    """Return the sides of all hyperplanes, packed 64 to a word and one by one."""
    del plan
    num_slots = config.num_perm

    def slots_of(run: slice) -> base.U8:
        return _sides(items.values[run], num_slots, config)

    sides = base.slots_of_all(base.num_docs_of(items), num_slots, slots_of)
    return _packed(sides), sides


def _scaled(values: base.F64) -> base.F64:
    """Scale every vector so that its largest absolute value is in [1/2, 1)."""
    largest = np.abs(values).max(axis=1, initial=0.0)
    _, exponents = np.frexp(largest)
    scaled: base.F64 = np.ldexp(values, -exponents[:, None])
    return scaled


def _sides(values: base.F64, num_slots: int, config: Config) -> base.U8:
    """Return 1 for each hyperplane that a vector lies above; 32-bit sums are precise enough."""
    num_docs, dimension = values.shape
    projections = np.empty((num_docs, num_slots), np.float32)
    lines = gaussian_lines(config.seed, dimension, num_slots)
    vectors.project(values.astype(np.float32), lines, projections)
    return (projections > 0).view(np.uint8)


def _packed(sides: base.U8) -> base.U64:
    packed = np.packbits(sides, axis=1)
    num_missing = -packed.shape[1] % _WORD_BYTES
    whole = np.pad(packed, ((0, 0), (0, num_missing)))
    return whole.view(np.uint64)
