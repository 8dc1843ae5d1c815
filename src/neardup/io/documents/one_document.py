"""One document of a file, found by its id or its row."""

from __future__ import annotations

import os
from typing import Final

import pyarrow.compute as pc

from neardup.config import Config
from neardup.config.checks import check_text, near_names
from neardup.errors import DataError
from neardup.io.documents.column_choice import read_records
from neardup.io.documents.discover import find_file
from neardup.io.records import InputFile

# Similar ids are searched among this many.
_MANY_IDS: Final = 100_000


def split_address(address: str) -> tuple[str, str] | None:
    """Return file and id of `FILE:ID`, None for anything else, including an existing file with a colon in its name.

    An id may contain colons too: the file is the shortest prefix before a colon that exists.
    """
    if os.path.lexists(address):
        return None
    for at in (at for at, character in enumerate(address) if character == ":"):
        if os.path.isfile(address[:at]):  # noqa: PTH113 - a path with a slash at its end is none to Path
            return address[:at], address[at + 1 :]
    return None


def read_by_id(path: str, doc_id: str, config: Config) -> str:
    """Return the text of the document with this id; a document without an id is found by its row, from 1."""
    check_text("id", doc_id)
    file = find_file(path, config)
    first = 1
    by_row = None
    ids: list[str] = []
    for records in read_records(file, config):
        at = pc.index(records.ids, doc_id).as_py()
        if at >= 0:
            return str(records.texts[at].as_py())
        if doc_id.isdecimal() and 0 <= int(doc_id) - first < records.num_rows:
            found_at = (records.rows == int(doc_id) - first).nonzero()[0]
            if found_at.size:
                by_row = str(records.texts[int(found_at[0])].as_py())
            else:
                by_row = None
        first += records.num_rows
        if len(ids) < _MANY_IDS:
            ids += [found for found in records.ids.to_pylist() if found is not None]
    if by_row is not None:
        return by_row
    raise _unknown(file, doc_id, ids, first - 1)


def _unknown(file: InputFile, doc_id: str, ids: list[str], num_rows: int) -> DataError:
    if ids:
        known = f"its ids look like {', '.join(ids[:3])}"
    else:
        known = f"it has no ids; name one of its {num_rows:,} rows, from 1"
    return DataError(
        f"{file.path} has no document {doc_id!r}", hint=near_names(doc_id, ids) or known
    )
