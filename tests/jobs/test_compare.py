"""Single texts, sets and signatures."""

from __future__ import annotations

import numpy as np
import pytest

import neardup
from neardup.errors import DataError


@pytest.mark.parametrize("sketch", ["fast", "minhash"])
def test_an_estimate_is_the_share_of_equal_slots_and_near_the_similarity(sketch):
    items = [list(range(first, first + 900)) for first in (0, 100, 450, 5000)]
    signed = neardup.signatures(items=items, num_perm=1024, sketch=sketch)
    for other in range(1, 4):
        found = neardup.estimate(signed[0], signed[other])
        oracle = sum(
            int(a == b) for a, b in zip(signed[0].tolist(), signed[other].tolist(), strict=True)
        )
        assert found == oracle / 1024
        assert abs(found - neardup.jaccard(items[0], items[other])) < 0.06
    many = neardup.estimate(np.repeat(signed[:1], 3, axis=0), signed[1:])
    assert many.tolist() == [neardup.estimate(signed[0], row) for row in signed[1:]]
    assert neardup.estimate(signed[0], signed[1:]).tolist() == many.tolist()


def test_documents_without_shingles_are_similar_to_none():
    signed = neardup.signatures(["", "", "to be or not to be"])
    assert neardup.estimate(signed, signed).tolist() == [0, 0, 1]


def test_an_estimate_needs_signatures_of_the_same_settings():
    signed = neardup.signatures(["to be or not to be"])
    with pytest.raises(DataError, match=r"`b` must be a signature of uint32, .* got str"):
        neardup.estimate(signed[0], "to be")
    with pytest.raises(DataError, match=r"`a` must be a signature .* got int64 of shape \(3,\)"):
        neardup.estimate(np.arange(3), signed[0])
    with pytest.raises(DataError, match=r"same number of slots, got \(1, 128\) and \(1, 64\)"):
        neardup.estimate(signed, neardup.signatures(["to be"], num_perm=64))


@pytest.mark.parametrize(
    ("documents", "hint"),
    [
        ([[1.0, 2.0], [1.0, 2.5]], "measure='cosine' or 'euclidean' compares vectors"),
        ([None, np.array([1, 2])], "items= sets of whole numbers"),
        ([["milk", "tea"]], "items= compares sets of items"),
        ({"a": [1, 2]}, "the documents are lists of numbers, not texts"),
    ],
)
def test_lists_given_as_texts_get_a_hint_that_works(documents, hint):
    with pytest.raises(DataError, match=hint):
        neardup.deduplicate(documents)
    with pytest.raises(DataError, match=hint):
        neardup.find_pairs(documents)


def test_the_measures_and_items_of_the_hint_compare_lists():
    vectors = [[1.0, 2.0], [1.0, 2.0], [-3.0, 1.0]]
    for measure in ("cosine", "euclidean"):
        assert neardup.find_pairs(vectors, measure=measure).num_pairs == 1
    assert neardup.find_pairs([[1, 0], [1, 0], [0, 1]], measure="hamming").num_pairs == 1
    assert neardup.find_pairs(items=[[1, 2], [2, 1], [3]]).num_pairs == 1
