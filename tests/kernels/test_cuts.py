"""Cutting words out of texts: compiled against plain Python, and what becomes of the characters next to them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import cuts, unicode, words
from support.plain_kernels import plain

TABLE = tuple(unicode.load_table())
PLAIN = plain(cuts)


def run(kernel, text, spans):
    source = np.frombuffer(text.encode(), np.uint8)
    source.flags.writeable = False
    out = np.zeros(source.size + len(spans), np.uint8)
    offsets = np.zeros(2, np.int64)
    starts, stops = (np.array([span[side] for span in spans], np.int64) for side in (0, 1))
    kernel(
        source,
        np.array([0, source.size]),
        starts,
        stops,
        np.array([0, len(spans)]),
        TABLE,
        out,
        offsets,
    )
    return out[: offsets[1]].tobytes().decode()


def places_of(text):
    """First byte of every word of a text, and the byte behind it."""
    source = np.frombuffer(text.encode(), np.uint8)
    source.flags.writeable = False
    edges = np.zeros(2 * source.size + 2, np.int64)
    ends = np.zeros(2, np.int64)
    words.locate_words(source, np.array([0, source.size]), TABLE, edges, ends)
    return list(map(tuple, edges[: 2 * ends[1]].reshape(-1, 2).tolist()))


def words_of(text):
    return [text.encode()[start:stop].decode() for start, stop in places_of(text)]


@pytest.mark.parametrize(
    ("text", "gone", "left"),
    [
        ("Our policy. Accept cookies. Next one", [(2, 4)], "Our policy. Next one"),
        ("a b c", [(0, 1)], "b c"),
        ("a b c", [(2, 3)], "a b"),
        ("a b c.", [(0, 3)], ""),
        ("one\n\ntwo three\nfour", [(1, 3)], "one\n\nfour"),
        ("one  two three four", [(1, 2)], "one  three four"),
        ("foo-bar-baz", [(1, 2)], "foo baz"),
        ("東京都は大きい", [(2, 4)], "東京大きい"),
        ("a b c d e", [(1, 2), (3, 4)], "a c e"),
        ("a (b) c", [(1, 2)], "a c"),
        ("a b\n", [(1, 2)], "a"),
        ("  a b", [(0, 1)], "b"),
        ("é ü ö", [(1, 2)], "é ö"),
        ("# licence\n# text\ncode = 1", [(0, 2)], "code = 1"),
        ("code\n  /* licence */ \ncode", [(1, 2)], "code\ncode"),
        ("code /* licence */\ncode", [(1, 2)], "code /*\ncode"),
        ("a - b - c - d", [(1, 2), (2, 3)], "a - - d"),
        ("nothing to cut ", [], "nothing to cut "),
    ],
)
def test_white_space_and_marks_around_a_cut_are_mended(text, gone, left):
    places = places_of(text)
    spans = [(places[first][0], places[stop - 1][1]) for first, stop in gone]
    assert run(cuts.cut_texts, text, spans) == left


@given(st.text(st.sampled_from("abé東 \n\u3000.-"), max_size=40), st.data())
def test_exactly_the_words_of_the_spans_go_and_no_words_are_joined(text, drawn):
    places = places_of(text)
    is_cut = drawn.draw(st.lists(st.booleans(), min_size=len(places), max_size=len(places)))
    spans = [place for place, gone in zip(places, is_cut, strict=True) if gone]
    left = run(cuts.cut_texts, text, spans)
    assert words_of(left) == [
        word for word, gone in zip(words_of(text), is_cut, strict=True) if not gone
    ]
    assert left == run(PLAIN.cut_texts, text, spans)
