"""Bands and the S-curve, with the numbers of the lecture."""

import itertools
from fractions import Fraction

import pytest

from neardup.errors import ConfigError
from neardup.theory.plan import curve_threshold, s_curve
from neardup.theory.textbook import banded_candidates, permutation_signatures, signature_similarity

SEVEN_BY_FOUR_SIGNATURES = [[2, 1, 2, 1], [2, 1, 4, 1], [1, 2, 1, 2]]


def test_one_band_requires_equal_signatures():
    assert banded_candidates(SEVEN_BY_FOUR_SIGNATURES, bands=1) == {(1, 3)}


def test_bands_of_one_row_require_one_equal_slot():
    assert banded_candidates(SEVEN_BY_FOUR_SIGNATURES, bands=3) == {(0, 2), (1, 3)}


def test_two_bands_of_two_rows_need_two_equal_slots_in_the_same_band():
    # Columns 0 and 1 are equal in band 0, columns 1 and 2 in band 1, columns 0 and 2 in one row of
    # band 0 only.
    signatures = [[1, 1, 1], [2, 2, 9], [3, 4, 4], [5, 6, 6]]
    assert signature_similarity(signatures) == {(0, 1): 1 / 2, (0, 2): 1 / 4, (1, 2): 3 / 4}
    assert banded_candidates(signatures, bands=2) == {(0, 1), (1, 2)}


def test_equal_values_in_different_bands_do_not_share_a_bucket():
    assert banded_candidates([[1, 8], [2, 9], [8, 1], [9, 2]], bands=2) == set()


def test_three_columns_in_one_bucket_are_three_candidates():
    assert banded_candidates([[7, 7, 7]], bands=1) == {(0, 1), (0, 2), (1, 2)}


@pytest.mark.parametrize(("bands", "rows"), [(1, 2), (2, 1), (1, 4), (2, 2), (4, 1)])
def test_candidate_frequency_over_all_permutations_equals_the_s_curve(bands, rows):
    left = {0, 1}
    right = {1, 2}
    similarity = Fraction(1, 3)
    choices = list(itertools.product(itertools.permutations(range(3)), repeat=bands * rows))
    hits = sum(
        bool(banded_candidates(permutation_signatures([left, right], chosen), bands))
        for chosen in choices
    )
    assert Fraction(hits, len(choices)) == 1 - (1 - similarity**rows) ** bands
    assert s_curve(1 / 3, bands, rows) == pytest.approx(hits / len(choices), abs=1e-12)


@pytest.mark.parametrize(
    ("similarity", "chance"),
    [
        (0.2, 0.006),
        (0.3, 0.047),
        (0.4, 0.186),
        (0.5, 0.470),
        (0.6, 0.802),
        (0.7, 0.975),
        (0.8, 0.9996),
    ],
)
def test_s_curve_table_of_20_bands_and_5_rows(similarity, chance):
    assert s_curve(similarity, bands=20, rows=5) == pytest.approx(chance, abs=6e-4)


def test_20_bands_of_5_rows_at_80_and_30_percent():
    assert round(s_curve(0.8, bands=20, rows=5), 5) == 0.99964
    assert round(s_curve(0.3, bands=20, rows=5), 4) == 0.0475


def test_20_bands_of_5_rows_step_by_step():
    # One band: .8^5 = .328; none of 20: .672^20 = .00036. One band at .3: .3^5 = .00243.
    assert round(0.8**5, 3) == 0.328
    assert round((1 - 0.8**5) ** 20, 5) == 0.00036
    assert round(0.3**5, 5) == 0.00243


def test_15_bands_of_5_rows_miss_more_pairs_and_have_fewer_false_candidates():
    assert round(s_curve(0.8, bands=15, rows=5), 5) == 0.99741
    assert round(s_curve(0.3, bands=15, rows=5), 4) == 0.0358


def test_threshold_of_20_bands_and_5_rows_is_549():
    assert round(curve_threshold(bands=20, rows=5), 3) == 0.549


def test_threshold_of_16_bands_and_4_rows_is_one_half():
    assert curve_threshold(bands=16, rows=4) == 0.5


def test_bands_that_do_not_divide_the_signature_are_an_error_that_lists_valid_ones():
    with pytest.raises(
        ConfigError, match="must divide the 6 rows of the signature matrix, got 4"
    ) as caught:
        banded_candidates([[1, 2]] * 6, bands=4)
    assert caught.value.hint == "use one of 1, 2, 3, 6"


@pytest.mark.parametrize("bands", [0, -3, 1.0, None])
def test_bands_must_be_a_positive_whole_number(bands):
    with pytest.raises(ConfigError, match="`bands` must be a whole number >= 1, got"):
        banded_candidates([[1, 2]], bands)
