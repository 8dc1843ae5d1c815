"""The length filter and the prefix filter: what they rule out is never similar."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest

from neardup.errors import ConfigError, DataError
from neardup.theory.textbook import fitting_sizes, jaccard, keep_similar, prefix, prefix_candidates

THRESHOLDS = (0.28, 0.5, 2 / 3, 0.8, 1)


@pytest.mark.parametrize("threshold", THRESHOLDS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 25, 100])
def test_a_size_fits_exactly_if_a_subset_or_superset_of_it_is_similar(size, threshold):
    similar = [
        other
        for other in range(1, 4 * size + 1)
        if jaccard(set(range(size)), set(range(other))) >= threshold
    ]
    assert list(fitting_sizes(size, threshold)) == similar


def test_a_set_of_ten_needs_a_partner_of_eight_to_twelve_at_08():
    assert list(fitting_sizes(10, 0.8)) == [8, 9, 10, 11, 12]


def test_the_prefix_holds_the_rarest_rows_and_ties_go_by_row():
    counts = Counter({"a": 5, "b": 1, "c": 5, "d": 2, "e": 9})
    assert prefix(set("abcde"), 0.8, counts) == ["b", "d"]
    assert prefix(set("abcde"), 0.6, counts) == ["b", "d", "a"]
    assert prefix(set("abcde"), 1, counts) == ["b"]


def random_columns(generator):
    pool = range(14)
    return [set(generator.sample(pool, generator.randint(1, 9))) for _ in range(12)]


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_every_similar_pair_is_a_candidate(threshold):
    generator = random.Random(7)
    num_similar = num_skipped = 0
    for _ in range(60):
        columns = random_columns(generator)
        every = set(itertools.combinations(range(len(columns)), 2))
        similar = keep_similar(every, columns, threshold)
        candidates = prefix_candidates(columns, threshold)
        assert similar <= candidates
        num_similar += len(similar)
        num_skipped += len(every - candidates)
    assert num_similar > 0
    assert num_skipped > 0


def test_a_prefix_shorter_by_one_would_miss_a_pair():
    # Nine of the ten rows are common to both; the rarest row of each is its own.
    left, right = {0, *range(2, 11)}, {1, *range(2, 11)}
    counts = Counter([*left, *right])
    shared = set(prefix(left, 0.8, counts)) & set(prefix(right, 0.8, counts))
    shorter = set(prefix(left, 0.8, counts)[:1]) & set(prefix(right, 0.8, counts)[:1])
    assert jaccard(left, right) == 9 / 11 >= 0.8
    assert shared
    assert not shorter
    assert prefix_candidates([left, right], 0.8) == {(0, 1)}


def test_pairs_of_unfitting_sizes_are_no_candidates_even_with_a_shared_rare_row():
    assert prefix_candidates([{1}, {1, 2, 3}], threshold=0.5) == set()


@pytest.mark.parametrize("threshold", [0, -0.1, 1.1, 80])
def test_a_threshold_outside_0_to_1_is_refused(threshold):
    with pytest.raises(ConfigError, match=r"`threshold` must be in \(0, 1\], got"):
        fitting_sizes(3, threshold)


def test_an_empty_column_is_refused():
    with pytest.raises(DataError, match="column 1 is empty"):
        prefix_candidates([{1}, set()], threshold=0.5)
