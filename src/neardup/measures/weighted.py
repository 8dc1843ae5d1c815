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
    pairs = np.stack([sets.hashes, sets.weights.view(np.uint64)], axis=1)
    words = pairs.reshape(-1)
    words.flags.writeable = False
    sizes = np.diff(sets.ends)
    return base.Sketched(
        sizes=sizes,
        digests=base.digests_of(words, 2 * sets.ends, groups, secret),
        keys=base.band_keys(signatures, plan, groups),
        held_at=np.zeros(sizes.size, np.int64),
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
    num_items = np.diff(ends) // 2
    docs = np.repeat(np.arange(num_items.size), num_items)

    order = np.lexsort((hashes, docs))
    order = order[weights[order] > 0]
    hashes = hashes[order]
    weights = weights[order]
    docs = docs[order]

    is_first = np.ones(docs.size, np.bool_)
    is_first[1:] = (docs[1:] != docs[:-1]) | (hashes[1:] != hashes[:-1])
    firsts = np.flatnonzero(is_first)
    if firsts.size:
        sums = np.add.reduceat(weights, firsts)
    else:
        sums = np.empty(0)
    own_ends = np.searchsorted(docs[firsts], np.arange(ends.size))
    return kernel.Weights(hashes[firsts], sums, own_ends.astype(np.int64))


def sign(items: kernel.Weights, plan: Plan, config: Config) -> tuple[base.Signatures, base.Slots]:
    """Return the signatures, which are the slots as well."""
    del plan
    num_docs = base.num_docs_of(items)
    signatures: base.U32 = np.full((num_docs, config.num_perm), sampler.NO_ITEMS)
    log_weights = np.log(items.weights)
    for first in range(0, num_docs, BLOCK):
        block = signatures[first : first + BLOCK]
        ends = items.ends[first : first + BLOCK + 1]
        own = slice(ends[0], ends[-1])
        owners = np.repeat(np.arange(block.shape[0]), np.diff(ends))
        order = np.argsort(items.hashes[own], kind="stable")
        hashes = items.hashes[own][order]
        weights = log_weights[own][order]
        ranks = np.full(block.shape, np.inf)
        sampler.sample_weighted(hashes, weights, owners[order], ranks, block)
    return signatures, signatures
