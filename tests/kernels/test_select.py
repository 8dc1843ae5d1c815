"""Leaders over a listed graph of pairs, against the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import select
from support import oracles


def lead(order, pairs, kernel=select.lead):
    """Run the kernel on {(a, b): similarity}; return {removed: (kept, similarity)} and check the kept ones."""
    num_docs = len(order)
    both_ways = sorted(
        [(a, b, value) for (a, b), value in pairs.items()]
        + [(b, a, value) for (a, b), value in pairs.items()]
    )
    starts = np.searchsorted([doc for doc, _, _ in both_ways], np.arange(num_docs + 1))
    partners = np.array([partner for _, partner, _ in both_ways], np.int64)
    similarities = np.array([value for _, _, value in both_ways], np.float64)
    matches = np.full(num_docs, -9, np.int64)
    values = np.full(num_docs, np.nan)
    kernel(np.array(order, np.int64), starts, partners, similarities, matches, values)
    assert (values[matches == select.NOBODY] == 1).all()
    return {
        doc: (int(matches[doc]), float(values[doc]))
        for doc in np.flatnonzero(matches != select.NOBODY).tolist()
    }


@st.composite
def corpora(draw):
    """Sets over few items, so that copies and ties abound, in any keep order."""
    sets = draw(st.lists(st.frozensets(st.integers(0, 7), min_size=1), min_size=1, max_size=14))
    return sets, draw(st.permutations(range(len(sets))))


@given(corpus=corpora(), threshold=st.sampled_from([0.2, 0.3, 0.5, 0.8, 1.0]))
def test_leaders_are_those_of_the_oracle(corpus, threshold):
    sets, order = corpus
    pairs = oracles.true_pairs(sets, threshold)
    assert lead(order, pairs) == oracles.leaders(order, pairs)


@given(corpus=corpora(), threshold=st.sampled_from([0.2, 0.5, 1.0]))
def test_the_compiled_kernel_equals_plain_python(corpus, threshold):
    sets, order = corpus
    pairs = oracles.true_pairs(sets, threshold)
    assert lead(order, pairs) == lead(order, pairs, select.lead.py_func)


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.8])
def test_leaders_of_300_documents_are_those_of_the_oracle(threshold):
    rng = np.random.default_rng(3)
    sets = [
        frozenset(rng.choice(12, rng.integers(3, 10), replace=False).tolist()) for _ in range(300)
    ]
    pairs = oracles.true_pairs(sets, threshold)
    order = rng.permutation(300).tolist()
    assert lead(order, pairs) == oracles.leaders(order, pairs)


def test_document_without_partners_is_kept():
    assert lead([2, 0, 1], {}) == {}


def test_call_without_documents_writes_nothing():
    assert lead([], {}) == {}


def test_removed_document_points_to_its_most_similar_kept_partner():
    assert lead([0, 1, 2], {(0, 2): 0.8, (1, 2): 0.9}) == {2: (1, 0.9)}


def test_tie_goes_to_the_smaller_row_in_any_keep_order():
    pairs = {(0, 2): 0.8, (1, 2): 0.8}
    assert lead([0, 1, 2], pairs) == lead([1, 0, 2], pairs) == {2: (0, 0.8)}


def test_a_document_similar_only_to_a_removed_one_is_kept():
    assert lead([0, 1, 2], {(0, 1): 0.9, (1, 2): 0.9}) == {1: (0, 0.9)}


def test_a_copy_of_a_removed_document_points_to_the_same_kept_document():
    assert lead([0, 1, 2], {(0, 1): 0.8, (1, 2): 1.0, (0, 2): 0.8}) == {1: (0, 0.8), 2: (0, 0.8)}


def test_a_copy_of_a_removed_document_ignores_a_more_similar_one_kept_later():
    pairs = {(0, 1): 0.7, (0, 3): 0.7, (1, 2): 0.9, (2, 3): 0.9, (1, 3): 1.0}
    assert lead([0, 1, 2, 3], pairs) == {1: (0, 0.7), 3: (0, 0.7)}
