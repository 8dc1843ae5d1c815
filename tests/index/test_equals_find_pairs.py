"""A query returns what find_pairs returns for the same documents, for every measure."""

from __future__ import annotations

import numpy as np
import pytest

import neardup
from neardup import Index
from support.index_texts import texts

DRAW = np.random.default_rng(4)
CENTRES = DRAW.standard_normal((12, 16))
VECTORS = CENTRES[DRAW.integers(12, size=90)] + 0.05 * DRAW.standard_normal((90, 16))
BITS = (
    np.repeat(DRAW.integers(0, 2, (9, 128)), 10, axis=0) ^ (DRAW.random((90, 128)) < 0.02)
).astype(np.uint8)
BAGS = [
    {f"item{item}": float(weight) for item, weight in zip(row, DRAW.integers(1, 9, 8), strict=True)}
    for row in np.repeat(DRAW.integers(0, 60, (9, 8)), 10, axis=0)
]
TEXTS = texts(150, seed=1)
CASES = {
    "jaccard": (TEXTS, {}),
    "low threshold": (TEXTS, {"threshold": 0.4, "recall": 0.9}),
    "characters": (TEXTS, {"unit": "char", "size": 6, "threshold": 0.6}),
    "minhash": (TEXTS, {"sketch": "minhash", "num_perm": 100}),
    "multiset": (TEXTS, {"multiset": True, "fold_numbers": True, "size": 1, "threshold": 0.9}),
    "own bands": (TEXTS, {"bands": 4, "rows": 8, "signature_filter": False}),
    "seed": (TEXTS, {"seed": 99}),
    "html": ({name: f"<p>{text}</p>" for name, text in TEXTS.items()}, {"html": True}),
    "items": ({name: text.split() for name, text in TEXTS.items()}, {"items_column": "items"}),
    "weighted": (dict(enumerate(BAGS)), {"measure": "weighted", "threshold": 0.5}),
    "cosine": (VECTORS, {"measure": "cosine", "dimension": 16, "threshold": 0.95}),
    "euclidean": (VECTORS, {"measure": "euclidean", "dimension": 16, "distance": 0.4}),
    "hamming": (BITS, {"measure": "hamming", "dimension": 128, "distance": 8}),
    "packed": (
        np.packbits(BITS, axis=1),
        {"measure": "hamming", "dimension": 128, "threshold": 0.9, "packed": True},
    ),
}


def as_documents(source):
    """The documents by id."""
    if isinstance(source, dict):
        return {str(name): value for name, value in source.items()}
    return {str(place): row for place, row in enumerate(source)}


def found_pairs(source, settings):
    documents = as_documents(source)
    if isinstance(source, np.ndarray):
        report = neardup.find_pairs(source, ids=list(documents), method="lsh", **settings)
    elif "items_column" in settings or settings.get("measure") == "weighted":
        report = neardup.find_pairs(items=documents, method="lsh", **settings)
    else:
        report = neardup.find_pairs(documents, method="lsh", **settings)
    return {(row["doc_a"], row["doc_b"]): row["similarity"] for row in report.pairs.to_pylist()}


def as_pairs(table, order):
    """Matches as pairs in input order, without each document's match with itself."""
    return {
        (row["query_id"], row["doc_id"]): row["similarity"]
        for row in table.to_pylist()
        if order[row["query_id"]] < order[row["doc_id"]]
    }


@pytest.mark.parametrize("name", CASES)
def test_queries_return_what_find_pairs_returns(tmp_path, name):
    source, settings = CASES[name]
    documents = as_documents(source)
    expected = found_pairs(source, settings)
    order = {doc_id: place for place, doc_id in enumerate(documents)}
    split = len(documents) // 3
    asked = source if isinstance(source, np.ndarray) else documents
    ids = list(documents) if isinstance(source, np.ndarray) else None
    with Index.create(tmp_path / "i", durability="fast", **settings) as index:
        for doc_id in list(documents)[:split]:
            index.insert(doc_id, documents[doc_id])
        index.compact()
        for doc_id in list(documents)[split : 2 * split]:
            index.insert(doc_id, documents[doc_id])
        rest = list(documents)[2 * split :]
        if isinstance(source, np.ndarray):
            index.insert_many(source[2 * split :], ids=rest)
        else:
            index.insert_many({doc_id: documents[doc_id] for doc_id in rest})
        assert len(expected) > 10
        assert as_pairs(index.query_many(asked, k=None, ids=ids), order) == expected
        one = {
            (doc_id, match.doc_id): match.similarity
            for doc_id in list(documents)[:40]
            for match in index.query(documents[doc_id], k=None)
            if order[doc_id] < order[match.doc_id]
        }
        assert one == {pair: value for pair, value in expected.items() if order[pair[0]] < 40}
        index.compact()
        assert as_pairs(index.query_many(asked, k=None, ids=ids), order) == expected
        assert index.check() == []
    with Index.open(tmp_path / "i", read_only=True) as index:
        assert as_pairs(index.query_many(asked, k=None, ids=ids), order) == expected
