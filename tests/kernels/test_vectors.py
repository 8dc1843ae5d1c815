"""Projections and digests against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import vectors
from neardup.kernels.keys import digest_key
from plain_kernels import plain

PLAIN = plain(vectors)
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@given(seed=SEEDS, num_docs=st.integers(0, 5), dimension=st.integers(1, 11), num_lines=st.integers(1, 9))
def test_projections_are_those_of_plain_python_to_the_last_bit(kind, seed, num_docs, dimension, num_lines):
    rng = np.random.default_rng(seed)
    given_vectors = rng.standard_normal((num_docs, dimension)).astype(kind)
    lines = rng.standard_normal((dimension, num_lines)).astype(kind)
    found, expected = np.empty((num_docs, num_lines), kind), np.empty((num_docs, num_lines), kind)
    vectors.project(given_vectors, lines, found)
    PLAIN.project(given_vectors, lines, expected)
    assert found.tobytes() == expected.tobytes()
    in_order = np.zeros((num_docs, num_lines), kind)
    for at in range(dimension):
        in_order = in_order + given_vectors[:, at : at + 1] * lines[at]
    assert found.tobytes() == in_order.tobytes()


def test_a_vector_has_the_same_projections_in_any_batch():
    rng = np.random.default_rng(5)
    many, lines = rng.standard_normal((300, 97)).astype(np.float32), rng.standard_normal((97, 64)).astype(np.float32)
    whole = np.empty((300, 64), np.float32)
    vectors.project(many, lines, whole)
    for start, stop in ((0, 1), (17, 18), (17, 80), (299, 300)):
        part = np.empty((stop - start, 64), np.float32)
        vectors.project(many[start:stop], lines, part)
        assert part.tobytes() == whole[start:stop].tobytes()


WORDS = st.lists(st.lists(st.integers(0, 2**64 - 1) | st.just(0), max_size=5), max_size=6)


@given(rows=WORDS)
def test_digests_distinguish_rows_by_their_values_only(rows):
    words = np.array([word for row in rows for word in row], np.uint64)
    ends = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    found, expected = np.empty((len(rows), 2), np.uint64), np.empty((len(rows), 2), np.uint64)
    vectors.digest_words(words, ends, digest_key(3), found)
    with np.errstate(over="ignore"):
        PLAIN.digest_words(words, ends, digest_key(3), expected)
    assert (found == expected).all()
    for one, row in enumerate(rows):
        for two, other in enumerate(rows):
            assert (found[one] == found[two]).all() == (row == other)
            if row != other:
                assert (found[one] != found[two]).all()


FIRST_OF_OLD_FORMAT, LAST_OF_OLD_FORMAT = 0x9FB21C651E98DF25, 0xBF58476D1CE4E5B9


@pytest.mark.parametrize("seed", [0, 1, 7, 2**64 - 1])
def test_rows_that_collide_without_a_key_do_not_collide_with_one(seed):
    """With public constants, the second word can compensate for the first."""

    def after(word):
        low = (2 * LAST_OF_OLD_FORMAT & 2**64 - 1) ^ word
        low = low * FIRST_OF_OLD_FORMAT & 2**64 - 1
        return low ^ (low >> 32)

    rows = [[first, 99 ^ after(1) ^ after(first)] for first in range(1, 200)]
    assert len({after(first) ^ second for first, second in rows}) == 1
    digests = np.empty((len(rows), 2), np.uint64)
    ends = np.arange(len(rows) + 1) * 2
    vectors.digest_words(np.array(rows, np.uint64).ravel(), ends, digest_key(seed), digests)
    assert all(len(set(half.tolist())) == len(rows) for half in digests.T)
