"""Code and other short lines by lines, with their numbers; prose by words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from neardup.align.word_diff import differ, differ_by_lines, split_words, word_lines
from neardup.cli import line_view

CODE = """def area(width, height):
    # of a rectangle
    return width * height


def volume(width, height, depth):
    return area(width, height) * depth
"""


def shown(text_a, text_b):
    passages = line_view.by_lines(text_a, text_b, differ(text_a, text_b))
    if passages is None:
        return None
    folded = line_view.fold(passages, line_view.LINES, "…")
    return [line.plain for line in line_view.draw_lines(folded, "…")]


def shown_words(text_a, text_b):
    folded = line_view.fold(differ(text_a, text_b), line_view.WORDS, "…")
    return [line.plain for line in line_view.draw_words(folded, (text_a, text_b), "…")]


def numbers(start, stop):
    return " ".join(map(str, range(start, stop)))


def test_code_keeps_line_breaks_indentation_and_line_numbers():
    assert shown(
        CODE, CODE.replace("    # of a rectangle\n", "").replace("* depth", "* abs(depth)")
    ) == [
        "  1 1  def area(width, height):",
        "- 2        # of a rectangle",
        "  3 2      return width * height",
        "  4 3",
        "  5 4",
        "  6 5  def volume(width, height, depth):",
        "- 7        return area(width, height) * depth",
        "+   6      return area(width, height) * abs(depth)",
        "  8 7",
    ]


def test_long_equal_passages_are_folded_and_counted():
    lines = [f"line {number}" for number in range(1, 41)]
    other = [*lines[:19], "another one", *lines[20:]]
    assert shown("\n".join(lines), "\n".join(other)) == [
        "  … 16 equal lines …",
        "  17 17  line 17",
        "  18 18  line 18",
        "  19 19  line 19",
        "- 20     line 20",
        "+    20  another one",
        "  21 21  line 21",
        "  22 22  line 22",
        "  23 23  line 23",
        "  … 17 equal lines …",
    ]


def test_long_and_numerous_differences_are_truncated_and_counted():
    removed = "\n".join(f"only here {number}" for number in range(100))
    assert shown(f"same\n{removed}\nend line", "same\nend line")[-2:] == [
        "  … 40 more lines …",
        "  102   2  end line",
    ]
    lines = [f"{'x' if number % 3 == 0 else 'same'} {number}" for number in range(360)]
    *_, last = shown("\n".join(lines), "\n".join(lines).replace("x ", "y "))
    assert last == "  … 20 more places differ …"


def test_prose_and_moved_line_breaks_are_compared_by_words():
    paragraph = "a paragraph that goes on and on " * 10
    assert shown(f"{paragraph}\n{paragraph}", f"{paragraph}\n{paragraph} more") is None
    words = [f"word{number}" for number in range(60)]
    wrapped = [
        "\n".join(" ".join(words[at : at + size]) for at in range(0, 60, size)) for size in (6, 7)
    ]
    assert shown(*wrapped) is None
    assert shown("one line", "another line") is None


def test_tabs_become_spaces_and_very_long_lines_are_cut():
    assert shown("a\tb\nc\nd", "a\tb\nc\ne")[0] == "  1 1  a   b"
    many = "short\n" * 20
    *_, removed, added = shown(f"{many}{'x' * 500}", f"{many}same")
    assert removed.endswith("x (100 more)")
    assert added == "+    21  same"


lines = st.lists(st.sampled_from(["a b", "a", "c d e", "", "灯台", "f"]), max_size=30).map(
    "\n".join
)


@given(lines, lines)
def test_a_diff_by_lines_has_every_line_of_both_texts_once(text_a, text_b):
    passages = differ_by_lines(text_a, text_b)
    assert [line for passage in passages for line in passage.words_a] == text_a.split("\n")
    assert [line for passage in passages for line in passage.words_b] == text_b.split("\n")
    for passage in passages:
        words_a, words_b = (
            [line.split() for line in side] for side in (passage.words_a, passage.words_b)
        )
        assert (words_a == words_b) == passage.is_equal


@given(lines)
def test_every_word_has_its_line_number(text):
    expected = [
        number for number, line in enumerate(text.split("\n"), 1) for _ in split_words(line)
    ]
    assert word_lines(text).tolist() == expected


def test_differences_have_markers():
    assert shown_words("to be or not", "to see or not") == ["  to", "- be", "+ see", "  or not"]


def test_long_equal_passages_of_words_are_folded_except_some_context():
    shown = shown_words(f"one {numbers(0, 100)} two", f"eins {numbers(0, 100)} zwei")
    assert shown == [
        "- one",
        "+ eins",
        "  0 1 2 3 4 5 6 7",
        "  … 84 equal words …",
        "  92 93 94 95 96 97 98 99",
        "- two",
        "+ zwei",
    ]


def test_equal_passages_at_both_ends_are_folded_from_the_outside():
    shown = shown_words(
        f"{numbers(0, 50)} x {numbers(50, 100)}", f"{numbers(0, 50)} y {numbers(50, 100)}"
    )
    assert shown == [
        "  … 42 equal words …",
        "  42 43 44 45 46 47 48 49",
        "- x",
        "+ y",
        "  50 51 52 53 54 55 56 57",
        "  … 42 equal words …",
    ]


def test_a_long_difference_is_truncated_and_counted():
    removed, *_ = shown_words(numbers(0, 1000), "x")
    assert removed.startswith("- 0 1 2")
    assert removed.endswith(" 149 … 850 more words …")


def test_differences_beyond_the_limit_are_counted():
    spaced = [f"{numbers(100 * n, 100 * n + 5)} {{}}{n}" for n in range(130)]
    shown = shown_words(" ".join(spaced).replace("{}", "a"), " ".join(spaced).replace("{}", "b"))
    assert shown[-1] == "  … 30 more places differ …"
    assert sum(line.startswith("- ") for line in shown) == line_view.MAX_DIFFERENCES


def test_text_that_looks_like_markup_is_shown_verbatim():
    assert shown_words("[bold]a[/bold]", "[red]b") == ["- [bold]a[/bold]", "+ [red]b"]
