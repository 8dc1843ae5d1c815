"""Numbers of things, in words."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, in the plural unless there is one.

    >>> counted(1, "document"), counted(24345, "document"), counted(2, "match", "matches")
    ('1 document', '24,345 documents', '2 matches')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
