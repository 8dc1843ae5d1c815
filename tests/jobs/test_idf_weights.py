"""Weighted Jaccard similarity of shingles and items that weigh by how rare they are, beside plain Python."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.errors import ConfigError
from neardup.measures.idf import UNIT, weight_of
from support import corpora
from support.made_run import data_of

THRESHOLD = 0.4
RARE = [f"rare{number}" for number in range(400)]
USUAL = [f"usual{number}" for number in range(12)]


def corpus(seed, num_documents=60):
    """Sets of items, most of them usual ones; some documents are variants of others."""
    rng = random.Random(seed)
    found = []
    for number in range(num_documents):
        if number % 3 == 2:
            base = list(rng.choice(found))
            base[rng.randrange(len(base))] = rng.choice(RARE)
            found.append(base)
        else:
            found.append([*rng.sample(USUAL, 7), *rng.sample(RARE, rng.randrange(1, 6))])
    return [*found, [], list(found[0])]


def plain_weights(sets, documents):
    counts = {}
    for items in documents:
        for item in set(items):
            counts[item] = counts.get(item, 0) + 1
    total = sum(1 for items in documents if items)
    return {
        item: round(math.log(1 + total / counts[item]) * UNIT) for items in sets for item in items
    }


def plain_similarity(a, b, weights):
    a, b = set(a), set(b)
    if not a or not b:
        return 0.0
    shared = sum(weights[item] for item in a & b)
    return shared / sum(weights[item] for item in a | b)


def plain_pairs(documents, num_references=0, threshold=THRESHOLD):
    weights = plain_weights(documents, documents)
    found = {}
    for b, others in enumerate(documents):
        for a in range(b if b >= num_references else 0):
            similarity = plain_similarity(documents[a], others, weights)
            if similarity >= threshold:
                found[a, b] = similarity
    return found


def quiet(event):
    del event


def found_pairs(report):
    return {
        (int(row["doc_a"]), int(row["doc_b"])): row["similarity"]
        for row in report.pairs.to_pylist()
    }


@pytest.mark.parametrize("seed", range(3))
def test_items_have_the_pairs_of_plain_python(seed):
    documents = corpus(seed)
    report = neardup.find_pairs(
        items=documents, weights="idf", threshold=THRESHOLD, method="exact", progress=quiet
    )
    expected = plain_pairs(documents)
    assert found_pairs(report) == expected
    unweighted = neardup.find_pairs(items=documents, threshold=THRESHOLD, progress=quiet)
    assert 5 < len(expected) < unweighted.num_pairs / 2
    shared = {item for items in documents for item in items}
    shared = [item for item in shared if sum(item in items for items in documents) > 1]
    assert report.weights == {"documents": len(documents) - 1, "shingles": len(shared)}
    assert report.as_dict()["weights"] == report.weights


def test_words_of_texts_are_weighed_as_items_are():
    documents = corpus(5)
    texts = [" ".join(items) for items in documents]
    report = neardup.find_pairs(
        texts, weights="idf", size=1, threshold=THRESHOLD, method="exact", progress=quiet
    )
    assert found_pairs(report) == plain_pairs(documents)


@pytest.fixture
def files(tmp_path):
    """Reference documents, and documents of the input; ids are positions in both together."""
    documents = corpus(7)
    for name, rows in (("old", range(20)), ("new", range(20, len(documents)))):
        made = [{"id": str(row), "text": " ".join(documents[row])} for row in rows]
        corpora.write_json_lines(tmp_path / f"{name}.jsonl", made)
    return documents, tmp_path / "old.jsonl", tmp_path / "new.jsonl"


def against_settings(old):
    return {"weights": "idf", "size": 1, "threshold": THRESHOLD, "against": old, "progress": quiet}


def test_documents_of_against_count_too_in_files_and_in_memory(files):
    documents, old, new = files
    expected = plain_pairs(documents, num_references=20)
    settings = against_settings(old) | {"method": "exact"}
    report = neardup.find_pairs(new, **settings)
    assert found_pairs(report) == expected
    assert report.weights["documents"] == sum(map(bool, documents))
    rows = [json.loads(line) for line in new.read_text().splitlines()]
    assert found_pairs(neardup.find_pairs(rows, **settings)) == expected
    before = [json.loads(line) for line in old.read_text().splitlines()]
    assert found_pairs(neardup.find_pairs(rows, **settings | {"against": before})) == expected


@pytest.mark.parametrize("method", ["exact", "lsh"])
def test_threads_memory_and_pieces_do_not_change_a_byte(files, method, tmp_path, monkeypatch):
    _, old, new = files
    settings = against_settings(old) | {"method": method}
    neardup.find_pairs(new, out=tmp_path / "a.csv", threads=1, **settings)
    corpora.cut(monkeypatch, batch_bytes=200, part_bytes=600, batch_rows=3)
    corpora.shrink(monkeypatch, 50_000)
    neardup.find_pairs(new, out=tmp_path / "b.csv", threads=3, memory="400MB", **settings)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert len((tmp_path / "a.csv").read_text().splitlines()) > 5


def test_bands_find_nearly_all_pairs_and_nothing_else():
    documents = corpus(11, 400)
    expected = plain_pairs(documents)
    settings = {"weights": "idf", "threshold": THRESHOLD, "progress": quiet}
    report = neardup.find_pairs(items=documents, method="lsh", recall=0.99, **settings)
    found = found_pairs(report)
    assert found.items() <= expected.items()
    assert len(found) > 0.98 * len(expected)


def test_removed_documents_are_similar_to_the_kept_ones(files, tmp_path):
    documents, old, new = files
    weights = plain_weights(documents, documents)
    report = neardup.deduplicate(
        new, out=tmp_path / "out", pairs=True, **against_settings(old) | {"method": "exact"}
    )
    assert report.num_removed > 3
    for row in report.removed.to_pylist():
        ends = (documents[int(row["doc_id"])], documents[int(row["kept_id"])])
        assert row["similarity"] == plain_similarity(*ends, weights) >= THRESHOLD
    loaded = neardup.load(tmp_path / "out")
    assert loaded.weights == report.weights
    closer = loaded.at_threshold(0.7)
    assert 0 < closer.num_removed < report.num_removed
    shown = neardup.explain(tmp_path / "out", report.removed.column("doc_id")[0].as_py())
    assert shown.comparison is None
    assert "weighed shingles" in data_of(report.to_html())["info"]["texts"]["reason"]


@pytest.mark.parametrize("cluster", ["leader", "components"])
def test_selecting_again_in_memory_is_a_run_at_that_threshold(cluster):
    documents = corpus(13)
    settings = {"weights": "idf", "method": "exact", "progress": quiet, "cluster": cluster}
    report = neardup.deduplicate(items=documents, threshold=0.3, pairs=True, **settings)
    again = neardup.deduplicate(items=documents, threshold=0.6, pairs=True, **settings)
    assert 0 < again.num_removed < report.num_removed
    assert report.at_threshold(0.6).removed == again.removed


def test_an_interrupted_run_counts_once(files, tmp_path):
    _, old, new = files
    settings = against_settings(old) | {"method": "exact"}

    def stop(event):
        if type(event).__name__ == "StageStarted" and event.stage == "collapse":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        neardup.find_pairs(new, out=tmp_path / "a.csv", **settings | {"progress": stop})
    stages = []
    neardup.find_pairs(new, out=tmp_path / "a.csv", **settings | {"progress": stages.append})
    started = [event.stage for event in stages if type(event).__name__ == "StageStarted"]
    assert "weights" not in started
    neardup.find_pairs(new, out=tmp_path / "b.csv", **settings)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_the_command_says_what_was_counted(files, programs, tmp_path):
    _, _, new = files
    words = ["dedup", str(new), "-o", "out", "--weights", "idf", "--size", "1"]
    done = programs.run(*words, cwd=tmp_path)
    assert done.code == 0, done.stderr
    assert "Weighed by how rare shingles are in 41 documents; " in done.stdout + done.stderr


def test_weights_are_whole_numbers_that_fall_with_the_number_of_documents():
    weights = [weight_of(1000, number) for number in range(1, 1001)]
    assert all(isinstance(weight, int) and weight > 0 for weight in weights)
    assert weights == sorted(weights, reverse=True)


def test_signatures_of_weighted_items_estimate_weighted_similarity():
    a = {"tea": 3.0, "milk": 1.0, "salt": 2.0}
    b = {"tea": 2.0, "milk": 1.0, "rice": 1.0}
    signed = neardup.signatures(items=[a, b, {}], measure="weighted", num_perm=1024)
    assert signed.dtype == np.uint32
    assert signed.shape == (3, 1024)
    exact = 3 / 7
    assert abs(neardup.estimate(signed[0], signed[1]) - exact) < 4 * math.sqrt(exact / 1024)
    assert (signed[2] == 2**32 - 1).all()
    as_pairs = neardup.signatures(items=[list(a.items())], measure="weighted", num_perm=1024)
    assert (as_pairs[0] == signed[0]).all()


@pytest.mark.parametrize(
    ("call", "settings", "message"),
    [
        (neardup.find_pairs, {"measure": "containment"}, "needs the measure 'jaccard'"),
        (neardup.find_pairs, {"multiset": True}, "`multiset` and `weights` 'idf' cannot"),
        (neardup.find_pairs, {"ignore": ["x"]}, "`ignore` and `weights` 'idf' cannot"),
        (neardup.find_pairs, {"ignore_common": 0.1}, "`ignore_common` and `weights`"),
        (neardup.find_pairs, {"audit": True}, "`audit` and `weights`"),
        (neardup.find_pairs, {"unit": "code"}, "`unit` 'code' and `weights`"),
        (neardup.find_pairs, {"sketch": "minhash"}, "`sketch` 'minhash' and `weights`"),
        (neardup.find_pairs, {"engine": "spark"}, "not supported on Spark"),
        (neardup.find_pairs, {"weights": "tfidf"}, "`weights` must be one of 'idf'"),
        (neardup.deduplicate, {"decisions": "x.json"}, "`decisions` and `weights`"),
        (neardup.neighbours, {}, "`weights` 'idf' needs all documents of a run"),
        (neardup.plan, {}, "`weights` 'idf' needs all documents of a run"),
        (neardup.tune, {}, "`weights`"),
        (neardup.find_passages, {}, "`weights`"),
    ],
)
def test_what_cannot_be_combined_is_an_error(call, settings, message):
    with pytest.raises(ConfigError, match=message):
        call(["a text", "another"], **({"weights": "idf"} | settings))


def test_two_texts_an_index_and_an_audit_do_not_weigh(tmp_path):
    with pytest.raises(ConfigError, match="needs all documents of a run: two texts"):
        neardup.compare("a", "b", weights="idf")
    with pytest.raises(ConfigError, match="`weights`"):
        neardup.Index.create(tmp_path / "i", weights="idf")
    report = neardup.find_pairs(["a b c", "a b c d"], weights="idf", progress=quiet)
    with pytest.raises(ConfigError, match="audit does not support `weights` 'idf'"):
        neardup.audit(report)


def test_no_documents_and_only_empty_ones_have_no_weights():
    for documents in ([], ["", "!"]):
        report = neardup.find_pairs(pa.array(documents, pa.string()), weights="idf", progress=quiet)
        assert report.num_pairs == 0
        assert report.weights == {"documents": 0, "shingles": 0}


def test_passages_of_weighed_pairs_are_listed():
    copied = "the ferry to the island leaves at nine from the second pier behind the customs house"
    texts = [f"{copied} today", f"{copied} again", "nothing of it in here"]
    report = neardup.find_pairs(
        texts, weights="idf", size=1, threshold=0.3, passages=True, progress=quiet
    )
    [pair] = report.pairs.to_pylist()
    assert [passage["words"] for passage in pair["passages"]] == [16]
