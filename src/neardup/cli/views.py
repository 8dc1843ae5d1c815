"""Chooses the clearest view of two texts: shared parts, lines or words."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from neardup.align.word_diff import DiffBlock
from neardup.cli import line_view, shared_parts


def lay_out(
    texts: tuple[str, str], blocks: list[DiffBlock], titles: tuple[str, str], ellipsis: str
) -> Iterator[str | Text]:
    """Draw two texts: the shared parts if most differs, otherwise code line by line and prose word by word."""
    if shared_parts.is_mostly_different(blocks):
        yield from titles
        yield from shared_parts.list_shared(texts, ellipsis)
        return
    yield Text(f"--- {titles[0]}", line_view.STYLE_A)
    yield Text(f"+++ {titles[1]}", line_view.STYLE_B)
    lines = line_view.by_lines(*texts, blocks)
    if lines is not None:
        folded = line_view.fold(lines, line_view.LINES, ellipsis)
        yield from line_view.draw_lines(folded, ellipsis)
    else:
        folded = line_view.fold(blocks, line_view.WORDS, ellipsis)
        yield from line_view.draw_words(folded, texts, ellipsis)
