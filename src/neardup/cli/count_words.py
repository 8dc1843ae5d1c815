"""Numbers of things, in words."""

from __future__ import annotations


def documents(count: int) -> str:
    """Return a number of documents, in words.

    >>> documents(1), documents(24345)
    ('1 document', '24,345 documents')
    """
    return f"{count:,} document{'s'[: count != 1]}"
