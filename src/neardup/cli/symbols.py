"""The characters of drawings, for terminals with and without Unicode."""

from __future__ import annotations

from typing import Final, NamedTuple


class Symbols(NamedTuple):
    """One set of characters; `levels` fill a cell from empty to full."""

    branch: str
    last: str
    full: str
    rest: str
    levels: str
    vertical: str
    dashes: str
    missed: str
    axis: str
    tick: str
    corner: str
    floor: str
    pointer: str
    ellipsis: str


UNICODE: Final = Symbols(
    "├─ ", "└─ ", "█", "░", " ▁▂▃▄▅▆▇█", "│", "╌", "·", "│", "┤", "└", "─", "▲", "…"
)
ASCII: Final = Symbols(
    "|- ", "`- ", "#", ".", "     ####", "|", "-", ".", "|", "+", "+", "-", "^", "..."
)
