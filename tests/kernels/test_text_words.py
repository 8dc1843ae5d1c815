"""Words with their places: compiled against plain Python, and against the words of the oracle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import text_words, unicode
from neardup.kernels.keys import shingle_key
from support import oracles
from support.plain_kernels import plain

TABLE = tuple(unicode.load_table())
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")
PLAIN = plain(text_words)


def run(kernel, texts, fold_numbers=False):
    source = np.frombuffer("".join(texts).encode(), np.uint8)
    source.flags.writeable = False
    offsets = np.cumsum([0, *(len(text.encode()) for text in texts)]).astype(np.int64)
    room = source.size + len(texts)
    hashes = np.zeros(room, np.uint64)
    places = np.zeros((room, 2), np.int64)
    ends = np.zeros(len(texts) + 1, np.int64)
    is_normal = np.zeros(len(texts), np.bool_)
    kernel(source, offsets, TABLE, shingle_key(1), fold_numbers, hashes, places, ends, is_normal)
    return (
        hashes[: ends[-1]].tolist(),
        places[: ends[-1]].tolist(),
        ends.tolist(),
        is_normal.tolist(),
    )


text = st.text("aAbZ09é_É ß.,\n中文かไทИ　٣" + "x" * 5, max_size=60)


@given(st.lists(text, max_size=4), st.booleans())
def test_words_are_those_of_the_oracle_at_their_places(texts, fold_numbers):
    hashes, places, ends, is_normal = run(text_words.text_words, texts, fold_numbers)
    assert (hashes, places, ends, is_normal) == run(PLAIN.text_words, texts, fold_numbers)
    expected = [oracles.words(oracles.normalize(each), fold_numbers=fold_numbers) for each in texts]
    assert np.diff(ends).tolist() == list(map(len, expected))
    known = {}
    for word, found in zip(itertools.chain(*expected), hashes, strict=True):
        assert known.setdefault(word, found) == found
    assert len(set(known.values())) == len(known)
    for number, each in enumerate(texts):
        own = places[ends[number] : ends[number + 1]]
        cut = [each.encode()[start:end].decode() for start, end in own]
        if not fold_numbers:
            assert list(map(oracles.normalize, cut)) == expected[number]
