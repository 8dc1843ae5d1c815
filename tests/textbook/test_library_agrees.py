"""The compiled library agrees with the plain sets of neardup.textbook."""

import itertools
import math

import numpy as np
import pytest

import neardup
from neardup.theory import textbook

ROSES = (
    "a rose is a rose is a rose",
    "a rose is a flower which is a rose",
    "a flower which is a rose is a rose",
)
PAIRS = list(itertools.combinations(ROSES, 2))
SIZES = (1, 2, 3, 4, 8)


def word_shingles(text, size):
    return textbook.shingle_set(text.split(), size)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("text", ROSES)
def test_the_library_computes_one_hash_per_word_shingle(text, size):
    hashes = neardup.shingles(text, unit="word", size=size)
    assert hashes.dtype == np.uint64
    assert hashes.tolist() == sorted(set(hashes.tolist()))
    assert len(hashes) == len(word_shingles(text, size))


@pytest.mark.parametrize(
    ("text", "size"), [("abcdabd", 2), ("abcdabd", 7), ("a rose is a rose", 3), ("日本日本語", 2)]
)
def test_the_library_computes_one_hash_per_character_shingle(text, size):
    assert len(neardup.shingles(text, unit="char", size=size)) == len(
        textbook.shingle_set(text, size)
    )


def test_the_library_finds_three_shingles_in_the_car_sentence():
    assert len(neardup.shingles("a car is a car is a car", unit="word", size=4)) == 3


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_jaccard_of_hashes_is_jaccard_of_word_shingles(a, b, size):
    expected = textbook.jaccard(word_shingles(a, size), word_shingles(b, size))
    hashes = [neardup.shingles(text, unit="word", size=size) for text in (a, b)]
    assert neardup.jaccard(*hashes) == expected
    assert neardup.compare(a, b, unit="word", size=size).jaccard == expected


@pytest.mark.parametrize("size", [1, 2, 5, 9])
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_compare_by_characters_is_jaccard_of_substrings(a, b, size):
    expected = textbook.jaccard(textbook.shingle_set(a, size), textbook.shingle_set(b, size))
    assert neardup.compare(a, b, unit="char", size=size).jaccard == expected


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_compare_of_multisets_is_bag_jaccard(a, b, size):
    expected = textbook.bag_jaccard(
        textbook.shingle_bag(a.split(), size), textbook.shingle_bag(b.split(), size)
    )
    assert neardup.compare(a, b, unit="word", size=size, multiset=True).jaccard == expected


def test_the_first_rose_sentence_is_fully_contained_in_the_second():
    comparison = neardup.compare(ROSES[0], ROSES[1], unit="word", size=3)
    assert comparison.containment_a == 1
    assert comparison.containment_b == 3 / 7


def test_words_are_compared_without_case_and_punctuation():
    assert (
        neardup.compare(ROSES[0], "A rose is a rose; is a ROSE!", unit="word", size=3).jaccard == 1
    )


def test_characters_are_compared_without_case_and_with_single_spaces():
    assert neardup.compare("Touch  down", "touch\n\tDOWN", unit="char", size=9).jaccard == 1
    assert neardup.compare("touch down", "touchdown", unit="char", size=9).jaccard == 0


def test_a_text_shorter_than_the_size_is_one_shingle_in_the_library_and_none_in_the_textbook():
    assert len(neardup.shingles("a rose", unit="word", size=5)) == 1
    assert neardup.compare("a rose", "A rose.", unit="word", size=5).jaccard == 1
    assert word_shingles("a rose", 5) == set()


@pytest.mark.parametrize(
    ("bands", "similarity", "digits", "chance"),
    [(20, 0.8, 5, 0.99964), (20, 0.3, 4, 0.0475), (15, 0.8, 5, 0.99741), (15, 0.3, 4, 0.0358)],
)
def test_plan_has_the_s_curve_of_the_lecture(bands, similarity, digits, chance):
    assert round(neardup.plan(bands=bands, rows=5).chance(similarity), digits) == chance


def test_plan_of_20_bands_and_5_rows_has_its_threshold_at_549():
    assert round(neardup.plan(bands=20, rows=5).curve_threshold, 3) == 0.549


@pytest.mark.parametrize("sketch", ["minhash", "fast"])
def test_equal_slots_of_library_signatures_estimate_jaccard(sketch):
    num_perm = 1024
    signatures = neardup.signatures(
        list(ROSES), sketch=sketch, num_perm=num_perm, unit="word", size=3
    )
    estimates = textbook.signature_similarity(signatures.T.tolist())
    for (left, right), estimate in estimates.items():
        truth = textbook.jaccard(word_shingles(ROSES[left], 3), word_shingles(ROSES[right], 3))
        # Four standard deviations of a binomial share.
        assert abs(estimate - truth) < 4 * math.sqrt(truth * (1 - truth) / num_perm)


def test_minhash_signature_of_a_union_is_the_slotwise_minimum():
    # Single characters as shingles: the set of "abcde" is the union of those of "abc" and "cde".
    left, right, union = neardup.signatures(
        ["abc", "cde", "abcde"], sketch="minhash", unit="char", size=1
    )
    assert (np.minimum(left, right) == union).all()


def test_minhash_slots_of_a_document_each_come_from_one_of_its_shingles():
    # The least value of a set is the least value of one element: what permutation_signatures names
    # by its row.
    whole, *singles = neardup.signatures(["abcde", *"abcde"], sketch="minhash", unit="char", size=1)
    assert (np.min(singles, axis=0) == whole).all()


def test_candidates_by_textbook_bands_of_library_signatures_include_the_found_pairs():
    settings = {
        "unit": "word",
        "size": 3,
        "sketch": "minhash",
        "bands": 32,
        "rows": 4,
        "threshold": 0.8,
    }
    signatures = neardup.signatures(list(ROSES), **settings)
    candidates = textbook.banded_candidates(signatures.T.tolist(), bands=32)
    found = {
        (int(pair["doc_a"]), int(pair["doc_b"]))
        for pair in neardup.find_pairs(list(ROSES), **settings).pairs.to_pylist()
    }
    assert found == {(1, 2)}
    assert found <= candidates


def test_found_pair_carries_its_exact_jaccard():
    [pair] = neardup.find_pairs(list(ROSES), unit="word", size=3, threshold=0.8).pairs.to_pylist()
    assert pair["similarity"] == 6 / 7
