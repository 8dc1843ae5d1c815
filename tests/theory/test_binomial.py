"""Exact intervals against SciPy, and their coverage of a stratified sample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binomtest

from neardup.theory.binomial import Share, clopper_pearson, stratified


@pytest.mark.parametrize("confidence", [0.95, 0.975])
def test_intervals_are_those_of_scipy(confidence):
    for judged in (1, 2, 7, 15, 30, 100):
        for right in {0, 1, judged // 2, judged - 1, judged}:
            found = binomtest(right, judged).proportion_ci(confidence, method="exact")
            assert clopper_pearson(right, judged, confidence) == pytest.approx(
                (found.low, found.high), abs=1e-12
            )


def test_strata_are_weighted_by_their_size():
    weak, rest = Share(9, 15, 100), Share(15, 15, 900)
    bounds = [clopper_pearson(one.right, one.judged, 0.975) for one in (weak, rest)]
    found = stratified([weak, rest])
    assert found.value == pytest.approx(0.1 * 0.6 + 0.9)
    assert found.low == pytest.approx(0.1 * bounds[0][0] + 0.9 * bounds[1][0])
    assert found.high == pytest.approx(0.1 * bounds[0][1] + 0.9 * bounds[1][1])


def test_an_empty_stratum_does_not_count_and_one_without_judgements_leaves_all_open():
    alone = clopper_pearson(3, 4, 0.95)
    assert stratified([Share(3, 4, 50), Share(0, 0, 0)]) == (0.75, *alone)
    assert stratified([Share(3, 4, 50), Share(0, 0, 50)]).value is None
    assert stratified([]) == (None, 0.0, 1.0)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    chance = np.random.default_rng(8)
    weak, rest = 0.7, 0.97
    truth = 0.1 * weak + 0.9 * rest
    drawn = zip(chance.binomial(15, weak, 400), chance.binomial(15, rest, 400), strict=True)
    found = [stratified([Share(a, 15, 100), Share(b, 15, 900)]) for a, b in drawn]
    assert np.mean([one.low <= truth <= one.high for one in found]) >= 0.95
