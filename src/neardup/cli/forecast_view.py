"""What a run will take, as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def lines(estimate: Any) -> Iterator[str]:
    """List what each method would take and give."""
    from neardup.cli.progress import BYTES, amount, duration

    yield ""
    about = "" if estimate.sampled_documents == estimate.documents else "about "
    yield f"documents  {about}{estimate.documents:,}, {amount(estimate.text_bytes, BYTES)} of text"
    titles = [("method", "bands x rows", "promises", "compares", "pairs", "memory", "disk", "time")]
    cells = [
        (
            forecast.method,
            f"{forecast.bands} x {forecast.rows}" if forecast.bands else "-",
            f"{forecast.recall_at_threshold:.4f}",
            f"{forecast.candidates:,}",
            f"{forecast.pairs:,}",
            amount(forecast.memory_bytes, BYTES),
            amount(forecast.disk_bytes, BYTES),
            duration(forecast.seconds),
        )
        for forecast in estimate.forecasts
    ]
    widths = [max(map(len, column)) for column in zip(*titles, *cells, strict=True)]
    yield ""
    for row in titles + cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    yield from (f"advice: {words}." for words in estimate.advice)
