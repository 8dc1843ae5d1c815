"""The integrity check of an index: every row and every section is compared with its digest."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from neardup.errors import DataError, NearDupError
from neardup.index.facts import read_payload
from neardup.index.segment import Segment
from neardup.index.sketches import Layout, from_bytes
from neardup.index.sqlite import StoredSegment, Tables, unpack_text
from neardup.measures.base import I64


def find_damage(tables: Tables, segments: Path, layout: Layout) -> list[str]:
    """Return a description of every damage; an empty list if there is none."""
    compared: list[I64] = []
    found = _damage_from(partial(_check_sqlite, tables))
    found += _damage_from(partial(_check_documents, tables))
    found += _damage_from(partial(_check_texts, tables, layout))
    found += _damage_from(partial(_check_unflushed, tables, layout, compared))
    found += _damage_from(partial(_check_segments, tables, segments, layout, compared))
    return found or _damage_from(partial(_check_complete, tables, compared))


def _damage_from(step: Callable[[], Iterable[str] | None]) -> list[str]:
    """Return the damage that a step finds, including errors that it raises."""
    found: list[str] = []
    try:
        found.extend(step() or ())
    except NearDupError as error:
        found.append(error.message)
    except (OSError, sqlite3.DatabaseError, UnicodeDecodeError) as error:
        found.append(str(error))
    return found


def _check_sqlite(tables: Tables) -> Iterator[str]:
    rows = tables.connection.execute("PRAGMA integrity_check(20)").fetchall()
    yield from (f"SQLite: {text}" for (text,) in rows if text != "ok")


def _check_documents(tables: Tables) -> Iterator[str]:
    """Check that every document has an id, every id a document, and that their number matches the state."""
    num_documents = tables.state().documents
    seen = 0
    for document in tables.all_documents():
        seen += 1
        try:
            read_payload(document)
        except DataError as error:
            yield error.message
    if seen != num_documents:
        yield f"{seen:,} documents instead of {num_documents:,}"
    own = tables.connection.execute(
        "SELECT COUNT(*) FROM documents JOIN names USING (doc_id)"
        " WHERE names.number = documents.number AND NOT is_alias"
    ).fetchone()[0]
    if own != seen:
        yield f"{seen - own:,} documents without an id"
    lost = tables.connection.execute(
        "SELECT COUNT(*) FROM names WHERE number NOT IN (SELECT number FROM documents) OR is_alias NOT IN (0, 1)"
        " OR TYPEOF(doc_id) <> 'text'"
    ).fetchone()[0]
    total = tables.connection.execute("SELECT COUNT(*) FROM names WHERE is_alias = 0").fetchone()[0]
    if lost or total != own:
        yield f"{lost + abs(total - own):,} ids without a document"


def _check_texts(tables: Tables, layout: Layout) -> Iterator[str]:
    for row in tables.connection.execute("SELECT number, text, digest FROM texts"):
        unpack_text(row)
    if layout.has_texts:
        lost = tables.connection.execute(
            "SELECT COUNT(*) FROM documents WHERE number NOT IN (SELECT number FROM texts)"
        ).fetchone()[0]
        if lost:
            yield f"{lost:,} documents without a text"


def _check_unflushed(tables: Tables, layout: Layout, compared: list[I64]) -> Iterator[str]:
    numbers, blobs = tables.unflushed(-1, 2**62)
    if blobs:
        from_bytes(numbers, blobs, layout)
        compared.append(np.array(numbers, np.int64))
    yield from ()


def _check_segments(
    tables: Tables, folder: Path, layout: Layout, compared: list[I64]
) -> Iterator[str]:
    for stored in tables.segments():
        yield from _damage_from(partial(_check_segment, folder, stored, layout, compared))


def _check_segment(
    folder: Path, stored: StoredSegment, layout: Layout, compared: list[I64]
) -> Iterator[str]:
    path = folder / stored.name
    try:
        segment = Segment(path, layout, digest=stored.digest, is_scanned=True)
    except FileNotFoundError:
        yield f"the segment {stored.name} is missing"
        return
    if segment.num_docs != stored.documents:
        yield f"{path} has {segment.num_docs:,} documents instead of {stored.documents:,}"
    if (what := segment.check()) is not None:
        yield what
    yield from _damage_from(segment.check_items)
    compared.append(segment.arrays["numbers"])


def _check_complete(tables: Tables, compared: list[I64]) -> Iterator[str]:
    """Check that every document has exactly one sketch."""
    listed = np.concatenate([np.empty(0, np.int64), *compared])
    if np.unique(listed).size != listed.size:
        yield "a document is in two segments"
    numbers = np.fromiter(
        (number for (number,) in tables.connection.execute("SELECT number FROM documents")),
        np.int64,
    )
    if missing := int((~np.isin(numbers, listed)).sum()):
        yield f"{missing:,} documents without stored shingles, signature or vector"
