"""The k most similar of each, against brute force in plain Python and NumPy, for every measure."""

from __future__ import annotations

import json
import math
import random

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.errors import ConfigError, DataError
from support import oracles

MEASURES = ("jaccard", "containment", "weighted", "hamming", "cosine", "euclidean")


def jaccard(a, b):
    return len(a & b) / len(a | b) if a | b else 0.0


def containment(a, b):
    return len(a & b) / min(len(a), len(b)) if a and b else 0.0


def weighted(a, b):
    smaller, larger = (
        sum(fold(a.get(item, 0), b.get(item, 0)) for item in a.keys() | b.keys())
        for fold in (min, max)
    )
    return smaller / larger if larger else 0.0


def hamming(a, b):
    return int((a == b).sum()) / len(a)


def cosine(a, b):
    return float(min(1.0, max(0.0, a @ b / math.sqrt((a @ a) * (b @ b)))))


def euclidean(a, b):
    return float(1 / (1 + np.sqrt(((a - b) ** 2).sum())))


ORACLES = {name: globals()[name] for name in MEASURES}


def corpus(measure, num_docs, seed=1):
    """Items with copies, near-copies, ties and, for sets, empty ones."""
    rng = np.random.default_rng(seed)
    if measure in ("jaccard", "containment"):
        drawn = [
            set(rng.zipf(1.4, rng.integers(0, 12)).clip(max=60).tolist()) for _ in range(num_docs)
        ]
        return drawn[: num_docs // 2] + [set(doc) for doc in drawn[: num_docs - num_docs // 2]]
    if measure == "weighted":
        return [
            {
                f"i{item}": float(rng.integers(1, 9)) / 4
                for item in rng.zipf(1.5, rng.integers(0, 8)).clip(max=40)
            }
            for _ in range(num_docs)
        ]
    if measure == "hamming":
        return rng.integers(0, 2, (num_docs, 70)).astype(np.uint8)
    values = rng.integers(-3, 4, (num_docs, 7)).astype(np.float64)
    values[~values.any(axis=1)] = 1.0
    return values


def arguments(measure, docs):
    if measure in ("jaccard", "containment"):
        return {"items": [sorted(doc) for doc in docs]}
    return {"items": docs} if measure == "weighted" else {"source": docs}


def brute_force(measure, docs, k, least=0.0, queries=None):
    """The nearest neighbours as (query, doc, similarity), most similar first, ties by position."""
    found = []
    for at, query in enumerate(docs if queries is None else queries):
        scored = [
            (ORACLES[measure](query, doc), -place)
            for place, doc in enumerate(docs)
            if queries is not None or place != at
        ]
        best = sorted(
            (pair for pair in scored if pair[0] > 0 and pair[0] >= least - 1e-12), reverse=True
        )[:k]
        found += [(at, -place, similarity) for similarity, place in best]
    return found


def rows_of(table):
    return [(row["doc_id"], row["neighbour_id"], row["similarity"]) for row in table.to_pylist()]


def assert_agrees(found, measure, docs, k, least=0.0, queries=None):
    """Equal in number and similarity; positions may differ only among equally similar ones, up to rounding."""
    expected = brute_force(measure, docs, k, least, queries)
    queries = docs if queries is None else queries
    assert [(query, pytest.approx(value, abs=1e-12)) for query, _, value in expected] == [
        (query, value) for query, _, value in found
    ]
    assert len({pair[:2] for pair in found}) == len(found)
    for query, doc, value in found:
        assert ORACLES[measure](queries[query], docs[doc]) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("k", [1, 3, 500])
@pytest.mark.parametrize("measure", MEASURES)
def test_neighbours_match_brute_force(measure, k):
    docs = corpus(measure, 120)
    found = rows_of(neardup.neighbours(**arguments(measure, docs), measure=measure, k=k))
    assert_agrees(found, measure, docs, k)
    if measure in ("jaccard", "containment", "hamming"):  # no sums that depend on the order
        assert found == brute_force(measure, docs, k)


@pytest.mark.parametrize("measure", MEASURES)
def test_queries_can_find_their_own_copies_in_the_source(measure):
    docs = corpus(measure, 90)
    queries = corpus(measure, 20, seed=2)
    own = arguments(measure, docs)
    asked = next(iter(arguments(measure, queries).values()))
    found = rows_of(neardup.neighbours(**own, queries=asked, measure=measure, k=4))
    assert_agrees(found, measure, docs, 4, queries=queries)
    again = rows_of(
        neardup.neighbours(**own, queries=next(iter(own.values())), measure=measure, k=1)
    )
    usable = [at for at, doc in enumerate(docs) if len(doc)]
    assert [query for query, _, _ in again] == usable
    assert all(value == pytest.approx(1.0) for _, _, value in again)


@pytest.mark.parametrize("measure", MEASURES)
def test_the_threshold_is_the_minimum_similarity(measure):
    docs = corpus(measure, 80)
    least = 0.25
    found = rows_of(
        neardup.neighbours(**arguments(measure, docs), measure=measure, k=6, threshold=least)
    )
    assert_agrees(found, measure, docs, 6, least)
    assert min(value for _, _, value in found) >= least


def test_the_default_threshold_does_not_limit_neighbours():
    found = neardup.neighbours(items=[["a", "b", "c"], ["c", "d", "e"]])
    assert found.column("similarity").to_pylist() == [0.2, 0.2]


def test_a_threshold_of_the_config_limits_neighbours():
    config = neardup.Config(threshold=0.3)
    assert neardup.neighbours(items=[["a", "b", "c"], ["c", "d", "e"]], config=config).num_rows == 0


@pytest.mark.parametrize("measure", MEASURES)
def test_results_do_not_depend_on_threads(measure):
    docs = arguments(measure, corpus(measure, 700))
    one, two = (
        neardup.neighbours(**docs, measure=measure, k=5, threads=threads) for threads in (1, 2)
    )
    assert one.equals(two)


def test_texts_agree_with_the_oracle_and_recall_at_ten_is_one():
    texts = oracles.random_corpus(7, 150)
    sets = [oracles.shingles(text, size=2) for text in texts]
    found = rows_of(neardup.neighbours(texts, k=10, size=2))
    assert found == brute_force("jaccard", sets, 10)


def test_ties_are_in_the_order_of_the_source_and_ranks_count_from_one():
    found = neardup.neighbours({"x": "a b", "y": "a b", "z": "a b"}, size=1, k=2).to_pylist()
    assert [(row["doc_id"], row["neighbour_id"], row["rank"]) for row in found] == [
        *(("x", "y", 1), ("x", "z", 2)),
        *(("y", "x", 1), ("y", "z", 2)),
        *(("z", "x", 1), ("z", "y", 2)),
    ]


def test_among_many_copies_the_first_are_listed():
    texts = ["one two three four five six seven"] * 3000
    found = rows_of(neardup.neighbours(texts, k=2))
    assert found[:2] == [(0, 1, 1.0), (0, 2, 1.0)]
    assert found[-2:] == [(2999, 0, 1.0), (2999, 1, 1.0)]


def test_documents_without_shingles_neither_have_nor_are_neighbours():
    assert neardup.neighbours(["", "...", "a", "a"], size=1).column("doc_id").to_pylist() == [2, 3]


@pytest.mark.parametrize("source", [[], ["alone"]])
def test_a_single_document_has_no_neighbours(source):
    found = neardup.neighbours(source)
    assert found.num_rows == 0
    assert found.column_names == ["doc_id", "neighbour_id", "similarity", "rank"]


def test_vectors_with_negative_similarity_are_not_neighbours():
    assert (
        neardup.neighbours(
            np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]]), measure="cosine"
        ).num_rows
        == 0
    )


