"""How to forge a text with the digest of another, as long as the digest is a sum of the hashes of a known seed.

A generalised birthday attack (Wagner, 2002). Every list holds hashes of words, and the forged text
takes one word of each. In a round, two lists become one, with the sums that are zero in more bits
than before. After the last round one list is left, and some of its sums are zero in all 128 bits.
"""

from pathlib import Path

import numpy as np

# Made by `forge` under the default seed.
FORGED = Path(__file__).with_name("forged.txt").read_text("utf-8")

WORDS_A_LIST_BITS = 13
# The bits that become zero in each round: 64 of one half, then 64 of the other.
ROUNDS = (13, 13, 13, 13, 12, 13, 13, 13, 25)
NUM_LISTS = 1 << len(ROUNDS)
WORDS_A_LIST = 1 << WORDS_A_LIST_BITS
ONE = np.uint64(1)


def added_up(shingles):
    """Return what a hash contributed to each half of the digest that was a sum."""
    mixed = (shingles ^ (shingles >> np.uint64(29))) * np.uint64(0x9FB21C651E98DF25)
    return shingles, mixed ^ (mixed >> np.uint64(32))


def sum_digest(shingles):
    """Return the digest that was a sum, of distinct hashes."""
    return tuple(int(half.sum(dtype=np.uint64)) for half in added_up(shingles))


def forge(words, hashes, target):
    """Return words, one of each list, whose hashes have the sum digest of the hashes in `target`.

    words: NUM_LISTS * WORDS_A_LIST different ones; hashes: uint64, theirs.
    """
    low, high = added_up(hashes)
    target_low, target_high = sum_digest(target)
    lists = np.arange(hashes.size) >> WORDS_A_LIST_BITS
    low = low - np.where(lists == 0, np.uint64(target_low), np.uint64(0))
    high = high - np.where(lists == 0, np.uint64(target_high), np.uint64(0))
    # For each sum, the two sums of the round before it consists of.
    rounds = []
    first_bit = 0
    for bits in ROUNDS:
        half = low if first_bit < 64 else high
        values = (half >> np.uint64(first_bit % 64)) & mask_of(bits)
        lefts, rights = _pairs_that_cancel(values, lists, bits)
        low = low[lefts] + low[rights]
        high = high[lefts] + high[rights]
        lists = lists[lefts] >> 1
        rounds.append((lefts, rights))
        first_bit += bits
    chosen = np.flatnonzero((low == 0) & (high == 0))[:1]
    for lefts, rights in reversed(rounds):
        chosen = np.concatenate([lefts[chosen], rights[chosen]])
    assert chosen.size == NUM_LISTS
    return [words[at] for at in chosen]


def mask_of(bits):
    return (ONE << np.uint64(bits)) - ONE


def _pairs_that_cancel(values, lists, bits):
    """Return the pairs of an even list and the list after it whose values add up to 0 modulo 2**bits."""
    is_left = lists % 2 == 0
    lefts, rights = np.flatnonzero(is_left), np.flatnonzero(~is_left)
    pair_of_lists = (lists >> 1).astype(np.uint64) << np.uint64(bits)
    wanted = pair_of_lists[lefts] | ((~values[lefts] + ONE) & mask_of(bits))
    offered = pair_of_lists[rights] | values[rights]
    order = np.argsort(offered)
    offered = offered[order]
    starts = np.searchsorted(offered, wanted)
    counts = np.searchsorted(offered, wanted, side="right") - starts
    places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(lefts, counts), rights[order[np.repeat(starts, counts) + places]]
