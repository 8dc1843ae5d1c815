"""Inspecting buckets, and merging signatures."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.errors import ConfigError, DataError
from neardup.theory import textbook

WORDS = st.lists(st.sampled_from("abcdefgh"), max_size=9).map(" ".join)
TEXTS = [f"{number % 7} of {number} apples in basket {number // 3}" for number in range(40)]


def candidates(table):
    return {
        pair
        for members in table.column("documents").to_pylist()
        for pair in itertools.combinations(members, 2)
    }


@pytest.mark.parametrize("sketch", ["fast", "minhash"])
def test_buckets_match_the_textbook_for_the_same_signatures(sketch):
    chosen = {"size": 1, "sketch": sketch, "num_perm": 64}
    table = neardup.buckets(TEXTS, bands=16, rows=4, **chosen)
    matrix = neardup.signatures(TEXTS, **chosen).T.tolist()
    by_hand = textbook.buckets(matrix, bands=16)
    found = [(bucket["band"], bucket["documents"]) for bucket in table.to_pylist()]
    assert found == [
        (band, members)
        for band, of_band in enumerate(by_hand)
        for members in of_band.values()
        if len(members) > 1
    ]
    assert candidates(table) == textbook.banded_candidates(matrix, bands=16)


def test_pairs_of_a_run_are_the_verified_candidates_of_the_buckets():
    chosen = {"size": 1, "threshold": 0.6, "bands": 16, "rows": 4, "signature_filter": False}
    found = neardup.find_pairs(TEXTS, **chosen).pairs.to_pylist()
    shared = candidates(neardup.buckets(TEXTS, **chosen))
    exact = {
        pair
        for pair in shared
        if neardup.compare(TEXTS[pair[0]], TEXTS[pair[1]], size=1).jaccard >= 0.6
    }
    assert {(pair["doc_a"], pair["doc_b"]) for pair in found} == exact < shared


def test_buckets_have_a_band_a_key_and_the_ids_of_their_documents():
    table = neardup.buckets({"x": "a b c", "y": "A b; c", "z": "d"}, size=1, bands=2, rows=3)
    assert table.schema == pa.schema(
        [("band", pa.int64()), ("key", pa.uint64()), ("documents", pa.large_list(pa.string()))]
    )
    assert [(row["band"], row["documents"]) for row in table.to_pylist()] == [
        (0, ["x", "y"]),
        (1, ["x", "y"]),
    ]
    assert len(set(table.column("key").to_pylist())) == 2


def test_documents_without_shingles_are_in_no_bucket():
    assert neardup.buckets(["", "", "?"]).num_rows == 0
    assert neardup.buckets([]).num_rows == 0


def test_only_documents_of_one_group_share_a_bucket():
    table = pa.table({"text": ["a b", "a b", "a b"], "lang": ["en", "de", "en"]})
    assert neardup.buckets(table, size=1, bands=1, rows=1, group_column="lang").column(
        "documents"
    ).to_pylist() == [[0, 2]]


def test_items_and_vectors_have_buckets_too():
    baskets = [["tea", "milk"], ["milk", "tea"], ["jam"]]
    assert candidates(neardup.buckets(items=baskets)) == {(0, 1)}
    vectors = [[1.0, 2.0], [2.0, 4.0], [-3.0, 1.0]]
    assert candidates(neardup.buckets(vectors, measure="cosine", threshold=0.99)) == {(0, 1)}


def test_a_rejected_row_causes_a_warning():
    with pytest.warns(UserWarning, match="1 rows are in no bucket; the reason for the first: "):
        assert candidates(neardup.buckets(["a b", None, "a b"], size=1)) == {(0, 2)}


@pytest.mark.parametrize("chosen", [{"recall": 1}, {"method": "exact"}, {"measure": "containment"}])
def test_the_exact_join_has_no_buckets(chosen):
    with pytest.raises(ConfigError, match="the exact join has no bands"):
        neardup.buckets(["a"], **chosen)


def test_a_path_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="documents in memory, got a path"):
        neardup.buckets(tmp_path)


@pytest.mark.parametrize("multiset", [False, True])
@pytest.mark.parametrize("chosen", [{"sketch": "fast"}, {"sketch": "minhash", "num_perm": 100}])
@given(left=WORDS, right=WORDS)
def test_merged_signatures_are_the_signature_of_the_union(chosen, multiset, left, right):
    # At size 1 no shingle spans the boundary; the union of multisets has the larger count of each.
    words = left.split(), right.split()
    union = [word for word in "abcdefgh" for _ in range(max(part.count(word) for part in words))]
    of_left, of_right, of_union = neardup.signatures(
        [left, right, " ".join(union)], size=1, multiset=multiset, **chosen
    )
    merged = neardup.merge_signatures(of_left, of_right)
    assert np.array_equal(merged, of_union)
    assert np.array_equal(merged, neardup.merge_signatures(of_right, of_left))
    assert np.array_equal(merged, neardup.merge_signatures(merged, of_left))


def test_signatures_merge_row_by_row():
    one = neardup.signatures(["a b", "c"], size=1)
    two = neardup.signatures(["d", ""], size=1)
    merged = neardup.merge_signatures(one, two)
    assert np.array_equal(merged, neardup.signatures(["a b d", "c"], size=1))


@pytest.mark.parametrize(
    "value", [[1, 2], np.array([1, 2]), np.uint32(1), np.zeros((1, 1, 1), np.uint32), None]
)
def test_merging_rejects_arguments_that_are_not_signatures(value):
    with pytest.raises(DataError, match="`b` must be an array of uint32"):
        neardup.merge_signatures(np.zeros(2, np.uint32), value)


def test_merging_signatures_of_different_sizes_is_an_error():
    with pytest.raises(
        DataError, match=r"cannot merge signatures of different shapes, got \(16,\) and \(32,\)"
    ):
        neardup.merge_signatures(np.zeros(16, np.uint32), np.zeros(32, np.uint32))
