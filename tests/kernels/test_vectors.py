"""Projections against plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import vectors
from support.plain_kernels import plain

PLAIN = plain(vectors)
SEEDS = st.integers(0, 2**32 - 1)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@given(
    seed=SEEDS,
    num_docs=st.integers(0, 5),
    dimension=st.integers(1, 11),
    num_lines=st.integers(1, 9),
)
def test_projections_are_those_of_plain_python_to_the_last_bit(
    kind, seed, num_docs, dimension, num_lines
):
    rng = np.random.default_rng(seed)
    given_vectors = rng.standard_normal((num_docs, dimension)).astype(kind)
    lines = rng.standard_normal((dimension, num_lines)).astype(kind)
    found = np.empty((num_docs, num_lines), kind)
    expected = np.empty((num_docs, num_lines), kind)
    vectors.project(given_vectors, lines, found)
    PLAIN.project(given_vectors, lines, expected)
    assert found.tobytes() == expected.tobytes()
    in_order = np.zeros((num_docs, num_lines), kind)
    for at in range(dimension):
        in_order = in_order + given_vectors[:, at : at + 1] * lines[at]
    assert found.tobytes() == in_order.tobytes()


def test_a_vector_has_the_same_projections_in_any_batch():
    rng = np.random.default_rng(5)
    many = rng.standard_normal((300, 97)).astype(np.float32)
    lines = rng.standard_normal((97, 64)).astype(np.float32)
    whole = np.empty((300, 64), np.float32)
    vectors.project(many, lines, whole)
    for start, stop in ((0, 1), (17, 18), (17, 80), (299, 300)):
        part = np.empty((stop - start, 64), np.float32)
        vectors.project(many[start:stop], lines, part)
        assert part.tobytes() == whole[start:stop].tobytes()
