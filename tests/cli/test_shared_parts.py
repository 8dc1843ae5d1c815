"""The passages that two mostly different texts share, in any order."""

from __future__ import annotations

import random
import time

import neardup
from neardup.align.word_diff import differ
from neardup.cli.shared_parts import is_mostly_different, list_passages, list_shared

QUOTE = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house"


def made(seed, num_words):
    rng = random.Random(seed)
    return " ".join(f"w{rng.randrange(5000)}" for _ in range(num_words))


def test_a_quotation_is_found_with_its_line_numbers():
    text_a, text_b = (
        f"{made(1, 50)}\n{QUOTE}\n{made(2, 30)}",
        f"{made(3, 40)}\n{made(4, 9)}\n{made(5, 9)}\n{QUOTE}",
    )
    assert is_mostly_different(differ(text_a, text_b))
    assert list(list_shared((text_a, text_b), "…")) == [
        "The texts are mostly different. They share 1 passage of 19 words, the longest first:",
        "",
        "  19 words: A line 2, B line 4",
        f"    {QUOTE}",
    ]


def test_moved_passages_are_listed_longest_first():
    first = made(1, 30)
    second = made(2, 80)
    third = made(3, 12)
    texts = f"{first} x {second} y {third}", f"{third} p {second} q {first}"
    listed = list(list_shared(texts, "…"))
    assert [line for line in listed if line.startswith("  ") and not line.startswith("    ")] == [
        "  80 words: A line 1, B line 1",
        "  30 words: A line 1, B line 1",
        "  12 words: A line 1, B line 1",
    ]
    assert listed[-1] == f"    {third}"


def test_shared_code_keeps_its_lines():
    code = "def area(width, height):\n    # of a rectangle, in square metres\n    return width * height"
    texts = f"{made(1, 80)}\n{code}\n{made(2, 40)}", f"{code}\n{made(3, 90)}"
    assert list(list_shared(texts, "…"))[2:] == [
        "  13 words: A lines 2-4, B lines 1-3",
        "    2  def area(width, height):",
        "    3      # of a rectangle, in square metres",
        "    4      return width * height",
    ]


def test_long_and_numerous_passages_are_truncated_and_counted():
    shared = [made(seed, 60) for seed in range(25)]
    listed = list(list_shared((" x ".join(shared), " y ".join(reversed(shared))), "…"))
    assert (
        listed[0]
        == "The texts are mostly different. They share 25 passages of 1,500 words, the longest first:"
    )
    assert listed[3].endswith(" … 20 more words …")
    assert listed[-1] == "  … 5 shorter passages …"


def test_a_passage_with_edits_is_shown_as_it_is_in_both_texts():
    changed = QUOTE.replace("morning", "day").replace("second", "third")
    (passage,) = neardup.passages(QUOTE, f"so: {changed}", min_words=10, edits=True)
    assert list(list_passages([passage], (QUOTE, f"so: {changed}"), "…")) == [
        "",
        "  17 words, similarity 0.89: A line 1, B line 1",
        "  A",
        f"    {QUOTE}",
        "  B",
        f"    {changed}",
    ]


def test_texts_without_common_shingles_are_reported():
    assert list(list_shared((made(1, 100), "other " * 100), "…")) == [
        "They share no run of 5 words."
    ]


def test_short_and_mostly_equal_texts_are_shown_in_full():
    assert not is_mostly_different(differ("one two three", "four five six"))
    assert not is_mostly_different(differ(made(1, 100), f"{made(1, 100)} {made(2, 90)}"))
    assert is_mostly_different(differ(made(1, 100), f"{made(1, 100)} {made(2, 110)}"))


def test_texts_that_repeat_one_word_are_compared_quickly():
    began = time.process_time()
    list(list_shared(("spam " * 100_000, "spam " * 50_000 + "egg " + "spam " * 40_000), "…"))
    assert time.process_time() - began < 15
