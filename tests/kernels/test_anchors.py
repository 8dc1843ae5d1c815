"""Winnowing: compiled against plain Python, and its guarantee: every window has one anchor, of its words alone."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import anchors
from neardup.kernels.keys import shingle_key
from neardup.kernels.mixing import mix
from support.plain_kernels import plain

PLAIN = plain(anchors)


def winnow(kernel, docs, size, window, salts=None):
    """Run a kernel over documents of small numbers; return key, position, windows before, windows of every anchor."""
    ends = np.array(list(itertools.accumulate(map(len, docs), initial=0)), np.int64)
    words = np.array(list(itertools.chain(*docs)), np.uint64)
    with np.errstate(over="ignore"):
        words = mix.py_func(words)
        found = (
            np.zeros(words.size, np.uint64),
            *(np.zeros(words.size, np.int32) for _ in range(3)),
        )
        own = np.zeros(len(docs) + 1, np.int64)
        given_salts = (
            np.zeros(len(docs), np.uint64) if salts is None else np.array(salts, np.uint64)
        )
        kernel(words, ends, shingle_key(1), size, window, given_salts, found, own)
    rows = list(zip(*(column[: own[-1]].tolist() for column in found), strict=True))
    return [rows[start:stop] for start, stop in itertools.pairwise(own.tolist())]


DOCS = st.lists(st.lists(st.integers(0, 3), max_size=30), max_size=4)


@given(DOCS, st.integers(1, 4), st.integers(1, 6))
def test_compiled_anchors_are_those_of_plain_python(docs, size, window):
    assert winnow(anchors.winnow, docs, size, window) == winnow(PLAIN.winnow, docs, size, window)


@given(DOCS, st.integers(1, 4), st.integers(1, 6))
def test_every_window_has_one_anchor_and_equal_windows_have_it_at_the_same_distance(
    docs, size, window
):
    length = size + window - 1
    anchor_of = {}
    for words, found in zip(docs, winnow(anchors.winnow, docs, size, window), strict=True):
        starts = []
        for key, position, before, count in found:
            for start in range(position - before, position - before + count):
                starts.append(start)
                reach = position - start
                assert 0 <= reach <= window - 1
                chosen = anchor_of.setdefault(tuple(words[start : start + length]), (key, reach))
                assert chosen == (key, reach)
        assert starts == list(range(max(0, len(words) - length + 1)))


def test_two_of_the_grams_of_a_window_and_one_more_are_anchors():
    rng = random.Random(3)
    words = [rng.randrange(1 << 40) for _ in range(20_000)]
    [found] = winnow(anchors.winnow, [words], 16, 35)
    assert len(found) / len(words) == pytest.approx(2 / 36, rel=0.05)


def test_documents_of_other_groups_have_other_keys():
    one, two = winnow(anchors.winnow, [range(20), range(20)], 3, 5, salts=[0, 77])
    assert [key ^ 77 for key, *_ in two] == [key for key, *_ in one]
    assert [rest for _, *rest in two] == [rest for _, *rest in one]
