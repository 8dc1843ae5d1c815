"""Handbooks that Debian packages hold twice: as HTML, one page a chapter, and as one plain text.

    apt-get download debian-faq debian-faq-de developers-reference developers-reference-de ...
    dpkg-deb -x PACKAGE.deb FOLDER/handbooks

The text of a chapter is its main content, as the authors' own tools wrote it: without navigation
and without the table of contents of the chapter. Not the FAQ in Korean, whose text breaks words at
the end of a line.
"""

from __future__ import annotations

import gzip
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Settings are chosen on the first book, which DocBook made, and reported on the other, which Sphinx made.
BOOKS = {
    "chosen on": ("doc/debian/FAQ", "debian-faq.{language}.txt.gz"),
    "reported": ("developers-reference", "developers-reference.txt.gz"),
}
LANGUAGES = ("en", "de", "fr", "it", "ja", "nl", "pt", "ru", "zh-cn")
# Pages of the whole book.
_WHOLE = ("index", "developers-reference")
# Addresses of links, which the text names and a page does not show.
_ADDRESS = re.compile(r"\s*[(<](?:https?|ftp|mailto):[^)>]*[)>]")
_HEADING = re.compile(r"<h1[^>]*>(.*?)</h1>", re.DOTALL)
_TAG = re.compile(r"<a class=\"headerlink\".*?</a>|<[^>]+>")
# A line of the text is a heading if it begins the heading of a page with this many characters.
_LEAST = 9
_MOST = 40


class Chapter(NamedTuple):
    """A chapter: its page, and its text."""

    name: str
    page: str
    text: str


def chapters(folder: Path, half: str) -> list[Chapter]:
    """Return the chapters of the book of a half, in every language that is there."""
    place, name = BOOKS[half]
    found = []
    for language in LANGUAGES:
        book = folder / "handbooks" / "usr" / "share" / place
        own = book if language == "en" else book / language
        text = (book if "{" in name else own) / name.format(language=language)
        if own.is_dir() and text.exists():
            found += list(_of_book(own, text, language))
    return found


def _of_book(folder: Path, text: Path, language: str) -> Iterator[Chapter]:
    lines = gzip.decompress(text.read_bytes()).decode("utf-8").split("\n")
    places = []
    for path in sorted(folder.glob("*.html")):
        page = path.read_text("utf-8")
        heading = _HEADING.search(page)
        # In English, every page is there with and without the language in its name.
        if heading is None or path.with_suffix(f".{language}.html").exists():
            continue
        at = _line_of(lines, html.unescape(_TAG.sub("", heading[1])))
        if at is not None and path.name.split(".")[0] not in _WHOLE:
            places.append((at, f"{language} {path.name}", page))
    places.sort()
    ends = [at for at, _, _ in places[1:]] + [len(lines)]
    for (at, name, page), end in zip(places, ends, strict=True):
        yield Chapter(name, page, _ADDRESS.sub("", "\n".join(lines[at:end])))


def _line_of(lines: list[str], heading: str) -> int | None:
    """Return the last line that begins a heading, after an empty line: earlier ones are in the table of contents."""
    wanted = "".join(heading.split())
    found = None
    for at, line in enumerate(lines):
        begins = not line[:1].isspace() and not "".join(lines[max(at - 1, 0) : at]).strip()
        start = "".join(line.split())[:_MOST]
        if begins and len(start) >= min(_LEAST, len(wanted)) and wanted.startswith(start):
            found = at
    return found
