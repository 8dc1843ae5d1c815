"""Sketches follow the S-curve: unbiased, with small variance, and based on hashes without a pattern.

Every seed salts the shingle hashes anew, so 300 seeds (4,000 in `make test-all`) are as many
independent draws of each pair of signatures. The seeds are fixed. Were they drawn again, a correct
sketch would fail somewhere in this file less than once in 200
times: 88 pairs at 4.5 standard errors, or the same tail of an exact distribution, and some tails a
test names itself.
"""

from __future__ import annotations

import functools
import math
import random

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.config import Config
from neardup.measures import jaccard
from neardup.theory.plan import plan_for

MAX_STANDARD_ERRORS = 4.5
# Both sides of 4.5 standard errors of a normal distribution.
MAX_TAIL = 6.8e-6
NUM_PERM = 128
SKETCHES = ("fast", "minhash")
SIZES = (5, 10, 50, 200, 1000, 5000)
SIMILARITIES = (0.2, 0.5, 0.8, 0.95)


def nearest_shared(size, similarity):
    """How many shingles two different documents of `size` share for the nearest possible similarity."""
    return min(size - 1, round(2 * size * similarity / (1 + similarity)))


# (size, shared): with 5 or 10 shingles two of the four similarities coincide.
CASES = sorted(
    {(size, nearest_shared(size, similarity)) for size in SIZES for similarity in SIMILARITIES}
)


def random_pair(size, shared):
    """Random words; a shingle is 5 of them, so the first `shared + 4` words make the shared shingles."""
    rng = random.Random(size * 10_000 + shared)
    start, *ends = (
        [f"{rng.getrandbits(32):x}" for _ in range(count)]
        for count in (shared + 4, size - shared, size - shared)
    )
    return [" ".join(start + end) for end in ends]


def consecutive_pair(size, shared):
    """Consecutive numbers as words, one word per shingle: the input that exposes a weak finaliser."""
    return [" ".join(map(str, range(first, first + size))) for first in (0, size - shared)]


SOURCES = {"random words": (random_pair, 5), "consecutive numbers": (consecutive_pair, 1)}
EVERY_SKETCH = pytest.mark.parametrize("sketch", SKETCHES)
EVERY_SOURCE = pytest.mark.parametrize("source", SOURCES)
EVERY_NUM_SEEDS = pytest.mark.parametrize(
    "num_seeds",
    [
        300,
        pytest.param(4000, marks=[pytest.mark.long, pytest.mark.slow("draws 176,000 signatures")]),
    ],
)
EVERY_CASE = pytest.mark.parametrize(("size", "shared"), CASES)


@functools.cache
def is_equal(source, sketch, num_seeds):
    """Whether the signatures of a pair agree: bool[seeds, cases, slots]."""
    make_pair, shingle_size = SOURCES[source]
    texts = pa.array([text for case in CASES for text in make_pair(*case)])
    drawn = np.empty((num_seeds, len(CASES), NUM_PERM), np.bool_)
    for seed in range(num_seeds):
        signatures = jaccard.text_signatures(
            texts, Config(seed=seed, size=shingle_size, sketch=sketch)
        )
        drawn[seed] = signatures[::2] == signatures[1::2]
    return drawn


def draws_of(source, sketch, size, shared, num_seeds):
    """bool[seeds, slots] of one pair, and its true similarity."""
    return is_equal(source, sketch, num_seeds)[:, CASES.index((size, shared))], shared / (
        2 * size - shared
    )


def tails(count, num_draws, chance):
    """P(X <= count) and P(X >= count) for X binomial."""
    weights = [
        math.exp(
            math.lgamma(num_draws + 1)
            - math.lgamma(at + 1)
            - math.lgamma(num_draws - at + 1)
            + at * math.log(chance)
            + (num_draws - at) * math.log1p(-chance)
        )
        for at in range(num_draws + 1)
    ]
    return math.fsum(weights[: count + 1]), math.fsum(weights[count:])


@EVERY_SOURCE
@EVERY_CASE
def test_constructed_pairs_have_the_intended_similarity(source, size, shared):
    make_pair, shingle_size = SOURCES[source]
    first, second = (neardup.shingles(text, size=shingle_size) for text in make_pair(size, shared))
    assert (first.size, second.size, np.intersect1d(first, second).size) == (size, size, shared)


