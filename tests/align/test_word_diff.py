import itertools
import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.align import word_diff
from neardup.align.word_diff import differ, split_words

words = st.lists(st.sampled_from(["a", "b", "c", "灯台", "lot", "x,"]), max_size=60).map(" ".join)


def check(text_a, text_b):
    """What must hold for any two texts; returns the passages."""
    passages = differ(text_a, text_b)
    assert [word for passage in passages for word in passage.words_a] == split_words(text_a)
    assert [word for passage in passages for word in passage.words_b] == split_words(text_b)
    kinds = [passage.is_equal for passage in passages]
    assert all(kind != after for kind, after in itertools.pairwise(kinds))
    for passage in passages:
        is_same = [word.strip() for word in passage.words_a] == [
            word.strip() for word in passage.words_b
        ]
        assert is_same == passage.is_equal
    return passages


def num_equal(passages):
    return sum(len(passage.words_a) for passage in passages if passage.is_equal)


@given(words, words)
def test_passages_reconstruct_both_texts(text_a, text_b):
    check(text_a, text_b)


@given(words, words, st.integers(1, 30))
def test_passages_by_anchors_reconstruct_both_texts(text_a, text_b, cells):
    before = word_diff._GAP_CELLS
    word_diff._GAP_CELLS = cells
    try:
        check(text_a, text_b)
    finally:
        word_diff._GAP_CELLS = before


def test_scripts_without_spaces_are_compared_character_by_character():
    passages = check("灯台の朝は早い", "灯台の朝は遅い")
    assert [("".join(p.words_a), "".join(p.words_b)) for p in passages if not p.is_equal] == [
        ("早", "遅")
    ]


def test_white_space_is_not_a_difference():
    assert [passage.is_equal for passage in check("to be\n\nor not", " to  be or\tnot\n")] == [True]


@pytest.mark.parametrize(
    ("text_a", "text_b", "num_passages"),
    [("", "", 0), ("", "a b", 1), ("a b", "", 1), ("a", "b", 1)],
)
def test_texts_with_nothing_in_common_differ_entirely(text_a, text_b, num_passages):
    assert len(check(text_a, text_b)) == num_passages


def test_moved_text_aligns_on_the_longest_common_run():
    long = [f"l{n}" for n in range(500)]
    short = [f"s{n}" for n in range(300)]
    assert num_equal(check(" ".join(long + short), " ".join(short + long))) == 500


def test_scattered_edits_of_a_large_text_are_found_in_seconds():
    chance = random.Random(1)
    vocabulary = [f"word{number}" for number in range(5000)]
    before = [chance.choice(vocabulary) for _ in range(200_000)]
    after = [chance.choice(vocabulary) if chance.random() < 0.02 else word for word in before]
    began = time.process_time()
    passages = check(" ".join(before), " ".join(after))
    assert num_equal(passages) >= 195_000
    assert time.process_time() - began < 15


@pytest.mark.parametrize("num_words", [100_000])
def test_texts_with_few_distinct_words_are_compared_quickly(num_words):
    chance = random.Random(2)
    began = time.process_time()
    check("spam " * num_words, "spam " * (num_words // 2) + "egg " + "spam " * (num_words // 3))
    check(*(" ".join(chance.choices("abc", k=num_words)) for _ in "ab"))
    assert time.process_time() - began < 15


def test_words_that_differ_in_invisible_characters_are_equal():
    text = "Die Donau\u00addampf\u00adschiff\u00adfahrt beginnt"
    assert num_equal(differ(text, "Die Donaudampfschifffahrt\u200b beginnt")) == 3
