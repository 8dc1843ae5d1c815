"""Precision, recall and wrong pairs of `neardup evaluate`, as lines."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, Final

from rich.text import Text

MAX_ERRORS: Final = 10
# The curve is listed in steps of this many hundredths.
_STEP: Final = 5


def lines(answer: Any, out: str) -> Iterator[str | Text]:
    """Show the numbers of the run, the curve, the best threshold, and wrong and missed pairs."""
    counts = {
        "precision": f"{answer.right:,} of {answer.right + answer.wrong:,} found pairs with a label",
        "recall": f"{answer.right:,} of {answer.right + answer.missed:,} pairs labelled as the same",
        "f1": "of both",
    }
    for name, of_what in counts.items():
        value, low, high = (getattr(answer, f"{name}{end}") for end in ("", "_low", "_high"))
        if value is None:
            yield f"{name:<9}  unknown  no such pair"
        else:
            yield f"{name:<9}  {value:7.4f}  {of_what}; 95 % confidence interval {low:.4f} to {high:.4f}"
    yield f"documents  {answer.documents:7,}  with a label; {answer.unknown:,} ids of the labels are not in the input"
    if answer.left_out:
        yield f"left out   {answer.left_out:7,}  documents of large clusters, chosen by a hash"
    yield from _curve(answer)
    yield from _errors(answer, out)


def _curve(answer: Any) -> Iterator[str | Text]:
    if answer.curve is None:
        return
    yield ""
    about = " (estimated from a part of the documents)" if answer.is_estimated else ""
    yield Text(f"threshold  precision  recall      f1{about}", "bold")
    for row in answer.curve.to_pylist():
        at = row["threshold"]
        is_own = at == answer.threshold
        is_best = at == answer.best_threshold
        if not (is_own or is_best or round(at * 100, 6) % _STEP == 0):
            continue
        if not is_own and row["precision"] is None:
            continue
        note = "  the run's" if is_own else ""
        note += "  best" if is_best else ""
        cells = (_cell(row[name]) for name in ("precision", "recall", "f1"))
        yield f"{at:9g}  {'  '.join(f'{cell:>8}' for cell in cells)}{note}"


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _errors(answer: Any, out: str) -> Iterator[str | Text]:
    rows = answer.errors.to_pylist()
    for kind, title in (("wrong", "Found, but different"), ("missed", "The same, but not found")):
        own = [row for row in rows if row["kind"] == kind]
        if not own:
            continue
        yield ""
        yield Text(title, "bold")
        for row in own[:MAX_ERRORS]:
            value = "        " if row["similarity"] is None else f"{row['similarity']:8.4f}"
            yield f"{value}  {row['doc_a']}  {row['doc_b']}"
        if len(own) > MAX_ERRORS:
            yield f"and {len(own) - MAX_ERRORS:,} more; --json lists all"
    if rows:
        first = next((row for row in rows if row["kind"] == "wrong"), rows[0])
        yield ""
        yield f"Look at one: {shlex.join(['neardup', 'explain', out, first['doc_b']])}"
