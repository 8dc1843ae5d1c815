"""Two texts line by line, with line numbers: lines that differ, some context, and notes about what was folded."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from neardup.cli.diff import Numbers, Passage, word_lines
from neardup.cli.sides import MAX_PLACES, STYLE_A, STYLE_B
from neardup.cli.visible import visible

CONTEXT_LINES: Final = 3
# Nobody reads more of one difference on a terminal; omitted lines are counted.
MAX_LINES: Final = 60
MAX_CHARACTERS: Final = 400
# Lines of code and verse are short; those of prose hold a paragraph, and differ in a word.
LONG_LINE: Final = 160
_MAX_LINES: Final = 0.9
# Where most words are equal and most lines are not, line breaks have moved.
_REFLOWED_WORDS: Final = 0.8


class Row(NamedTuple):
    """A line of each text, equal or different, or (with `note`) an omission; number None: no such line."""

    number_a: int | None = None
    number_b: int | None = None
    text_a: str = ""
    text_b: str = ""
    is_equal: bool = True
    note: str = ""


def line_rows(text_a: str, text_b: str, passages: list[Passage]) -> list[Row] | None:
    """Return the lines of both texts side by side; None if a word-by-word view is clearer."""
    lines_a, lines_b = text_a.split("\n"), text_b.split("\n")
    if min(len(lines_a), len(lines_b)) < 2 or not _are_short(lines_a) or not _are_short(lines_b):
        return None
    matched = _match_lines(word_lines(text_a), word_lines(text_b), passages)
    num_words = sum(max(len(passage.words_a), len(passage.words_b)) for passage in passages)
    num_equal = sum(len(passage.words_a) for passage in passages if passage.is_equal)
    num_lines = max(sum(map(bool, map(str.strip, lines))) for lines in (lines_a, lines_b))
    if 2 * len(matched) < num_lines and num_equal > _REFLOWED_WORDS * num_words:
        return None
    return list(_aligned(lines_a, lines_b, matched))


def fold_lines(rows: Iterable[Row], ellipsis: str) -> Iterator[Row]:
    """Shorten runs of equal lines and long differences; every omission is counted."""
    runs = [
        (is_equal, list(run))
        for is_equal, run in itertools.groupby(rows, key=lambda row: row.is_equal)
    ]
    places = 0
    for number, (is_equal, run) in enumerate(runs):
        if is_equal:
            yield from _fold_equal(run, number == 0, number == len(runs) - 1, ellipsis)
            continue
        if places == MAX_PLACES:
            left = sum(not is_equal for is_equal, _ in runs[number:])
            yield Row(note=f"{ellipsis} {left:,} more place{'s'[: left != 1]} {ellipsis}")
            return
        places += 1
        yield from run[:MAX_LINES]
        if len(run) > MAX_LINES:
            yield Row(note=f"{ellipsis} {len(run) - MAX_LINES:,} more lines {ellipsis}")


def unified_lines(rows: Iterable[Row]) -> Iterator[Text]:
    """One line each: the numbers in both texts, then the line; minus for the first text, plus for the second."""
    shown = list(rows)
    width = max(
        [len(str(number)) for row in shown for number in row[:2] if number is not None], default=1
    )
    for is_equal, run in itertools.groupby(shown, key=lambda row: row.is_equal):
        for row in (held := list(run)):
            if row.note:
                yield Text(f"  {row.note}", "dim")
            elif is_equal:
                yield Text(
                    f"  {_padded(row.number_a, width)} {_padded(row.number_b, width)}  {_line(row.text_a)}".rstrip()
                )
        if is_equal:
            continue
        for row in held:
            if row.number_a is not None:
                yield Text(
                    f"- {row.number_a:>{width}} {'':>{width}}  {_line(row.text_a)}".rstrip(),
                    STYLE_A,
                )
        for row in held:
            if row.number_b is not None:
                yield Text(
                    f"+ {'':>{width}} {row.number_b:>{width}}  {_line(row.text_b)}".rstrip(),
                    STYLE_B,
                )


def beside_lines(rows: Iterable[Row], title_a: str, title_b: str) -> Table:
    """Two columns of lines with their numbers; a line that differs is coloured."""
    table = Table(box=box.MINIMAL, expand=True)
    for title in (title_a, title_b):
        table.add_column("", justify="right", no_wrap=True)
        table.add_column(Text(title), ratio=1, overflow="fold")
    for row in rows:
        if row.note:
            table.add_row("", Text(row.note, "dim"), "", Text(row.note, "dim"))
            continue
        styles = ("", "") if row.is_equal else (STYLE_A, STYLE_B)
        table.add_row(
            *(_padded(row.number_a, 1), Text(_line(row.text_a), styles[0])),
            *(_padded(row.number_b, 1), Text(_line(row.text_b), styles[1])),
        )
    return table


def _padded(number: int | None, width: int) -> str:
    return f"{'' if number is None else number:>{width}}"


def _line(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        cut = text
    else:
        cut = f"{text[:MAX_CHARACTERS]} ({len(text) - MAX_CHARACTERS:,} more)"
    return visible(cut.expandtabs(4))


def _are_short(lines: list[str]) -> bool:
    used = [line for line in lines if line.strip()]
    return sum(len(line) <= LONG_LINE for line in used) >= _MAX_LINES * len(used)


def _match_lines(
    lines_a: Numbers, lines_b: Numbers, passages: list[Passage]
) -> list[tuple[int, int]]:
    """The lines, from 0, whose words are exactly the words of one line of the other text."""
    partner = np.full(lines_a.size, -1, np.int64)
    at_a = at_b = 0
    for passage in passages:
        if passage.is_equal:
            partner[at_a : at_a + len(passage.words_a)] = np.arange(
                at_b, at_b + len(passage.words_b)
            )
        at_a, at_b = at_a + len(passage.words_a), at_b + len(passage.words_b)
    numbers_a, starts_a, sizes_a = np.unique(lines_a, return_index=True, return_counts=True)
    numbers_b, starts_b, sizes_b = np.unique(lines_b, return_index=True, return_counts=True)
    whole_b = {
        start: (size, number - 1) for start, size, number in _zipped(starts_b, sizes_b, numbers_b)
    }
    matched = []
    for start, size, number in _zipped(starts_a, sizes_a, numbers_a):
        first = int(partner[start])
        found = whole_b.get(first)
        if (
            found
            and found[0] == size
            and np.array_equal(partner[start : start + size], np.arange(first, first + size))
        ):
            matched.append((number - 1, found[1]))
    return matched


def _zipped(*columns: Numbers) -> Iterator[tuple[int, ...]]:
    return zip(*(column.tolist() for column in columns), strict=True)


def _aligned(
    lines_a: list[str], lines_b: list[str], matched: list[tuple[int, int]]
) -> Iterator[Row]:
    """All lines of both texts: matched ones side by side, with the differences in between."""
    at_a = at_b = 0
    for line_a, line_b in [*matched, (len(lines_a), len(lines_b))]:
        between_a, between_b = lines_a[at_a:line_a], lines_b[at_b:line_b]
        head = _num_blank(between_a, between_b)
        tail = _num_blank(between_a[head:][::-1], between_b[head:][::-1])
        stop_a, stop_b = line_a - tail, line_b - tail
        yield from _beside(
            lines_a, lines_b, (at_a, at_a + head), (at_b, at_b + head), is_equal=True
        )
        yield from _beside(
            lines_a, lines_b, (at_a + head, stop_a), (at_b + head, stop_b), is_equal=False
        )
        yield from _beside(lines_a, lines_b, (stop_a, line_a), (stop_b, line_b), is_equal=True)
        if line_a < len(lines_a):
            yield Row(line_a + 1, line_b + 1, lines_a[line_a], lines_b[line_b])
        at_a, at_b = line_a + 1, line_b + 1


def _num_blank(lines_a: list[str], lines_b: list[str]) -> int:
    """The number of lines at the start that are blank in both."""
    return sum(
        1
        for _ in itertools.takewhile(
            lambda lines: not "".join(lines).strip(), zip(lines_a, lines_b, strict=False)
        )
    )


def _beside(
    lines_a: list[str],
    lines_b: list[str],
    span_a: tuple[int, int],
    span_b: tuple[int, int],
    *,
    is_equal: bool,
) -> Iterator[Row]:
    for place_a, place_b in itertools.zip_longest(range(*span_a), range(*span_b)):
        number_a, text_a = (None, "") if place_a is None else (place_a + 1, lines_a[place_a])
        number_b, text_b = (None, "") if place_b is None else (place_b + 1, lines_b[place_b])
        yield Row(number_a, number_b, text_a, text_b, is_equal or not f"{text_a}{text_b}".strip())


def _fold_equal(run: list[Row], is_first: bool, is_last: bool, ellipsis: str) -> Iterator[Row]:
    head = 0 if is_first else CONTEXT_LINES
    tail = 0 if is_last else CONTEXT_LINES
    if len(run) <= head + tail + 1:
        yield from run
        return
    yield from run[:head]
    yield Row(note=f"{ellipsis} {len(run) - head - tail:,} equal lines {ellipsis}")
    yield from run[len(run) - tail :]
