"""The worked examples of the lecture, number by number: roses, rows, shingles, matrices, universal hashing."""

from __future__ import annotations

import itertools
import random
import re

import pytest

import neardup
from neardup.errors import ConfigError, DataError
from neardup.theory import textbook

ROSES = {
    "A": "A rose is red, a rose is white.",
    "B": "A rose is white, a rose is red.",
    "C": "A rose is a rose is a rose.",
}
SEVEN_ROWS = [{1, 2, 5, 6, 7}, {1, 2, 3, 6}, {1, 6, 7}, {2, 3, 4, 5}]
NEW_POSITIONS = [(4, 2, 7, 1, 6, 3, 5), (3, 4, 7, 2, 6, 1, 5), (2, 3, 7, 6, 1, 5, 4)]
TEN_SHINGLES = [{3, 7, 8}, {1, 6, 9}, {1, 4, 6, 9, 10}, {1, 5}, {2, 8}]
TEN_SIGNATURES = [[5, 2, 2, 3, 1], [3, 1, 1, 5, 2], [1, 4, 4, 1, 3]]


def rose_sets():
    return {
        name: textbook.shingle_set(re.findall("[a-z]+", text.lower()), 3)
        for name, text in ROSES.items()
    }


def positions_of(order):
    return {row: place for place, row in enumerate(order, start=1)}


def test_rose_sentences_have_five_five_and_three_shingles():
    assert [len(shingles) for shingles in rose_sets().values()] == [5, 5, 3]
    assert [len(neardup.shingles(text, size=3)) for text in ROSES.values()] == [5, 5, 3]


@pytest.mark.parametrize(
    ("left", "right", "similarity"), [("A", "B", 3 / 7), ("A", "C", 1 / 7), ("B", "C", 1 / 7)]
)
def test_rose_sentences_have_similarities_three_sevenths_and_one_seventh(left, right, similarity):
    sets = rose_sets()
    assert textbook.jaccard(sets[left], sets[right]) == similarity
    assert neardup.compare(ROSES[left], ROSES[right], size=3).jaccard == similarity


def test_signatures_of_seven_rows_by_positions_match_the_lecture():
    permutations = [dict(enumerate(positions, start=1)) for positions in NEW_POSITIONS]
    signatures = textbook.permutation_signatures(SEVEN_ROWS, permutations)
    assert signatures == [[2, 2, 3, 1], [1, 1, 1, 2], [1, 2, 2, 1]]
    estimates = textbook.signature_similarity(signatures)
    assert (textbook.jaccard(SEVEN_ROWS[0], SEVEN_ROWS[1]), estimates[0, 1]) == (1 / 2, 2 / 3)
    assert (textbook.jaccard(SEVEN_ROWS[2], SEVEN_ROWS[3]), estimates[2, 3]) == (0, 0)


@pytest.mark.parametrize(
    ("order", "slots"),
    [
        ((2, 6, 1, 10, 7, 5, 3, 9, 8, 4), TEN_SIGNATURES[0]),
        ((6, 2, 3, 4, 1, 5, 7, 8, 9, 10), TEN_SIGNATURES[1]),
    ],
)
def test_signatures_of_ten_shingles_by_order_match_the_lecture(order, slots):
    assert textbook.permutation_signatures(TEN_SHINGLES, [positions_of(order)]) == [slots]


def test_no_permutation_can_produce_the_third_row_of_the_ten_shingles():
    # Documents 0 and 3 share no shingle but have the same slot: in a permutation one row would have
    # two names.
    assert not TEN_SHINGLES[0] & TEN_SHINGLES[3]
    h = textbook.UniversalHash(18, 13, prime=23, num_buckets=10)
    assert textbook.minhash_one_pass(TEN_SHINGLES, [h]) == TEN_SIGNATURES[2:]
    assert h(3) == h(5) == 1


def test_slot_agreement_of_the_ten_shingles_matches_the_lecture():
    estimates = textbook.signature_similarity(TEN_SIGNATURES)
    assert (estimates[1, 2], estimates[0, 3]) == (1, 1 / 3)
    assert (
        textbook.jaccard(TEN_SHINGLES[1], TEN_SHINGLES[2]),
        textbook.jaccard(*TEN_SHINGLES[:4:3]),
    ) == (3 / 5, 0)


def test_filters_remove_the_false_candidate_of_three_bands_of_one_row():
    candidates = textbook.banded_candidates(TEN_SIGNATURES, bands=3)
    assert candidates == {(0, 3), (1, 2)}
    assert textbook.keep_agreeing(candidates, TEN_SIGNATURES, least=1 / 3) == candidates
    assert textbook.keep_agreeing(candidates, TEN_SIGNATURES, least=0.34) == {(1, 2)}
    assert textbook.keep_similar(candidates, TEN_SHINGLES, threshold=0.6) == {(1, 2)}
    assert textbook.keep_similar(candidates, TEN_SHINGLES, threshold=0.61) == set()


