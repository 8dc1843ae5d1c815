"""The element of a page that holds its article, found from the paragraphs that an extractor kept.

An extractor judges one paragraph at a time. So it leaves out headings, and whole sections of a
handbook, and keeps a stray paragraph of the template. The element around what it kept has neither
fault (docs/decisions/0050-the-element-around-the-article.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

# What a browser starts on a line of its own.
_BLOCKS: Final = frozenset(
    (
        *("address", "article", "blockquote", "body", "br", "caption", "center", "dd", "details"),
        *("dir", "div", "dl", "dt", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html"),
        *("li", "main", "menu", "ol", "p", "pre", "section", "summary", "table", "tbody", "td"),
        *("tfoot", "th", "thead", "tr", "ul"),
    )
)
# What is no text of the article.
_LEFT_OUT: Final = frozenset(
    (
        *("aside", "audio", "button", "canvas", "figure", "footer", "form", "head", "iframe"),
        *("nav", "noscript", "object", "script", "select", "style", "svg", "template", "textarea"),
        "video",
    )
)
# The element holds this share of what was kept, and at most this many times as much text.
# A block with a larger share of its text in links is a list of links.
# Chosen on one half of the pages of benchmarks/bench_html.py.
_KEPT_SHARE: Final = 0.95
_MAX_GROWTH: Final = 1.4
_LINK_SHARE: Final = 0.5
# A block is recognised in what was kept by its first letters and digits.
_START: Final = 15
_SPACES: Final = re.compile(r"\s+")
_NO_LETTERS: Final = re.compile(r"[\W_]+")


def article_text(tree: Any, kept: str) -> str:
    """Return the text of the smallest element around what an extractor kept; "" if there is no such element.

    tree: an lxml tree without the elements that are known to be no article, nested at most as deep
    as Python may call itself; kept: the extractor's text, a paragraph a line or several.
    """
    body = tree.find(".//body")
    if body is None:
        body = tree
    sizes = _Sizes(body, {_start_of(line) for line in kept.split("\n")})
    if 2 * sizes.kept[body] < len(_letters_of(kept)):
        return ""
    element = _smallest(body, sizes)
    if sizes.text[element] > _MAX_GROWTH * _size(kept):
        return ""
    text = "".join(_pieces(element, sizes.link_lists, is_literal=False))
    lines = (line.strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def _smallest(body: Any, sizes: _Sizes) -> Any:
    """Return the smallest element with most of what was kept."""
    least = _KEPT_SHARE * sizes.kept[body]
    element = body
    while True:
        inside = [child for child in element if sizes.kept.get(child, 0) >= least]
        # A single paragraph is no article.
        if not inside or inside[0] not in sizes.around_blocks:
            return element
        element = inside[0]


class _Sizes:
    """How many characters of an element are text, and how many of them were kept.

    Attributes:
        text: characters outside lists of links, without white space.
        kept: letters and digits of blocks that were kept.
        link_lists: blocks with most of their text in links.
        around_blocks: elements with blocks in them.
    """

    def __init__(self, body: Any, starts: set[str]) -> None:
        self.text: dict[Any, int] = {}
        self.kept: dict[Any, int] = {}
        self.link_lists: set[Any] = set()
        self.around_blocks: set[Any] = set()
        self._all: dict[Any, int] = {}
        self._in_links: dict[Any, int] = {}
        for element in reversed(list(body.iter())):  # children before their parents
            if _is_text(element):
                self._add(element, starts)

    def _add(self, element: Any, starts: set[str]) -> None:
        own = _size(element.text) + sum(_size(child.tail) for child in element)
        children = [child for child in element if _is_text(child)]
        total = own + sum(self._all[child] for child in children)
        in_links = total
        if element.tag != "a":
            in_links = sum(self._in_links[child] for child in children)
        self._all[element] = total
        self._in_links[element] = in_links
        self.text[element] = own + sum(self.text[child] for child in children)
        self.kept[element] = sum(self.kept[child] for child in children)
        if any(child.tag in _BLOCKS or child in self.around_blocks for child in children):
            self.around_blocks.add(element)
        if element.tag not in _BLOCKS:
            return
        if in_links > _LINK_SHARE * total:
            self.link_lists.add(element)
            self.text[element] = 0
        if element not in self.around_blocks:
            letters = _letters_of("".join(element.itertext()))
            if len(letters) >= _START and letters[:_START] in starts:
                self.kept[element] = len(letters)


def _pieces(element: Any, link_lists: set[Any], *, is_literal: bool) -> Iterator[str]:
    if element in link_lists or not _is_text(element):
        return
    is_literal = is_literal or element.tag == "pre"
    edge = "\n" if element.tag in _BLOCKS else ""
    yield edge
    yield _text_of(element.text, is_literal=is_literal)
    for child in element:
        yield from _pieces(child, link_lists, is_literal=is_literal)
        yield _text_of(child.tail, is_literal=is_literal)
    yield edge


def _text_of(text: str | None, *, is_literal: bool) -> str:
    if not text or is_literal:
        return text or ""
    return _SPACES.sub(" ", text)


def _is_text(element: Any) -> bool:
    """Whether it is an element, no comment, and may hold text of the article."""
    return isinstance(element.tag, str) and element.tag not in _LEFT_OUT


def _size(text: str | None) -> int:
    return len("".join(text.split())) if text else 0


def _start_of(line: str) -> str:
    return _letters_of(line)[:_START]


def _letters_of(text: str) -> str:
    return _NO_LETTERS.sub("", text.lower())
