"""The messages of a run that cannot use most of its rows, or any: their number, the first reason, and a hint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow.compute as pc

from neardup.config import Config
from neardup.config.checks import VECTOR_MEASURES
from neardup.errors import StartOverError
from neardup.events import Watch
from neardup.io.columns.rejected_rows import NOT_UTF8, RejectedRow, RejectionCode, code_of
from neardup.io.documents.notes import Notes

# The usual way out.
_HINTS: Final = {
    RejectionCode.NOT_UTF8: "pass `encoding` auto to detect that of every file, or its name, such as latin-1 or utf-16",
    RejectionCode.NOT_VALID: "pass another `encoding`, or none for UTF-8",
    RejectionCode.NUM_FIELDS: "pass `delimiter` if the columns are not separated by commas",
    RejectionCode.BROKEN_CSV: "pass `delimiter` or `format` if the files are not CSV with commas",
    RejectionCode.BROKEN_JSON: "pass `format` if the files are not JSON Lines",
    RejectionCode.TOO_LONG: "pass a larger `max_document`",
    RejectionCode.NOT_HTML: "leave html=True out",
    RejectionCode.NOT_CODE: "name the language of all files: `language`",
    RejectionCode.NO_TEXT: "name the column with the text: `text_column`",
    RejectionCode.NO_ITEMS: "name the column with the items: `items_column`",
    RejectionCode.NO_VECTOR: (
        "name the column with the vectors in `vector_column`, and pass packed=True if they are packed bits"
    ),
    RejectionCode.OTHER: "look at this row, and at the settings for columns and formats",
}


def name_rejected(row: Mapping[str, Any]) -> RejectedRow:
    """Name a rejected row of a file, given a row of schema.REJECTED."""
    return RejectedRow(f"{row['file']} row {row['row']}", row["reason"])


def first_rejected(notes: Notes, *, references: bool = False) -> RejectedRow:
    """Name the first rejected row of the input, or of the reference files."""
    batches = filter(len, notes.rejected(references=references))
    first: Mapping[str, Any] = next(batches).slice(0, 1).to_pylist()[0]
    return name_rejected(first)


def warn_of_encodings(
    num_documents: int,
    num_rejected: int,
    count_not_utf8: Callable[[], int],
    config: Config,
    watch: Watch,
) -> None:
    """Warn if some rows, but no more than half, were rejected because they are not in UTF-8."""
    if not 0 < num_rejected <= num_documents or config.encoding is not None:
        return
    num_broken = count_not_utf8()
    if num_broken:
        watch.warn(
            f"{num_broken:,} of {num_rejected + num_documents:,} rows are {NOT_UTF8}. "
            f"Hint: {_HINTS[RejectionCode.NOT_UTF8]}"
        )


def count_not_utf8(notes: Notes) -> int:
    """Count the rows of files that were rejected because they are not in UTF-8."""
    count = 0
    for batch in notes.rejected():
        found = pc.sum(pc.match_substring(batch.column("reason"), NOT_UTF8))
        count += found.as_py() or 0
    return count


def all_rejected(count: int, first: RejectedRow, config: Config) -> StartOverError:
    """Return the error of a run without a usable row."""
    if count == 1:
        message = f"the only row was rejected: {first}"
    else:
        message = f"all {count:,} rows were rejected; the first is {first}"
    return StartOverError(message, hint=_hint_for(first, config))


def most_rejected(num_rejected: int, num_rows: int, first: RejectedRow, config: Config) -> str:
    """Return the warning of a run that can use less than half of its rows."""
    return (
        f"{num_rejected:,} of {num_rows:,} rows were rejected; the first is {first}. "
        f"Hint: {_hint_for(first, config)}"
    )


def _hint_for(first: RejectedRow, config: Config) -> str:
    code = code_of(first.reason)
    if code is RejectionCode.NO_COLUMN:  # the one that the settings compare
        code = RejectionCode.NO_TEXT
        if config.items_column is not None:
            code = RejectionCode.NO_ITEMS
        elif config.measure in VECTOR_MEASURES:
            code = RejectionCode.NO_VECTOR
    return _HINTS[code]