def test_huge_and_tiny_distances_are_ranked():
    points = np.array([[0.0], [1e-9], [3e-9], [1e100], [-1e100]])
    found = neardup.neighbours(points, measure="euclidean", k=2).to_pylist()
    assert [row["neighbour_id"] for row in found if row["doc_id"] in (0, 1)] == [1, 2, 0, 2]
    assert [row["neighbour_id"] for row in found if row["doc_id"] == 3] == [0, 1]


def test_documents_of_different_groups_are_not_matched():
    table = pa.table({"id": [1, 2, 3, 4], "text": ["a b"] * 4, "lang": ["de", "fr", "de", "fr"]})
    found = rows_of(neardup.neighbours(table, group_column="lang", size=1))
    assert found == [(1, 3, 1.0), (2, 4, 1.0), (3, 1, 1.0), (4, 2, 1.0)]


@pytest.mark.parametrize("measure", ["hamming", "cosine", "euclidean"])
def test_vectors_of_different_groups_are_not_matched(measure):
    table = pa.table({"id": [1, 2, 3], "vector": [[1.0, 1.0]] * 3, "lang": ["de", "fr", "de"]})
    found = rows_of(neardup.neighbours(table, group_column="lang", measure=measure))
    assert [pair[:2] for pair in found] == [(1, 3), (3, 1)]


