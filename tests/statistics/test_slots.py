"""Slots of every measure agree as often as its family predicts, bands follow its S-curve, and a run reaches its recall.

A seed draws all slots anew; the seeds are fixed. Were they drawn again, a correct measure would
fail somewhere in this
file less than once in 1,000 times: about 50 comparisons at 4.5 standard errors.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import neardup
from neardup import schema
from neardup.config import Config
from neardup.io.documents import in_memory as memory
from neardup.measures.registry import measure_of
from neardup.theory.plan import plan_for

NUM_SEEDS = 300
MAX_STANDARD_ERRORS = 4.5
DIMENSION = 50


def pair_of_vectors(similarity):
    """Two vectors with this cosine."""
    rng = np.random.default_rng(round(similarity * 1000))
    one, two = np.linalg.qr(rng.standard_normal((DIMENSION, 2)))[0].T
    return np.stack([one, similarity * one + math.sqrt(1 - similarity**2) * two]) * 3


def pair_of_points(similarity):
    """Two points at the distance that makes this similarity."""
    rng = np.random.default_rng(round(similarity * 1000))
    one, direction = rng.standard_normal((2, DIMENSION))
    return np.stack([one, one + direction / np.linalg.norm(direction) * (1 / similarity - 1)])


def pair_of_bits(similarity):
    """100 bits of which this share is equal."""
    rng = np.random.default_rng(round(similarity * 1000))
    one = rng.integers(0, 2, 100).astype(np.uint8)
    return np.stack([one, one ^ (rng.permutation(100) >= round(100 * similarity))])


def pair_of_baskets(similarity):
    """Weights whose smaller ones add up to this share of the larger ones, some items in one basket alone."""
    rng = np.random.default_rng(round(similarity * 1000))
    weights = np.exp(rng.standard_normal(20) * 2)
    weights /= weights.sum()
    # Half of the difference is items missing from the second basket; the other half is lower
    # weights.
    one = {f"item {number}": weight for number, weight in enumerate(weights.tolist())}
    two = dict(one)
    spare = 1 - similarity
    for item, weight in sorted(one.items(), key=lambda entry: entry[1]):
        if weight < spare / 2:
            spare -= two.pop(item)
    heaviest = max(two, key=two.get)
    two[heaviest] -= spare
    return [one, two]


PAIRS = {
    "weighted": pair_of_baskets,
    "hamming": pair_of_bits,
    "cosine": pair_of_vectors,
    "euclidean": pair_of_points,
}
EVERY_MEASURE = pytest.mark.parametrize("measure", PAIRS)


def contents_of(source, measure, **settings):
    items = {"items_column": "items"} if measure == "weighted" else {}
    config = Config(measure=measure, **items, **settings)
    read = memory.read(source, config)
    return schema.one_array(read.documents.column("text")), memory.with_dimension(read, config)


@functools.cache
def drawn(measure, similarity):
    """Slots and band keys of a pair, and the plan, for every seed."""
    contents, config = contents_of(
        PAIRS[measure](similarity), measure, threshold=0.7, num_perm=128, recall=0.8
    )
    plan = plan_for(config)
    slots = []
    keys = []
    for seed in range(NUM_SEEDS):
        seeded = Config.of(config, seed=seed)
        chosen = measure_of(seeded)
        slots.append(chosen.sign(chosen.items(contents, seeded), plan, seeded)[1])
        keys.append(chosen.sketch(contents, plan, seeded).keys)
    return plan, np.array(slots), np.array(keys)


def assert_share(found, expected, count):
    assert (
        abs(found - expected)
        <= MAX_STANDARD_ERRORS * math.sqrt(expected * (1 - expected) / count) + 1e-12
    )


@EVERY_MEASURE
@pytest.mark.parametrize("similarity", [0.3, 0.5, 0.7, 0.9])
def test_slots_agree_as_often_as_the_family_says(measure, similarity):
    plan, slots, _ = drawn(measure, similarity)
    agreement = slots[:, 0] == slots[:, 1]
    assert_share(agreement.mean(), plan.slot_chance(similarity), agreement.size)


@EVERY_MEASURE
@pytest.mark.parametrize("similarity", [0.5, 0.7, 0.9])
def test_pairs_share_a_bucket_as_often_as_the_s_curve_says(measure, similarity):
    plan, _, keys = drawn(measure, similarity)
    shares = (keys[:, 0] == keys[:, 1]).any(axis=1)
    assert_share(shares.mean(), plan.chance(similarity), NUM_SEEDS)


@EVERY_MEASURE
def test_slots_are_drawn_independently(measure):
    """The number of agreeing slots of a seed varies as that of independent slots, within 35 %: 4.3 standard errors."""
    plan, slots, _ = drawn(measure, 0.7)
    agreements = (slots[:, 0] == slots[:, 1]).sum(axis=1)
    chance = plan.slot_chance(0.7)
    expected = slots.shape[2] * chance * (1 - chance)
    assert agreements.var(ddof=1) == pytest.approx(expected, rel=0.35)


def corpus_at_threshold(measure, num_pairs):
    """Pairs just above the threshold 0.8, each far from all others."""
    rng = np.random.default_rng(11)
    if measure == "hamming":
        one = rng.integers(0, 2, (num_pairs, 200)).astype(np.uint8)
        flips = np.array([rng.permutation(200) < 40 for _ in range(num_pairs)])
        return np.concatenate([one, one ^ flips])
    if measure == "weighted":
        baskets = [{f"{pair} {item}": 0.1 for item in range(9)} for pair in range(num_pairs)]
        return baskets + [
            basket | {f"{pair} 0": 0.0, f"{pair} 9": 0.1} for pair, basket in enumerate(baskets)
        ]
    one, other = rng.standard_normal((2, num_pairs, 64))
    other -= (one * other).sum(axis=1, keepdims=True) / (one**2).sum(axis=1, keepdims=True) * one
    lengths = np.linalg.norm(one, axis=1, keepdims=True) / np.linalg.norm(
        other, axis=1, keepdims=True
    )
    if measure == "cosine":
        return np.concatenate([one, 0.8 * one + 0.6 * (1 - 1e-9) * other * lengths])
    return np.concatenate(
        [one, one + other / np.linalg.norm(other, axis=1, keepdims=True) * 0.25 * (1 - 1e-12)]
    )


@EVERY_MEASURE
def test_a_run_finds_pairs_at_the_threshold_as_often_as_it_promises(measure):
    """400 pairs and 3 seeds; a run that promises 99 % may fall short by at most 4.5 standard errors."""
    source = corpus_at_threshold(measure, 400)
    num_pairs = 400
    found = promised = 0
    for seed in (1, 2, 3):
        given = {"items": source} if measure == "weighted" else {"source": source}
        report = neardup.find_pairs(
            **given, measure=measure, threshold=0.8, seed=seed, method="lsh"
        )
        expected = [(row, row + num_pairs) for row in range(num_pairs)]
        pairs = {(pair["doc_a"], pair["doc_b"]) for pair in report.pairs.to_pylist()}
        found += len(pairs.intersection(expected))
        promised = report.plan.recall_at_threshold
        assert promised >= 0.99
    assert found >= 3 * num_pairs * promised - MAX_STANDARD_ERRORS * math.sqrt(
        3 * num_pairs * promised * (1 - promised)
    )
