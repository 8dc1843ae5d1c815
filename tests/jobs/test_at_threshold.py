"""`at_threshold` on runs on files selects what a run at that threshold would select among the found pairs."""

from __future__ import annotations

import pickle

import pyarrow.parquet as pq
import pytest

import neardup
from neardup.errors import ConfigError, NotStoredError
from support import corpora
from support.audits import WEAK
from support.corpora import EVERY_PAIR, NEAR, OTHER, PAGE, Truth
from support.grids import turning_grid

DOCUMENTS = corpora.rows(17, 90)
TEXTS = corpora.texts_of(DOCUMENTS)
SCORES = [row["score"] for row in DOCUMENTS]
KEEPS = ["first", "last", "longest", "max:score", "min:score"]


@pytest.fixture
def path(tmp_path):
    return corpora.write_json_lines(tmp_path / "rows.jsonl", DOCUMENTS)


@pytest.mark.parametrize(("keep", "threshold"), turning_grid(KEEPS, (0.5, 0.7, 0.9, 1.0)))
def test_at_threshold_selects_what_a_run_at_that_threshold_selects(keep, threshold, path, tmp_path):
    report = corpora.deduplicate([path], tmp_path / "out", pairs=True, keep=keep, **EVERY_PAIR)
    again = report.at_threshold(threshold)
    truth = Truth(TEXTS, keep=keep, scores=SCORES, threshold=threshold)
    assert corpora.pair_rows(again.pairs) == truth.pairs
    assert corpora.removed_rows(again) == truth.removed
    assert (again.num_removed, again.num_kept, again.num_pairs) == (
        len(truth.removed),
        len(truth.kept),
        len(truth.pairs),
    )
    fresh = corpora.deduplicate(
        [path], tmp_path / "fresh", keep=keep, **EVERY_PAIR | {"threshold": threshold}
    )
    assert again.clusters.equals(fresh.clusters)
    assert again.removed.equals(fresh.removed)
    assert again.rejected.equals(fresh.rejected)
    assert again.largest_clusters().equals(fresh.largest_clusters())
    assert again.config.threshold == again.plan.threshold == threshold


def test_at_threshold_selects_only_among_found_pairs(path, tmp_path):
    report = corpora.deduplicate([path], tmp_path / "out", pairs=True, **WEAK)
    held = neardup.deduplicate(TEXTS, pairs=True, **WEAK)
    again = report.at_threshold(0.8)
    expected = held.at_threshold(0.8)
    assert corpora.removed_rows(again) == {
        row["doc_id"]: (row["kept_id"], row["similarity"]) for row in expected.removed.to_pylist()
    }
    assert (again.plan, again.config.bands, again.warnings) == (
        expected.plan,
        expected.config.bands,
        expected.warnings,
    )


def test_at_threshold_works_on_an_exact_run(path, tmp_path):
    report = corpora.deduplicate(
        [path], tmp_path / "out", pairs=True, method="exact", threshold=0.5, size=2
    )
    again = report.at_threshold(0.7)
    assert corpora.removed_rows(again) == Truth(TEXTS, threshold=0.7).removed
    assert (again.plan.method, again.config.audit) == ("exact", False)


def test_reference_documents_stay_kept(tmp_path):
    old = corpora.write_json_lines(tmp_path / "then" / "old.jsonl", DOCUMENTS[:30])
    new = corpora.write_json_lines(tmp_path / "now" / "new.jsonl", DOCUMENTS[30:])
    report = corpora.deduplicate(
        [new], tmp_path / "out", against=str(old), pairs=True, keep="longest", **EVERY_PAIR
    )
    truth = Truth(TEXTS, keep="longest", num_references=30, threshold=0.7)
    again = report.at_threshold(0.7)
    assert corpora.removed_rows(again, {"old.jsonl": 0, "new.jsonl": 30}) == truth.removed
    assert again.clusters.num_rows == 60


def test_at_threshold_handles_equal_ids_and_bad_rows(tmp_path):
    rows = [{"id": "same", "text": text} for text in (OTHER, PAGE, NEAR, PAGE)]
    path = corpora.write_json_lines(tmp_path / "a.jsonl", ["{broken", "", *rows])
    report = corpora.deduplicate([path], tmp_path / "out", pairs=True, threshold=0.5)
    assert report.num_removed == 2
    again = report.at_threshold(0.99)
    [removed] = again.removed.to_pylist()
    assert (removed["row"], removed["kept_row"], again.num_kept, again.num_rejected) == (6, 4, 3, 1)
    assert again.clusters.column("cluster_id").to_pylist() == ["same"] * 4