@pytest.mark.parametrize(
    "k",
    [
        0,
        -1,
        2.5,
        True,
        "10",
    ],
)
def test_k_must_be_a_positive_whole_number(k):
    with pytest.raises(ConfigError, match="`k` must be a whole number >= 1"):
        neardup.neighbours(["a", "b"], k=k)


def test_settings_that_do_not_apply_to_neighbours_are_errors():
    with pytest.raises(ConfigError, match="`pairs` does not apply to neighbours"):
        neardup.neighbours(["a", "b"], pairs=True)
    with pytest.raises(ConfigError, match="queries="):
        neardup.neighbours(["a", "b"], against="old.jsonl")


def test_queries_of_another_dimension_are_rejected_with_a_warning():
    seen = []
    found = neardup.neighbours(
        np.eye(3), queries=[[1.0, 0.0, 0.0], [1.0, 0.0]], measure="cosine", progress=seen.append
    )
    assert rows_of(found) == [(0, 0, 1.0)]
    assert any("1 row cannot be used" in getattr(event, "message", "") for event in seen)


def test_files_give_the_same_result_as_memory_with_file_and_row(tmp_path):
    texts = oracles.random_corpus(3, 60)
    for name, part in (("one", texts[:25]), ("two", texts[25:])):
        lines = "".join(json.dumps({"id": "same", "text": text}) + "\n" for text in part)
        (tmp_path / f"{name}.jsonl").write_text(lines, "utf-8")
    found = neardup.neighbours(tmp_path, k=3, size=2).to_pylist()
    firsts = {"one.jsonl": -1, "two.jsonl": 24}
    rows = [
        (
            firsts[row["file"]] + row["row"],
            firsts[row["neighbour_file"]] + row["neighbour_row"],
            row["similarity"],
        )
        for row in found
    ]
    assert rows == rows_of(neardup.neighbours(texts, k=3, size=2))
    assert {row["doc_id"] for row in found} == {"same"}


def test_exceeding_the_memory_limit_is_an_error_that_says_so(tmp_path, monkeypatch):
    (tmp_path / "pages.jsonl").write_text(json.dumps({"text": "a b c d e f g"}) + "\n", "utf-8")
    monkeypatch.setattr("neardup.engines.local.engine.LocalEngine.room", lambda _: 100)
    with pytest.raises(DataError, match="neighbours are found in memory"):
        neardup.neighbours(tmp_path / "pages.jsonl")


def test_queries_and_documents_share_one_memory_limit(tmp_path, monkeypatch):
    for name in ("pages", "new"):
        (tmp_path / f"{name}.jsonl").write_text(
            json.dumps({"text": "a b c d e f g"}) + "\n", "utf-8"
        )
    monkeypatch.setattr(
        "neardup.engines.local.engine.LocalEngine.room", lambda _: 600
    )  # each needs 560
    neardup.neighbours(tmp_path / "pages.jsonl")
    with pytest.raises(DataError, match="neighbours are found in memory"):
        neardup.neighbours(tmp_path / "pages.jsonl", queries=tmp_path / "new.jsonl")


def test_random_baskets_with_a_popular_item_agree_with_brute_force():
    rng = random.Random(5)
    docs = [{0, *(rng.randrange(1, 300) for _ in range(rng.randrange(1, 9)))} for _ in range(400)]
    assert rows_of(neardup.neighbours(items=[sorted(doc) for doc in docs], k=3)) == brute_force(
        "jaccard", docs, 3
    )


def test_rejected_rows_are_python_warnings_without_a_progress_function():
    with pytest.warns(UserWarning, match="1 row cannot be used: row 1:"):
        found = neardup.neighbours(["a b c d e f", None, "a b c d e f g"], k=1)
    assert found.column("doc_id").to_pylist() == [0, 2]


# all neighbours above a threshold, and the direction of containment


