"""Weighted Jaccard similarity of items, sum of minima / sum of maxima: a slot agrees with exactly that probability.

Contents are pairs of words: the hash of an item, keyed by the seed, and its weight as a 64-bit
float. The weights of repeated items add up; an item of weight 0 counts as absent.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from neardup.config import Config
from neardup.kernels import similarity as kernel
from neardup.kernels import weighted as sampler
from neardup.measures import base
from neardup.theory.plan import Plan

FORMAT: Final = "consistent-2"
# Documents per block: enough to share items, while their ranks take at most 32 MB for 128 slots.
BLOCK: Final = 1 << 15


def signature_format(config: Config) -> str:
    """Name the format of a signature: equal names mean comparable signatures."""
    return f"{FORMAT} perm-{config.num_perm} seed-{config.seed}"


def sketch(
    contents: pa.Array,
    plan: Plan,
    config: Config,
    groups: base.I64 | None = None,
    hold: base.Hold | None = None,
    secret: bytes | None = None,
) -> base.Sketched:
    """Return number of items, digest and band keys of every weighted set."""
    del hold
    sets = items(contents, config)
    signatures, _ = sign(sets, plan, config)
    words = np.stack([sets.hashes, sets.weights.view(np.uint64)], axis=1).reshape(-1)
    words.flags.writeable = False
    sizes = np.diff(sets.ends)
    digests = base.digests_of(words, 2 * sets.ends, groups, secret)
    return base.Sketched(
        sizes, digests, base.band_keys(signatures, plan, groups), np.zeros(sizes.size, np.int64)
    )


def items(contents: pa.Array, config: Config) -> kernel.Weights:
    """Return the distinct items of every document, sorted by hash, with their weights."""
    words, ends = base.content_words(contents)
    pairs = words.reshape(-1, 2)
    if pairs.flags.c_contiguous:
        weights = pairs[:, 1].view(np.float64)
    else:
        weights = pairs[:, 1].copy().view(np.float64)
    hashes = base.mix(pairs[:, 0] ^ base.salt(config.seed))
    docs = np.repeat(np.arange(ends.size - 1), np.diff(ends) // 2)
    order = np.lexsort((hashes, docs))
    order = order[weights[order] > 0]
    hashes = hashes[order]
    weights = weights[order]
    docs = docs[order]
    is_first = np.r_[True, (np.diff(docs) != 0) | (hashes[1:] != hashes[:-1])][: docs.size]
    firsts = np.flatnonzero(is_first)
    sums = np.add.reduceat(weights, firsts) if firsts.size else np.empty(0)
    return kernel.Weights(
        hashes[firsts], sums, np.searchsorted(docs[firsts], np.arange(ends.size)).astype(np.int64)
    )


def sign(items: kernel.Weights, plan: Plan, config: Config) -> tuple[base.Signatures, base.Slots]:
    """Return the signatures, which are the slots as well."""
    del plan
    signatures: base.U32 = np.full((base.num_docs_of(items), config.num_perm), sampler.NO_ITEMS)
    log_weights = np.log(items.weights)
    for first in range(0, signatures.shape[0], BLOCK):
        block = signatures[first : first + BLOCK]
        ends = items.ends[first : first + BLOCK + 1]
        own = slice(ends[0], ends[-1])
        order = np.argsort(items.hashes[own], kind="stable")
        owners = np.repeat(np.arange(block.shape[0]), np.diff(ends))
        ranks = np.full(block.shape, np.inf)
        sampler.sample_weighted(
            items.hashes[own][order], log_weights[own][order], owners[order], ranks, block
        )
    return signatures, signatures