def test_a_share_exactly_at_the_minimum_is_kept_despite_rounding():
    # 0.28 * 100 is 28.000000000000004 in floating point.
    signatures = [[1, 1]] * 28 + [[1, 2]] * 72
    assert textbook.keep_agreeing({(0, 1)}, signatures, least=0.28) == {(0, 1)}


def test_buckets_of_the_ten_shingles_match_the_lecture():
    assert textbook.buckets(TEN_SIGNATURES, bands=3)[2] == {(1,): [0, 3], (4,): [1, 2], (3,): [4]}
    [one_band] = textbook.buckets(TEN_SIGNATURES, bands=1)
    assert one_band == {(5, 3, 1): [0], (2, 1, 4): [1, 2], (3, 5, 1): [3], (1, 2, 3): [4]}


def test_a_matrix_converts_to_columns_and_back():
    matrix = [
        [1, 1, 1, 0],
        [1, 1, 0, 1],
        [0, 1, 0, 1],
        [0, 0, 0, 1],
        [1, 0, 0, 1],
        [1, 1, 1, 0],
        [1, 0, 1, 0],
    ]
    assert textbook.columns_of(matrix) == SEVEN_ROWS
    assert textbook.matrix_of(SEVEN_ROWS) == matrix
    assert textbook.columns_of([[1, 0], [0, 1]], rows="ab") == [{"a"}, {"b"}]
    assert textbook.matrix_of([{"a"}, {"b"}], rows="abc") == [[1, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize("matrix", [[], [[1, 0], [1]]])
def test_a_ragged_or_empty_matrix_is_refused(matrix):
    with pytest.raises(DataError, match="a matrix needs rows of equal length"):
        textbook.columns_of(matrix)


def test_a_matrix_of_other_numbers_or_with_too_few_names_is_refused():
    with pytest.raises(DataError, match="holds 0 and 1 only, got 2"):
        textbook.columns_of([[1, 2]])
    with pytest.raises(DataError, match=r"and a name for each, got lengths \[2\], 3 names"):
        textbook.columns_of([[1, 0], [0, 1]], rows="abc")
    with pytest.raises(DataError, match="column 0 has a 1 in row 4, which `rows` does not list"):
        textbook.matrix_of([{4}], rows=[1, 2])


@pytest.mark.parametrize(("prime", "num_buckets"), [(7, 3), (11, 4), (13, 13), (5, 8)])
def test_at_most_one_in_n_functions_of_the_class_collides_on_two_numbers(prime, num_buckets):
    functions = [
        textbook.UniversalHash(a, b, prime, num_buckets)
        for a, b in itertools.product(range(1, prime), range(prime))
    ]
    for left, right in itertools.combinations(range(prime), 2):
        assert sum(h(left) == h(right) for h in functions) <= len(functions) / num_buckets


def test_randomly_drawn_functions_collide_about_once_in_n():
    generator = random.Random(1)
    drawn = [textbook.UniversalHash.draw(50, generator) for _ in range(5_000)]
    collisions = sum(h(17) == h(4_000_000_000) for h in drawn)
    # 100 expected; four standard deviations of a binomial are 40.
    assert 60 < collisions < 140
    assert all(0 <= h(17) < 50 for h in drawn)


@pytest.mark.parametrize(("a", "b"), [(0, 1), (7, 1), (1, 7), (1, -1)])
def test_coefficients_outside_the_class_are_refused(a, b):
    with pytest.raises(ConfigError, match=r"a must be in \[1, p\) and b in \[0, p\)"):
        textbook.UniversalHash(a, b, prime=7, num_buckets=3)


def test_a_number_not_below_the_prime_is_an_error():
    h = textbook.UniversalHash(1, 0, prime=7, num_buckets=3)
    for number in (-1, 7):
        with pytest.raises(DataError, match=re.escape(f"must be in [0, 7), got {number}")):
            h(number)


def test_the_four_byte_hash_of_a_shingle_is_portable():
    assert textbook.shingle_number("touchdown") == 0x37C1366A
    assert 0 <= textbook.shingle_number("touchdown", num_bytes=1) < 256


@pytest.mark.parametrize(
    ("bands", "missed", "in_vain"),
    [(20, 0.00036, 0.0475), (15, 0.00259, 0.0358), (10, 0.01887, 0.0240)],
)
def test_the_library_supports_signatures_of_100_rows(bands, missed, in_vain):
    plan = neardup.plan(sketch="minhash", num_perm=100, bands=bands, rows=5)
    assert (round(1 - plan.chance(0.8), 5), round(plan.chance(0.3), 4)) == (missed, in_vain)


def test_notes_round_one_in_2809_to_one_in_3000():
    missed = 1 - neardup.plan(sketch="minhash", num_perm=100, bands=20, rows=5).chance(0.8)
    assert (round(1 / missed), round(1 / 0.672**20), round(100 - 100 * missed, 4)) == (
        2809,
        2835,
        99.9644,
    )
