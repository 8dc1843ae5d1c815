"""HTML to text: the main content of a page, or all visible text."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from neardup.config import Config
from neardup.errors import MissingExtraError
from neardup.io.columns.rejected_rows import NOT_HTML

# What the extractor, or the conversion to Arrow, raises for a bad page; any other error is not the
# page's fault.
_PAGE_ERRORS: Final = (ValueError, RuntimeError, TypeError, pa.ArrowException)
# Elements outside the article, by HTML landmarks and the names that most sites use. The extractor
# drops most of them itself; the remaining banners and footers hid 34 of 40 mirrors in a synthetic
# crawl (tests/support/web_pages.py).
_LANDMARKS: Final = ("banner", "navigation", "complementary", "contentinfo", "search")
_TEMPLATE_NAMES: Final = (
    *(
        "header",
        "site-header",
        "page-header",
        "masthead",
        "navbar",
        "navigation",
        "menu",
        "sidebar",
    ),
    *("footer", "site-footer", "page-footer", "cookie-banner", "cookie-notice", "cookie-consent"),
)
_TEMPLATE_ELEMENTS: Final = (
    *("body > header", "nav", "aside", "footer"),
    *(f"[role={landmark}]" for landmark in _LANDMARKS),
    # Below the body: a site may name its whole page so.
    *(f"body {mark}{name}" for mark in ".#" for name in _TEMPLATE_NAMES),
)


def readable_texts(
    pages: pa.Array | pa.ChunkedArray, config: Config
) -> tuple[pa.Array, dict[int, str]]:
    """Return the text of every page, empty for one that cannot be parsed, and the reason for each of those."""
    try:
        return html_to_text(pages, config), {}
    except _PAGE_ERRORS:
        pass  # some page is at fault; it is located below
    texts = []
    reasons = dict[int, str]()
    for row in range(len(pages)):
        try:
            texts.append(html_to_text(pages.slice(row, 1), config))
        except _PAGE_ERRORS as error:
            reasons[row] = f"{NOT_HTML}: {' '.join(str(error).split())}"
            texts.append(pa.array([""], pa.large_string()))
    return pa.concat_arrays(texts), reasons


def html_to_text(pages: pa.Array | pa.ChunkedArray, config: Config) -> pa.Array:
    """Extract the text of every page, as `html_content` says; a null stays null.

    A page without main content, such as a list of links, is compared by all its text.
    """
    try:
        from resiliparse.extract.html2text import extract_plain_text
    except ImportError as error:
        raise MissingExtraError(
            "html=True needs the package resiliparse", hint="pip install 'neardup[html]'"
        ) from error

    def text_of(page: str) -> str:
        if config.html_content == "main":
            main = extract_plain_text(page, main_content=True, skip_elements=_TEMPLATE_ELEMENTS)
            if main := main or extract_plain_text(page, main_content=True):
                return str(main)
        return str(extract_plain_text(page))

    texts = [None if page is None else text_of(page) for page in pages.to_pylist()]
    return pa.array(texts, pa.large_string())
