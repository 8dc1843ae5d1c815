"""The passages that two texts share, as text for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import neardup
from neardup.align import word_diff
from neardup.align.shared_passages import Passage
from neardup.cli.line_view import LONG_LINE
from neardup.cli.visible import visible

# Fewer words are shared by chance.
MIN_WORDS: Final = 5
# Texts of fewer words are shown whole.
_MIN_TEXT: Final = 60
MAX_PASSAGES: Final = 20
_SHOWN_WORDS: Final = 40
_SHOWN_LINES: Final = 10


def is_mostly_different(blocks: list[word_diff.DiffBlock]) -> bool:
    """Whether less than half of the words of the longer text occur in the other, in the same order."""
    size_a = sum(len(block.words_a) for block in blocks)
    size_b = sum(len(block.words_b) for block in blocks)
    longer = max(size_a, size_b)
    num_equal = sum(len(block.words_a) for block in blocks if block.is_equal)
    return longer >= _MIN_TEXT and 2 * num_equal < longer


def list_shared(texts: tuple[str, str], ellipsis: str) -> Iterator[str]:
    """List the passages that two mostly different texts share."""
    shared = neardup.passages(*texts, min_words=MIN_WORDS)
    if not shared:
        yield f"They share no run of {MIN_WORDS} words."
        return
    yield f"The texts are mostly different. They share {_count(shared)}, the longest first:"
    yield from list_passages(shared, texts, ellipsis)


def list_passages(
    shared: Sequence[Passage], texts: tuple[str, str], ellipsis: str
) -> Iterator[str]:
    """List the positions and the text of passages, the longest first; code or verse line by line."""
    longest_first = sorted(shared, key=lambda passage: (-passage.words, passage.start_a))
    for passage in longest_first[:MAX_PASSAGES]:
        spans = (passage.start_a, passage.end_a), (passage.start_b, passage.end_b)
        lines = passage.line_a, passage.line_b
        parts = [text[start:end] for text, (start, end) in zip(texts, spans, strict=True)]
        named = [
            f"{name} {_span(line, part)}"
            for name, line, part in zip("AB", lines, parts, strict=True)
        ]
        yield ""
        if passage.similarity == 1:
            yield f"  {passage.words:,} words: {', '.join(named)}"
            yield from _indented(texts[0], spans[0], passage.line_a, ellipsis)
            continue
        yield f"  {passage.words:,} words, similarity {passage.similarity:.2f}: {', '.join(named)}"
        for name, text, span, line in zip("AB", texts, spans, lines, strict=True):
            yield f"  {name}"
            yield from _indented(text, span, line, ellipsis)
    if len(shared) > MAX_PASSAGES:
        yield ""
        yield f"  {ellipsis} {len(shared) - MAX_PASSAGES:,} shorter passages {ellipsis}"


def _count(shared: Sequence[Passage]) -> str:
    words = sum(passage.words for passage in shared)
    return f"{len(shared):,} passage{'s'[: len(shared) != 1]} of {words:,} words"


def _indented(text: str, span: tuple[int, int], line: int, ellipsis: str) -> Iterator[str]:
    return (f"    {shown}" for shown in _shown(text, span, line, ellipsis))


def _shown(text: str, span: tuple[int, int], line: int, ellipsis: str) -> Iterator[str]:
    start, end = span
    # Whole lines, because the indentation of code belongs to it.
    first = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    own = text[first : stop if stop >= 0 else len(text)].split("\n")
    if len(own) > 1 and max(map(len, own)) <= LONG_LINE:
        width = len(str(line + len(own) - 1))
        for number, shown in enumerate(own[:_SHOWN_LINES], line):
            yield f"{number:>{width}}  {visible(shown.expandtabs(4))}".rstrip()
        if len(own) > _SHOWN_LINES:
            yield f"{ellipsis} {len(own) - _SHOWN_LINES:,} more lines {ellipsis}"
        return
    words = word_diff.split_words(text[start:end])
    if len(words) > _SHOWN_WORDS:
        more = f" {ellipsis} {len(words) - _SHOWN_WORDS:,} more words {ellipsis}"
    else:
        more = ""
    yield f"{visible(''.join(words[:_SHOWN_WORDS]).rstrip())}{more}"


def _span(line: int, text: str) -> str:
    last = line + text.count("\n")
    return f"line {line}" if line == last else f"lines {line}-{last}"
