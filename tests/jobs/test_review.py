"""Removals drawn to be judged: which, how they are weighted, and what becomes of the judgements."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from scipy.stats import binomtest

import neardup
from neardup.errors import NotStoredError


def corpus():
    """400 pages, each with a copy: some equal, some edited, in up to 8 of 40 words."""
    chance = random.Random(6)
    pages = {}
    for number in range(400):
        words = [f"w{chance.randrange(10**5)}" for _ in range(40)]
        pages[f"page-{number}"] = " ".join(words)
        for place in chance.sample(range(40), number % 9):
            words[place] = "edited"
        pages[f"copy-{number}"] = " ".join(words)
    return pages


SETTINGS = {"threshold": 0.5, "size": 1, "method": "exact"}


@pytest.fixture(scope="module")
def in_memory():
    return neardup.deduplicate(corpus(), **SETTINGS)


@pytest.fixture(scope="module")
def on_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("review")
    rows = [json.dumps({"id": name, "text": text}) for name, text in corpus().items()]
    (folder / "pages.jsonl").write_text("\n".join(rows) + "\n")
    return neardup.deduplicate(folder / "pages.jsonl", out=folder / "clean", **SETTINGS)


def judge_all(review, is_right):
    for number, one in enumerate(review.removals):
        review = review.judge(number, is_right(one))
    return review


def test_half_is_drawn_from_the_weakest_tenth_and_nothing_identical(in_memory):
    review = neardup.review(in_memory)
    edited = [one for one in in_memory.removed.column("similarity").to_pylist() if one < 1]
    assert review.identical == in_memory.num_removed - len(edited)
    num_weakest = -(-len(edited) // 10)
    assert review.sizes == {"weakest tenth": num_weakest, "the rest": len(edited) - num_weakest}
    weak = [one.similarity for one in review.removals if one.stratum == "weakest tenth"]
    rest = [one.similarity for one in review.removals if one.stratum == "the rest"]
    assert (len(weak), len(rest)) == (15, 15)
    assert max(weak) <= sorted(edited)[num_weakest - 1] <= min(rest)
    assert max(rest) < 1
    assert len({one.doc_id for one in review.removals}) == 30


def test_the_same_removals_are_drawn_from_files_and_memory(in_memory, on_files):
    drawn = [
        [
            (one.doc_id, one.kept_id, one.similarity, one.stratum)
            for one in neardup.review(run).removals
        ]
        for run in (in_memory, on_files, on_files.out)
    ]
    assert drawn[0] == drawn[1] == drawn[2]
    few = neardup.review(on_files, sample=10)
    assert {one.doc_id for one in few.removals} <= {row[0] for row in drawn[0]}


def test_the_estimate_weights_strata_and_its_interval_is_that_of_scipy(in_memory):
    review = neardup.review(in_memory)
    assert review.precision is None
    assert (review.low, review.high) == (0, 1)
    is_even = {name: int(name.split("-")[1]) % 2 == 0 for name in corpus()}
    review = judge_all(review, lambda one: one.stratum == "the rest" or is_even[one.doc_id])
    weak = [one.is_right for one in review.removals if one.stratum == "weakest tenth"]
    assert 0 < sum(weak) < 15
    sizes = review.sizes
    weights = [size / sum(sizes.values()) for size in sizes.values()]
    assert review.precision == pytest.approx(weights[0] * sum(weak) / 15 + weights[1])
    bounds = [binomtest(right, 15).proportion_ci(0.975, "exact") for right in (sum(weak), 15)]
    low = sum(weight * bound.low for weight, bound in zip(weights, bounds, strict=True))
    assert review.low == pytest.approx(low, abs=1e-12)
    assert len(review.wrong) == 15 - sum(weak)
    assert f"30 of 30 judged: {15 + sum(weak)} right, {15 - sum(weak)} wrong; precision" in str(
        review
    )


def test_a_judgement_can_be_taken_back(in_memory):
    review = neardup.review(in_memory)
    once = review.judge(3, is_right=False)
    assert (once.judged, review.judged) == (1, 0)
    assert once.judge(3, None) == review


def test_few_removals_are_all_drawn():
    review = neardup.review(
        neardup.deduplicate(["a b c d e f g", "a b c d e f g h", "x"], threshold=0.5)
    )
    assert [one.stratum for one in review.removals] == ["weakest tenth"]
    assert review.judge(0, is_right=True).precision == 1
    none = neardup.review(neardup.deduplicate(["same words here", "same words here"]))
    assert none.removals == ()
    assert str(none).startswith("nothing to judge: 1 removed documents are identical")


def test_saved_decisions_keep_the_wrong_ones_in_the_next_run(on_files, tmp_path):
    review = neardup.review(on_files)
    wrong = {one.doc_id for one in review.removals[:4]}
    review = judge_all(review, lambda one: one.doc_id not in wrong)
    assert review.save(tmp_path / "decisions.json") == 4
    stored = json.loads((tmp_path / "decisions.json").read_text())
    assert stored["review"] == json.loads(json.dumps(review.as_dict()))
    again = neardup.deduplicate(
        Path(on_files.inputs[0]["path"]),
        decisions=tmp_path / "decisions.json",
        **SETTINGS,
    )
    assert again.decisions == {"kept": 4, "removed": 0, "unmatched": 0}
    before = set(on_files.removed.column("doc_id").to_pylist())
    assert before - set(again.removed.column("doc_id").to_pylist()) == wrong


def test_a_run_in_memory_has_no_decisions_to_save(in_memory, tmp_path):
    with pytest.raises(NotStoredError, match="has no files"):
        neardup.review(in_memory).save(tmp_path / "decisions.json")