@pytest.mark.parametrize("has_queries", [False, True])
@pytest.mark.parametrize("measure", MEASURES)
def test_without_k_all_neighbours_above_the_threshold_are_listed(measure, has_queries):
    docs = corpus(measure, 60)
    threshold = 0.1537 if measure == "euclidean" else 0.5137 if measure == "hamming" else 0.3137
    queries = corpus(measure, 20, seed=2) if has_queries else None
    asked = {} if queries is None else {"queries": next(iter(arguments(measure, queries).values()))}
    found = neardup.neighbours(
        **arguments(measure, docs), **asked, k=None, measure=measure, threshold=threshold
    )
    assert found.num_rows > 100
    assert_agrees(rows_of(found), measure, docs, len(docs), threshold, queries)
    for doc_id in set(found.column("doc_id").to_pylist()):
        ranks = [row["rank"] for row in found.to_pylist() if row["doc_id"] == doc_id]
        assert ranks == list(range(1, len(ranks) + 1))


def test_without_k_one_query_may_have_very_many_neighbours():
    found = neardup.neighbours(
        items=[["tea"]] * 3000, k=None, threshold=1.0, queries=[["tea"], ["jam"]]
    )
    assert found.column("neighbour_id").to_pylist() == list(range(3000))
    found = neardup.neighbours(
        np.ones((5000, 2)), measure="cosine", k=None, threshold=1.0, queries=np.ones((1, 2))
    )
    assert found.column("rank").to_pylist() == list(range(1, 5001))


def test_without_k_or_a_threshold_a_query_is_an_error():
    with pytest.raises(ConfigError, match=r"no threshold is given[\s\S]*hint: pass threshold=0.5"):
        neardup.neighbours(["a b"], k=None)
    assert neardup.neighbours(["a b", "a b"], k=None, distance=0.1).num_rows == 2


def test_a_long_list_causes_a_warning(monkeypatch):
    monkeypatch.setattr("neardup.jobs.neighbours.MANY_NEIGHBOURS", 10)
    with pytest.warns(UserWarning, match="more than 10 neighbours to list"):
        neardup.neighbours(items=[["tea"]] * 5, k=None, threshold=1.0)


def test_contained_query_ranks_by_the_share_of_the_query():
    pets = {
        "items": [["cat"], ["cat", "dog", "emu", "fox"], ["dog", "cat"]],
        "queries": [["cat", "dog"]],
    }
    ranked = {
        contained: [
            (
                row["neighbour_id"],
                row["similarity"],
                row["containment_query"],
                row["containment_neighbour"],
            )
            for row in neardup.neighbours(
                **pets, measure="containment", contained=contained
            ).to_pylist()
        ]
        for contained in ("query", "neighbour", "either")
    }
    assert ranked["query"] == [(1, 1.0, 1.0, 0.5), (2, 1.0, 1.0, 1.0), (0, 0.5, 0.5, 1.0)]
    assert ranked["neighbour"] == [(0, 1.0, 0.5, 1.0), (2, 1.0, 1.0, 1.0), (1, 0.5, 1.0, 0.5)]
    assert ranked["either"] == [(0, 1.0, 0.5, 1.0), (1, 1.0, 1.0, 0.5), (2, 1.0, 1.0, 1.0)]


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("contained", ["query", "neighbour", "either"])
def test_shares_match_brute_force(contained, k):
    docs = corpus("containment", 80)
    queries = corpus("containment", 30, seed=2)
    found = neardup.neighbours(
        items=[sorted(doc) for doc in docs],
        queries=[sorted(query) for query in queries],
        k=k,
        measure="containment",
        contained=contained,
        threshold=0.4,
    )
    expected = []
    for at, query in enumerate(queries):
        scored = []
        for place, doc in enumerate(docs):
            shares = [len(query & doc) / len(side) if side else 0.0 for side in (query, doc)]
            similarity = {"query": shares[0], "neighbour": shares[1], "either": max(shares)}[
                contained
            ]
            if similarity >= 0.4:
                scored.append((-similarity, place, *shares))
        expected += [(at, place, -value, *shares) for value, place, *shares in sorted(scored)[:k]]
    names = ("doc_id", "neighbour_id", "similarity", "containment_query", "containment_neighbour")
    assert [tuple(row[name] for name in names) for row in found.to_pylist()] == expected
    assert len(expected) > 50


def test_only_containment_has_shares():
    with pytest.raises(
        ConfigError, match="`contained` needs the measure 'containment', got 'jaccard'"
    ):
        neardup.neighbours(["a"], contained="query")
    with pytest.raises(
        ConfigError, match="`contained` must be one of 'query', 'neighbour', 'either', got 'both'"
    ):
        neardup.neighbours(["a"], measure="containment", contained="both")
    assert neardup.neighbours(["a b", "a b"]).column_names == [
        "doc_id",
        "neighbour_id",
        "similarity",
        "rank",
    ]
