"""Two texts side by side, or one below the other: differences are shown, long equal passages are folded."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Final

from rich import box
from rich.table import Table
from rich.text import Text

from neardup.cli.diff import Numbers, Passage

CONTEXT_WORDS: Final = 8
# An equal passage is folded if that saves more than a few words.
_FOLD_WORDS: Final = 2 * CONTEXT_WORDS + 8
# Nobody reads more on a terminal; omitted words are counted.
MAX_WORDS: Final = 150
MAX_PLACES: Final = 100
_ROW_WORDS: Final = 40
STYLE_A: Final = "red"
STYLE_B: Final = "green"


@dataclasses.dataclass(frozen=True, slots=True)
class Piece:
    """A part of the drawing: equal words, different words, or (with `note`) an omission.

    place_a, place_b: the line number where it begins, as displayed; empty in a text of one line.
    """

    is_equal: bool
    text_a: str = ""
    text_b: str = ""
    num_words: int = 0
    note: str = ""
    place_a: str = ""
    place_b: str = ""


def fold(
    passages: list[Passage], ellipsis: str, lines: tuple[Numbers, Numbers] | None = None
) -> Iterator[Piece]:
    """Shorten the passages to what a reader needs; every omission is counted. `lines`: the line of every word."""
    at_a = at_b = 0
    for piece, skip in _fold(passages, ellipsis):
        if lines is None or piece.note:
            yield piece
        else:
            yield dataclasses.replace(
                piece, place_a=_place(lines[0], at_a), place_b=_place(lines[1], at_b)
            )
        at_a, at_b = at_a + skip[0], at_b + skip[1]


def _place(lines: Numbers, at: int) -> str:
    return f"{lines[at]}: " if at < lines.size else ""


def _fold(passages: list[Passage], ellipsis: str) -> Iterator[tuple[Piece, tuple[int, int]]]:
    """Every piece, with the words of each text that it represents."""
    places = 0
    last = len(passages) - 1
    for number, passage in enumerate(passages):
        if passage.is_equal:
            yield from _fold_equal(
                passage.words_a, passage.words_b, number == 0, number == last, ellipsis
            )
            continue
        if places == MAX_PLACES:
            left = sum(not passage.is_equal for passage in passages[number:])
            what = "place differs" if left == 1 else "places differ"
            yield Piece(True, note=f"{ellipsis} {left:,} more {what} {ellipsis}"), (0, 0)
            return
        places += 1
        text_a, text_b = _cut(passage.words_a, ellipsis), _cut(passage.words_b, ellipsis)
        sizes = len(passage.words_a), len(passage.words_b)
        yield Piece(False, text_a, text_b, min(MAX_WORDS, max(sizes))), sizes


def unified(pieces: Iterable[Piece]) -> Iterator[Text]:
    """One line per piece: two spaces for equal words, minus for the first text, plus for the second."""
    for piece in pieces:
        if piece.note:
            yield Text(f"  {piece.note}", "dim")
        elif piece.is_equal:
            yield Text(f"  {piece.place_a}{piece.text_a}".rstrip())
        else:
            if piece.text_a:
                yield Text(f"- {piece.place_a}{piece.text_a}".rstrip(), STYLE_A)
            if piece.text_b:
                yield Text(f"+ {piece.place_b}{piece.text_b}".rstrip(), STYLE_B)


def beside(pieces: Iterable[Piece], title_a: str, title_b: str) -> Table:
    """Two columns that wrap; words in only one text are coloured and underlined."""
    table = Table(box=box.MINIMAL, expand=True)
    table.add_column(Text(title_a), ratio=1, overflow="fold")
    table.add_column(Text(title_b), ratio=1, overflow="fold")
    left = Text()
    right = Text()
    num_words = 0
    for piece in pieces:
        if piece.note or num_words >= _ROW_WORDS:
            _add_row(table, left, right)
            left = Text()
            right = Text()
            num_words = 0
        if piece.note:
            table.add_row(Text(piece.note, "dim"), Text(piece.note, "dim"))
            continue
        if not (left or right):
            left.append(piece.place_a, "dim")
            right.append(piece.place_b, "dim")
        left.append(piece.text_a, "" if piece.is_equal else f"{STYLE_A} underline")
        right.append(piece.text_b, "" if piece.is_equal else f"{STYLE_B} underline")
        num_words += piece.num_words
    _add_row(table, left, right)
    return table


def _add_row(table: Table, left: Text, right: Text) -> None:
    if left or right:
        table.add_row(left, right)


def _fold_equal(
    words_a: list[str], words_b: list[str], is_first: bool, is_last: bool, ellipsis: str
) -> Iterator[tuple[Piece, tuple[int, int]]]:
    size = len(words_a)
    if size <= _FOLD_WORDS:
        yield Piece(True, "".join(words_a), "".join(words_b), size), (size, size)
        return
    head = 0 if is_first else CONTEXT_WORDS
    tail = 0 if is_last else CONTEXT_WORDS
    if head:
        yield Piece(True, "".join(words_a[:head]), "".join(words_b[:head]), head), (head, head)
    folded = size - head - tail
    yield Piece(True, note=f"{ellipsis} {folded:,} equal words {ellipsis}"), (folded, folded)
    if tail:
        yield Piece(True, "".join(words_a[-tail:]), "".join(words_b[-tail:]), tail), (tail, tail)


def _cut(words: list[str], ellipsis: str) -> str:
    if len(words) <= MAX_WORDS:
        return "".join(words)
    return f"{''.join(words[:MAX_WORDS]).rstrip()} {ellipsis} {len(words) - MAX_WORDS:,} more words {ellipsis} "