@EVERY_NUM_SEEDS
@EVERY_SOURCE
@EVERY_SKETCH
@EVERY_CASE
def test_share_of_equal_slots_is_the_similarity_on_average(source, sketch, size, shared, num_seeds):
    draws, similarity = draws_of(source, sketch, size, shared, num_seeds)
    estimates = draws.mean(axis=1)
    standard_error = estimates.std(ddof=1) / math.sqrt(num_seeds)
    assert abs(estimates.mean() - similarity) < MAX_STANDARD_ERRORS * standard_error


@EVERY_NUM_SEEDS
@EVERY_SOURCE
@EVERY_SKETCH
@EVERY_CASE
def test_every_slot_agrees_with_probability_equal_to_the_similarity(
    source, sketch, size, shared, num_seeds
):
    """5.8 standard errors in each of 128 slots are a tail of 8.5e-7 together."""
    draws, similarity = draws_of(source, sketch, size, shared, num_seeds)
    standard_error = math.sqrt(similarity * (1 - similarity) / num_seeds)
    assert np.abs(draws.mean(axis=0) - similarity).max() < 5.8 * standard_error


@EVERY_NUM_SEEDS
@EVERY_SOURCE
@EVERY_SKETCH
@EVERY_CASE
def test_variance_is_at_most_that_of_independent_slots(source, sketch, size, shared, num_seeds):
    """A variance estimated from n draws has a relative standard error of sqrt(2 / n)."""
    draws, similarity = draws_of(source, sketch, size, shared, num_seeds)
    of_independent_slots = similarity * (1 - similarity) / NUM_PERM
    tolerance = MAX_STANDARD_ERRORS * math.sqrt(2 / num_seeds)
    assert draws.mean(axis=1).var(ddof=1) < of_independent_slots * (1 + tolerance)


@EVERY_NUM_SEEDS
@EVERY_SOURCE
@pytest.mark.parametrize(("size", "shared"), [case for case in CASES if case[0] in (50, 200)])
def test_the_fast_sketch_has_lower_variance_with_about_as_many_shingles_as_slots(
    source, size, shared, num_seeds
):
    """Measured 0.58 to 0.73 of the variance of independent slots; 0.75 plus 4.5 errors of the estimate."""
    draws, similarity = draws_of(source, "fast", size, shared, num_seeds)
    most = 0.75 * (1 + MAX_STANDARD_ERRORS * math.sqrt(2 / num_seeds))
    assert draws.mean(axis=1).var(ddof=1) < most * similarity * (1 - similarity) / NUM_PERM


@EVERY_NUM_SEEDS
@EVERY_SOURCE
@EVERY_SKETCH
@EVERY_CASE
def test_pairs_share_a_bucket_as_often_as_the_s_curve_says(source, sketch, size, shared, num_seeds):
    plan = plan_for(Config(threshold=0.8, recall=0.99))
    draws, similarity = draws_of(source, sketch, size, shared, num_seeds)
    in_bands = draws[:, : plan.bands * plan.rows].reshape(num_seeds, plan.bands, plan.rows)
    num_found = int(in_bands.all(axis=2).any(axis=1).sum())
    assert (plan.bands, plan.rows) == (16, 6)
    assert min(tails(num_found, num_seeds, plan.chance(similarity))) > MAX_TAIL / 2


@EVERY_NUM_SEEDS
@EVERY_SOURCE
@EVERY_SKETCH
@pytest.mark.parametrize("size", [200, 1000, 5000])
def test_bands_are_equal_independently_of_each_other(source, sketch, size, num_seeds):
    """The number of equal bands of a pair at 0.5 has at most the variance of independent bands, plus 4.5 errors."""
    draws, similarity = draws_of(source, sketch, size, nearest_shared(size, 0.5), num_seeds)
    num_equal = draws[:, :96].reshape(num_seeds, 16, 6).all(axis=2).sum(axis=1)
    chance = similarity**6
    # Few bands are equal, so their number is about Poisson: kurtosis 3 + 1 / mean.
    tolerance = MAX_STANDARD_ERRORS * math.sqrt((2 + 1 / (16 * chance)) / num_seeds)
    assert num_equal.var(ddof=1) < 16 * chance * (1 - chance) * (1 + tolerance)


# The hashes behind the sketches

