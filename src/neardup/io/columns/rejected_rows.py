"""A rejected row, and the code of its reason, on which the advice to the user hangs.

A row is stored with the text of its reason alone: notes on disk, frames on Spark and rejected.jsonl
have no place for a code. So `code_of` finds the code by how the text begins and ends, before the
colon behind which details stand. Whoever words such a reason takes its fixed words from here;
tests/io/columns/test_rejected_rows.py words the others, and compares their codes.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

NOT_UTF8: Final = "not valid UTF-8"
NOT_VALID: Final = "not valid"
BROKEN_CSV: Final = "broken CSV"
OPEN_QUOTE: Final = "a quote opened in this row is never closed"
BROKEN_JSON: Final = "broken JSON"
NOT_OBJECT: Final = "not an object"
TOO_LONG: Final = "that max_document allows"
NOT_HTML: Final = "cannot be parsed as HTML"
NOT_CODE: Final = "no language is known"
NO_COLUMN: Final = "no column"


class RejectionCode(enum.Enum):
    """What is wrong with a row, as far as the way out differs."""

    NOT_UTF8 = enum.auto()
    NOT_VALID = enum.auto()
    NUM_FIELDS = enum.auto()
    BROKEN_CSV = enum.auto()
    BROKEN_JSON = enum.auto()
    TOO_LONG = enum.auto()
    NOT_HTML = enum.auto()
    NOT_CODE = enum.auto()
    NO_COLUMN = enum.auto()
    NO_TEXT = enum.auto()
    NO_ITEMS = enum.auto()
    NO_VECTOR = enum.auto()
    OTHER = enum.auto()


class _Wording(NamedTuple):
    """How reasons of a code begin, or end before the colon."""

    code: RejectionCode
    begin: str = ""
    end: str = ""


# The first that fits counts: a text that is not valid UTF-8 also begins with "text is".
_WORDINGS: Final = (
    _Wording(RejectionCode.NOT_UTF8, end=NOT_UTF8),
    _Wording(RejectionCode.NOT_VALID, begin=f"{NOT_VALID} "),
    _Wording(RejectionCode.NOT_VALID, end=f"{NOT_VALID} Unicode"),
    _Wording(RejectionCode.NUM_FIELDS, begin="the row has "),
    _Wording(RejectionCode.BROKEN_CSV, begin=BROKEN_CSV),
    _Wording(RejectionCode.BROKEN_CSV, begin=OPEN_QUOTE),
    _Wording(RejectionCode.BROKEN_JSON, begin=BROKEN_JSON),
    _Wording(RejectionCode.BROKEN_JSON, begin=NOT_OBJECT),
    _Wording(RejectionCode.TOO_LONG, end=TOO_LONG),
    _Wording(RejectionCode.NOT_HTML, begin=NOT_HTML),
    _Wording(RejectionCode.NOT_CODE, begin=NOT_CODE),
    _Wording(RejectionCode.NO_COLUMN, begin=f"{NO_COLUMN} "),
    _Wording(RejectionCode.NO_TEXT, begin="text is "),
    _Wording(RejectionCode.NO_ITEMS, begin="items are "),
    _Wording(RejectionCode.NO_ITEMS, begin="an item is "),
    _Wording(RejectionCode.NO_VECTOR, begin="vector "),
    _Wording(RejectionCode.NO_VECTOR, begin="element "),
    _Wording(RejectionCode.NO_VECTOR, end=" is not a byte"),
)


class RejectedRow(NamedTuple):
    """A rejected row: its place, in the words of its source, and the reason."""

    place: str
    reason: str

    def __str__(self) -> str:
        return f"{self.place}: {self.reason}"


def code_of(reason: str) -> RejectionCode:
    """Return the code of a reason.

    >>> code_of("text is not valid UTF-8: invalid start byte at byte 3").name
    'NOT_UTF8'
    """
    fixed, _, _ = reason.partition(":")
    for wording in _WORDINGS:
        if fixed.startswith(wording.begin) and fixed.endswith(wording.end):
            return wording.code
    return RejectionCode.OTHER
