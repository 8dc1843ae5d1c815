"""evaluate: precision and recall as plain sets of pairs have them, for every kind of run and of labels."""

from __future__ import annotations

import csv
import itertools
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from guides.made import records_with_typos
from neardup.errors import DataError
from neardup.io.finished.decision_file import digest_of
from neardup.jobs import evaluate as job

SETTINGS = {"text_column": ["name", "address", "phone"], "unit": "char", "size": 3}
THRESHOLD = 0.2  # finds everyone, and some who are alike by chance


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("contacts")
    records_with_typos.make(made)
    found = {**SETTINGS, "threshold": THRESHOLD}
    neardup.find_pairs(made / "contacts.csv", out=made / "pairs.parquet", **found)
    neardup.deduplicate(made / "contacts.csv", out=made / "clean", **found)
    return made


def rows_of(folder):
    with (folder / "contacts.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def truth_of(folder):
    with (folder / "truth.csv").open(encoding="utf-8", newline="") as file:
        same_as = {row["id"]: row["same_as"] for row in csv.DictReader(file)}
    return {row["id"]: same_as.get(row["id"], row["id"]) for row in rows_of(folder)}


def pairs_within(cluster_of):
    by_cluster = {}
    for doc_id, cluster in cluster_of.items():
        by_cluster.setdefault(cluster, []).append(doc_id)
    return {
        frozenset(pair) for own in by_cluster.values() for pair in itertools.combinations(own, 2)
    }


def found_by(folder, kind):
    if kind == "pairs.parquet":
        rows = pq.read_table(folder / kind).to_pylist()
        return {frozenset((row["doc_a"], row["doc_b"])) for row in rows}
    rows = pq.read_table(folder / "clean/clusters.parquet").to_pylist()
    return pairs_within({row["doc_id"]: row["cluster_id"] for row in rows})


def check(answer, found, same):
    assert (answer.right, answer.wrong, answer.missed) == (
        len(found & same),
        len(found - same),
        len(same - found),
    )
    assert answer.precision == len(found & same) / len(found)
    assert answer.recall == len(found & same) / len(same)
    assert answer.precision_low <= answer.precision <= answer.precision_high
    assert answer.recall_low <= answer.recall <= answer.recall_high
    assert answer.f1_low <= answer.f1 <= answer.f1_high
    listed = {
        (frozenset((row["doc_a"], row["doc_b"])), row["kind"]) for row in answer.errors.to_pylist()
    }
    assert listed == {(pair, "wrong") for pair in found - same} | {
        (pair, "missed") for pair in same - found
    }


@pytest.mark.parametrize("kind", ["pairs.parquet", "clean"])
def test_cluster_labels_count_every_pair_of_labelled_documents(folder, kind):
    truth = truth_of(folder)
    answer = neardup.evaluate(folder / kind, truth)
    check(answer, found_by(folder, kind), pairs_within(truth))
    assert answer.wrong > 0
    assert (answer.documents, answer.unknown, answer.left_out) == (360, 0, 0)


@pytest.mark.parametrize("kind", ["pairs.parquet", "clean"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_pair_labels_count_only_pairs_with_a_label(folder, tmp_path, kind, ending):
    same = pairs_within(truth_of(folder))
    found = found_by(folder, kind)
    labelled = {pair: pair in same for pair in list(found | same)[:70]}
    rows = [
        dict(zip(("doc_a", "doc_b"), sorted(pair), strict=True)) | {"same": is_same}
        for pair, is_same in labelled.items()
    ]
    rows.append({"doc_a": "nobody", "doc_b": "d000", "same": True})
    path = tmp_path / f"labels.{ending}"
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, ["doc_a", "doc_b", "same"])
            writer.writeheader()
            writer.writerows(rows)
    answer = neardup.evaluate(folder / kind, path)
    check(answer, found & labelled.keys(), same & labelled.keys())
    assert answer.unknown == 1


def test_the_curve_goes_below_the_threshold_and_is_exact(folder):
    truth = truth_of(folder)
    same = pairs_within(truth)
    answer = neardup.evaluate(folder / "pairs.parquet", truth)
    every = neardup.find_pairs(folder / "contacts.csv", **SETTINGS, threshold=0.1, method="exact")
    values = {
        frozenset((row["doc_a"], row["doc_b"])): row["similarity"]
        for row in every.pairs.to_pylist()
    }
    for row in answer.curve.to_pylist():
        found = {pair for pair, value in values.items() if value >= row["threshold"]}
        if found:
            assert row["precision"] == pytest.approx(len(found & same) / len(found))
        assert row["recall"] == pytest.approx(len(found & same) / len(same))
    assert answer.best_f1 == 1
    assert 0.25 < answer.best_threshold < 0.81
    assert answer.curve.column("threshold")[0].as_py() == 0.1


def test_documents_in_memory_are_evaluated_too(folder):
    texts = {row["id"]: "\n".join(list(row.values())[1:]) for row in rows_of(folder)}
    truth = truth_of(folder)
    own = {"unit": "char", "size": 3, "threshold": THRESHOLD}
    in_memory = neardup.evaluate(neardup.deduplicate(texts, **own), truth)
    check(in_memory, found_by(folder, "clean"), pairs_within(truth))
    listed = neardup.evaluate(neardup.find_pairs(texts, **own), truth)
    check(listed, found_by(folder, "pairs.parquet"), pairs_within(truth))


def test_decisions_of_a_review_judge_removals(folder, tmp_path):
    removed = pq.read_table(folder / "clean/removed.parquet").to_pylist()
    truth = truth_of(folder)
    texts = {row["id"]: "\n".join(list(row.values())[1:]) for row in rows_of(folder)}
    judged = [
        {
            "decision": "remove" if truth[row["doc_id"]] == truth[row["kept_id"]] else "keep",
            "file": row["file"],
            "row": row["row"],
            "digest": digest_of(texts[row["doc_id"]].encode()),
        }
        for row in removed
    ]
    path = tmp_path / "decisions.json"
    path.write_text(json.dumps({"neardup_decisions": 1, "decisions": judged}))
    answer = neardup.evaluate(folder / "clean", path)
    wrong = sum(one["decision"] == "keep" for one in judged)
    assert (answer.right, answer.wrong, answer.missed) == (len(removed) - wrong, wrong, 0)


def test_documents_of_large_clusters_are_drawn(folder, monkeypatch):
    monkeypatch.setattr(job, "MAX_PAIRS", 500)
    truth = dict.fromkeys(truth_of(folder), "everyone")
    answer = neardup.evaluate(folder / "pairs.parquet", truth)
    assert answer.right + answer.missed == 32 * 31 // 2  # the most documents with at most 500 pairs
    assert answer.documents + answer.left_out == 360


def test_many_documents_are_counted_from_a_part(folder, monkeypatch):
    truth = truth_of(folder)
    whole = neardup.evaluate(folder / "pairs.parquet", truth)
    monkeypatch.setattr(job, "MAX_SECONDS", 0.001)
    part = neardup.evaluate(folder / "pairs.parquet", truth)
    assert (whole.is_estimated, part.is_estimated) == (False, True)
    ends = [answer.curve.column("precision")[0].as_py() for answer in (whole, part)]
    assert ends[1] == pytest.approx(ends[0], rel=0.5)


def test_labels_of_ids_that_are_not_unique_are_an_error(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"id": "x", "text": "a b c d e f"}\n{"id": "x", "text": "g"}\n'
    )
    neardup.find_pairs(tmp_path / "a.jsonl", out=tmp_path / "p.csv")
    with pytest.raises(DataError, match="'x' names 2 documents"):
        neardup.evaluate(tmp_path / "p.csv", {"x": "one"})
    table = pa.table({"doc_id": ["x", "x"], "cluster": ["one", "two"]})
    with pytest.raises(DataError, match="unique"):
        neardup.evaluate(tmp_path / "p.csv", table)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": ["x"]}, "has the columns a"),
        ({"doc_a": ["c000"], "doc_b": ["d000"], "same": ["maybe"]}, "'maybe' in row 1"),
        ({"doc_a": ["c000"], "doc_b": [None], "same": ["yes"]}, "no `doc_b` in row 1"),
        ({"doc_id": ["nobody"], "cluster": ["x"]}, "none of the 1 ids"),
        (
            {"doc_a": ["c000", "d000"], "doc_b": ["d000", "c000"], "same": ["1", "0"]},
            "both that they are the same",
        ),
    ],
)
def test_wrong_labels_are_named(folder, table, message):
    with pytest.raises(DataError, match=message):
        neardup.evaluate(folder / "pairs.parquet", pa.table(table))


