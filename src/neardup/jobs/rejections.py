"""The messages of a run that cannot use most of its rows, or any: their number, the first reason, and a hint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from neardup.errors import StaleError
from neardup.io.documents.notes import Notes

# A pattern in the reason, and the usual fix.
_WAYS_OUT: Final = (
    ("not valid UTF-8", "pass `encoding` latin-1, cp1252 or utf-16 if the files are not in UTF-8"),
    ("not valid ", "pass another `encoding`, or none for UTF-8"),
    ("fields, the header has", "pass `delimiter` if the columns are not separated by commas"),
    ("broken CSV", "pass `delimiter` or `format` if the files are not CSV with commas"),
    ("never closed", "pass `delimiter` or `format` if the files are not CSV with commas"),
    ("broken JSON|not an object", "pass `format` if the files are not JSON Lines"),
    ("max_document", "pass a larger `max_document`"),
    ("parsed as HTML", "leave html=True out"),
    ("items? (are|is)|not pairs of item", "name the column with the items: `items_column`"),
    (
        "vector|bits|numbers",
        "name the column with the vectors in `vector_column`, and pass packed=True if they are packed bits",
    ),
    ("no column|text is", "name the column with the text: `text_column`"),
)


def name_rejected(row: Mapping[str, Any]) -> str:
    """Name a rejected row of a file and the reason, given a row of schema.REJECTED."""
    return f"{row['file']} row {row['row']}: {row['reason']}"


def first_rejected(notes: Notes, *, references: bool = False) -> str:
    """Name the first rejected row of the input, or of the reference files."""
    batches = notes.rejected(references=references)
    return name_rejected(next(row for batch in batches for row in batch.slice(0, 1).to_pylist()))


def all_rejected(count: int, first: str) -> StaleError:
    """Return the error of a run without a usable row; `first` is the first rejected row and its reason."""
    message = f"all {count:,} rows were rejected; the first is {first}"
    return StaleError(
        f"the only row was rejected: {first}" if count == 1 else message, hint=_hint_for(first)
    )


def most_rejected(num_rejected: int, num_rows: int, first: str) -> str:
    """Return the warning of a run that can use less than half of its rows."""
    return f"{num_rejected:,} of {num_rows:,} rows were rejected; the first is {first}. Hint: {_hint_for(first)}"


def _hint_for(first: str) -> str:
    reason = first.partition(": ")[2] or first
    hints = (hint for pattern, hint in _WAYS_OUT if re.search(pattern, reason))
    return next(hints, "look at this row, and at the settings for columns and formats")