HASH_SETTINGS = pytest.mark.parametrize(
    "settings",
    [
        {"unit": unit, "size": size, "seed": seed}
        for unit, size in (("word", 1), ("word", 5), ("char", 5), ("char", 9))
        for seed in (0, 1, 2**64 - 1)
    ],
    ids=lambda settings: "-".join(map(str, settings.values())),
)
NUM_NUMBERS = 1 << 17


@functools.cache
def hashes_of(unit, size, seed):
    """The hashes of consecutive numbers as words, distinct."""
    return neardup.shingles(" ".join(map(str, range(NUM_NUMBERS))), unit=unit, size=size, seed=seed)


def signs_of(unit, size, seed):
    """+1 and -1 for the bits: float32[hashes, 64]."""
    bits = np.unpackbits(hashes_of(unit, size, seed).view(np.uint8).reshape(-1, 8), axis=1)
    return bits.astype(np.float32) * 2 - 1


def chi_square_error(values, num_cells):
    """How many standard deviations the chi-square of even cells is off its mean; about normal for many cells."""
    counts = np.bincount(values, minlength=num_cells)
    expected = values.size / num_cells
    chi_square = ((counts - expected) ** 2 / expected).sum()
    return (chi_square - (num_cells - 1)) / math.sqrt(2 * (num_cells - 1))


@pytest.mark.parametrize(("size", "num_hashes"), [(1, NUM_NUMBERS), (5, NUM_NUMBERS - 4)])
def test_hashes_of_consecutive_numbers_are_distinct(size, num_hashes):
    assert hashes_of("word", size, 1).size == num_hashes


@HASH_SETTINGS
def test_every_bit_of_a_hash_is_set_half_the_time_and_no_two_are_correlated(settings):
    """64 bits, each within 5 standard errors: a tail of 4e-5; 2,016 pairs of bits, each within 5.5: a tail of 8e-5."""
    signs = signs_of(**settings)
    assert np.abs(signs.mean(axis=0, dtype=np.float64)).max() < 5 / math.sqrt(len(signs))
    correlations = (signs.T @ signs) / len(signs) - np.eye(64)
    assert np.abs(correlations).max() < 5.5 / math.sqrt(len(signs))


@HASH_SETTINGS
@pytest.mark.parametrize("log_slots", range(4, 11))
def test_slots_are_filled_evenly(settings, log_slots):
    slots = hashes_of(**settings) >> np.uint64(64 - log_slots)
    assert abs(chi_square_error(slots.astype(np.int64), 1 << log_slots)) < 6


@HASH_SETTINGS
@pytest.mark.parametrize("shift", [0, 11, 22, 32, 43, 50])
def test_values_within_slots_and_for_the_fallback_are_spread_evenly(settings, shift):
    """1,024 cells of 10 bits anywhere in the hash."""
    cells = (hashes_of(**settings) >> np.uint64(shift)) & np.uint64(1023)
    assert abs(chi_square_error(cells.astype(np.int64), 1024)) < 6


@HASH_SETTINGS
def test_slot_and_value_are_independent(settings):
    """32 slots by the 32 cells of the value's top, and of the low half that the fallback takes."""
    hashes = hashes_of(**settings)
    slots = hashes >> np.uint64(59) << np.uint64(5)
    for shift in (52, 27, 0):
        cells = slots | ((hashes >> np.uint64(shift)) & np.uint64(31))
        assert abs(chi_square_error(cells.astype(np.int64), 1024)) < 6


@pytest.mark.parametrize("sketch", SKETCHES)
def test_slots_of_signatures_are_minima_of_uniform_values(sketch):
    """The least of n uniform values u has (1 - u)**n uniform: 1,000 documents of 40 shingles, 128 slots each."""
    texts = [" ".join(map(str, range(first, first + 40))) for first in range(0, 40_000, 40)]
    slots = neardup.signatures(texts, size=1, sketch=sketch).astype(np.float64)
    # Of the fast sketch only the slots that the fallback filled are a minimum over all shingles.
    least = slots[slots >= 2**31] / 2**31 - 1 if sketch == "fast" else slots.ravel() / 2**32
    cells = ((1 - least) ** 40 * 64).astype(np.int64).clip(0, 63)
    assert abs(chi_square_error(cells, 64)) < 6
