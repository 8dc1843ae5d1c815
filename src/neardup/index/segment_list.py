"""What a merge asks the database, and the commits by which it changes the list of segments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from neardup.errors import NearDupError
from neardup.index import folder_view
from neardup.index.merge import Bools, Merged
from neardup.index.sqlite import Tables
from neardup.measures.base import I64

_NUMBERS_AT_ONCE: Final = 1 << 16


class OldestUnflushed(NamedTuple):
    """Unflushed documents that are flushed together."""

    numbers: list[int]
    blobs: list[bytes]
    is_live: Bools


def oldest_unflushed(tables: Tables, before: int, most: int) -> OldestUnflushed:
    """Return the unflushed documents with the lowest numbers, below `before`; most: a multiple of what is flushed."""
    last = tables.connection.execute(
        "SELECT MAX(number) FROM (SELECT number, LENGTH(sketch) AS bytes, SUM(LENGTH(sketch)) OVER"
        " (ORDER BY number) AS bytes_to_here FROM fresh WHERE number < ? ORDER BY number LIMIT ?)"
        " WHERE bytes_to_here - bytes < ?",
        (before, folder_view.UNFLUSHED_DOCS * most, folder_view.UNFLUSHED_BYTES * most),
    ).fetchone()[0]
    if last is None:
        return OldestUnflushed([], [], np.zeros(0, np.bool_))
    numbers, blobs = tables.unflushed(-1, last + 1)
    return OldestUnflushed(numbers, blobs, are_stored(np.array(numbers, np.int64), tables))


def are_stored(numbers: I64, tables: Tables) -> Bools:
    """Return which documents still exist.

    SQLite joins their numbers into one text for each block: a row of its own for each would let go
    of the interpreter, and wait for it, as many times.
    """
    if not numbers.size:
        return np.zeros(0, np.bool_)
    stored = [np.empty(0, np.int64)]
    first = int(numbers.min())
    last = int(numbers.max())
    while first <= last:
        text, greatest = tables.connection.execute(
            "SELECT GROUP_CONCAT(number), MAX(number) FROM"
            " (SELECT number FROM documents WHERE number BETWEEN ? AND ? ORDER BY number LIMIT ?)",
            (first, last, _NUMBERS_AT_ONCE),
        ).fetchone()
        if text is None:
            break
        stored.append(np.fromstring(text, np.int64, sep=","))
        first = greatest + 1
    is_stored: Bools = np.isin(numbers, np.concatenate(stored))
    return is_stored


def replace_segments(
    unflushed: Sequence[int], names: Sequence[str], new: str, merged: Merged, tables: Tables
) -> None:
    """Replace unflushed documents and segments by a new segment, if it has documents."""
    state = tables.state()
    gone = set(names).difference(segment.name for segment in tables.segments())
    if gone:
        raise NearDupError(
            f"the segments {sorted(gone)} were replaced while they were merged",
            hint="open the index again",
        )
    for name in names:
        tables.connection.execute("DELETE FROM runs WHERE name = ?", (name,))
    if merged.num_docs:
        tables.add_segment(new, merged.num_docs, merged.digest)
    if unflushed:
        tables.connection.execute("DELETE FROM fresh WHERE number <= ?", (unflushed[-1],))
    tables.set_state(state.next_number, state.generation + 1, state.documents)


def remove_expired(numbers: Sequence[int], now: float, tables: Tables) -> None:
    """Remove those of these documents that have expired."""
    state = tables.state()
    fetched = tables.fetch(numbers, -np.inf).values()
    expired = [
        document for document in fetched if document.expires is not None and document.expires <= now
    ]
    tables.set_state(state.next_number, state.generation, state.documents - tables.remove(expired))
