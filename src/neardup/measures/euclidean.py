"""Euclidean distance of vectors, similarity 1 / (1 + d): a slot is the bucket of a projection on a random line.

Contents are the numbers of a vector as 64-bit floats. The plan has the bucket width, families.py
the chance.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from neardup.config import Config
from neardup.kernels import similarity as kernel
from neardup.kernels import vectors
from neardup.measures import base
from neardup.measures.projections import gaussian_lines, uniform_shifts
from neardup.theory.plan import Plan

FORMAT: Final = "lines-1"
# All buckets farther out than this are one bucket, because their numbers no longer fit in a word.
_LAST_BUCKET: Final = 2.0**62


def signature_format(config: Config) -> str:
    """Name the format of a signature: equal names mean comparable signatures."""
    width = f"threshold-{float(config.threshold)!r}"
    return (
        f"{FORMAT} dimension-{config.dimension} {width} perm-{config.num_perm} seed-{config.seed}"
    )


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
    values = rows.view(np.float64)

    def slots_of(run: slice) -> base.U32:
        return _buckets(values[run], plan, config)

    return base.sketch_rows(rows, slots_of, plan, groups, secret)


def items(contents: pa.Array, config: Config) -> kernel.Points:
    """Return the vectors."""
    del config
    return kernel.Points(base.content_rows(contents).view(np.float64))


def sign(items: kernel.Points, plan: Plan, config: Config) -> tuple[base.Signatures, base.Slots]:
    """Return the buckets as slots, and no signatures: comparing those is no faster than comparing vectors."""
    num_docs = base.num_docs_of(items)

    def slots_of(run: slice) -> base.U32:
        return _buckets(items.values[run], plan, config)

    buckets = base.slots_of_all(num_docs, plan.bands * plan.rows, slots_of)
    no_signatures = np.empty((num_docs, 0), np.uint32)
    return no_signatures, buckets


def _buckets(values: base.F64, plan: Plan, config: Config) -> base.U32:
    num_docs, dimension = values.shape
    num_slots = plan.bands * plan.rows
    projections = np.empty((num_docs, num_slots))
    lines = gaussian_lines(config.seed, dimension, num_slots).astype(np.float64)
    vectors.project(np.ascontiguousarray(values), lines, projections)
    width = plan.width or 1.0
    positions = projections / width + uniform_shifts(config.seed, num_slots)
    nearby = np.clip(positions, -_LAST_BUCKET, _LAST_BUCKET)
    buckets = np.floor(nearby).astype(np.int64)
    # The low half: different buckets that agree in it are four billion apart.
    return buckets.astype(np.uint32)
