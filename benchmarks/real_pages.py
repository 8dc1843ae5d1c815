"""Part of docs/on-real-data.md: the main content of real web pages, as benchmarks/bench_html.py measured it."""

from __future__ import annotations

from typing import Any

_ABOUT = (
    "Web pages whose content others marked: {pages} news pages with their text (tests of the package",
    "`newspaper4k`), and {passages} passages of other pages that are, or are not, content (tests of an older",
    "`trafilatura`, whose authors wrote them). Text is compared by 4-grams of words. A mirror is",
    "recognised if the text of the page is at least 0.8 similar to its content alone.",
    "Our rules and settings were chosen on one half of the pages, and both halves are shown.",
)
_HOW_TO_REPEAT = (
    "To repeat it, with `debian-faq-{de,fr,it,ja,nl,pt,ru,zh-cn}` and",
    "`developers-reference-{de,fr,it,ja,ru}` as well:",
    "",
    "    pip download --no-deps --no-binary :all: newspaper4k==0.9.6 trafilatura==0.3.1   # unpack below pages/",
    "    apt-get download debian-faq developers-reference   # dpkg-deb -x PACKAGE.deb pages/handbooks",
    "    python benchmarks/bench_html.py --corpora pages",
)
_ABOUT_HANDBOOKS = (
    "**Handbooks.** Debian packages hold handbooks as HTML, a page a chapter, and as plain text, which is",
    "the main content of the chapters. Chosen on: the Debian FAQ ({chosen} chapters in 9 languages, made",
    "by DocBook). Not looked at before: the Developer's Reference ({reported} chapters in 6 languages, made",
    "by Sphinx).",
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
    chosen, reported = (halves[half]["chapters"] for half in ("chosen on", "reported"))
    lines += [
        "",
        "With so few pages, a difference of .02 says nothing.",
        "",
        *(line.format(chosen=chosen, reported=reported) for line in _ABOUT_HANDBOOKS),
        "",
        "| extractor | F1, FAQ | mirrors recognised, FAQ | F1, Reference | mirrors recognised, Reference |",
        "|---|--:|--:|--:|--:|",
    ]
    for extractor, own in by_extractor.items():
        cells = [
            f"{own[half]['F1 of chapters']:.3f} | {own[half]['mirrors of chapters']:.1%}"
            for half in ("chosen on", "reported")
        ]
        lines.append(f"| {extractor} | {' | '.join(cells)} |")
    lines += ["", *_HOW_TO_REPEAT]
    versions = measured["machine"]["versions"]
    named = ", ".join(
        f"{name} {versions[name]}" for name in ("resiliparse", "trafilatura") if name in versions
    )
    return [
        *lines,
        "",
        f"Versions: {named}.",
        "",
    ]


def _cell(row: dict[str, Any]) -> str:
    return f"{row['F1']:.3f} ({row['precision']:.3f}, {row['recall']:.3f})"
