"""Pages of one template: similar, but below the threshold; they share buckets, and cost a query next to nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup import Index
from neardup.config import Config
from neardup.index import candidates
from neardup.index.candidates import CandidateSearch
from neardup.index.search import find
from neardup.index.segment import Segment, write_segment
from neardup.index.settings import new_settings
from neardup.index.sketches import sketch_contents
from neardup.index.store import Candidates


def pages(count, similarity, seed, *, size=300, spread=0):
    """Pages with a Jaccard similarity to each other, of words in a template and words of their own."""
    draw = np.random.default_rng(seed)
    num_own = max(1, round(size * (1 - similarity) / (1 + similarity)) - 4)
    words = [f"t{number}" for number in range(size + 4 - num_own)]
    middle = len(words) // 2
    made = {}
    for page in range(count):
        own = draw.integers(0, 10**9, num_own + draw.integers(0, spread + 1))
        made[f"{seed}-{page}"] = " ".join(
            [*words[:middle], *(f"p{word}" for word in own), *words[middle:]]
        )
    return made


def segment_of(folder, documents, *, store="shingles", **settings):
    """A segment of documents, its settings, and the sketches of the documents."""
    found = new_settings(Config.of(**settings), store)
    sketches = sketch_contents(
        pa.array(list(documents.values()), pa.large_string()), found.plan, found.config
    )
    if store == "signature":
        sketches = sketches._replace(items=None)
    write_segment(folder / "a.run", np.arange(sketches.sizes.size), sketches, found.layout)
    return Segment(folder / "a.run", found.layout), found, sketches


class OneSegment:
    """One segment as a query sees it; counts the documents whose sets are read."""

    def __init__(self, segment):
        self._segment = segment
        self.num_read = 0

    def look_up(self, asked, threshold, min_agreement):
        queries, docs = CandidateSearch(self._segment, asked, threshold, min_agreement).find()
        self.num_read += docs.size
        yield Candidates(queries, np.arange(docs.size), docs, self._segment.take(docs))


@pytest.mark.parametrize("similarity", [0.56, 0.63, 0.69])
def test_the_sets_of_pages_of_a_template_are_not_read(tmp_path, similarity):
    documents = pages(1_500, similarity, seed=1)
    segment, settings, sketches = segment_of(tmp_path, documents)
    view = OneSegment(segment)
    asked = sketch_contents(
        pa.array([documents["1-7"]], pa.large_string()), settings.plan, settings.config
    )
    shares_bucket = np.isin(sketches.keys, asked.keys).any(axis=1).sum()
    found = find(view, asked, 0.8, settings)
    assert found.numbers.tolist() == [7]
    assert shares_bucket >= 150
    assert view.num_read <= 10


def test_signatures_of_too_little_agreement_are_not_read_where_they_are_all_there_is(tmp_path):
    documents = pages(1_000, 0.63, seed=1)
    segment, settings, asked = segment_of(tmp_path, documents, store="signature")
    view = OneSegment(segment)
    first = [row[:1] for row in (asked.signatures, asked.keys, asked.sizes)]
    found = find(
        view, asked._replace(signatures=first[0], keys=first[1], sizes=first[2]), 0.8, settings
    )
    assert found.numbers[0] == 0
    assert view.num_read == found.numbers.size < 20


CASES = {
    "jaccard": {},
    "minhash": {"sketch": "minhash"},
    "low threshold": {"threshold": 0.5},
    "high threshold": {"threshold": 0.88},
    "characters": {"unit": "char", "size": 6, "threshold": 0.75},
    "multiset": {"multiset": True, "size": 1},
    "no signature filter": {"signature_filter": False, "bands": 16, "rows": 6},
    "hamming": {"measure": "hamming", "dimension": 256, "threshold": 0.9},
    "weighted": {"measure": "weighted", "threshold": 0.7},
}


def corpus(name):
    """Pages of templates, some of which are similar enough."""
    draw = np.random.default_rng(5)
    if name == "hamming":
        template = draw.integers(0, 2, 256)
        return (template ^ (draw.random((250, 256)) < draw.uniform(0.01, 0.15, (250, 1)))).astype(
            np.uint8
        )
    made = {}
    for seed, similarity in enumerate((0.6, 0.7, 0.78, 0.82, 0.9)):
        made |= pages(60, similarity, seed, size=100, spread=seed * 3)
    if name == "weighted":
        return {
            doc_id: {word: 1.0 + len(word) for word in text.split()}
            for doc_id, text in made.items()
        }
    return made


def found_pairs(documents, settings):
    """The pairs that a segment finds by the same method."""
    if isinstance(documents, np.ndarray):
        report = neardup.find_pairs(
            documents, ids=list(map(str, range(250))), method="lsh", **settings
        )
    elif settings.get("measure") == "weighted":
        report = neardup.find_pairs(items=documents, method="lsh", **settings)
    else:
        report = neardup.find_pairs(documents, method="lsh", **settings)
    return {(row["doc_a"], row["doc_b"]): row["similarity"] for row in report.pairs.to_pylist()}


@pytest.mark.filterwarnings("ignore:.*share little but a template")
@pytest.mark.parametrize("name", CASES)
def test_queries_on_templates_return_what_find_pairs_returns(tmp_path, name):
    documents = corpus(name)
    settings = CASES[name]
    expected = found_pairs(documents, settings)
    assert len(expected) > 5
    ids = list(map(str, range(250))) if isinstance(documents, np.ndarray) else None
    order = {doc_id: place for place, doc_id in enumerate(ids or documents)}
    with Index.create(tmp_path / "i", durability="fast", **settings) as index:
        index.insert_many(documents, ids=ids)
        for _ in range(2):
            rows = index.query_many(documents, k=None, ids=ids).to_pylist()
            found = {
                (row["query_id"], row["doc_id"]): row["similarity"]
                for row in rows
                if order[row["query_id"]] < order[row["doc_id"]]
            }
            assert found == expected
            index.compact()


@pytest.mark.parametrize("threshold", [0.8, 0.87, 1.0])
def test_estimates_on_templates_are_those_of_all_pairs_that_share_a_bucket(tmp_path, threshold):
    documents = corpus("jaccard")
    segment, settings, sketches = segment_of(tmp_path, documents, store="signature")
    found = find(OneSegment(segment), sketches, threshold, settings)
    expected = {}
    for query in range(len(documents)):
        shares_bucket = (sketches.keys == sketches.keys[query]).any(axis=1)
        ratios = np.minimum(sketches.sizes, sketches.sizes[query]) / np.maximum(
            sketches.sizes, sketches.sizes[query]
        )
        estimates = (sketches.signatures == sketches.signatures[query]).mean(axis=1)
        for doc in np.flatnonzero(
            shares_bucket & (ratios >= threshold) & (estimates >= threshold)
        ).tolist():
            expected[query, doc] = estimates[doc]
    pairs = zip(found.queries.tolist(), found.numbers.tolist(), strict=True)
    assert dict(zip(pairs, found.similarities.tolist(), strict=True)) == expected


def test_a_batch_that_is_looked_up_in_parts_finds_the_same_pages(tmp_path, monkeypatch):
    segment, settings, asked = segment_of(tmp_path, corpus("jaccard"))
    whole = CandidateSearch(segment, asked, 0.8, int(settings.plan.min_agreement)).find()
    monkeypatch.setattr(candidates, "_PAIRS_AT_ONCE", 500)
    parts = CandidateSearch(segment, asked, 0.8, int(settings.plan.min_agreement)).find()
    assert whole[0].size > 1_000
    assert all((one == two).all() for one, two in zip(whole, parts, strict=True))


def test_pages_are_found_when_their_bitmaps_are_requested_ahead(tmp_path):
    documents = pages(500, 0.85, seed=3)
    segment, settings, asked = segment_of(tmp_path, documents)
    least = int(settings.plan.min_agreement)
    requested = CandidateSearch(segment, asked, 0.8, least, request_pages=True).find()
    plain = CandidateSearch(segment, asked, 0.8, least).find()
    assert requested[0].size > 100_000
    assert all((one == two).all() for one, two in zip(requested, plain, strict=True))
