"""The runs that two texts share: compiled and in plain Python, against a dynamic programme."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import align_exact
from support import passages as oracle
from support.plain_kernels import plain

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")
PLAIN = plain(align_exact)
HASH = np.uint64(0x9E3779B97F4A7C15)


def run(kernel, a, b, min_words):
    words = (np.array([*a, *b], np.uint64) + np.uint64(1)) * HASH
    runs = np.full((len(a), 3), -1, np.int64)
    count = kernel(words, len(a), min_words, runs)
    return list(map(tuple, runs[:count].tolist()))


words = st.integers(1, 4).flatmap(lambda most: st.lists(st.integers(0, most - 1), max_size=30))


@given(words, words, st.integers(1, 6))
def test_runs_are_those_of_the_dynamic_programme(a, b, min_words):
    expected = oracle.shared_runs(a, b, min_words)
    assert run(align_exact.shared_runs, a, b, min_words) == expected
    assert run(PLAIN.shared_runs, a, b, min_words) == expected


def test_many_small_vocabularies_agree_with_the_dynamic_programme():
    rng = random.Random(3)
    for _ in range(400):
        vocabulary = rng.choice([1, 2, 3, 5, 20, 100])
        a, b = ([rng.randrange(vocabulary) for _ in range(rng.randrange(60))] for _ in "ab")
        min_words = rng.choice([1, 2, 3, 5, 8])
        expected = oracle.shared_runs(a, b, min_words)
        assert run(align_exact.shared_runs, a, b, min_words) == expected


def test_windows_that_only_seem_equal_change_nothing(monkeypatch):
    """Hashes of windows only save work: with a hash that is always equal, the runs are the same."""
    monkeypatch.setattr(PLAIN, "mix", lambda _: np.uint64(0))
    rng = random.Random(4)
    for _ in range(30):
        a, b = ([rng.randrange(3) for _ in range(25)] for _ in "ab")
        assert run(PLAIN.shared_runs, a, b, 3) == oracle.shared_runs(a, b, 3)


def test_hostile_texts_take_time_about_linear_in_their_words():
    num_words = 50_000
    rng = np.random.default_rng(1)
    several = rng.integers(0, 2, num_words)
    prose = np.minimum(rng.zipf(1.3, num_words), 50_000)
    texts = {
        "one word": (np.zeros(num_words, int), np.zeros(num_words // 2, int)),
        "two words by turns": (np.arange(num_words) % 2, np.arange(num_words) % 2),
        "a period": (np.arange(num_words) % 1000, np.arange(num_words) % 1000),
        "two words at random": (several, several[::-1]),
        "itself": (prose, prose),
    }
    run(align_exact.shared_runs, [1, 2], [1, 2], 1)
    for name, (a, b) in texts.items():
        began = time.process_time()
        found = run(align_exact.shared_runs, a.tolist(), b.tolist(), 8)
        assert time.process_time() - began < 10, name
        assert found
