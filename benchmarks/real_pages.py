"""Part of docs/on-real-data.md: the main content of real web pages, as benchmarks/bench_html.py measured it."""

from __future__ import annotations

from typing import Any

_ABOUT = (
    "Web pages whose content others marked: {pages} news pages with their text (tests of the package",
    "`newspaper4k`), and {passages} passages of other pages that are, or are not, content (tests of an older",
    "`trafilatura`, whose authors wrote them). Text is compared by 4-grams of words. A mirror is",
    "recognised if the text of the page is at least 0.8 similar to its content alone.",
    "`benchmarks/bench_html.py` measures this; our rules and settings were chosen on one half of the",
    "pages, and both halves are shown.",
)


def section(measured: dict[str, Any]) -> list[str]:
    """Return the lines of the page for the results of bench_html.py."""
    by_extractor: dict[str, dict[str, Any]] = {}
    for row in measured["rows"]:
        by_extractor.setdefault(row["extractor"], {})[row["half"]] = row
    halves = next(iter(by_extractor.values()))
    pages, passages = (sum(row[key] for row in halves.values()) for key in ("pages", "passages"))
    lines = [
        "## Web pages: main content of HTML",
        "",
        *(line.format(pages=pages, passages=passages) for line in _ABOUT),
        "",
        f"| extractor | F1 of text, half chosen on ({halves['chosen on']['pages']} pages) "
        f"| F1 of text, other half ({halves['reported']['pages']} pages) "
        "| mirrors recognised, other half | F1 of passages, other half | pages/s |",
        "|---|---|---|--:|--:|--:|",
    ]
    for extractor, own in by_extractor.items():
        other = own["reported"]
        lines.append(
            f"| {extractor} | {_cell(own['chosen on'])} | {_cell(other)} | {other['mirrors']:.1%} "
            f"| {other['F1 of passages']:.3f} | {other['pages/s']:.0f} |"
        )
    versions = measured["machine"]["versions"]
    named = ", ".join(
        f"{name} {versions[name]}" for name in ("resiliparse", "trafilatura") if name in versions
    )
    return [
        *lines,
        "",
        "With so few pages, a difference of .02 says nothing.",
        "",
        f"Versions: {named}.",
        "",
    ]


def _cell(row: dict[str, Any]) -> str:
    return f"{row['F1']:.3f} ({row['precision']:.3f}, {row['recall']:.3f})"
