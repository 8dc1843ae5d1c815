"""Sensitivity of the families, AND, OR and cascades: the laws, and the numbers that books print."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.config.distances import SCALES
from neardup.errors import ConfigError
from neardup.theory import families

FAMILIES = {
    "jaccard": (families.jaccard_family(), 1.0),
    "hamming": (families.hamming_family(64), 64.0),
    "angle": (families.angle_family(), 180.0),
    "cosine": (families.cosine_family(), 2.0),
    "euclidean": (families.euclidean_family(4.0), 50.0),
}
EVERY_FAMILY = pytest.mark.parametrize("name", FAMILIES)
SHARES = st.floats(0, 1)
AMPLIFIED = st.lists(
    st.tuples(st.sampled_from(["all_of", "any_of"]), st.integers(1, 9)), max_size=4
)


def amplified(family, steps):
    for step, count in steps:
        family = getattr(family, step)(count)
    return family


@EVERY_FAMILY
@given(one=SHARES, two=SHARES, between=st.lists(SHARES, min_size=1, max_size=4), steps=AMPLIFIED)
def test_sensitivity_holds_for_every_distance_and_cascade(name, one, two, between, steps):
    base, largest = FAMILIES[name]
    family = amplified(base, steps)
    near, far = sorted((one * largest, two * largest))
    _, _, chance_near, chance_far = family.sensitivity(near, far)
    assert 0 <= chance_far <= chance_near <= 1
    for distance in (share * largest for share in between):
        if distance <= near:
            assert family.chance(distance) >= chance_near
        if distance >= far:
            assert family.chance(distance) <= chance_far


@EVERY_FAMILY
@given(share=SHARES, rows=st.integers(1, 40), bands=st.integers(1, 40))
def test_and_is_a_power_and_or_is_its_complement(name, share, rows, bands):
    family, largest = FAMILIES[name]
    chance = family.chance(share * largest)
    assert family.all_of(rows).chance(share * largest) == pytest.approx(chance**rows, abs=1e-12)
    assert family.any_of(bands).chance(share * largest) == pytest.approx(
        1 - (1 - chance) ** bands, abs=1e-12
    )


@pytest.mark.parametrize(
    ("similarity", "and_or", "or_and"),
    [
        # The 4-way AND followed by the 4-way OR, and the other way round, as the textbook on mining
        # of massive datasets tabulates them.
        (0.2, 0.0064, 0.1215),
        (0.3, 0.0320, 0.3334),
        (0.4, 0.0985, 0.5740),
        (0.5, 0.2275, 0.7725),
        (0.6, 0.4260, 0.9015),
        (0.7, 0.6666, 0.9680),
        (0.8, 0.8785, 0.9936),
        (0.9, 0.9860, 0.9996),
    ],
)
def test_cascades_of_four_match_the_textbook(similarity, and_or, or_and):
    family = families.jaccard_family()
    assert family.all_of(4).any_of(4).chance(1 - similarity) == pytest.approx(and_or, abs=6e-5)
    assert family.any_of(4).all_of(4).chance(1 - similarity) == pytest.approx(or_and, abs=6e-5)


def test_a_long_cascade_matches_the_textbook():
    """(4, 4)-OR-AND, then (4, 4)-AND-OR, turns (.2, .8, .8, .2) into (.2, .8, .9999996, .0008715)."""
    family = families.jaccard_family().any_of(4).all_of(4).all_of(4).any_of(4)
    near, far = family.sensitivity(0.2, 0.8)[2:]
    assert near == pytest.approx(0.9999996, abs=1e-7)
    assert far == pytest.approx(0.0008715, abs=1e-7)


def test_bands_of_rows_are_the_s_curve_of_a_plan():
    plan = neardup.plan(threshold=0.7, measure="cosine")
    family = families.cosine_family().all_of(plan.rows).any_of(plan.bands)
    for similarity in (0.0, 0.3, 0.7, 0.9, 1.0):
        assert family.chance(1 - similarity) == pytest.approx(plan.chance(similarity), abs=1e-12)


@pytest.mark.parametrize("ratio", [1e-9, 1e-7, 2e-6, 0.01, 0.5, 1.0, 4.0, 40.0])
def test_euclidean_chance_equals_its_integral(ratio):
    """Two points fall into one bucket if their projections lie |d Z| < w apart and no bound falls between them."""
    steps = 200_000
    apart = (np.arange(steps) + 0.5) / steps * min(ratio, 40.0)
    density = math.sqrt(2 / math.pi) * np.exp(-(apart**2) / 2)
    expected = float((density * (1 - apart / ratio)).mean() * min(ratio, 40.0))
    assert families.euclidean_family(ratio).chance(1.0) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("measure", SCALES)
def test_distance_and_similarity_convert_both_ways(measure):
    scale = SCALES[measure]
    for similarity in (0.05, 0.5, 0.8, 1.0):
        assert scale.similarity(scale.distance(similarity, 64), 64) == pytest.approx(similarity)


@pytest.mark.parametrize("measure", SCALES)
def test_agreement_grows_with_similarity_and_is_certain_at_1(measure):
    chances = [families.slot_chance(measure, step / 50, 3.0) for step in range(51)]
    assert all(one <= two for one, two in itertools.pairwise(chances))
    assert chances[-1] == 1
    for chance in (0.6, 0.7, 0.9):
        similarity = families.similarity_at(measure, chance, 3.0)
        assert families.slot_chance(measure, similarity, 3.0) == pytest.approx(chance)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: families.jaccard_family().chance(1.5),
            r"`distance` must be a number in \[0, 1\], got 1.5",
        ),
        (lambda: families.jaccard_family().chance(math.nan), "`distance` must be a number"),
        (
            lambda: families.jaccard_family().sensitivity(0.8, 0.2),
            "`near` must be at most `far`, got 0.8 > 0.2",
        ),
        (lambda: families.jaccard_family().all_of(0), "`rows` must be a whole number >= 1, got 0"),
        (
            lambda: families.jaccard_family().any_of(True),
            "`bands` must be a whole number >= 1, got True",
        ),
        (lambda: families.hamming_family(1.5), "`dimension` must be a whole number >= 1, got 1.5"),
        (lambda: families.euclidean_family(0), "`width` must be a number above 0, got 0"),
    ],
)
def test_invalid_arguments_are_errors(call, message):
    with pytest.raises(ConfigError, match=message):
        call()
