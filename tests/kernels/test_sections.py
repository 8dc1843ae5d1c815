"""Sections of texts: compiled against plain Python."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import sections
from neardup.kernels.unicode import load_table
from support.plain_kernels import plain

PLAIN = plain(sections)
TEXTS = st.lists(
    st.text(st.sampled_from("ab \n\r\t.\u3000é\x00日"), max_size=20), min_size=1, max_size=4
)


def joined(texts):
    encoded = [text.encode() for text in texts]
    source = np.frombuffer(b"".join(encoded), np.uint8)
    offsets = np.array(list(itertools.accumulate(map(len, encoded), initial=0)), np.int64)
    return source, offsets


def split(module, texts, *, by_line):
    source, offsets = joined(texts)
    room = sum(text.count("\n") for text in texts) + len(texts)
    columns = tuple(np.zeros(room, np.int32) for _ in range(7))
    ends = np.zeros(len(texts) + 1, np.int64)
    module.split_texts(source, offsets, tuple(load_table()), by_line, columns, ends)
    return [column[: ends[-1]].tolist() for column in columns], ends.tolist()


@given(TEXTS, st.booleans())
def test_compiled_sections_are_those_of_plain_python(texts, by_line):
    assert split(sections, texts, by_line=by_line) == split(PLAIN, texts, by_line=by_line)


@given(TEXTS, st.booleans())
def test_sections_and_gaps_make_up_a_text(texts, by_line):
    columns, ends = split(sections, texts, by_line=by_line)
    for text, first, stop in zip(texts, ends, ends[1:], strict=False):
        starts, stops, befores, behinds, points, point_stops, lines = (
            column[first:stop] for column in columns
        )
        for before, behind in itertools.pairwise(range(len(starts))):
            assert stops[before] + behinds[before] == starts[behind]
            assert befores[behind] == behinds[before]
        for number, (start, end) in enumerate(zip(points, point_stops, strict=True)):
            assert len(text[:start].encode()) == starts[number]
            assert len(text[:end].encode()) == stops[number]
            assert text[:start].count("\n") == lines[number]
        if starts:
            assert befores[0] == starts[0]
            assert stops[-1] + behinds[-1] == len(text.encode())


@given(st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=3))
def test_spans_are_dropped_as_in_plain_python(bounds):
    texts = ["0123456789" for _ in bounds]
    source, offsets = joined(texts)
    starts = []
    stops = []
    ends = [0]
    expected = []
    for text, own in zip(texts, bounds, strict=True):
        cuts = sorted(set(own))
        cuts = cuts[: len(cuts) // 2 * 2]
        starts += cuts[::2]
        stops += cuts[1::2]
        ends.append(len(starts))
        spans = zip(cuts[::2], cuts[1::2], strict=True)
        gone = {at for start, stop in spans for at in range(start, stop)}
        expected.append("".join(digit for at, digit in enumerate(text) if at not in gone))
    for module in (sections, PLAIN):
        out = np.zeros(source.size, np.uint8)
        out_offsets = np.zeros(len(texts) + 1, np.int64)
        spans = (np.array(column, np.int64) for column in (starts, stops, ends))
        module.drop_spans(source, offsets, *spans, out, out_offsets)
        pieces = itertools.pairwise(out_offsets.tolist())
        assert [out[begin:end].tobytes().decode() for begin, end in pieces] == expected
