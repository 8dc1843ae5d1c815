"""neardup.passages: the passages of two texts, with positions, shares, and the words that agree."""

from __future__ import annotations

import random
import unicodedata

import pytest

import neardup
from neardup.errors import ConfigError, DataError
from support import oracles
from support import passages as oracle

QUOTE = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house"


def test_a_quotation_is_found_with_its_positions_in_both_texts():
    a = f"Größe: so\n{QUOTE.upper()}!"
    b = f"one\n\ntwo, {QUOTE} three"
    (found,) = neardup.passages(a, b)
    assert a[found.start_a : found.end_a] == QUOTE.upper()
    assert b[found.start_b : found.end_b] == QUOTE
    assert a.encode()[found.start_byte_a : found.end_byte_a] == QUOTE.upper().encode()
    assert b.encode()[found.start_byte_b : found.end_byte_b] == QUOTE.encode()
    assert (found.line_a, found.line_b) == (2, 3)
    assert (found.words, found.similarity) == (19, 1.0)


@pytest.mark.parametrize("min_words", [1, 2, 4])
def test_passages_are_the_runs_of_the_oracle(min_words):
    rng = random.Random(min_words)
    for _ in range(40):
        a, b = (
            " ".join(rng.choice(["a", "B", "Ça", "京", "d."]) for _ in range(rng.randrange(40)))
            for _ in "ab"
        )
        words_a, words_b = (oracles.words(oracles.normalize(text)) for text in (a, b))
        found = neardup.passages(a, b, min_words=min_words)
        expected = oracle.shared_runs(words_a, words_b, min_words)
        assert [passage.words for passage in found] == [words for *_, words in expected]
        for passage, (start_a, start_b, words) in zip(found, expected, strict=True):
            own = words_a[start_a : start_a + words]
            cut = a[passage.start_a : passage.end_a], b[passage.start_b : passage.end_b]
            assert [oracles.words(oracles.normalize(text)) for text in cut] == [own, own]
            assert len(oracles.words(oracles.normalize(b[: passage.start_b]))) == start_b


@pytest.mark.parametrize("edits", [False, True])
def test_the_words_that_agree_can_be_listed_and_compared(edits):
    rng = random.Random(2)
    a = oracle.prose(rng, 400)
    b = [f"x{word}" for word in oracle.prose(rng, 100)]
    b += oracle.edited(a[100:250], rng, 0.2 if edits else 0)
    texts = " ".join(a), " ".join(b)
    found = neardup.passages(*texts, edits=edits)
    assert found
    for passage in found:
        assert len(passage.matches) == passage.words
        for start_a, end_a, start_b, end_b in passage.matches:
            assert texts[0][start_a:end_a] == texts[1][start_b:end_b]
            assert passage.start_a <= start_a < end_a <= passage.end_a
            assert passage.start_b <= start_b < end_b <= passage.end_b
        spans = texts[0][passage.start_a : passage.end_a], texts[1][passage.start_b : passage.end_b]
        num_words = sum(len(span.split()) for span in spans)
        assert passage.similarity == 2 * passage.words / num_words
    assert (found[0].similarity < 1) == edits


def test_texts_that_are_not_in_normal_form_have_positions_of_their_own():
    composed = "Öl für die Fähre, Äpfel und Öfen überall"
    decomposed = unicodedata.normalize("NFD", composed)
    (found,) = neardup.passages(decomposed, f"x {composed}")
    assert (found.start_a, found.end_a) == (0, len(decomposed))
    assert (found.start_b, found.end_b) == (2, 2 + len(composed))


def test_comparison_has_the_passages_and_the_shares_they_cover():
    a = f"{QUOTE} and more of it"
    b = f"{QUOTE} as {QUOTE}"
    plain = neardup.compare(a, b)
    assert (plain.passages, plain.share_a, plain.share_b) == (None, None, None)
    compared = neardup.compare(a, b, passages=True)
    assert [passage.words for passage in compared.passages] == [19]
    assert compared.share_a == 19 / 23
    assert compared.share_b == 19 / 39  # the leftmost place only
    assert "<table" in compared._repr_html_()
    none = neardup.compare("", "a b", passages=True)
    assert (none.passages, none.share_a, none.share_b) == ((), 0.0, 0.0)


def test_min_words_is_the_least_number_of_words():
    assert neardup.passages(QUOTE, QUOTE, min_words=20) == []
    assert len(neardup.passages(QUOTE, QUOTE, min_words=19)) == 1
    assert neardup.passages(QUOTE, QUOTE, min_words=20, edits=True) == []
    assert len(neardup.passages(QUOTE, QUOTE, min_words=19, edits=True)) == 1
    seven, eight = ("one two three four five six seven", "one two three four five six seven eight")
    assert neardup.passages(seven, seven) == []
    assert len(neardup.passages(eight, eight)) == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"min_words": 0}, "`min_words`"),
        ({"min_words": "8"}, "`min_words`"),
        ({"edits": 1}, "`edits`"),
        ({"measure": "cosine"}, "`measure`"),
        ({"passages": False, "edits": True}, "`edits` needs `passages`"),
    ],
)
def test_settings_that_do_not_apply_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        neardup.passages("a", "b", **settings)


def test_what_is_no_text_is_refused():
    with pytest.raises(DataError, match="text number 1 cannot be used"):
        neardup.passages("a", None)


def test_the_same_texts_give_the_same_passages():
    rng = random.Random(5)
    a = oracle.prose(rng, 600)
    b = oracle.prose(rng, 100) + oracle.edited(a[50:300], rng, 0.3) + oracle.prose(rng, 100)
    texts = " ".join(a), " ".join(b)
    assert neardup.passages(*texts, edits=True) == neardup.passages(*texts, edits=True)
