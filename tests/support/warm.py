"""Compile and install what tests need before they run: once, and not as part of a timed test."""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

import neardup
from neardup.engines.local.limits import Memory
from support.chromium import NoChromiumError, find_chromium
from support.programs import give_room

TEXTS = [
    " ".join(f"word{word}" for word in range(first, first + 60))
    for first in (0, 0, 1, 2, 3, 40, 90)
] * 3
# Documents of one component where too many comparisons fail: it is compared again by its rarest
# shingles.
CROWD = [
    " ".join(
        [f"word{word}" for word in range(100)]
        + [f"own{number}x{word}" for word in range(number % 16 + 1)]
    )
    for number in range(1_000)
]
VECTORS = np.random.default_rng(1).standard_normal((40, 8))
BASKETS = [
    {f"item {item % 9}": 1.0 + item for item in range(first, first + 6)} for first in range(12)
]


def main() -> None:
    """Run every method and measure once on tiny input; install a browser."""
    for method, unit, sketch, multiset in itertools.product(
        ("exact", "lsh"), ("word", "char"), ("fast", "minhash"), (False, True)
    ):
        given = {
            "method": method,
            "unit": unit,
            "sketch": sketch,
            "multiset": multiset,
            "threshold": 0.5,
        }
        found = neardup.find_pairs(TEXTS, **given)
        neardup.audit(found)
    neardup.find_pairs(TEXTS, measure="containment")
    neardup.find_pairs(CROWD, threshold=0.9)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "texts.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), "utf-8")
        neardup.deduplicate(path, against=path.with_name("*.jsonl"), measure="containment")
        neardup.decontaminate(TEXTS, against=path)
        neardup.decontaminate(TEXTS, against=path, rule="ngram13")
    neardup.find_passages(TEXTS, min_words=20).cut()
    for threshold in (1.0, 0.5):
        neardup.deduplicate(TEXTS, level="line", threshold=threshold)
    for edits in (False, True):
        neardup.passages(TEXTS[0], TEXTS[1], edits=edits)
    neardup.neighbours(TEXTS)
    neardup.neighbours(TEXTS, k=None, threshold=0.4)
    neardup.neighbours(TEXTS, measure="containment")
    neardup.neighbours(TEXTS, queries=TEXTS, measure="containment", contained="query")
    neardup.tune(TEXTS)
    neardup.evaluate(neardup.find_pairs(TEXTS), {at: at % 2 for at in range(len(TEXTS))})
    neardup.neighbours(items=[sorted(basket) for basket in BASKETS])
    _warm_measures()
    _warm_index()
    try:
        find_chromium()
    except NoChromiumError as missing:  # tests of the page are skipped, which fails in CI
        sys.stderr.write(f"{missing}\n")


def _warm_measures() -> None:
    """Compare and ask for neighbours by every measure, then with so little memory that components go in blocks."""
    bits = (VECTORS > 0).astype(np.uint8)
    baskets = [sorted(basket) for basket in BASKETS]
    of_vectors = (("cosine", VECTORS), ("euclidean", VECTORS), ("hamming", bits))
    for measure, vectors in of_vectors:
        neardup.neighbours(vectors, measure=measure)
    room = Memory.room
    for _ in range(2):
        with tempfile.TemporaryDirectory() as name:
            for measure, values in (
                *of_vectors,
                ("weighted", BASKETS),
                ("jaccard", baskets),
                ("texts", TEXTS),
            ):
                column = {"weighted": "items", "jaccard": "items", "texts": "text"}.get(
                    measure, "vector"
                )
                given = {} if measure == "texts" else {"measure": measure}
                given |= {"items_column": "items"} if column == "items" else {}
                path = Path(name) / f"{measure}.jsonl"
                rows = [np.asarray(row).tolist() if column == "vector" else row for row in values]
                path.write_text("".join(json.dumps({column: row}) + "\n" for row in rows), "utf-8")
                neardup.find_pairs(path, threshold=0.3, **given)
                for cluster, per_cluster in (("leader", 1), ("components", 2)):
                    neardup.deduplicate(
                        path,
                        threshold=0.3,
                        cluster=cluster,
                        per_cluster=per_cluster,
                        method="lsh",
                        **given,
                    )
        give_room(1_000)
    Memory.room = room  # type: ignore[method-assign]


def _warm_index() -> None:
    """Query a run and fresh documents, by every measure."""
    bits = (VECTORS > 0).astype(np.uint8)
    for settings, documents in (
        ({}, TEXTS),
        ({"measure": "weighted"}, BASKETS),
        ({"measure": "cosine", "dimension": 8}, VECTORS),
        ({"measure": "euclidean", "dimension": 8}, VECTORS),
        ({"measure": "hamming", "dimension": 8}, bits),
    ):
        with (
            tempfile.TemporaryDirectory() as folder,
            neardup.Index.create(f"{folder}/index", durability="fast", **settings) as index,
        ):
            index.insert("a", documents[0])
            index.query(documents[0])
            index.compact()
            index.query(documents[0])


if __name__ == "__main__":
    main()
