"""Words of texts: hashes and places, compiled against plain Python and against the oracle."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import shingle, unicode, words
from neardup.kernels.keys import shingle_key
from support import oracles
from support.plain_kernels import plain

TABLE = tuple(unicode.load_table())
PLAIN = plain(words)
VOCABULARY = """
the Harbour don't e-mail x² 7 2024 ab1234567890123456789 internationalisierung Café straße ſharp İstanbul ΣΟΦΌΣ
العربية ١٢٣ हिन्दी ไทย 東京 カード ひらがな 한국어 😀 𝒳 𠀀
""".split()
BLANKS = (" ", "  ", "\n", "\u3000", ", ", "", " – ")


def readonly(data):
    source = np.frombuffer(data, np.uint8)
    source.flags.writeable = False
    return source


def hashed(kernel, data, offsets, *, fold_numbers=False):
    found = np.zeros(len(data) // 2 + len(offsets), np.uint64)
    ends = np.zeros(len(offsets), np.int64)
    is_normal = np.zeros(len(offsets) - 1, np.bool_)
    source = readonly(data)
    with np.errstate(over="ignore"):
        kernel(
            source,
            np.array(offsets, np.int64),
            TABLE,
            shingle_key(1),
            fold_numbers,
            found,
            ends,
            is_normal,
        )
    return found[: ends[-1]].tolist(), ends.tolist(), is_normal.tolist()


def located(kernel, data, offsets):
    edges = np.zeros(2 * len(data) + 2, np.int64)
    ends = np.zeros(len(offsets), np.int64)
    kernel(readonly(data), np.array(offsets, np.int64), TABLE, edges, ends)
    found = edges[: 2 * ends[-1]].tolist()
    return found[0::2], found[1::2], ends.tolist()


def joined(texts):
    documents = [text.encode() for text in texts]
    return b"".join(documents), list(itertools.accumulate(map(len, documents), initial=0))


def random_texts(seed, count=5, most=120):
    rng = random.Random(seed)
    return [
        "".join(rng.choice(VOCABULARY) + rng.choice(BLANKS) for _ in range(rng.randrange(most)))
        for _ in range(count)
    ]


@given(
    st.lists(st.text(st.sampled_from("aZ9éß東İ\u0301\u00ad\u200b .,\n"), max_size=90), max_size=3),
    st.booleans(),
)
def test_compiled_hashes_and_places_are_those_of_plain_python(texts, fold_numbers):
    data, offsets = joined(texts)
    assert hashed(words.hash_words, data, offsets, fold_numbers=fold_numbers) == hashed(
        PLAIN.hash_words, data, offsets, fold_numbers=fold_numbers
    )
    assert located(words.locate_words, data, offsets) == located(PLAIN.locate_words, data, offsets)


@given(st.binary(max_size=80))
def test_invalid_bytes_give_as_many_words_as_places(data):
    _, ends, _ = hashed(words.hash_words, data, [0, len(data)])
    assert located(words.locate_words, data, [0, len(data)])[2] == ends


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("fold_numbers", [False, True])
def test_hashes_name_the_words_of_the_oracle_and_places_are_where_they_stand(seed, fold_numbers):
    texts = [oracles.normalize(text) for text in random_texts(seed)]
    data, offsets = joined(texts)
    found, ends, _ = hashed(words.hash_words, data, offsets, fold_numbers=fold_numbers)
    starts, stops, places = located(words.locate_words, data, offsets)
    expected = [oracles.words(text, fold_numbers=fold_numbers) for text in texts]
    assert np.diff(ends).tolist() == [len(document) for document in expected]
    assert places == ends
    named = set(zip(itertools.chain(*expected), found, strict=True))
    assert len(named) == len({word for word, _ in named}) == len({value for _, value in named})
    for doc, text in enumerate(texts):
        own = slice(ends[doc], ends[doc + 1])
        content = text.encode()
        standing = [
            content[start:stop].decode()
            for start, stop in zip(starts[own], stops[own], strict=True)
        ]
        assert ["".join(oracles.words(word)) for word in standing] == oracles.words(text)


def test_a_word_has_the_hash_that_shingles_of_one_word_combine():
    data, offsets = joined(["one two, three ONE"])
    found, _, _ = hashed(words.hash_words, data, offsets)
    shingles = np.zeros(20, np.uint64)
    ends = np.zeros(2, np.int64)
    is_normal = np.zeros(1, np.bool_)
    shingle.shingle_words(
        readonly(data),
        np.array(offsets),
        TABLE,
        1,
        shingle_key(1),
        False,
        shingles,
        ends,
        is_normal,
    )
    of_words = dict(zip(found, shingles[: ends[-1]].tolist(), strict=True))
    assert len(of_words) == len(set(of_words.values())) == 3
    assert found[0] == found[3]


def test_a_text_that_is_not_in_normal_form_is_reported():
    data, offsets = joined(["cafe\u0301", "café", "plain"])
    assert hashed(words.hash_words, data, offsets)[2] == [False, True, True]


@given(
    st.lists(st.text(st.sampled_from("aé\n東😀"), max_size=20), min_size=1, max_size=3), st.data()
)
def test_code_points_and_lines_before_a_byte_are_those_of_python(texts, drawn):
    data, offsets = joined(texts)
    bounds = []
    ends = [0]
    expected = []
    for text in texts:
        cuts = sorted(drawn.draw(st.lists(st.integers(0, len(text)), max_size=4)))
        bounds += [len(text[:cut].encode()) for cut in cuts]
        expected += [(cut, text[:cut].count("\n")) for cut in cuts]
        ends.append(len(bounds))
    for kernel in (words.count_before, PLAIN.count_before):
        points = np.zeros(len(bounds), np.int64)
        lines = np.zeros(len(bounds), np.int64)
        kernel(
            readonly(data),
            np.array(offsets),
            np.array(bounds, np.int64),
            np.array(ends),
            points,
            lines,
        )
        assert list(zip(points.tolist(), lines.tolist(), strict=True)) == expected


@given(st.binary(max_size=20), st.data())
def test_pieces_of_a_buffer_are_copied_end_to_end(data, drawn):
    cuts = drawn.draw(st.lists(st.tuples(*[st.integers(0, len(data))] * 2).map(sorted), max_size=5))
    ends = np.cumsum([0, *(stop - start for start, stop in cuts)], dtype=np.int64)
    for kernel in (words.gather_bytes, PLAIN.gather_bytes):
        gathered = np.zeros(ends[-1], np.uint8)
        kernel(readonly(data), np.array([start for start, _ in cuts], np.int64), ends, gathered)
        assert gathered.tobytes() == b"".join(data[start:stop] for start, stop in cuts)


@pytest.mark.parametrize(
    ("text", "standing"),
    [
        ("co\u00adop shop", ["co\u00adop", "shop"]),
        ("\u200bone\u00ad two\ufeff", ["one", "two"]),
        ("x" * 62 + "\u00ad " + "y" * 70, ["x" * 62, "y" * 70]),
        ("x" * 62 + "\u00ad" + "y" * 70, ["x" * 62 + "\u00ad" + "y" * 70]),
        ("z\u00ad" + " " * 64 + "w", ["z", "w"]),
    ],
)
def test_invisible_characters_stand_in_words_and_not_at_their_ends(text, standing):
    data, offsets = joined([text])
    for kernels in (words, PLAIN):
        starts, stops, ends = located(kernels.locate_words, data, offsets)
        spans = zip(starts, stops, strict=True)
        assert [data[start:stop].decode() for start, stop in spans] == standing
    assert hashed(words.hash_words, data, offsets)[1] == ends