def test_a_search_for_passages_has_no_pairs_to_evaluate(tmp_path):
    rows = ["one two three four five six", "0 one two three four five six"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
    report = neardup.find_passages(tmp_path / "a.jsonl", min_words=4, cut=True)
    with pytest.raises(DataError, match="no pairs to evaluate"):
        neardup.evaluate(report, {"a": 1, "b": 1})


def test_a_run_on_vectors_is_evaluated_without_a_curve():
    vectors = [[1.0, 2.0, 2.0], [1.0, 2.0, 2.1], [9.0, 0.0, 1.0], [9.0, 0.1, 1.0]]
    found = neardup.find_pairs(vectors, measure="cosine", distance=0.01)
    answer = neardup.evaluate(found, {0: "a", 1: "a", 2: "b", 3: "c"})
    assert (answer.right, answer.wrong, answer.missed) == (1, 1, 0)
    assert (answer.curve, answer.best_threshold) == (None, None)


def test_pages_are_compared_by_their_text_and_sets_by_their_items(tmp_path):
    pages = {"a": "one two three four five six", "b": "ONE two three four five six", "c": "other"}
    lines = [json.dumps({"id": key, "text": f"<p>{text}</p>"}) for key, text in pages.items()]
    (tmp_path / "pages.jsonl").write_text("\n".join(lines))
    neardup.find_pairs(tmp_path / "pages.jsonl", out=tmp_path / "p.csv", html=True)
    answer = neardup.evaluate(tmp_path / "p.csv", {"a": "x", "b": "x", "c": "y"})
    assert (answer.right, answer.best_f1) == (1, 1.0)
    baskets = [["tea", "milk", "jam"], ["tea", "milk"], ["nails"]]
    listed = neardup.find_pairs(items=baskets, threshold=0.9)
    answer = neardup.evaluate(listed, {0: "x", 1: "x", 2: "y"})
    assert (answer.missed, answer.recall, answer.best_f1) == (1, 0.0, 1.0)
    assert answer.errors.column("similarity").to_pylist() == [2 / 3]
