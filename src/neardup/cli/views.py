"""Chooses the clearest view of two texts: shared parts, lines or words."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from neardup.cli import line_view, shared_parts, sides
from neardup.cli.diff import Passage, word_lines
from neardup.cli.symbols import Symbols
from neardup.cli.visible import visible


def lay_out(
    texts: tuple[str, str],
    passages: list[Passage],
    titles: tuple[str, str],
    *,
    is_wide: bool,
    symbols: Symbols,
) -> Iterator[str | Text | Table]:
    """Draw two texts: the shared parts if most differs, otherwise code line by line and prose word by word."""
    if shared_parts.is_mostly_different(passages):
        yield from titles
        yield from shared_parts.list_shared(texts, symbols.ellipsis)
        return
    if not is_wide:
        yield Text(f"--- {titles[0]}", sides.STYLE_A)
        yield Text(f"+++ {titles[1]}", sides.STYLE_B)
    rows = line_view.line_rows(*texts, passages)
    if rows is not None:
        folded = line_view.fold_lines(rows, symbols.ellipsis)
        yield from (
            [line_view.beside_lines(folded, *titles)]
            if is_wide
            else line_view.unified_lines(folded)
        )
        return
    has_lines = any("\n" in text.strip() for text in texts)
    lines = (word_lines(texts[0]), word_lines(texts[1])) if has_lines else None
    pieces = map(_safe_piece, sides.fold(passages, symbols.ellipsis, lines))
    yield from [sides.beside(pieces, *titles)] if is_wide else sides.unified(pieces)


def _safe_piece(piece: sides.Piece) -> sides.Piece:
    return dataclasses.replace(piece, text_a=visible(piece.text_a), text_b=visible(piece.text_b))
