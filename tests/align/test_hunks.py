"""The hunks of two texts: every differing word is in one of them, or counted."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from neardup.align import hunks as module
from neardup.align.hunks import find_hunks
from neardup.align.word_diff import differ, find_words, split_words

WORDS = ["to", "be", "or", "not", "灯台", "so,", "x" * 30]
texts = st.lists(st.sampled_from(WORDS), max_size=300).map(" ".join)


def differing(text_a, text_b):
    """The differing words of both texts."""
    places = [place for place in differ(text_a, text_b) if not place.is_equal]
    return tuple(
        [word.strip() for place in places for word in getattr(place, f"words_{side}")]
        for side in "ab"
    )


def check(text_a, text_b, **settings):
    """What must hold for any two texts; returns the hunks."""
    found = find_hunks(text_a, text_b, **settings)
    shown = ([], [])
    end_a = end_b = 0
    num_equal = found.skipped
    for hunk in found.hunks:
        assert end_a <= hunk.start_a <= hunk.stop_a <= len(text_a)
        assert end_b <= hunk.start_b <= hunk.stop_b <= len(text_b)
        end_a, end_b = hunk.stop_a, hunk.stop_b
        parts = text_a[hunk.start_a : hunk.stop_a], text_b[hunk.start_b : hunk.stop_b]
        for side, words in zip(shown, differing(*parts), strict=True):
            side += words
        num_equal += hunk.skipped + len(split_words(parts[0])) - len(differing(*parts)[0])
    words_a, words_b = differing(text_a, text_b)
    # Of a hunk alone, other words may be matched, but as many differ.
    assert len(shown[0]) + found.left_out_a == len(words_a)
    assert len(shown[1]) + found.left_out_b == len(words_b)
    assert num_equal + len(words_a) == len(split_words(text_a))
    return found


@given(texts, texts, st.sampled_from([0, 20, 200, 30_000]))
def test_every_differing_word_is_in_a_hunk_or_counted(text_a, text_b, max_characters):
    found = find_hunks(text_a, text_b, max_characters=max_characters)
    num_a, num_b = map(len, differing(text_a, text_b))
    if max_characters == 30_000:
        assert (found.left_out_a, found.left_out_b) == (0, 0)
    assert found.left_out_a <= num_a
    assert found.left_out_b <= num_b


def edited(seed, num_words, num_edits):
    chance = random.Random(seed)
    words = [f"w{chance.randrange(10**6)}" for _ in range(num_words)]
    changed = list(words)
    for place in sorted(chance.sample(range(num_words), num_edits), reverse=True):
        changed[place : place + 1] = chance.choice([[], ["new"], [changed[place], "more", "words"]])
    return " ".join(words), "\n".join(changed)


def test_edits_of_long_texts_are_shown_with_their_surroundings():
    for seed in range(10):
        text_a, text_b = edited(seed, 5_000, 8)
        found = check(text_a, text_b)
        assert (found.left_out_a, found.left_out_b) == (0, 0)
        assert sum(hunk.stop_a - hunk.start_a for hunk in found.hunks) < len(text_a) / 5
        assert all(hunk.skipped for hunk in found.hunks[1:])


def test_what_has_no_room_is_counted():
    text_a, text_b = edited(3, 3_000, 900)
    found = check(text_a, text_b, max_characters=2_000)
    assert found.left_out_a + found.left_out_b > 500
    assert found.hunks


def test_equal_texts_have_no_hunk():
    assert find_hunks("to be", "to  be") == ([], 2, 0, 0)
    assert find_hunks("", "") == ([], 0, 0, 0)
    assert find_hunks("", "to be").hunks == [(0, 0, 0, 0, 5)]


def test_a_word_of_a_megabyte_is_no_surrounding():
    long = f"{'x' * 10**6} end"
    found = find_hunks(f"begin {long}", f"begin {long} tail")
    assert found == ([(2, 1_000_007, 1_000_010, 1_000_007, 1_000_015)], 0, 0, 0)
    other = find_hunks(f"begin {'x' * 10**6} end", f"begin {'y' * 10**6} end")
    assert other == ([], 2, 1, 1)


def test_words_stand_where_they_are_found():
    text = " to  be\n灯台\tso"
    assert [text[start:stop] for start, stop in find_words(text).tolist()] == [
        "to",
        "be",
        "灯",
        "台",
        "so",
    ]


def test_neighbouring_places_share_a_hunk():
    words = [f"w{number}" for number in range(400)]
    near = list(words)
    near[100], near[100 + 2 * module.AROUND] = "one", "other"
    assert len(find_hunks(" ".join(words), " ".join(near)).hunks) == 1
    near[300] = "third"
    assert len(find_hunks(" ".join(words), " ".join(near)).hunks) == 2
