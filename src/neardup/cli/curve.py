"""The S-curve of a plan, drawn in characters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from rich.text import Text

from neardup.cli.symbols import Symbols
from neardup.theory.plan import FILTER_LOSS, Plan

HEIGHT: Final = 12
MARGIN: Final = 8  # the width of "  100 % " before the axis
_WIDTHS: Final = (20, 80)
# The similarities in the table of chances, besides the threshold.
_TABLE_STEPS: Final = tuple(step / 20 for step in range(6, 21))
FALSE_STYLE: Final = "yellow"
FOUND_STYLE: Final = "cyan"
MISSED_STYLE: Final = "red"


def draw(plan: Plan, width: int, symbols: Symbols) -> Iterator[Text]:
    """Draw the curve as lines of at most `width` characters, with the threshold and the target recall marked."""
    columns = min(max(width - MARGIN - 2, _WIDTHS[0]), _WIDTHS[1])
    for row in range(HEIGHT):
        line = Text(_label(row, symbols))
        for column in range(columns):
            line.append(*_cell(plan, row, column, columns, symbols))
        yield line
    floor = symbols.floor * columns
    yield Text(f"{'0 %':>{MARGIN - 1}} {symbols.corner}{floor}")
    yield Text(_scale(columns))
    yield Text(" " * (MARGIN + 1 + _threshold_column(plan, columns)) + symbols.pointer, "bold")


def legend(plan: Plan, symbols: Symbols) -> Iterator[Text]:
    """Return the legend of the drawing."""
    yield Text.assemble(
        (f"{symbols.full} ", FOUND_STYLE),
        f"right of the threshold {plan.threshold:g} ({symbols.pointer}): found, with a chance of "
        f"{plan.recall_at_threshold:.4f} at the threshold (target {plan.recall:g}, {symbols.dashes * 2})",
    )
    yield Text.assemble(
        (f"{symbols.full} ", FALSE_STYLE),
        f"left of it: false candidates, compared but not reported; area {plan.false_positive_area:.4f}",
    )
    yield Text.assemble(
        (f"{symbols.missed} ", MISSED_STYLE),
        f"right of it, above the curve: missed; area {plan.false_negative_area:.6f}",
    )


def chances(chosen: Plan) -> Iterator[str | Text]:
    """List the chance of sharing a bucket at every similarity."""
    yield ""
    yield Text("similarity  chance of sharing a bucket", "bold")
    for similarity in sorted({*_TABLE_STEPS, chosen.threshold}):
        is_threshold = similarity == chosen.threshold
        if is_threshold:
            note = _at_threshold(chosen)
        elif similarity < chosen.threshold:
            note = "  never reported"
        else:
            note = ""
        if is_threshold:
            style = "bold"
        elif similarity < chosen.threshold:
            style = "dim"
        else:
            style = ""
        yield Text(f"{similarity:10g}  {chosen.chance(similarity):.6f}{note}", style)


def _at_threshold(chosen: Plan) -> str:
    found = f"{chosen.recall_at_threshold:.6f}"
    if found == f"{chosen.chance(chosen.threshold):.6f}":
        return "  the threshold"
    return f"  the threshold; found with a chance of {found}, because the signature filter may drop {FILTER_LOSS:g}"


def _label(row: int, symbols: Symbols) -> str:
    percent = {0: "100 %", HEIGHT // 4: "75 %", HEIGHT // 2: "50 %", 3 * HEIGHT // 4: "25 %"}.get(
        row
    )
    return f"{percent or '':>{MARGIN - 1}} {symbols.tick if percent else symbols.axis}"


def _cell(plan: Plan, row: int, column: int, columns: int, symbols: Symbols) -> tuple[str, str]:
    """One character and its style; `row` counts from the top."""
    similarity = (column + 0.5) / columns
    eighths = round(plan.chance(similarity) * HEIGHT * 8) - (HEIGHT - 1 - row) * 8
    level = symbols.levels[min(max(eighths, 0), 8)]
    at_threshold = _threshold_column(plan, columns)
    is_pair = column >= at_threshold
    if column == at_threshold:
        return symbols.vertical, "bold"
    if level != " ":
        return level, FOUND_STYLE if is_pair else FALSE_STYLE
    if row == min(HEIGHT - 1, math.floor((1 - plan.recall) * HEIGHT)):
        return symbols.dashes, "dim"
    return (symbols.missed, MISSED_STYLE) if is_pair else (" ", "")


def _threshold_column(plan: Plan, columns: int) -> int:
    return min(columns - 1, int(plan.threshold * columns))


def _scale(columns: int) -> str:
    """The labels of the similarity axis, 0.2 apart."""
    line = [" "] * (columns + MARGIN + 4)
    for fifth in range(6):
        words = f"{fifth / 5:g}"
        at = (
            MARGIN
            + 1
            + round(fifth / 5 * columns)
            - (len(words) if fifth == 5 else len(words) // 2)
        )
        line[at : at + len(words)] = words
    return "".join(line).rstrip()
