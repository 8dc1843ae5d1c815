"""Containment: every pair in which one document contains the other, against brute force over plain sets."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.errors import ConfigError, DataError, NotStoredError
from neardup.kernels import containment as kernel
from neardup.kernels.similarity import Sets
from neardup.search import containment as stage
from support import oracles
from support.plain_kernels import plain

BASKETS = st.lists(st.frozensets(st.integers(0, 12), max_size=8), max_size=14)
THRESHOLDS = st.sampled_from([0.1, 1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.8, 0.9, 1.0])


def brute_force(sets, threshold, first_own=0):
    """(a, b, larger share, share of a in b, share of b in a) of every pair."""
    found = []
    for b in range(len(sets)):
        for a in range(b):
            if sets[a] and sets[b] and b >= first_own:
                shared = len(sets[a] & sets[b])
                shares = shared / len(sets[a]), shared / len(sets[b])
                if max(shares) >= threshold:
                    found.append((a, b, max(shares), *shares))
    return sorted(found)


def find(sets, threshold, **settings):
    report = neardup.find_pairs(
        items=[sorted(items) for items in sets],
        measure="containment",
        threshold=threshold,
        **settings,
    )
    return [tuple(row.values()) for row in report.pairs.to_pylist()]


@given(sets=BASKETS, threshold=THRESHOLDS)
def test_pairs_and_both_shares_match_brute_force(sets, threshold):
    assert find(sets, threshold) == brute_force(sets, threshold)


@pytest.mark.parametrize(
    ("sets", "threshold", "expected"),
    [
        ([{1}, {1, 2, 3}], 1.0, [(0, 1, 1.0, 1.0, 1 / 3)]),
        ([{1, 2, 3}, {1}], 1.0, [(0, 1, 1.0, 1 / 3, 1.0)]),
        ([{1}, {1}], 1.0, [(0, 1, 1.0, 1.0, 1.0)]),
        (
            [{1, 2, 3, 4, 5}, {1, 2, 3, 4, 6, 7}],
            0.8,
            [(0, 1, 0.8, 0.8, 4 / 6)],
        ),  # t * n is a whole number
        ([{1, 2, 3, 4, 5}, {1, 2, 3, 6, 7, 8}], 0.8, []),
        ([set(), {1}, set()], 0.1, []),
    ],
)
def test_containment_is_found_in_both_directions_and_for_small_sets(sets, threshold, expected):
    assert find(sets, threshold) == expected


def test_texts_agree_with_the_oracle():
    texts = oracles.random_corpus(11, 80)
    sets = [oracles.shingles(text, size=2) for text in texts]
    report = neardup.find_pairs(texts, measure="containment", size=2, threshold=0.6)
    found = [tuple(row.values()) for row in report.pairs.to_pylist()]
    assert found == brute_force(sets, 0.6)
    assert len(found) > 10
    assert report.num_removed == 0
    assert report.plan.is_exact


def test_results_do_not_depend_on_threads():
    rng = np.random.default_rng(3)
    sets = [set(rng.zipf(1.3, rng.integers(1, 20)).clip(max=400).tolist()) for _ in range(3000)]
    assert find(sets, 0.9, threads=1) == find(sets, 0.9, threads=2)


def test_pairs_beyond_the_buffer_are_all_found():
    assert len(find([{1, 2}] * 200, 0.5)) == 19_900 > stage.ROOM


def test_documents_of_different_groups_are_not_matched():
    table = {"text": ["a b"] * 4, "lang": ["de", "fr", "de", "fr"]}
    import pyarrow as pa

    report = neardup.find_pairs(pa.table(table), group_column="lang", size=1, measure="containment")
    assert [(row["doc_a"], row["doc_b"]) for row in report.pairs.to_pylist()] == [(0, 2), (1, 3)]


def write(path, texts):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), "utf-8")


def test_files_give_the_same_result_as_memory(tmp_path):
    texts = oracles.random_corpus(5, 60)
    write(tmp_path / "pages.jsonl", texts)
    chosen = {"measure": "containment", "size": 2, "threshold": 0.5}
    found = neardup.find_pairs(tmp_path / "pages.jsonl", **chosen).pairs
    assert found.column_names[:3] == ["doc_a", "doc_b", "similarity"]
    assert found.column_names[-2:] == ["containment_a", "containment_b"]
    rows = [
        (
            row["row_a"] - 1,
            row["row_b"] - 1,
            row["similarity"],
            row["containment_a"],
            row["containment_b"],
        )
        for row in found.to_pylist()
    ]
    assert rows == [
        tuple(row.values()) for row in neardup.find_pairs(texts, **chosen).pairs.to_pylist()
    ]


def test_old_documents_are_not_compared_with_each_other(tmp_path):
    texts = oracles.random_corpus(5, 60)
    write(tmp_path / "old.jsonl", texts[:30])
    write(tmp_path / "new.jsonl", texts[30:])
    report = neardup.find_pairs(
        tmp_path / "new.jsonl",
        against=tmp_path / "old.jsonl",
        measure="containment",
        size=2,
        threshold=0.5,
    )
    first = {"old.jsonl": -1, "new.jsonl": 29}
    rows = [
        (first[row["file_a"]] + row["row_a"], first[row["file_b"]] + row["row_b"])
        for row in report.pairs.to_pylist()
    ]
    sets = [oracles.shingles(text, size=2) for text in texts]
    assert rows == [pair[:2] for pair in brute_force(sets, 0.5, first_own=30)]


def test_exceeding_the_memory_limit_is_an_error_that_says_so(tmp_path, monkeypatch):
    write(tmp_path / "pages.jsonl", ["a b c d e f g"])
    monkeypatch.setattr("neardup.engines.local.engine.LocalEngine.room", lambda _: 50)
    with pytest.raises(DataError, match="containment is found in memory"):
        neardup.find_pairs(tmp_path / "pages.jsonl", measure="containment")


def test_an_interrupted_run_reports_what_an_uninterrupted_one_reports(tmp_path, monkeypatch):
    write(tmp_path / "pages.jsonl", oracles.random_corpus(5, 60))
    chosen = {"measure": "containment", "size": 2, "threshold": 0.9}
    whole = neardup.find_pairs(tmp_path / "pages.jsonl", out=tmp_path / "whole.parquet", **chosen)
    assert whole.comparisons > whole.pairs_verified == whole.num_pairs > 0

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("neardup.io.documents.row_names.RowNames.name_pairs", stop)
        with pytest.raises(KeyboardInterrupt):
            neardup.find_pairs(tmp_path / "pages.jsonl", out=tmp_path / "out.parquet", **chosen)
    assert (tmp_path / ".out.parquet.neardup" / "containers.arrow").exists()
    with monkeypatch.context() as patched:
        patched.setattr(
            stage.ContainmentIndex, "find_containers", stop
        )  # the finished table is reused
        neardup.find_pairs(tmp_path / "pages.jsonl", out=tmp_path / "out.parquet", **chosen)
    reports = [
        json.loads((tmp_path / f"{name}.parquet.report.json").read_text())
        for name in ("whole", "out")
    ]
    for report in reports:
        for name in ("seconds", "stages", "peak_memory_bytes", "files"):
            del report[name]
    assert reports[0] == reports[1]
    assert (tmp_path / "whole.parquet").read_bytes() == (tmp_path / "out.parquet").read_bytes()


def test_deduplicating_by_containment_without_against_is_an_error(tmp_path):
    write(tmp_path / "pages.jsonl", ["a b c"])
    for source in (["a b c"], tmp_path / "pages.jsonl"):
        with pytest.raises(ConfigError, match="cannot choose which document to keep"):
            neardup.deduplicate(source, measure="containment", pairs=True)
    with pytest.raises(NotStoredError, match="lists pairs"):
        neardup.find_pairs(["a b", "a b"], measure="containment").at_threshold(0.9)


@pytest.mark.parametrize(
    "wrong", [{"method": "lsh"}, {"bands": 4}, {"rows": 4}, {"collapse_empty": True}]
)
def test_settings_that_containment_does_not_have_are_refused(wrong):
    with pytest.raises(ConfigError, match="containment"):
        neardup.Config(measure="containment", **wrong)


def test_compare_judges_by_the_larger_share():
    answer = neardup.compare("a b c d e f", "b c d", size=1, measure="containment", threshold=0.9)
    assert (answer.containment_a, answer.containment_b) == (0.5, 1.0)
    assert answer.similarity("containment") == 1.0
    assert answer.similarity("jaccard") == 0.5
    assert answer.chance == 1.0


@given(sets=BASKETS.filter(len), threshold=THRESHOLDS, first_own=st.integers(0, 4))
def test_the_compiled_kernel_equals_plain_python(sets, threshold, first_own):
    hashes = np.array([item + 1 for items in sets for item in sorted(items)], np.uint64)
    ends = np.cumsum([0, *map(len, sets)])
    rows = np.arange(len(sets))
    groups = np.arange(len(sets)) % 2
    joined = stage.ContainmentIndex(
        rows, groups, Sets(hashes, ends), num_references=first_own, threshold=threshold
    )
    answers = []
    for module in (kernel, plain(kernel)):
        found = np.full((200, 3), -1)
        scratch = (np.zeros(len(sets), np.int64), np.zeros(1, np.int64))
        counts = module.find_containers(
            joined._docs,
            joined._walks,
            joined._postings,
            rows,
            joined._first_own,
            threshold,
            scratch,
            found,
        )
        answers.append((counts, found.tobytes()))
    assert answers[0] == answers[1]


def test_the_plan_of_containment_is_the_exact_join():
    plan = neardup.plan(measure="containment")
    assert (plan.method, plan.recall_at_threshold) == ("exact", 1.0)
    assert plan.reason == "exact join: banding cannot find containment"
