"""The forecast of a run, against the run itself."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

import neardup
from neardup.config import Config
from neardup.io import records
from neardup.jobs import forecast as predict


def texts(seed=1, num_documents=400, num_words=60):
    rng = random.Random(seed)
    made = []
    for _ in range(num_documents):
        words = rng.choice(made).split() if made and rng.random() < 0.4 else []
        words = words or [
            f"w{rng.randrange(3000)}" for _ in range(rng.randrange(num_words // 2, num_words))
        ]
        words[rng.randrange(len(words))] = f"n{rng.randrange(10**6)}"
        made.append(" ".join(words))
    return made


TEXTS = texts()


@pytest.mark.parametrize(
    "settings", [{}, {"threshold": 0.5, "size": 2}, {"unit": "char", "size": 6}], ids=str
)
def test_the_plan_of_documents_is_that_of_their_run(settings):
    plan = neardup.plan(TEXTS, **settings)
    report = neardup.deduplicate(TEXTS, **settings)
    assert (plan.method, plan.bands, plan.reason) == (
        report.plan.method,
        report.plan.bands,
        report.plan.reason,
    )


@pytest.mark.parametrize("pairs", [True, False])
def test_the_forecast_of_each_method_matches_its_run(pairs):
    forecasts = {
        found.method: found
        for found in neardup.plan(TEXTS, threshold=0.6, pairs=pairs).estimate.forecasts
    }
    assert list(forecasts) == ["lsh", "exact"]
    for method, forecast in forecasts.items():
        report = neardup.deduplicate(TEXTS, threshold=0.6, method=method, pairs=pairs)
        assert forecast.candidates == report.comparisons
        assert forecast.pairs == (report.pairs.num_rows if pairs else report.removed.num_rows) > 10
        assert forecast.recall_at_threshold == report.plan.recall_at_threshold
        assert (forecast.bands, forecast.rows) == (report.plan.bands, report.plan.rows)
        assert forecast.seconds > 0


@pytest.mark.parametrize(
    ("settings", "methods"),
    [({"bands": 16}, ["lsh"]), ({"recall": 1}, ["exact"]), ({"method": "lsh"}, ["lsh", "exact"])],
)
def test_only_methods_that_the_settings_allow_are_predicted(settings, methods):
    plan = neardup.plan(TEXTS, **settings)
    assert [forecast.method for forecast in plan.estimate.forecasts] == methods
    assert plan.method == methods[0]


def test_forecasts_for_files_and_memory_agree(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    plan = neardup.plan(str(tmp_path / "a.jsonl"))
    in_memory = neardup.plan(TEXTS)
    assert plan.reason == in_memory.reason
    assert plan.estimate.documents == plan.estimate.sampled_documents == len(TEXTS)
    assert plan.estimate.disk_bytes > (tmp_path / "a.jsonl").stat().st_size


def test_a_large_input_is_forecast_from_a_sample(tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "SAMPLE_BYTES", 20_000)
    monkeypatch.setattr(predict, "FIRST_BYTES", 10_000)
    monkeypatch.setattr(predict, "SPREAD", 1)
    monkeypatch.setattr(records, "BATCH_BYTES", 5_000)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    for source in (str(tmp_path / "a.jsonl"), TEXTS):
        found = neardup.plan(source).estimate
        assert found.sampled_documents < len(TEXTS) / 2
        assert found.documents == pytest.approx(len(TEXTS), rel=0.3)
        assert found.sampled_ratio == pytest.approx(
            found.sampled_documents / found.documents, rel=0.01
        )


@pytest.mark.parametrize(
    ("num_words", "settings", "words"),
    [
        (10, {}, "consider unit='char' and size=3"),
        (10, {"unit": "char", "size": 3}, None),
        (60, {}, None),
        (10, {"unit": "char", "size": 10}, "consider size=5"),
        (10, {"unit": "char", "size": 5}, None),
        (1200, {"unit": "char", "size": 5}, "consider size=10"),
        (1200, {"unit": "char", "size": 10}, None),
    ],
)
def test_advice_follows_the_length_of_documents(num_words, settings, words):
    advice = neardup.plan(texts(2, 30, num_words), **settings).estimate.advice
    assert [words] == [line[-len(words) :] for line in advice] if words else advice == ()


def test_vectors_and_empty_inputs_have_a_forecast():
    vectors = np.random.default_rng(1).normal(size=(50, 8))
    assert [
        found.method for found in neardup.plan(vectors, measure="cosine").estimate.forecasts
    ] == ["lsh", "exact"]
    empty = neardup.plan([])
    assert (empty.method, empty.estimate.documents, empty.estimate.advice) == ("exact", 0, ())


def test_predicted_memory_grows_with_sets_up_to_the_limit():
    few = predict.Contents(documents=10**4, shingles=10**6)
    many = predict.Contents(documents=10**6, shingles=10**8)
    plan = neardup.plan()
    needed = [
        predict._memory(found.documents, found, plan, Config(memory="8GB")) for found in (few, many)
    ]
    assert needed[0] + 700e6 < needed[1] < 8e9
    assert predict._memory(many.documents, many, plan, Config(memory="400MB")) == 400e6


def test_a_folder_of_many_small_files_is_sampled_completely(tmp_path):
    rng = random.Random(3)
    for number in range(60):
        words = [f"w{rng.randrange(3000)}" for _ in range(120)]
        (tmp_path / f"a{number:03}.txt").write_text(" ".join(words))
        if number < 50:
            (tmp_path / f"b{number:03}.txt").write_text(" ".join([*words[:-1], "changed"]))
    found = neardup.plan(str(tmp_path)).estimate
    assert (found.documents, found.sampled_documents, found.sampled_ratio) == (110, 110, 1)
    assert [forecast.pairs for forecast in found.forecasts] == [50, 50]
    assert neardup.deduplicate(str(tmp_path)).num_removed == 50


def sizes_tried(monkeypatch, seconds, scale):
    """The bytes that each sample of a forecast requests, if trying a sample takes this many seconds per megabyte."""
    now = [0.0]
    sizes = []
    sample = predict.ForecastSample(
        documents=neardup.deduplicate(TEXTS).kept, scale=scale, read_seconds=0, file_bytes=0
    )

    def tried(take, most_bytes, _):
        sizes.append(most_bytes)
        taken = seconds * most_bytes / 2**20
        now[0] += taken
        forecast = predict.Forecast(
            method="lsh", bands=1, rows=1, recall_at_threshold=1, candidates=0, pairs=0, memory_bytes=0, disk_bytes=0,
            seconds=taken * scale,
        )  # fmt: skip
        return predict._Trial(
            sample=take(most_bytes), plan=neardup.plan(), forecasts=(forecast,), seconds=taken
        )

    monkeypatch.setattr(predict, "_try", tried)
    monkeypatch.setattr(predict, "_sampled_bytes", lambda _: sizes[-1])
    monkeypatch.setattr(predict, "_advise", lambda *_: ())
    monkeypatch.setattr(predict.time, "perf_counter", lambda: now[0])
    predict.predict(lambda _: sample, Config())
    return sizes, now[0]


@pytest.mark.parametrize(
    ("seconds", "scale"), [(0.02, 10), (0.02, 10**4), (0.2, 100), (2, 10), (0.001, 1000)]
)
def test_samples_grow_until_a_second_and_a_tenth_of_the_run_are_spent(monkeypatch, seconds, scale):
    sizes, spent = sizes_tried(monkeypatch, seconds, scale)
    first = seconds * predict.FIRST_BYTES / 2**20
    foretold = first * scale
    assert sizes[0] == predict.FIRST_BYTES
    assert max(sizes) <= predict.SAMPLE_BYTES
    assert spent <= max(
        first, min(10, 1 + 0.1 * max(foretold, seconds * sizes[-1] / 2**20 * scale))
    )
    assert sizes == sorted(sizes)


def test_sampling_stops_when_the_whole_input_is_sampled(monkeypatch):
    assert sizes_tried(monkeypatch, 0.001, 1)[0] == [predict.FIRST_BYTES]


def test_an_unusual_beginning_of_a_file_does_not_bias_the_estimate(tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "FIRST_BYTES", 20_000)
    monkeypatch.setattr(predict, "SAMPLE_BYTES", 20_000)
    monkeypatch.setattr(records, "BATCH_BYTES", 5_000)
    lines = ["long " * 400] * 20 + ["a short text of some words " * 4] * 2000
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in lines))
    found = neardup.plan(str(tmp_path / "a.jsonl")).estimate
    assert found.sampled_ratio < 0.5
    assert found.documents == pytest.approx(len(lines), rel=0.5)
