"""HTML to text: the main content of a page, or all visible text."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from neardup.config import Config
from neardup.io.columns.main_content import main_text, visible_text
from neardup.io.columns.rejected_rows import NOT_HTML

# What the extractor, or the conversion to Arrow, raises for a bad page; any other error is not the
# page's fault.
_PAGE_ERRORS: Final = (ValueError, RuntimeError, TypeError, pa.ArrowException)


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
    if config.html_content == "main":
        text_of = main_text
    else:
        text_of = visible_text
    texts = [None if page is None else text_of(page) for page in pages.to_pylist()]
    return pa.array(texts, pa.large_string())
