"""The words of one text: places in the original, whatever normalisation did to it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.align.words_in_text import words_of
from neardup.config import Config

CONFIG = Config()
TEXT = "Crème brûlée, Straße; 한국어 và Việt 東京 ﬁn"


def cut(text, config=CONFIG):
    return [text[start:end] for start, end in words_of(text, config).characters.tolist()]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKD"])
def test_words_of_any_normal_form_are_equal_and_cut_from_the_original(form):
    text = unicodedata.normalize(form, TEXT)
    words = words_of(text, CONFIG)
    if form != "NFKD":
        assert words.hashes.tolist() == words_of(TEXT, CONFIG).hashes.tolist()
    assert unicodedata.normalize("NFC", cut(text)[0]) == "Crème"
    assert cut(text)[-1] == ("fin" if form == "NFKD" else "ﬁn")
    assert "".join(cut(text)) == "".join(each for each in text if each not in ",; ")


@pytest.mark.parametrize(
    ("settings", "one", "other"),
    [
        ({"fold_accents": True}, "été à Noël", "ete a Noel"),
        ({"normalise": "nfkc"}, "ﬁne ＡＢＣ", "fine ABC"),
        ({"fold_numbers": True}, "in 2024 and 7", "in 1 and 22"),
    ],
)
def test_settings_fold_words_as_in_shingles(settings, one, other):
    config = Config(**settings)
    assert words_of(one, config).hashes.tolist() == words_of(other, config).hashes.tolist()
    assert words_of(one, CONFIG).hashes.tolist() != words_of(other, CONFIG).hashes.tolist()
    assert cut(one, config) == one.split()


@given(st.text("ae\u0301\u0323\u0308 .ᄀ가\u11a8é한ﬁ", max_size=20))
def test_places_ascend_and_are_within_the_text(text):
    for config in (CONFIG, Config(normalise="nfkc"), Config(fold_accents=True)):
        words = words_of(text, config)
        places = words.characters.ravel().tolist()
        assert places == sorted(places)
        assert all(0 <= place <= len(text) for place in places)
        whole = unicodedata.normalize("NFKC" if config.normalise == "nfkc" else "NFC", text)
        if not config.fold_accents:
            assert words.hashes.tolist() == words_of(whole, config).hashes.tolist()


def test_lines_and_bytes_count_from_the_start_of_the_text():
    words = words_of("é a\n\nbé\r\nc", CONFIG)
    assert words.bounds.tolist() == [[0, 2], [3, 4], [6, 9], [11, 12]]
    assert words.characters.tolist() == [[0, 1], [2, 3], [5, 7], [9, 10]]
    assert words.lines_of(range(4)).tolist() == [1, 1, 3, 4]


def test_a_text_without_words_has_none():
    for text in ("", " \n", "…!"):
        assert words_of(text, CONFIG).hashes.size == 0


def test_invisible_characters_belong_to_the_word_around_them():
    seen = "Donaudampfschiff neu ét"
    hidden = "Donau\u00addampf\u200bschiff neu\ufeff, e\u00ad\u0301t"
    assert words_of(hidden, CONFIG).hashes.tolist() == words_of(seen, CONFIG).hashes.tolist()
    first, second, third = cut(hidden)
    assert (first, third) == ("Donau\u00addampf\u200bschiff", "e\u00ad\u0301t")
    assert second.rstrip("\ufeff") == "neu"
