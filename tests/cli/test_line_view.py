"""Code and other short lines: both texts by lines, with their numbers."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from neardup.cli import line_view
from neardup.cli.diff import differ, split_words, word_lines

CODE = """def area(width, height):
    # of a rectangle
    return width * height


def volume(width, height, depth):
    return area(width, height) * depth
"""


def shown(text_a, text_b):
    rows = line_view.line_rows(text_a, text_b, differ(text_a, text_b))
    return (
        None
        if rows is None
        else [line.plain for line in line_view.unified_lines(line_view.fold_lines(rows, "…"))]
    )


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
    assert (
        shown("\n".join(lines), "\n".join(lines).replace("x ", "y "))[-1] == "  … 20 more places …"
    )


def test_prose_and_moved_line_breaks_are_compared_by_words():
    paragraph = "a paragraph that goes on and on " * 10
    assert shown(f"{paragraph}\n{paragraph}", f"{paragraph}\n{paragraph} more") is None
    words = [f"word{number}" for number in range(60)]
    wrapped = [
        "\n".join(" ".join(words[at : at + size]) for at in range(0, 60, size)) for size in (6, 7)
    ]
    assert shown(*wrapped) is None
    assert shown("one line", "another line") is None


def test_control_characters_are_escaped_and_tabs_become_spaces():
    assert shown("a\x1b[2J\tb\nsame", "c\nsame")[0] == "- 1    a\\x1b[2J   b"


def test_two_columns_stay_within_the_terminal():
    console = Console(width=80, record=True, file=io.StringIO(), markup=False)
    rows = line_view.line_rows(
        CODE, CODE.replace("area", "surface"), differ(CODE, CODE.replace("area", "surface"))
    )
    console.print(line_view.beside_lines(rows, "A  one", "B  two"))
    printed = console.export_text()
    assert max(map(len, printed.splitlines())) <= 80
    assert "def surface(width, height):" in printed


lines = st.lists(st.sampled_from(["a b", "a", "c d e", "", "灯台", "f"]), max_size=30).map(
    "\n".join
)


@given(lines, lines)
def test_a_diff_has_every_line_of_both_texts_once(text_a, text_b):
    rows = line_view.line_rows(text_a, text_b, differ(text_a, text_b))
    if rows is None:
        return
    for text, side in ((text_a, 0), (text_b, 1)):
        numbered = {row[side]: row[side + 2] for row in rows if row[side] is not None}
        assert list(numbered.items()) == list(enumerate(text.split("\n"), 1))
        assert sum(row[side] is not None for row in rows) == len(numbered)
    assert all(split_words(row.text_a) == split_words(row.text_b) for row in rows if row.is_equal)


@given(lines)
def test_every_word_has_its_line_number(text):
    expected = [
        number for number, line in enumerate(text.split("\n"), 1) for _ in split_words(line)
    ]
    assert word_lines(text).tolist() == expected
