"""Shingles of the classic examples, written out."""

from collections import Counter

import pytest

from neardup.errors import ConfigError, DataError
from neardup.theory.textbook import shingle_bag, shingle_set

CAR = ("a", "car", "is", "a", "car", "is", "a", "car")


def test_abcdabd_has_five_shingles_of_size_two():
    assert shingle_set("abcdabd", 2) == {"ab", "bc", "cd", "da", "bd"}


def test_bag_of_abcdabd_counts_ab_twice():
    assert shingle_bag("abcdabd", 2) == Counter({"ab": 2, "bc": 1, "cd": 1, "da": 1, "bd": 1})


def test_a_car_is_a_car_has_three_distinct_shingles_of_four_words():
    assert shingle_set(CAR, 4) == {
        ("a", "car", "is", "a"),
        ("car", "is", "a", "car"),
        ("is", "a", "car", "is"),
    }


def test_a_car_is_a_car_has_five_shingles_of_four_words_as_a_bag():
    assert shingle_bag(CAR, 4) == Counter(
        {("a", "car", "is", "a"): 2, ("car", "is", "a", "car"): 2, ("is", "a", "car", "is"): 1}
    )


def test_white_space_determines_whether_touchdown_is_shared():
    plane = "The plane was ready for touch down"
    quarterback = "The quarterback scored a touchdown"
    assert {"touch dow", "ouch down"} <= shingle_set(plane, 9)
    assert shingle_set(plane, 9) & shingle_set(quarterback, 9) == set()
    without = [shingle_set(text.replace(" ", ""), 9) for text in (plane, quarterback)]
    assert without[0] & without[1] == {"touchdown"}


def test_a_document_of_n_tokens_has_at_most_n_minus_size_plus_one_shingles():
    assert len(shingle_set("abcdefghij", 3)) == 8
    assert shingle_bag("aaaaaaaaaa", 3) == Counter({"aaa": 8})


def test_tokens_may_be_anything_hashable():
    assert shingle_set([1, 2, 3, 2], 2) == {(1, 2), (2, 3), (3, 2)}


@pytest.mark.parametrize(("tokens", "size"), [("", 1), ("ab", 3), ([], 1), (["a"], 2)])
def test_fewer_tokens_than_the_size_give_no_shingle(tokens, size):
    assert shingle_set(tokens, size) == set()
    assert shingle_bag(tokens, size) == Counter()


@pytest.mark.parametrize("size", [0, -1, 2.0, True, "2"])
def test_size_must_be_a_positive_whole_number(size):
    with pytest.raises(ConfigError, match=r"`size` must be a whole number >= 1, got"):
        shingle_set("abc", size)


def test_a_set_of_tokens_has_no_order_and_is_refused():
    with pytest.raises(DataError, match="got set") as caught:
        shingle_set({"a"}, 1)
    assert "order" in caught.value.hint
