"""Jaccard similarity of sets and bags; the rose sentences, worked out by hand."""

from collections import Counter

import pytest

from neardup.errors import DataError
from neardup.theory.textbook import (
    bag_jaccard,
    bag_jaccard_of_sums,
    jaccard,
    shingle_bag,
    shingle_set,
)

# A and B with their numbers are Broder's (On the resemblance and containment of documents, 1997); C
# is ours.
A = ("a", "rose", "is", "a", "rose", "is", "a", "rose")
B = ("a", "rose", "is", "a", "flower", "which", "is", "a", "rose")
C = ("a", "flower", "which", "is", "a", "rose", "is", "a", "rose")


def test_three_shared_of_eight_is_three_eighths():
    assert jaccard({1, 2, 3, 4, 5}, {3, 4, 5, 6, 7, 8}) == 3 / 8


def test_jaccard_of_the_sets_1234_2357_246_matches_the_textbook():
    first = {1, 2, 3, 4}
    second = {2, 3, 5, 7}
    third = {2, 4, 6}
    assert jaccard(first, second) == 2 / 6
    assert jaccard(first, third) == 2 / 5
    assert jaccard(second, third) == 1 / 6


def test_equal_sets_are_one_and_disjoint_sets_zero():
    assert jaccard({"x", "y"}, {"y", "x"}) == 1
    assert jaccard({"x"}, {"y"}) == 0


def test_empty_sets_are_similar_to_nothing():
    assert jaccard(set(), set()) == 0
    assert jaccard(set(), {1}) == 0
    assert bag_jaccard(Counter(), Counter()) == bag_jaccard_of_sums(Counter(), Counter()) == 0


def test_bags_aaab_and_aabbc_have_similarity_one_third_with_the_sum_as_union():
    # Shared: a twice, b once = 3. Sizes: 4 + 5 = 9.
    assert bag_jaccard_of_sums(Counter("aaab"), Counter("aabbc")) == 3 / 9


def test_bags_aaab_and_aabbc_have_similarity_one_half_by_minimum_over_maximum_counts():
    # Larger counts: a 3, b 2, c 1 = 6.
    assert bag_jaccard(Counter("aaab"), Counter("aabbc")) == 3 / 6


def test_bag_similarities_of_1112_11223_1234_with_the_sum_as_union_match_the_textbook():
    first = Counter([1, 1, 1, 2])
    second = Counter([1, 1, 2, 2, 3])
    third = Counter([1, 2, 3, 4])
    assert bag_jaccard_of_sums(first, second) == 3 / 9
    assert bag_jaccard_of_sums(first, third) == 2 / 8
    assert bag_jaccard_of_sums(second, third) == 3 / 9


def test_equal_bags_have_similarity_one_or_one_half_depending_on_the_definition():
    assert bag_jaccard(Counter("aab"), Counter("aab")) == 1
    assert bag_jaccard_of_sums(Counter("aab"), Counter("aab")) == 1 / 2


def test_bag_jaccard_is_the_jaccard_of_numbered_repetitions():
    left, right = shingle_bag(A, 2), shingle_bag(B, 2)
    numbered = [
        {(item, copy) for item, count in bag.items() for copy in range(count)}
        for bag in (left, right)
    ]
    assert bag_jaccard(left, right) == jaccard(*numbered)


def test_three_word_shingles_of_the_rose_sentences():
    shared = {("a", "rose", "is"), ("rose", "is", "a"), ("is", "a", "rose")}
    flower = {("a", "flower", "which"), ("flower", "which", "is"), ("which", "is", "a")}
    assert shingle_set(A, 3) == shared
    assert shingle_set(B, 3) == shared | flower | {("is", "a", "flower")}
    assert shingle_set(C, 3) == shared | flower


def test_rose_sentences_have_similarities_three_sevenths_one_half_and_six_sevenths():
    a, b, c = (shingle_set(sentence, 3) for sentence in (A, B, C))
    assert jaccard(a, b) == 3 / 7
    assert jaccard(a, c) == 3 / 6
    assert jaccard(b, c) == 6 / 7


@pytest.mark.parametrize(("size", "resemblance"), [(1, 3 / 5), (2, 3 / 6), (3, 3 / 7)])
def test_rose_resemblance_of_sets_is_60_50_and_43_percent(size, resemblance):
    assert jaccard(shingle_set(A, size), shingle_set(B, size)) == resemblance


@pytest.mark.parametrize(("size", "resemblance"), [(1, 7 / 10), (2, 5 / 10), (3, 3 / 10)])
def test_rose_resemblance_of_bags_is_70_50_and_30_percent(size, resemblance):
    assert bag_jaccard(shingle_bag(A, size), shingle_bag(B, size)) == resemblance


@pytest.mark.parametrize("value", ["abc", [1, 2], None])
def test_jaccard_rejects_arguments_that_are_not_sets(value):
    with pytest.raises(DataError, match="`b` must be a set, got"):
        jaccard({1}, value)


@pytest.mark.parametrize("bag", [{"a"}, "aab", Counter({"a": -1})])
def test_a_bag_without_counts_is_an_error(bag):
    for measure in (bag_jaccard, bag_jaccard_of_sums):
        with pytest.raises(DataError, match="a bag must map items to counts"):
            measure(Counter("a"), bag)
