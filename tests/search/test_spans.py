"""From stretches to places, passages and spans: against plain Python."""

from __future__ import annotations

import itertools
import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.search import spans
from neardup.search.places import Stretches
from support import passage_oracle
from support.passage_texts import repetitive_texts

WORDS = st.sampled_from([1, 2, 4, 7])


def stretches_of(docs, min_words):
    found = passage_oracle.stretches(docs, min_words)
    columns = zip(
        *[
            (
                stretch.doc,
                stretch.start,
                stretch.words - min_words + 1,
                stretch.source,
                stretch.source_start,
            )
            for stretch in found
        ],
        strict=True,
    )
    return (
        Stretches(*(np.array(column, np.int64) for column in columns))
        if found
        else Stretches(*[np.empty(0, np.int64)] * 5)
    )


def corpus(seed, min_words):
    return passage_oracle.words_of(repetitive_texts(random.Random(seed), min_words, num_docs=6))


@given(st.integers(0, 2**32), WORDS, st.integers(0, 3), st.booleans())
def test_places_are_those_of_later_documents_of_the_input(
    seed, min_words, num_references, only_against
):
    docs = corpus(seed, min_words)
    found = spans.listed(stretches_of(docs, min_words), num_references, only_against=only_against)
    expected = passage_oracle.places(
        docs, min_words, None, num_references, only_against=only_against
    )
    assert found.docs.tolist() == [place.doc for place in expected]
    assert found.starts.tolist() == [place.start for place in expected]


@given(st.integers(0, 2**32), WORDS)
def test_a_passage_counts_its_places_and_documents_and_the_largest_is_first(seed, min_words):
    docs = corpus(seed, min_words)
    places = passage_oracle.places(docs, min_words)
    found = spans.passages_of(
        spans.listed(stretches_of(docs, min_words), 0, only_against=False), min_words
    )
    expected = {}
    for place in places:
        expected.setdefault((place.source, place.source_start, place.words), []).append(place.doc)
    keys = list(
        zip(found.sources.tolist(), found.starts.tolist(), found.words.tolist(), strict=True)
    )
    assert keys == sorted(expected)
    assert found.places.tolist() == [len(expected[key]) + 1 for key in keys]
    assert found.documents.tolist() == [len(set(expected[key])) + 1 for key in keys]
    assert [keys[passage] for passage in found.of_place] == [
        (place.source, place.source_start, place.words) for place in places
    ]
    sizes = (found.words * found.places)[found.order]
    assert (np.diff(sizes) <= 0).all()
    assert found.ids[found.order].tolist() == list(range(1, len(keys) + 1))


@given(st.integers(0, 2**32), WORDS, st.integers(2, 5))
def test_only_windows_with_enough_places_are_frequent(seed, min_words, min_count):
    docs = corpus(seed, min_words)
    first = passage_oracle.first_places(docs, min_words)
    counts = passage_oracle.num_places(docs, min_words)
    found = spans.frequent(stretches_of(docs, min_words), min_count)
    windows = {
        (doc, start + at, source, source_start + at)
        for doc, start, count, source, source_start in zip(
            *map(np.ndarray.tolist, found), strict=True
        )
        for at in range(count)
    }
    assert windows == {
        (*window, *place)
        for window, place in first.items()
        if window != place and counts[place] >= min_count
    }


@given(
    st.lists(st.tuples(*[st.integers(0, 3), st.integers(0, 20), st.integers(1, 6)]), max_size=12)
)
def test_united_spans_cover_the_same_words_and_stand_apart(given_spans):
    docs, starts, sizes = (
        np.array([span[side] for span in given_spans], np.int64) for side in range(3)
    )
    found = spans.united(docs, starts, starts + sizes)
    covered = {(doc, start + at) for doc, start, size in given_spans for at in range(size)}
    rows = list(zip(*(column.tolist() for column in found), strict=True))
    assert rows == sorted(rows)
    assert {(doc, word) for doc, start, end in rows for word in range(start, end)} == covered
    assert all(
        doc != other or end < start for (doc, _, end), (other, start, _) in itertools.pairwise(rows)
    )
    counted = spans.words_in(found, np.arange(4))
    assert counted.tolist() == [sum(doc == row for doc, _ in covered) for row in range(4)]


@given(st.integers(0, 2**32), WORDS, st.booleans())
def test_spans_to_cut_are_the_words_of_places_and_without_the_first_those_of_sources(
    seed, min_words, keeps_first
):
    docs = corpus(seed, min_words)
    stretches = stretches_of(docs, min_words)
    places = passage_oracle.places(docs, min_words, None, 1)
    found = spans.spans_to_cut(
        spans.listed(stretches, 1, only_against=False), min_words, 1, keeps_first=keeps_first
    )
    expected = {(place.doc, place.start + at) for place in places for at in range(place.words)}
    if not keeps_first:
        expected |= {
            (place.source, place.source_start + at)
            for place in places
            for at in range(place.words)
            if place.source >= 1
        }
    assert {
        (doc, word)
        for doc, start, end in zip(*(column.tolist() for column in found), strict=True)
        for word in range(start, end)
    } == expected
