"""The corpus that `neardup demo` shows: what it holds, by the oracle and by the library."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import neardup
from support import oracles

CORPUS = Path(neardup.__file__).parent / "demo" / "documents.jsonl"
DOCUMENTS = [json.loads(line) for line in CORPUS.read_bytes().split(b"\n") if line]
IDS = [document["id"] for document in DOCUMENTS]
TEXTS = [document["text"] for document in DOCUMENTS]
SETS = [oracles.shingles(text) for text in TEXTS]

REMOVED_BY_LEADERS = {
    "news/harbour-bridge-wire": "news/harbour-bridge",
    "press/solar-tiles-release": "press/solar-tiles-draft",
    "news/harbour-bridge-evening": "news/harbour-bridge",
    "news/reading-room-capitals": "news/reading-room",
    "recipes/lentil-soup-blog": "recipes/lentil-soup",
    "news/harbour-bridge-long": "news/harbour-bridge",
    "fr/marche-couvert-decomposed": "fr/marche-couvert",
    "ja/lighthouse-morning": "ja/lighthouse",
    "news/flood-wall-corrected": "news/flood-wall",
    "jobs/tram-driver-again": "jobs/tram-driver",
}
# The end of the chain draft ~ release ~ final is not similar to the draft; only the closure removes
# it.
REMOVED_BY_COMPONENTS = REMOVED_BY_LEADERS | {"press/solar-tiles-final": "press/solar-tiles-draft"}
REMOVED = {"leader": REMOVED_BY_LEADERS, "components": REMOVED_BY_COMPONENTS}


def jaccard(a: str, b: str) -> float:
    return oracles.jaccard(SETS[IDS.index(a)], SETS[IDS.index(b)])


@pytest.mark.parametrize("cluster", ["leader", "components"])
def test_oracle_removes_the_copies_of_the_demo(cluster):
    pairs = oracles.true_pairs(SETS, 0.8)
    removed = oracles.select(cluster, oracles.keep_order("first", TEXTS), pairs, SETS)
    assert {IDS[row]: IDS[kept_row] for row, (kept_row, _) in removed.items()} == REMOVED[cluster]


@pytest.mark.parametrize("cluster", ["leader", "components"])
def test_default_settings_remove_the_copies_of_the_demo(cluster):
    report = neardup.deduplicate(dict(zip(IDS, TEXTS, strict=True)), cluster=cluster)
    removed = report.removed.to_pylist()
    assert {row["doc_id"]: row["kept_id"] for row in removed} == REMOVED[cluster]
    for row in removed:
        assert row["similarity"] == jaccard(row["doc_id"], row["kept_id"])
    assert report.kept.column("doc_id").to_pylist() == [
        doc_id for doc_id in IDS if doc_id not in REMOVED[cluster]
    ]
    assert report.exact_duplicates == 2
    assert report.documents == len(DOCUMENTS)


def test_every_line_of_the_demo_has_a_distinct_id_a_source_and_a_text():
    assert all(set(document) == {"id", "source", "text"} for document in DOCUMENTS)
    assert len(set(IDS)) == len(IDS) == 32


def test_demo_pairs_are_not_close_to_the_threshold():
    similarities = [jaccard(doc_id, kept_id) for doc_id, kept_id in REMOVED_BY_LEADERS.items()]
    assert min(similarities) > 0.84


def test_demo_shows_a_chain_whose_ends_are_not_similar():
    assert jaccard("press/solar-tiles-draft", "press/solar-tiles-release") >= 0.84
    assert jaccard("press/solar-tiles-release", "press/solar-tiles-final") >= 0.84
    assert jaccard("press/solar-tiles-draft", "press/solar-tiles-final") < 0.78


def test_demo_shows_a_quote_that_is_contained_but_not_similar():
    quote = SETS[IDS.index("news/night-train-quote")]
    article = SETS[IDS.index("news/night-train")]
    assert quote < article
    assert oracles.jaccard(quote, article) < 0.4


def test_demo_shows_products_that_share_boilerplate_but_are_different():
    assert 0.2 < jaccard("shop/gooseneck-kettle", "shop/two-slot-toaster") < 0.5


def test_demo_shows_an_exact_copy_in_another_normal_form():
    composed, decomposed = (
        TEXTS[IDS.index(name)] for name in ("fr/marche-couvert", "fr/marche-couvert-decomposed")
    )
    assert composed != decomposed
    assert jaccard("fr/marche-couvert", "fr/marche-couvert-decomposed") == 1


def test_demo_shows_documents_without_shingles():
    empty = [doc_id for doc_id, members in zip(IDS, SETS, strict=True) if not members]
    assert empty == ["empty/blank-page", "empty/separator", "empty/white-space"]
