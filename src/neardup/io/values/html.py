"""HTML to the text a reader would see."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from neardup.errors import MissingExtraError

# What a page can make the extractor, or the way back to Arrow, raise; anything else is not about the page.
_PAGE_ERRORS: Final = (ValueError, RuntimeError, TypeError, pa.ArrowException)


def readable_texts(pages: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, dict[int, str]]:
    """Return the visible text of every page, empty for one that cannot be parsed, and the reason for each of those."""
    try:
        return html_to_text(pages), {}
    except _PAGE_ERRORS:
        pass  # a page is at fault: found and named below
    texts, reasons = [], dict[int, str]()
    for row in range(len(pages)):
        try:
            texts.append(html_to_text(pages.slice(row, 1)))
        except _PAGE_ERRORS as error:
            reasons[row] = f"cannot be parsed as HTML: {' '.join(str(error).split())}"
            texts.append(pa.array([""], pa.large_string()))
    return pa.concat_arrays(texts), reasons


def html_to_text(pages: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Extract the visible text of every page; a null stays null."""
    try:
        from resiliparse.extract.html2text import extract_plain_text
    except ImportError as error:
        raise MissingExtraError(
            "html=True needs the package resiliparse", hint="pip install 'neardup[html]'"
        ) from error
    texts = [None if page is None else extract_plain_text(page) for page in pages.to_pylist()]
    return pa.array(texts, pa.large_string())
