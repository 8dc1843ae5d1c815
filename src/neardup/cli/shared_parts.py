"""The passages that two mostly different texts share: runs of words that occur in both, anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from neardup.cli.diff import Numbers, Passage, number_words, split_words, word_lines
from neardup.cli.line_view import LONG_LINE
from neardup.cli.visible import visible

# Fewer words are shared by chance.
MIN_WORDS: Final = 5
# Texts of fewer words are shown whole.
_MIN_TEXT: Final = 60
# The most positions in the other text at which a part is tried.
_MAX_PLACES: Final = 16
MAX_PARTS: Final = 20
_SHOWN_WORDS: Final = 40
_SHOWN_LINES: Final = 10


class Part(NamedTuple):
    """`num_words` equal words, with their start and their lines in each text."""

    at_a: int
    at_b: int
    num_words: int
    lines_a: tuple[int, int]
    lines_b: tuple[int, int]
    text: str


def is_mostly_different(passages: list[Passage]) -> bool:
    """Whether less than half of the words of the longer text occur in the other, in the same order."""
    size_a = sum(len(passage.words_a) for passage in passages)
    size_b = sum(len(passage.words_b) for passage in passages)
    longer = max(size_a, size_b)
    num_equal = sum(len(passage.words_a) for passage in passages if passage.is_equal)
    return longer >= _MIN_TEXT and 2 * num_equal < longer


def shared_parts(text_a: str, text_b: str) -> list[Part]:
    """Return the runs of at least MIN_WORDS words of text a that also occur in text b, longest first.

    >>> [part.text for part in shared_parts("he said to be or not to be", "to be or not to be, that is it")]
    ['to be or not to']
    """
    words_a, words_b = split_words(text_a), split_words(text_b)
    ids_a, ids_b = number_words(words_a, words_b)
    lines_a, lines_b = word_lines(text_a), word_lines(text_b)
    parts = []
    for at_a, at_b, size in _runs(ids_a, ids_b):
        span_a = int(lines_a[at_a]), int(lines_a[at_a + size - 1])
        span_b = int(lines_b[at_b]), int(lines_b[at_b + size - 1])
        parts.append(
            Part(at_a, at_b, size, span_a, span_b, "".join(words_a[at_a : at_a + size]).rstrip())
        )
    return sorted(parts, key=lambda part: (-part.num_words, part.at_a))


def listing(parts: list[Part], text_a: str, ellipsis: str) -> Iterator[str]:
    """List the position and the text of each part; parts of code or verse line by line."""
    if not parts:
        yield f"They share no run of {MIN_WORDS} words."
        return
    words = sum(part.num_words for part in parts)
    lines = text_a.split("\n")
    shared = f"{len(parts):,} part{'s'[: len(parts) != 1]} of {words:,} words"
    yield f"The texts are mostly different. They share {shared}, the longest first:"
    for part in parts[:MAX_PARTS]:
        yield ""
        yield f"  {part.num_words:,} words: A {_span(part.lines_a)}, B {_span(part.lines_b)}"
        yield from (f"    {line}" for line in _shown(part, lines, ellipsis))
    if len(parts) > MAX_PARTS:
        yield ""
        yield f"  {ellipsis} {len(parts) - MAX_PARTS:,} shorter parts {ellipsis}"


def _shown(part: Part, lines: list[str], ellipsis: str) -> Iterator[str]:
    first, last = part.lines_a
    own = lines[first - 1 : last]
    if len(own) > 1 and max(map(len, own)) <= LONG_LINE:
        width = len(str(last))
        for number, line in enumerate(own[:_SHOWN_LINES], first):
            yield f"{number:>{width}}  {visible(line.expandtabs(4))}".rstrip()
        if len(own) > _SHOWN_LINES:
            yield f"{ellipsis} {len(own) - _SHOWN_LINES:,} more lines {ellipsis}"
        return
    words = split_words(part.text)
    if len(words) > _SHOWN_WORDS:
        more = f" {ellipsis} {len(words) - _SHOWN_WORDS:,} more words {ellipsis}"
    else:
        more = ""
    yield f"{visible(''.join(words[:_SHOWN_WORDS]).rstrip())}{more}"


def _span(lines: tuple[int, int]) -> str:
    first, last = lines
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _runs(ids_a: Numbers, ids_b: Numbers) -> Iterator[tuple[int, int, int]]:
    """From left to right in a, the longest run that occurs anywhere in b; runs do not overlap in a."""
    places: dict[tuple[int, ...], list[int]] = {}
    listed_a, listed_b = ids_a.tolist(), ids_b.tolist()
    for at in range(len(listed_b) - MIN_WORDS + 1):
        found = places.setdefault(tuple(listed_b[at : at + MIN_WORDS]), [])
        if len(found) < _MAX_PLACES:
            found.append(at)
    at = 0
    while at <= len(listed_a) - MIN_WORDS:
        best = -1
        size = 0
        for place in places.get(tuple(listed_a[at : at + MIN_WORDS]), ()):
            length = _num_equal(ids_a[at:], ids_b[place:])
            if length > size:
                best = place
                size = length
        if size:
            yield at, best, size
        at += size or 1


def _num_equal(ids_a: Numbers, ids_b: Numbers) -> int:
    """How many words are equal from the start; doubles the step each time, so that short runs cost little."""
    most = min(ids_a.size, ids_b.size)
    seen = 0
    step = 64
    while seen < most:
        different = ids_a[seen : min(seen + step, most)] != ids_b[seen : min(seen + step, most)]
        if different.any():
            return seen + int(np.argmax(different))
        seen = min(seen + step, most)
        step = 2 * step
    return most
