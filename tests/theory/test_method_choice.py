"""Which method is chosen, and the stated reason."""

from __future__ import annotations

import dataclasses

import pytest

import neardup
from neardup.config import Config
from neardup.theory import method_choice as costs
from neardup.theory.method_choice import Choice, Contents
from neardup.theory.plan import as_exact, is_open, plan_for

PLAN = plan_for(Config())


def contents(shingles, *, postings=0.0, linked=0.0):
    of = {"postings": round(postings * shingles), "linked_shingles": round(linked * shingles)}
    return Contents(documents=shingles // 300, shingles=shingles, **of)


def test_few_postings_call_for_the_exact_join():
    choice = costs.choose(contents(3_100_000, postings=0.02), PLAN, is_cached=True)
    assert choice == Choice(
        method="exact",
        reason="exact join: it finds every pair at 1.6 times the cost of LSH (3.1 M shingles)",
    )


def test_many_postings_call_for_lsh():
    choice = costs.choose(contents(50_000_000, postings=0.5), PLAN, is_cached=True)
    assert choice.method == "lsh"
    assert choice.reason == "LSH: the exact join would cost 5.2 times as much (50.0 M shingles)"


def test_a_small_run_is_exact_whatever_its_postings():
    assert costs.choose(contents(60_000, postings=0.5), PLAN, is_cached=False).method == "exact"
    assert costs.choose(contents(0), PLAN, is_cached=True).reason.endswith(
        "times the cost of LSH (0 shingles)"
    )


def test_few_documents_are_joined_exactly_whatever_lsh_costs():
    records = Contents(
        documents=7300,
        shingles=376_000,
        postings=200_000,
        linked_documents=7300,
        linked_shingles=370_000,
    )
    price = costs.exact_seconds(records, is_cached=False) / costs.lsh_seconds(records, PLAN)
    assert price > costs.FAIR_PRICE
    assert costs.choose(records, PLAN, is_cached=False) == Choice(
        method="exact",
        reason="exact join: it finds every pair, and the documents are few (376,000 shingles)",
    )
    more = dataclasses.replace(records, linked_documents=14_600, linked_shingles=740_000)
    assert costs.worst_seconds(more, is_cached=False) > costs.SMALL_COST
    assert costs.choose(more, PLAN, is_cached=False).method == "lsh"


@pytest.mark.parametrize(
    ("settings", "most"),
    [
        ({"measure": "cosine", "dimension": 64}, 12_910),
        ({"measure": "euclidean", "dimension": 64}, 10_000),
        ({"measure": "hamming", "dimension": 64}, 18_257),
        ({"measure": "weighted"}, 4_880),
    ],
    ids=str,
)
def test_vectors_are_compared_exactly_up_to_a_number_of_operations(settings, most):
    plan = plan_for(Config(**settings))
    assert is_open(Config(**settings))
    methods = []
    for documents in (most, most + 1):
        items = 10 * documents if plan.measure == "weighted" else documents
        found = Contents(documents=documents, shingles=items)
        methods.append(costs.decide(found, plan, is_cached=False).method)
    assert methods == ["exact", "lsh"]


def test_the_reason_counts_the_operations():
    plan = plan_for(Config(measure="cosine", dimension=64))
    found = costs.choose_all_pairs(Contents(documents=100_000, shingles=100_000), plan)
    assert found.reason == (
        "LSH: comparing all 100,000 documents with each other would take 480 billion operations"
    )


def test_many_false_candidates_of_short_sets_call_for_lsh():
    baskets = Contents(documents=10**6, shingles=10**7, postings=10**6, linked_shingles=5 * 10**6)
    assert costs.choose(baskets, PLAN, is_cached=True).method == "exact"
    linked = dataclasses.replace(baskets, linked_documents=10**6)
    assert costs.choose(linked, PLAN, is_cached=True).method == "lsh"


def test_too_many_shingles_are_not_examined():
    assert costs.choose(contents(costs.MAX_SHINGLES), PLAN, is_cached=True).method == "exact"
    choice = costs.choose(contents(costs.MAX_SHINGLES + 1), PLAN, is_cached=True)
    assert choice == Choice(
        method="lsh", reason="LSH: 67.1 M shingles exceed the 67 M that the exact join can handle"
    )


def test_recomputing_sets_adds_to_the_cost():
    held, made = (
        costs.exact_seconds(contents(10**7), is_cached=is_cached) for is_cached in (True, False)
    )
    assert made > 1.2 * held


@pytest.mark.parametrize(
    ("settings", "method", "reason"),
    [
        ({"recall": 1}, "exact", "exact join: recall 1 requires every pair"),
        ({"bands": 20}, "lsh", "LSH: bands or rows are given"),
        ({"rows": 5}, "lsh", "LSH: bands or rows are given"),
        ({"threshold": 1}, "lsh", "LSH: at threshold 1 it finds every pair too"),
        ({"measure": "cosine", "rows": 5}, "lsh", "LSH: bands or rows are given"),
        ({"measure": "cosine", "recall": 1}, "exact", "exact join: recall 1 requires every pair"),
    ],
    ids=str,
)
def test_settings_can_determine_the_method(settings, method, reason):
    config = Config(**settings)
    plan = plan_for(config)
    assert not is_open(config)
    assert (plan.method, plan.reason) == (method, reason)
    assert plan.as_dict()["reason"] == reason


@pytest.mark.parametrize("method", ["lsh", "exact"])
def test_an_explicit_method_has_no_reason(method):
    assert not is_open(Config(method=method))
    assert "reason" not in plan_for(Config(method=method)).as_dict()


def test_as_exact_is_the_plan_of_the_exact_method():
    assert is_open(Config())
    assert as_exact(PLAN) == plan_for(Config(method="exact"))


def test_a_run_reports_the_reason_for_its_method():
    report = neardup.deduplicate(["one two three four five six"] * 2)
    assert report.plan.method == "exact"
    assert (
        report.plan.reason
        == "exact join: it finds every pair at 1.0 times the cost of LSH (2 shingles)"
    )
