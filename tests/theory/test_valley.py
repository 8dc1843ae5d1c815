"""The valley between pairs alike by chance and copies: found where it was planted, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from neardup.theory.valley import (
    MIN_DOCUMENTS,
    NUM_BINS,
    bin_edges,
    find_valley,
    separation,
    sides_of,
)

EDGES = bin_edges()
NUM = 400


def histogram(noise_end, copies, *, seed=1, num_copied=200):
    """Counts of documents with noise that falls off up to a similarity, and copies between two others."""
    rng = np.random.default_rng(seed)
    counts = np.zeros((NUM, NUM_BINS), np.int64)
    last = int(np.searchsorted(EDGES, noise_end))
    for at in range(last):
        counts[:, at] = rng.poisson(20 * np.exp(-6 * at / max(last, 1)), NUM)
    low, high = np.searchsorted(EDGES, copies)
    for doc in range(num_copied):
        counts[doc, rng.integers(low, high)] += 1
    return counts


@pytest.mark.parametrize(
    ("noise", "copies"), [(0.3, (0.4, 0.9)), (0.2, (0.6, 1.0)), (0.5, (0.62, 0.98))]
)
def test_a_planted_valley_is_found_between_noise_and_copies(noise, copies):
    valley = find_valley(histogram(noise, copies), 10_000, 1.0, 1)
    assert noise - 0.04 <= EDGES[valley.first_bin] <= copies[0] + 0.04
    assert EDGES[valley.low] <= EDGES[valley.first_bin] <= EDGES[valley.high]
    assert valley.certainty > 0.9


def test_noise_alone_has_no_valley():
    assert find_valley(histogram(0.5, (0.6, 0.9), num_copied=0), 10_000, 1.0, 1) is None


def test_a_few_copies_are_not_enough():
    counts = histogram(0.3, (0.5, 0.9), num_copied=MIN_DOCUMENTS - 1)
    assert find_valley(counts, 10_000, 1.0, 1) is None


def test_a_slope_without_a_hill_has_no_valley():
    counts = np.zeros((NUM, NUM_BINS), np.int64)
    for at in range(NUM_BINS):
        counts[: NUM - 8 * at, at] = 1
    assert find_valley(counts, 10_000, 1.0, 1) is None


def test_a_hill_of_pairs_alike_by_chance_is_not_taken_for_copies():
    counts = np.zeros((NUM, NUM_BINS), np.int64)
    around = int(np.searchsorted(EDGES, 0.3))
    counts[:, around - 3 : around + 4] = 50  # most of the 300 other documents are here
    counts[:20, int(np.searchsorted(EDGES, 0.8))] = 1
    valley = find_valley(counts, 300, 1.0, 1)
    assert 0.36 < EDGES[valley.first_bin] < 0.8


def test_the_candidate_that_finds_more_copies_separates_better():
    few, many = histogram(0.3, (0.5, 0.9), num_copied=100), histogram(0.3, (0.5, 0.9))
    first_bin = find_valley(many, 10_000, 1.0, 1).first_bin
    sides = [sides_of(counts, first_bin, 1.0) for counts in (few, many)]
    best = max(side.clear for side in sides)
    assert separation(sides[0], best) < separation(sides[1], best) <= 1


def test_no_valley_where_half_of_all_pairs_are_exact_copies():
    counts = np.zeros((NUM, NUM_BINS), np.int64)
    counts[:, -1] = NUM - 1
    assert find_valley(counts, NUM - 1, 1.0, 1) is None
