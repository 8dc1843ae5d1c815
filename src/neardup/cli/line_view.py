"""Two texts one below the other, by lines or by words: differences, some context, and notes about what was folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from rich.text import Text

from neardup.align.word_diff import DiffBlock, differ_by_lines, word_lines

# Nobody reads more on a terminal; what is omitted is counted.
MAX_DIFFERENCES: Final = 100
MAX_CHARACTERS: Final = 400
STYLE_A: Final = "red"
STYLE_B: Final = "green"
# Lines of code and verse are short; those of prose hold a paragraph, and differ in a word.
LONG_LINE: Final = 160
_SHORT_LINES: Final = 0.9
# Where most words are equal and most lines are not, line breaks have moved.
_REFLOWED_WORDS: Final = 0.8


class FoldLimits(NamedTuple):
    """How many equal words or lines are shown around a difference, or folded, and how many different ones."""

    unit: str
    num_context: int
    min_folded: int
    max_shown: int


WORDS: Final = FoldLimits("words", num_context=8, min_folded=9, max_shown=150)
LINES: Final = FoldLimits("lines", num_context=3, min_folded=2, max_shown=60)


class Piece(NamedTuple):
    """A block, or a part of it, and where it begins in each text; or a note about what is left out."""

    block: DiffBlock = DiffBlock(True, [], [])
    at_a: int = 0
    at_b: int = 0
    note: str = ""


def by_lines(text_a: str, text_b: str, words: list[DiffBlock]) -> list[DiffBlock] | None:
    """Return the blocks of lines; None if those of words are clearer."""
    lines_a, lines_b = text_a.split("\n"), text_b.split("\n")
    if min(len(lines_a), len(lines_b)) < 2 or not _are_short(lines_a) or not _are_short(lines_b):
        return None
    blocks = differ_by_lines(text_a, text_b)
    num_lines = max(_num_used(lines_a), _num_used(lines_b))
    equal_lines = sum(_num_used(block.words_a) for block in blocks if block.is_equal)
    num_words = sum(max(len(block.words_a), len(block.words_b)) for block in words)
    equal_words = sum(len(block.words_a) for block in words if block.is_equal)
    if 2 * equal_lines < num_lines and equal_words > _REFLOWED_WORDS * num_words:
        return None
    return blocks


def _are_short(lines: list[str]) -> bool:
    num_short = sum(bool(line.strip()) and len(line) <= LONG_LINE for line in lines)
    return num_short >= _SHORT_LINES * _num_used(lines)


def _num_used(lines: list[str]) -> int:
    return sum(bool(line.strip()) for line in lines)


def fold(blocks: list[DiffBlock], limits: FoldLimits, ellipsis: str) -> Iterator[Piece]:
    """Leave out the middle of long equal blocks, and everything after MAX_DIFFERENCES."""
    at_a = at_b = num_differences = 0
    for number, block in enumerate(blocks):
        size = len(block.words_a)
        if not block.is_equal:
            if num_differences == MAX_DIFFERENCES:
                left = sum(not later.is_equal for later in blocks[number:])
                what = "place differs" if left == 1 else "places differ"
                yield Piece(note=f"{ellipsis} {left:,} more {what} {ellipsis}")
                return
            num_differences += 1
        head = limits.num_context if number > 0 else 0
        tail = limits.num_context if number < len(blocks) - 1 else 0
        folded = size - head - tail
        if block.is_equal and folded >= limits.min_folded:
            if head:
                yield Piece(_part(block, 0, head), at_a, at_b)
            yield Piece(note=f"{ellipsis} {folded:,} equal {limits.unit} {ellipsis}")
            if tail:
                skipped = size - tail
                yield Piece(_part(block, skipped, size), at_a + skipped, at_b + skipped)
        else:
            yield Piece(block, at_a, at_b)
        at_a += size
        at_b += len(block.words_b)


def _part(block: DiffBlock, start: int, stop: int) -> DiffBlock:
    return DiffBlock(True, block.words_a[start:stop], block.words_b[start:stop])


def draw_lines(pieces: Iterable[Piece], ellipsis: str) -> Iterator[Text]:
    """One line each: the numbers in both texts, then the line; minus for the first text, plus for the second."""
    shown = list(pieces)
    ends = [
        max(piece.at_a + len(piece.block.words_a), piece.at_b + len(piece.block.words_b))
        for piece in shown
    ]
    width = len(str(max(ends, default=1)))
    blank = " " * width
    for block, at_a, at_b, note in shown:
        if note:
            yield Text(f"  {note}", "dim")
        elif block.is_equal:
            for offset, line in enumerate(block.words_a, 1):
                yield _line(f"  {at_a + offset:>{width}} {at_b + offset:>{width}}", line)
        else:
            for number, line in enumerate(block.words_a[: LINES.max_shown], at_a + 1):
                yield _line(f"- {number:>{width}} {blank}", line, STYLE_A)
            yield from _omitted(block.words_a, ellipsis)
            for number, line in enumerate(block.words_b[: LINES.max_shown], at_b + 1):
                yield _line(f"+ {blank} {number:>{width}}", line, STYLE_B)
            yield from _omitted(block.words_b, ellipsis)


def _line(numbers: str, line: str, style: str = "") -> Text:
    more = ""
    if len(line) > MAX_CHARACTERS:
        more = f" ({len(line) - MAX_CHARACTERS:,} more)"
    content = line[:MAX_CHARACTERS].expandtabs(4)
    return Text(f"{numbers}  {content}{more}".rstrip(), style)


def _omitted(lines: list[str], ellipsis: str) -> Iterator[Text]:
    left = len(lines) - LINES.max_shown
    if left > 0:
        yield Text(f"  {ellipsis} {left:,} more lines {ellipsis}", "dim")


def draw_words(pieces: Iterable[Piece], texts: tuple[str, str], ellipsis: str) -> Iterator[Text]:
    """One line per block, with the number of its first line; minus for the first text, plus for the second."""
    has_lines = any("\n" in text.strip() for text in texts)
    lines_a = word_lines(texts[0]).tolist() if has_lines else []
    lines_b = word_lines(texts[1]).tolist() if has_lines else []
    for block, at_a, at_b, note in pieces:
        if note:
            yield Text(f"  {note}", "dim")
        elif block.is_equal:
            yield Text(f"  {_line_number(lines_a, at_a)}{_words(block.words_a)}")
        else:
            if block.words_a:
                shown = _shortened(block.words_a, ellipsis)
                yield Text(f"- {_line_number(lines_a, at_a)}{shown}", STYLE_A)
            if block.words_b:
                shown = _shortened(block.words_b, ellipsis)
                yield Text(f"+ {_line_number(lines_b, at_b)}{shown}", STYLE_B)


def _line_number(lines: Sequence[int], at: int) -> str:
    return f"{lines[at]}: " if lines else ""


def _words(words: list[str]) -> str:
    return "".join(words).rstrip()


def _shortened(words: list[str], ellipsis: str) -> str:
    left = len(words) - WORDS.max_shown
    if left <= 0:
        return _words(words)
    return f"{_words(words[: WORDS.max_shown])} {ellipsis} {left:,} more words {ellipsis}"
