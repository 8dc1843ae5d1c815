"""Results as HTML fragments for notebooks, and as pages of their own; everything that comes from data is escaped."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence
from typing import Any, Final

_WIDTH: Final = 320
_HEIGHT: Final = 120
_LONGEST: Final = 80
_STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: 0.25rem 0.75rem 0.25rem 0; text-align: left; vertical-align: top; }
thead th { border-bottom: 1px solid; }
"""
_STYLE_DIGEST: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()


def view(title: str, *parts: str) -> str:
    """Put parts under a title."""
    return f"<div><p><strong>{escape(title, longest=300)}</strong></p>{''.join(parts)}</div>"


def page(title: str, body: str) -> str:
    """Return a view as a self-contained page, on which nothing is loaded or executed."""
    policy = f"default-src 'none'; style-src 'sha256-{_STYLE_DIGEST}'"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f'<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>\n"
    )


def facts(rows: Iterable[tuple[str, Any]]) -> str:
    """Return names and values as a table of two columns."""
    cells = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows
    )
    return f"<table>{cells}</table>"


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]], note: str = "") -> str:
    """Return rows as a table, with a note below it."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(value)}</td>' for value in row)}</tr>" for row in rows
    )
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def lines(texts: Iterable[str]) -> str:
    """Return every text as a paragraph."""
    return "".join(f"<p>{escape(text, longest=1000)}</p>" for text in texts)


def curve(chances: Sequence[float], threshold: float) -> str:
    """Draw chances from similarity 0 to 1, with a line at the threshold."""
    step = _WIDTH / (len(chances) - 1)
    points = " ".join(
        f"{at * step:.1f},{_HEIGHT * (1 - chance):.1f}" for at, chance in enumerate(chances)
    )
    at = f"{_WIDTH * threshold:.1f}"
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="-1 -1 {_WIDTH + 2} {_HEIGHT + 2}" role="img" '
        'aria-label="chance of sharing a bucket by similarity" fill="none" stroke="currentColor">'
        f'<line x1="{at}" y1="0" x2="{at}" y2="{_HEIGHT}" stroke-dasharray="4"/>'
        f'<polyline points="{points}" stroke="#1f5fa8" stroke-width="2"/>'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" stroke-opacity="0.3"/></svg>'
    )


def histogram(counts: Sequence[int], first: float, threshold: float | None) -> str:
    """Draw the counts of bins from similarity `first` to 1, by their square roots, with a line at the threshold."""
    step = _WIDTH / max(len(counts), 1)
    top = max(counts, default=0) or 1
    heights = [_HEIGHT * (count / top) ** 0.5 for count in counts]
    bars = "".join(
        f'<rect x="{at * step:.1f}" y="{_HEIGHT - height:.1f}" width="{step:.1f}" height="{height:.1f}" '
        f'fill="#1f5fa8"><title>{counts[at]}</title></rect>'
        for at, height in enumerate(heights)
    )
    line = ""
    if threshold is not None:
        x = f"{_WIDTH * (threshold - first) / (1 - first):.1f}"
        line = f'<line x1="{x}" y1="0" x2="{x}" y2="{_HEIGHT}" stroke="currentColor" stroke-dasharray="4"/>'
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" viewBox="-1 -1 {_WIDTH + 2} {_HEIGHT + 2}" role="img" '
        f'aria-label="documents by the similarity of their pairs">{bars}{line}</svg>'
        f"<p>Documents with a pair of each similarity, from {escape(first)} on the left to 1 on the right.</p>"
    )


def escape(value: Any, longest: int = _LONGEST) -> str:
    """Escape a value for HTML; a long one is truncated.

    >>> escape("<b>"), escape(0.123456), escape(12000)
    ('&lt;b&gt;', '0.1235', '12,000')
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        text = str(value)
    else:
        text = f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    return html.escape(text if len(text) <= longest else f"{text[: longest - 1]}…")
