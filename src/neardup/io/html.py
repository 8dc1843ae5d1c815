"""HTML to the text a reader would see."""

from __future__ import annotations

import pyarrow as pa

from neardup.errors import MissingExtraError


def html_to_text(pages: pa.Array) -> pa.Array:
    """Extract the visible text of every page; a null stays null."""
    try:
        from resiliparse.extract.html2text import extract_plain_text
    except ImportError as error:
        raise MissingExtraError(
            "html=True needs the package resiliparse", hint="pip install 'neardup[html]'"
        ) from error
    texts = [None if page is None else extract_plain_text(page) for page in pages.to_pylist()]
    return pa.array(texts, pa.large_string())
