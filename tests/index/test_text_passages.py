"""Passages shared with stored texts: those of every pair of texts, whatever the index has to find candidates."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup import Index
from neardup.index import text_passages
from support import oracles
from support.passage_texts import repetitive_texts, wrapped

QUOTE = "the ferry to the island leaves at nine from the second pier"


def expected(texts, text, min_words):
    """By the definition: the passages of the text and each document."""
    found = {}
    for doc, other in enumerate(texts):
        shared = neardup.passages(text, other, min_words=min_words)
        if shared:
            found[str(doc)] = shared
    return found


def spans(found):
    return {match.doc_id: list(match.passages) for match in found}


@given(st.integers(0, 2**32), st.sampled_from([3, 5]), st.booleans(), st.booleans())
def test_passages_are_those_of_every_document(seed, min_words, containment, multiset):
    rng = random.Random(seed)
    made = repetitive_texts(rng, min_words, vocabulary=rng.choice([1, 2, 9]))
    texts = [wrapped(rng, text.split()) for text in made]
    with Index.create(
        None, store="text", containment=containment, size=3, multiset=multiset
    ) as index:
        index.insert_many({str(doc): text for doc, text in enumerate(texts[1:])})
        found = index.passages(texts[0], min_words=min_words)
        assert spans(found) == expected(texts[1:], texts[0], min_words)
        shares = [match.share_text for match in found]
        assert shares == sorted(shares, reverse=True)
        for match in found:
            words = oracles.words(texts[0])
            inside = Counter()
            for passage in match.passages:
                first = len(oracles.words(texts[0][: passage.start_a]))
                inside.update(range(first, first + passage.words))
            assert match.share_text == pytest.approx(len(inside) / len(words))


@given(st.lists(st.integers(0, 3), max_size=14), st.integers(2, 3), st.integers(3, 6))
def test_every_run_has_as_many_distinct_shingles_as_candidates_must_share(words, size, min_words):
    config = neardup.Config(size=size)
    least = text_passages._least_shared(words, min_words, config)
    counts = []
    for first in range(len(words) - min_words + 1):
        run = words[first : first + min_words]
        counts.append(len({tuple(run[at : at + size]) for at in range(min_words - size + 1)}))
    assert least == min(counts, default=0)


@pytest.mark.parametrize("containment", [False, True])
def test_documents_on_disk_in_segments_and_not_yet_in_one_are_found(tmp_path, containment):
    path = tmp_path / "essays.index"
    with Index.create(path, store="text", containment=containment) as index:
        index.insert_many({f"old{at}": f"Essay {at}. {QUOTE}." for at in range(3)})
        index.insert("gone", QUOTE)
        index.compact()
        index.insert("new", f"{QUOTE.upper()}! and more", payload={"year": 2026})
        index.insert("replaced", QUOTE)
        index.replace("replaced", "something else entirely, of other words than those")
        index.remove("gone")
        found = index.passages(f"He wrote:\n{QUOTE}")
        assert [match.doc_id for match in found] == ["old0", "old1", "old2", "new"]
        [passage] = found[0].passages
        assert (passage.words, passage.line_a, passage.start_b) == (12, 2, len("Essay 0. "))
        assert found[3].payload == {"year": 2026}
        assert [match.doc_id for match in index.passages(QUOTE, where={"year": 2026})] == ["new"]
    with Index.open(path, read_only=True) as index:
        assert len(index.passages(QUOTE)) == 4
        assert index.passages("too short") == index.passages("") == []


@pytest.mark.parametrize(
    ("settings", "given", "message"),
    [
        ({}, {}, "stores no texts"),
        ({"store": "text", "unit": "char"}, {}, "shingles of characters"),
        ({"store": "text"}, {"min_words": 4}, "`min_words` must be at least 5"),
        ({"store": "text"}, {"min_words": 0}, "`min_words` must be a whole number"),
        ({"store": "text"}, {"where": 3}, "`where`"),
    ],
)
def test_an_index_that_cannot_answer_says_why(settings, given, message):
    with (
        Index.create(None, **settings) as index,
        pytest.raises(neardup.NearDupError, match=message),
    ):
        index.passages(QUOTE, **given)


def test_a_document_must_be_a_text():
    with (
        Index.create(None, store="text") as index,
        pytest.raises(neardup.NearDupError, match="must be a text"),
    ):
        index.passages(["a"])


def test_an_index_has_no_level():
    with pytest.raises(neardup.NearDupError, match="`level` does not apply to an index"):
        Index.create(None, level="line")