def test_at_threshold_of_components_needs_stored_similarities(tmp_path):
    def page(*words):
        return {"text": " ".join([f"w{at}" for at in range(20)] + list(words))}

    near = corpora.write_json_lines(
        tmp_path / "near.jsonl", [page("a"), page("a", "b"), page("a", "b", "c")]
    )
    settings = {"cluster": "components", "pairs": True, "size": 1, "threshold": 0.8}
    report = corpora.deduplicate([near], tmp_path / "near", **settings)
    removed = report.at_threshold(0.95).removed.to_pylist()
    assert [(row["row"], row["kept_row"], round(row["similarity"], 3)) for row in removed] == [
        (2, 1, 0.955),
        (3, 1, 0.913),
    ]
    chain = [page(*[f"x{at}" for at in range(count)]) for count in (0, 3, 6, 9)]
    far = corpora.write_json_lines(tmp_path / "far.jsonl", chain)
    report = corpora.deduplicate([far], tmp_path / "far", **settings)
    with pytest.raises(
        NotStoredError, match="2 documents are connected to the kept one of their cluster only"
    ):
        report.at_threshold(0.85)


def test_a_new_selection_supports_at_threshold_and_pickling(path, tmp_path):
    report = corpora.deduplicate([path], tmp_path / "out", pairs=True, **EVERY_PAIR)
    again = report.at_threshold(0.7)
    assert again.at_threshold(0.9).removed.equals(report.at_threshold(0.9).removed)
    assert pickle.loads(pickle.dumps(again)).removed.equals(again.removed)  # noqa: S301
    with pytest.raises(ConfigError, match=r"at least 0\.7"):
        again.at_threshold(0.6)
    with pytest.raises(NotStoredError, match="writes no kept rows"):
        _ = again.kept
    assert again.borderline(1).column("similarity")[0].as_py() >= 0.7


def test_at_threshold_works_without_an_output_folder(path):
    again = neardup.deduplicate(path, pairs=True, **EVERY_PAIR).at_threshold(0.9)
    assert corpora.removed_rows(again) == Truth(TEXTS, threshold=0.9).removed
    assert again.rejected.num_rows == 0


@pytest.mark.parametrize("keep", ["first", "last"])
def test_at_threshold_of_a_list_of_pairs_uses_input_order(keep, path, tmp_path):
    report = corpora.find_pairs([path], tmp_path / "pairs.csv", keep=keep, **EVERY_PAIR)
    assert (
        corpora.removed_rows(report.at_threshold(0.7))
        == Truth(TEXTS, keep=keep, threshold=0.7).removed
    )


def test_a_run_of_pairs_does_not_store_another_order(path, tmp_path):
    report = corpora.find_pairs([path], tmp_path / "pairs.csv", keep="longest", **EVERY_PAIR)
    with pytest.raises(NotStoredError, match="keep='longest'") as error:
        report.at_threshold(0.7)
    assert "pairs=True" in error.value.hint


def test_at_threshold_without_stored_pairs_says_how_to_store_them(path, tmp_path):
    report = corpora.deduplicate([path], tmp_path / "out", **EVERY_PAIR)
    assert not (tmp_path / "out" / "order.parquet").exists()
    for ask in (lambda: report.at_threshold(0.9), report.borderline):
        with pytest.raises(NotStoredError, match="did not store its pairs") as error:
            ask()
        assert "pairs=True" in error.value.hint


def test_the_stored_order_is_that_of_documents_in_pairs(tmp_path):
    rows = [{"text": text} for text in (OTHER, PAGE, NEAR + " today")]
    path = corpora.write_json_lines(tmp_path / "a.jsonl", ["", *rows])
    corpora.deduplicate([path], tmp_path / "out", pairs=True, keep="longest", threshold=0.5)
    order = pq.read_table(tmp_path / "out" / "order.parquet").to_pylist()
    assert order == [
        {"row": 2, "position": 1, "priority": -len(PAGE)},
        {"row": 3, "position": 2, "priority": -len(NEAR + " today")},
    ]
