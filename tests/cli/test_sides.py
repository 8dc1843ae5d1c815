import io

import pytest
from rich.console import Console

from neardup.cli import sides
from neardup.cli.diff import differ


def lines(text_a, text_b):
    return [line.plain for line in sides.unified(sides.fold(differ(text_a, text_b), "…"))]


def numbers(start, stop):
    return " ".join(map(str, range(start, stop)))


def test_differences_have_markers():
    assert lines("to be or not", "to see or not") == ["  to", "- be", "+ see", "  or not"]


def test_long_equal_passages_are_folded_except_some_context():
    shown = lines(f"one {numbers(0, 100)} two", f"eins {numbers(0, 100)} zwei")
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
    shown = lines(
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
    removed, *_ = lines(numbers(0, 1000), "x")
    assert removed.startswith("- 0 1 2")
    assert removed.endswith(" 149 … 850 more words …")


def test_differences_beyond_the_limit_are_counted():
    spaced = [f"{numbers(100 * n, 100 * n + 5)} {{}}{n}" for n in range(130)]
    shown = lines(" ".join(spaced).replace("{}", "a"), " ".join(spaced).replace("{}", "b"))
    assert shown[-1] == "  … 30 more places differ …"
    assert sum(line.startswith("- ") for line in shown) == sides.MAX_PLACES


@pytest.mark.parametrize("width", [80, 120])
def test_side_by_side_wraps_both_columns_within_the_terminal(width):
    text_a = " ".join(f"word{n}" for n in range(200))
    text_b = text_a.replace("word50 ", "other50 ").replace("word150 ", "")
    console = Console(width=width, record=True, file=io.StringIO(), markup=False)
    console.print(sides.beside(sides.fold(differ(text_a, text_b), "…"), "A  one", "B  two"))
    shown = console.export_text()
    assert max(map(len, shown.splitlines())) <= width
    assert "word50" in shown
    assert "other50" in shown
    assert shown.count("equal words") == 6


def test_text_that_looks_like_markup_is_shown_verbatim():
    assert lines("[bold]a[/bold]", "[red]b") == ["- [bold]a[/bold]", "+ [red]b"]
