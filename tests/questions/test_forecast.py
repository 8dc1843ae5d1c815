"""What is foretold of a run, against the run itself."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import neardup
from neardup.config import Config
from neardup.io.formats import base as records
from neardup.questions import forecast as predict


def texts(seed=1, num_documents=400, num_words=60):
    rng = random.Random(seed)
    made = []
    for _ in range(num_documents):
        words = rng.choice(made).split() if made and rng.random() < 0.4 else []
        words = words or [f"w{rng.randrange(3000)}" for _ in range(rng.randrange(num_words // 2, num_words))]
        words[rng.randrange(len(words))] = f"n{rng.randrange(10**6)}"
        made.append(" ".join(words))
    return made


TEXTS = texts()


@pytest.mark.parametrize("settings", [{}, {"threshold": 0.5, "size": 2}, {"unit": "char", "size": 6}], ids=str)
def test_the_plan_of_documents_is_that_of_their_run(settings):
    plan, report = neardup.plan(TEXTS, **settings), neardup.deduplicate(TEXTS, **settings)
    assert (plan.method, plan.bands, plan.reason) == (report.plan.method, report.plan.bands, report.plan.reason)


@pytest.mark.parametrize("pairs", [True, False])
def test_each_method_is_foretold_what_it_does(pairs):
    forecasts = {found.method: found for found in neardup.plan(TEXTS, threshold=0.6, pairs=pairs).estimate.forecasts}
    assert list(forecasts) == ["lsh", "exact"]
    for method, forecast in forecasts.items():
        report = neardup.deduplicate(TEXTS, threshold=0.6, method=method, pairs=pairs)
        assert forecast.candidates == report.pairs_verified
        assert forecast.pairs == (report.pairs.num_rows if pairs else report.removed.num_rows) > 10
        assert forecast.recall_at_threshold == report.plan.recall_at_threshold
        assert (forecast.bands, forecast.rows) == (report.plan.bands, report.plan.rows)
        assert forecast.seconds > 0


@pytest.mark.parametrize(
    ("settings", "methods"),
    [({"bands": 16}, ["lsh"]), ({"recall": 1}, ["exact"]), ({"method": "lsh"}, ["lsh", "exact"])],
)
def test_only_methods_that_the_settings_leave_are_foretold(settings, methods):
    plan = neardup.plan(TEXTS, **settings)
    assert [forecast.method for forecast in plan.estimate.forecasts] == methods
    assert plan.method == methods[0]


def test_files_are_foretold_as_documents_in_memory_are(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    plan, in_memory = neardup.plan(str(tmp_path / "a.jsonl")), neardup.plan(TEXTS)
    assert plan.reason == in_memory.reason
    assert plan.estimate.documents == plan.estimate.sampled_documents == len(TEXTS)
    assert plan.estimate.disk_bytes > (tmp_path / "a.jsonl").stat().st_size


def test_a_large_input_is_foretold_from_a_part(tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "SAMPLE_BYTES", 20_000)
    monkeypatch.setattr(records, "BATCH_BYTES", 5_000)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    for source in (str(tmp_path / "a.jsonl"), TEXTS):
        found = neardup.plan(source).estimate
        assert found.sampled_documents < len(TEXTS) / 2
        assert found.documents == pytest.approx(len(TEXTS), rel=0.3)


@pytest.mark.parametrize(
    ("num_words", "settings", "words"),
    [
        (10, {}, "consider --unit char --size 3"),
        (10, {"unit": "char", "size": 3}, None),
        (60, {}, None),
        (10, {"unit": "char", "size": 10}, "consider --size 5"),
        (10, {"unit": "char", "size": 5}, None),
        (1200, {"unit": "char", "size": 5}, "consider --size 10"),
        (1200, {"unit": "char", "size": 10}, None),
    ],
)
def test_advice_follows_the_length_of_documents(num_words, settings, words):
    advice = neardup.plan(texts(2, 30, num_words), **settings).estimate.advice
    assert [words] == [line[-len(words) :] for line in advice] if words else advice == ()


def test_vectors_and_nothing_are_foretold_too():
    vectors = np.random.default_rng(1).normal(size=(50, 8))
    assert [found.method for found in neardup.plan(vectors, measure="cosine").estimate.forecasts] == ["lsh"]
    empty = neardup.plan([])
    assert (empty.method, empty.estimate.documents, empty.estimate.advice) == ("exact", 0, ())


def test_memory_grows_with_sets_and_ends_at_the_limit():
    few = predict.Contents(documents=10**4, shingles=10**6)
    many = predict.Contents(documents=10**6, shingles=10**8)
    plan = neardup.plan()
    needed = [predict._memory(found.documents, found, plan, Config(memory="8GB")) for found in (few, many)]
    assert needed[0] + 700e6 < needed[1] < 8e9
    assert predict._memory(many.documents, many, plan, Config(memory="400MB")) == 400e6
