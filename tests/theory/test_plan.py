"""The plan reaches the requested recall with the most rows per band, and states what it finds."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import neardup
from neardup.config import Config
from neardup.errors import ConfigError
from neardup.theory.plan import FILTER_LOSS, curve_threshold, least_agreement, plan_for, s_curve

THRESHOLDS = (0.05, 0.3, 0.5, 0.7, 0.75, 0.8, 0.9, 0.95, 0.99, 0.999)
RECALLS = (0.1, 0.5, 0.9, 0.95, 0.99, 0.999)
NUM_PERMS = (16, 64, 128, 256, 1024)


# More than the rounding error of the formula in doubles.
ROUNDING = 1e-12


def curve(similarity, bands, rows):
    return 1 - (1 - similarity**rows) ** bands


def exact_curve(similarity, bands, rows):
    return 1 - (1 - Fraction(similarity) ** rows) ** bands


def feasible(threshold, target, num_perm):
    """Every (bands, rows) within num_perm that reaches the target, by the plain formula."""
    return [
        (bands, rows)
        for rows in range(1, num_perm + 1)
        for bands in range(1, num_perm // rows + 1)
        if curve(threshold, bands, rows) >= target
    ]


@pytest.mark.parametrize(
    ("threshold", "bands", "rows"), [(0.7, 17, 4), (0.8, 16, 6), (0.9, 11, 10), (1.0, 1, 128)]
)
def test_plans_match_the_reference_values_of_the_design(threshold, bands, rows):
    plan = neardup.plan(threshold=threshold, recall=0.99)
    assert (plan.bands, plan.rows, plan.method) == (bands, rows, "lsh")


@pytest.mark.parametrize("num_perm", [16, 128, 1024])
def test_threshold_one_is_one_band_of_all_rows(num_perm):
    plan = neardup.plan(threshold=1, num_perm=num_perm)
    assert (plan.bands, plan.rows) == (1, num_perm)
    assert plan.recall_at_threshold == 1
    assert plan.min_agreement == num_perm


@pytest.mark.parametrize("signature_filter", [True, False])
@pytest.mark.parametrize("num_perm", NUM_PERMS)
def test_every_plan_keeps_the_recall_with_the_most_rows_and_fewest_bands(
    num_perm, signature_filter
):
    for threshold, recall in itertools.product(THRESHOLDS, RECALLS):
        target = recall + (FILTER_LOSS if signature_filter else 0)
        settings = {
            "threshold": threshold,
            "recall": recall,
            "num_perm": num_perm,
            "signature_filter": signature_filter,
        }
        if curve(threshold, num_perm, 1) < target:
            with pytest.raises(
                ConfigError, match=f"no bands and rows within num_perm {num_perm} reach threshold"
            ):
                neardup.plan(**settings)
            continue
        plan = neardup.plan(**settings)
        assert plan.recall_at_threshold >= recall
        assert plan.keeps_recall
        assert plan.bands * plan.rows <= num_perm
        assert curve(threshold, plan.bands, plan.rows) >= target - ROUNDING
        assert curve(threshold, plan.bands - 1, plan.rows) < target + ROUNDING
        for rows in range(plan.rows + 1, num_perm + 1):
            assert curve(threshold, num_perm // rows, rows) < target + ROUNDING


@pytest.mark.parametrize(
    ("threshold", "recall", "num_perm"), [(0.8, 0.99, 128), (0.5, 0.9, 64), (0.95, 0.999, 128)]
)
def test_no_feasible_plan_has_more_rows(threshold, recall, num_perm):
    plan = neardup.plan(threshold=threshold, recall=recall, num_perm=num_perm)
    choices = feasible(threshold, recall + FILTER_LOSS, num_perm)
    assert plan.rows == max(rows for _, rows in choices)
    assert plan.bands == min(bands for bands, rows in choices if rows == plan.rows)


def test_given_bands_get_the_most_rows_that_keep_the_recall():
    plan = neardup.plan(bands=20, num_perm=256)
    assert plan.rows == 7
    assert s_curve(0.8, 20, 7) >= 0.9901 > s_curve(0.8, 20, 8)
    assert neardup.plan(bands=20, num_perm=128).rows == 128 // 20


def test_given_rows_get_the_fewest_bands_that_keep_the_recall():
    plan = neardup.plan(rows=4)
    assert plan.bands == 9
    assert s_curve(0.8, 9, 4) >= 0.9901 > s_curve(0.8, 8, 4)


def test_given_bands_and_rows_are_used_and_their_recall_is_reported():
    plan = neardup.plan(bands=9, rows=13)
    assert (plan.bands, plan.rows) == (9, 13)
    assert not plan.keeps_recall
    assert plan.judgement() == "9 bands x 13 rows find 40 % of pairs at 0.8 (target 99 %)"
    assert str(plan).startswith(plan.judgement())


def test_a_plan_that_reaches_the_recall_states_what_it_finds():
    assert neardup.plan().judgement() == "16 bands x 6 rows find 99.22 % of pairs at 0.8"
    assert neardup.plan(threshold=1).judgement() == "1 band x 128 rows finds 100 % of pairs at 1"
    assert (
        "find 99.9989 %"
        in neardup.plan(bands=30, rows=4, signature_filter=False, threshold=0.75).judgement()
    )


def test_a_run_whose_plan_misses_the_recall_target_warns():
    events = []
    texts = [" ".join(f"{name}{number}" for number in range(20)) for name in "ab"]
    report = neardup.deduplicate(texts, bands=9, rows=13, progress=events.append)
    assert report.warnings == ("9 bands x 13 rows find 40 % of pairs at 0.8 (target 99 %)",)
    assert [event.message for event in events if type(event).__name__ == "Warned"] == list(
        report.warnings
    )
    assert neardup.deduplicate(texts).warnings == ()


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({"threshold": 0.05, "num_perm": 64}, 128),
        ({"threshold": 0.02, "num_perm": 128}, 256),
        ({"threshold": 0.3, "num_perm": 16, "recall": 0.999}, 32),
        ({"rows": 10, "num_perm": 128, "threshold": 0.7}, 2048),
        ({"rows": 10, "num_perm": 128}, 512),
    ],
)
def test_an_infeasible_plan_names_the_num_perm_it_needs(settings, needed):
    if needed > 1024:
        with pytest.raises(ConfigError, match="even num_perm 1024 is not enough"):
            neardup.plan(**settings)
        return
    with pytest.raises(ConfigError, match=f"hint: use num_perm={needed}$"):
        neardup.plan(**settings)
    assert neardup.plan(**(settings | {"num_perm": needed})).keeps_recall
    with pytest.raises(ConfigError):
        neardup.plan(**(settings | {"num_perm": needed // 2}))


def test_an_infeasible_minhash_plan_names_the_smallest_sufficient_num_perm():
    settings = {"threshold": 0.05, "sketch": "minhash"}
    with pytest.raises(ConfigError, match=r"hint: use num_perm=90$"):
        neardup.plan(**settings, num_perm=64)
    assert neardup.plan(**settings, num_perm=90).keeps_recall
    with pytest.raises(ConfigError):
        neardup.plan(**settings, num_perm=89)


@pytest.mark.parametrize("threshold", [1e-3, 1e-10, 1e-300, 5e-324])
def test_a_threshold_near_zero_is_infeasible_not_a_crash(threshold):
    with pytest.raises(ConfigError, match="even num_perm 1024 is not enough"):
        neardup.plan(threshold=threshold)


def test_an_error_for_too_few_bands_states_their_recall():
    with pytest.raises(
        ConfigError,
        match=r"2 bands cannot reach .*: even with 1 row they find 96.0 %[\s\S]*give `rows`",
    ):
        neardup.plan(bands=2)


@pytest.mark.parametrize("recall", [0.9999, 0.99999])
def test_a_recall_that_the_filter_prevents_is_an_error_with_a_hint(recall):
    with pytest.raises(
        ConfigError, match=r"leaves no room for the signature filter[\s\S]*signature_filter=False"
    ):
        neardup.plan(recall=recall)
    assert neardup.plan(recall=recall, signature_filter=False).recall_at_threshold >= recall


def test_the_filter_lowers_the_promised_recall_but_not_the_bucket_probability():
    plan = neardup.plan()
    assert plan.chance(0.8) == s_curve(0.8, 16, 6)
    assert plan.recall_at_threshold == plan.chance(0.8) - FILTER_LOSS
    assert neardup.plan(signature_filter=False).recall_at_threshold == plan.chance(0.8)


@pytest.mark.parametrize(
    ("bands", "rows"), [(1, 1), (16, 6), (20, 5), (11, 10), (128, 1), (1, 128), (1024, 1)]
)
def test_curve_is_the_formula_to_the_last_digits(bands, rows):
    for step in range(1, 100):
        similarity = step / 100
        exact = exact_curve(similarity, bands, rows)
        assert abs(Fraction(s_curve(similarity, bands, rows)) - exact) <= exact * Fraction(
            1, 10**12
        )


@pytest.mark.parametrize(("bands", "rows"), [(1, 1), (16, 6), (128, 1), (1, 128)])
def test_the_probability_grows_from_0_to_1_with_similarity(bands, rows):
    plan = neardup.plan(bands=bands, rows=rows)
    chances = [plan.chance(step / 1000) for step in range(1001)]
    assert chances == sorted(chances)
    assert (chances[0], chances[-1]) == (0, 1)


@pytest.mark.parametrize("similarity", [-0.01, 1.01, math.nan, math.inf, "0.8", None, [0.8]])
def test_chance_of_an_invalid_similarity_is_an_error(similarity):
    with pytest.raises(ConfigError, match=r"`similarity` must be a number in \[0, 1\], got "):
        neardup.plan().chance(similarity)


@pytest.mark.parametrize(
    ("bands", "rows"), [(1, 1), (16, 6), (20, 5), (11, 10), (9, 13), (128, 1), (1, 128)]
)
@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8, 0.99])
def test_areas_agree_with_a_numeric_integral(bands, rows, threshold):
    def area(low, high, function):
        """The midpoint rule on 400,000 steps, which errs by less than 1e-7 here."""
        middles = low + (np.arange(400_000) + 0.5) * ((high - low) / 400_000)
        return function(curve(middles, bands, rows)).mean() * (high - low)

    plan = neardup.plan(threshold=threshold, bands=bands, rows=rows)
    assert plan.false_positive_area == pytest.approx(
        area(0, threshold, lambda chance: chance), abs=1e-7
    )
    assert plan.false_negative_area == pytest.approx(
        area(threshold, 1, lambda chance: 1 - chance), abs=1e-7
    )


def test_area_of_one_row_and_band_is_a_triangle():
    plan = neardup.plan(threshold=0.5, bands=1, rows=1)
    assert (plan.false_positive_area, plan.false_negative_area) == pytest.approx((0.125, 0.125))


def test_curve_threshold_is_the_root_of_one_over_the_bands():
    assert curve_threshold(20, 5) == pytest.approx(0.549, abs=5e-4)
    assert neardup.plan(bands=1, rows=1).curve_threshold == 1


def binomial_at_most(count, trials, chance):
    chance = Fraction(chance)
    return sum(
        math.comb(trials, hits) * chance**hits * (1 - chance) ** (trials - hits)
        for hits in range(count + 1)
    )


@pytest.mark.parametrize("num_perm", [16, 64, 128, 256])
def test_minimum_agreement_is_the_exact_binomial_bound(num_perm):
    for threshold in (0.05, 0.3, 0.5, 0.7, 0.8, 0.9, 0.99):
        least = least_agreement(num_perm, threshold)
        assert binomial_at_most(least, num_perm, threshold) >= Fraction(FILTER_LOSS)
        assert binomial_at_most(least - 1, num_perm, threshold) < Fraction(FILTER_LOSS)


def test_minimum_agreement_matches_the_design():
    assert least_agreement(128, 0.8) == 84
    assert least_agreement(128, 1) == 128
    assert least_agreement(1024, 5e-324) == 0


def test_filter_can_be_turned_off():
    assert neardup.plan(signature_filter=False).min_agreement == 0
    assert neardup.plan().min_agreement == 84


def test_a_plan_prints_as_a_table_and_converts_to_a_dict():
    plan = plan_for(Config())
    assert "      0.80  0.992281" in str(plan).splitlines()
    assert plan.as_dict() == {
        "threshold": 0.8,
        "recall": 0.99,
        "num_perm": 128,
        "bands": 16,
        "rows": 6,
        "method": "lsh",
        "min_agreement": 84,
        "measure": "jaccard",
        "distance": 0.2,
        "recall_at_threshold": plan.recall_at_threshold,
        "curve_threshold": plan.curve_threshold,
        "false_positive_area": plan.false_positive_area,
        "false_negative_area": plan.false_negative_area,
    }


def test_plan_depends_on_the_settings_alone():
    assert neardup.plan(threads=1, strict=True, keep="longest", seed=7) == neardup.plan()


@pytest.mark.parametrize(
    "settings", [{"method": "exact"}, {"recall": 1}, {"recall": 1.0, "method": "exact"}]
)
def test_the_exact_join_promises_every_pair(settings):
    plan = neardup.plan(threshold=0.7, **settings)
    assert (plan.method, plan.bands, plan.rows, plan.min_agreement) == ("exact", 0, 0, 0)
    assert plan.is_exact
    assert plan.recall_at_threshold == 1.0
    assert plan.keeps_recall
    assert [plan.chance(similarity) for similarity in (0, 0.69, 0.7, 0.71, 1)] == [0, 0, 1, 1, 1]
    assert (plan.curve_threshold, plan.false_positive_area, plan.false_negative_area) == (0.7, 0, 0)
    assert plan.judgement() == "the exact method finds every pair with similarity >= 0.7"
    assert str(plan).splitlines()[:2] == [plan.judgement(), "similarity  chance"]
    assert plan.as_dict()["recall_at_threshold"] == 1.0


def test_auto_stays_with_bands_below_a_recall_of_1():
    assert neardup.plan(recall=0.999).method == "lsh"
    assert not neardup.plan(recall=0.999).is_exact


def test_a_figure_shows_itself_in_a_notebook_that_never_imported_pyplot():
    program = (
        "import neardup\n"
        "picture = neardup.plan(threshold=0.8).plot()._repr_png_()\n"
        "assert picture.startswith(b'\\x89PNG') and len(picture) > 10_000\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
