"""`neardup.audit` agrees with the oracle's counts, for any threads, batches and kinds of sets."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.events import StageStarted
from neardup.jobs import audit
from neardup.jobs.audit import _interval
from neardup.search.prefix_index import FIRST_ROOM
from neardup.theory.plan import FILTER_LOSS, plan_for
from support import oracles
from support.audits import WEAK, found_and_true, measured
from support.corpora import cut

TEXTS = oracles.random_corpus(11, 150)
FERRY = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"multiset": True},
        {"unit": "char", "size": 4},
        {"sketch": "minhash"},
        {"signature_filter": False},
        {"threshold": 0.8},
    ],
    ids=str,
)
def test_a_sample_of_all_documents_is_what_the_oracle_counts(settings):
    chosen = WEAK | settings
    truth = found_and_true(TEXTS, **chosen)
    answer = neardup.audit(neardup.find_pairs(TEXTS, **chosen))
    missed = {pair: value for pair, (value, is_found) in truth.items() if not is_found}
    assert (answer.pairs, answer.missed.num_rows) == (len(truth), len(missed))
    assert 0 < len(missed) < len(truth)
    assert answer.recall == (len(truth) - len(missed)) / len(truth)
    listed = {(row["doc_a"], row["doc_b"]): row["similarity"] for row in answer.missed.to_pylist()}
    assert listed == missed
    assert list(listed) == sorted(listed)
    assert answer.sample == sum(
        bool(oracles.shingles(text, unit=chosen.get("unit", "word"))) for text in TEXTS
    )


def test_a_leader_run_is_audited_like_a_run_with_pairs():
    leaders, pairs = (neardup.deduplicate(TEXTS, pairs=pairs, **WEAK) for pairs in (False, True))
    first = neardup.audit(leaders)
    second = neardup.audit(pairs)
    assert measured(first) | {"verified": 0} == measured(second) | {"verified": 0}
    assert first.verified == leaders.num_removed
    assert second.verified == pairs.num_removed + pairs.num_pairs
    assert first.precision == second.precision == 1.0


def test_a_small_sample_counts_the_pairs_of_its_documents():
    report = neardup.find_pairs(TEXTS, **WEAK)
    answer = neardup.audit(report, sample=20)
    whole = neardup.audit(report)
    assert answer.sample == 20
    assert 0 < answer.pairs < whole.pairs
    everything = {tuple(row.values()) for row in whole.missed.to_pylist()}
    assert {tuple(row.values()) for row in answer.missed.to_pylist()} <= everything


def test_only_documents_of_one_group_are_pairs():
    groups = [number % 3 for number in range(len(TEXTS))]
    table = pa.table({"text": TEXTS, "site": groups})
    truth = found_and_true(TEXTS, groups, **WEAK)
    answer = neardup.audit(neardup.deduplicate(table, group_column="site", **WEAK))
    assert answer.pairs == len(truth)
    assert answer.missed.num_rows == sum(not is_found for _, is_found in truth.values())


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("batch_bytes", [200, 1 << 22])
def test_results_do_not_depend_on_threads_or_batches(threads, batch_bytes, monkeypatch):
    report = neardup.find_pairs(TEXTS, **WEAK)
    expected = neardup.audit(report, sample=40)
    cut(monkeypatch, batch_bytes=batch_bytes, cache_bytes=300)
    assert measured(neardup.audit(report, sample=40, threads=threads)) == measured(expected)


def test_candidates_beyond_the_buffer_are_all_found():
    texts = [f"{FERRY} number {number}" for number in range(100)]
    answer = neardup.audit(neardup.find_pairs(texts, threshold=0.5))
    assert len(texts) * (len(texts) - 1) > FIRST_ROOM
    assert (answer.pairs, answer.recall) == (4950, 1.0)


def test_copies_are_found_and_counted():
    answer = neardup.audit(
        neardup.deduplicate([FERRY] * 30 + ["something else altogether, which nobody has"])
    )
    assert (answer.pairs, answer.recall, answer.predicted) == (435, 1.0, 1.0)
    assert (answer.low, answer.high) == (pytest.approx(1 - 3 / 435), 1.0)


def test_many_documents_without_shingles_do_not_shrink_the_sample():
    texts = ["..."] * 3000 + [f"{FERRY} number {number}" for number in range(30)]
    assert neardup.audit(neardup.deduplicate(texts), sample=20).sample == 20
    assert neardup.audit(neardup.deduplicate(texts), sample=50).sample == 30


def test_the_prediction_is_the_mean_chance_of_the_pairs():
    truth = found_and_true(TEXTS, **WEAK)
    plan = plan_for(Config(**WEAK))
    chances = [plan.chance(value) - FILTER_LOSS * (value < 1) for value, _ in truth.values()]
    answer = neardup.audit(neardup.find_pairs(TEXTS, **WEAK))
    assert answer.predicted == pytest.approx(np.mean(chances), abs=1e-5)
    assert answer.promised == plan.recall_at_threshold
    for pair in answer.missed.to_pylist():
        assert pair["chance"] == pytest.approx(
            plan.chance(pair["similarity"]) - FILTER_LOSS, abs=1e-5
        )


@pytest.mark.parametrize(
    "texts", [[], ["", "..."], ["one text of its own", "another one, quite unlike it", ""]]
)
def test_without_pairs_there_is_no_recall(texts):
    answer = neardup.audit(neardup.deduplicate(texts))
    assert (answer.recall, answer.low, answer.high, answer.predicted) == (None,) * 4
    assert (answer.pairs, answer.missed.num_rows, answer.precision, answer.verified) == (
        0,
        0,
        None,
        0,
    )
    assert answer.missed.column_names == ["doc_a", "doc_b", "similarity", "chance"]
    assert "no recall to measure" in str(answer)


def test_japanese_texts_and_ids_of_any_script_are_audited():
    page = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
    texts = {
        "猫": page,
        "写し": page,
        "別": page.replace("猫", "犬"),
        "他": "雨ニモマケズ風ニモマケズ雪ニモ夏ノ暑サニモマケヌ",
    }
    answer = neardup.audit(neardup.deduplicate(texts, threshold=0.6, bands=1, rows=64))
    assert answer.pairs == 3
    assert {(row["doc_a"], row["doc_b"]) for row in answer.missed.to_pylist()} == {
        ("猫", "別"),
        ("写し", "別"),
    }


def test_a_report_at_a_higher_threshold_is_audited_there():
    report = neardup.find_pairs(TEXTS, **WEAK).at_threshold(0.8)
    truth = [value for value, _ in found_and_true(TEXTS, **WEAK).values() if value >= 0.8]
    answer = neardup.audit(report)
    assert (answer.threshold, answer.pairs) == (0.8, len(truth))


def test_the_audit_setting_adds_the_audit_to_the_report():
    report = neardup.deduplicate(TEXTS, audit=True, **WEAK)
    assert measured(report.audit) == measured(neardup.audit(report))
    assert report.as_dict()["audit"]["recall"] == report.audit.recall
    assert neardup.deduplicate(TEXTS, **WEAK).audit is None
    assert {"draw", "audit"} <= report.stages.keys()


def test_a_reported_pair_that_is_not_true_is_an_error():
    report = neardup.deduplicate(
        [FERRY, FERRY + " again", "something else altogether, which nobody has"]
    )
    wrong = pa.table([[1], [2], [0.9]], schema=report.removed.schema)
    with pytest.raises(DataError, match=r"1 and 2 were reported as 0\.900000"):
        neardup.audit(dataclasses.replace(report, load={"removed": wrong}.get))


def test_a_reported_similarity_that_is_not_exact_is_an_error():
    report = neardup.deduplicate([FERRY, FERRY + " again"])
    wrong = report.removed.set_column(2, report.removed.schema.field(2), pa.array([0.93]))
    with pytest.raises(DataError, match="1 of 1 reported pairs"):
        neardup.audit(dataclasses.replace(report, load={"removed": wrong}.get))


@pytest.mark.parametrize("sample", [0, -1, 1.5, "many", True, None])
def test_a_sample_must_be_a_number_of_documents(sample):
    with pytest.raises(ConfigError, match="`sample` must be a whole number >= 1"):
        neardup.audit(neardup.deduplicate(TEXTS), sample=sample)


def test_the_interval_of_all_or_nothing_follows_the_rule_of_three():
    weights = np.array([2, 1, 0, 3])
    assert _interval(weights, weights, 6, 1) == (0.5, 1.0)
    assert _interval(weights, weights, 2, 1) == (0.0, 1.0)
    assert _interval(weights, np.zeros(4, np.int64), 6, 1) == (0.0, 0.5)


def test_the_interval_contains_the_recall_and_does_not_depend_on_blocks(monkeypatch):
    rng = np.random.default_rng(5)
    weights = rng.integers(0, 9, 300)
    found = rng.binomial(weights, 0.8)
    low, high = _interval(weights, found, 500, 1)
    assert low < found.sum() / weights.sum() < high
    assert high - low < 0.1
    monkeypatch.setattr(audit, "_RESAMPLED_AT_ONCE", 1000)
    assert _interval(weights, found, 500, 1) == (low, high)


def test_progress_reports_both_passes():
    events = []
    neardup.audit(neardup.deduplicate(TEXTS), progress=events.append)
    assert [event.stage for event in events if isinstance(event, StageStarted)] == ["draw", "audit"]
