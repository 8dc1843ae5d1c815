"""Upgrade an index that was written by an older neardup: one transaction, under the writer lock.

Version 2 added an id to the state, by which readers notice that another index has taken the path,
and to every segment the digest of the header of its file.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Any

from neardup.index.index_folder import SEGMENTS
from neardup.index.segment import header_digest_of
from neardup.index.sketches import damaged
from neardup.index.sqlite import (
    UPGRADABLE,
    VERSION,
    State,
    connect,
    definition_of,
    insert_state,
    new_index_id,
    row_digest,
    stored_version,
)
from neardup.index.sqlite_errors import explained
from neardup.index.writer_lock import WriterLock

# A file that cannot be read gets this digest, so that it is reported as damaged when it is opened.
_UNREADABLE = bytes(16)


def upgrade(folder: Path, timeout: float) -> None:
    """Upgrade the tables of an index if it was written by an older neardup; wait for another writer until `timeout`."""
    with explained(folder), contextlib.closing(connect(folder, writable=False)) as connection:
        if stored_version(connection, folder) not in UPGRADABLE:
            return
    lock = WriterLock(folder, timeout)
    try:
        _upgrade(folder)
    finally:
        lock.release()


def _upgrade(folder: Path) -> None:
    with explained(folder), contextlib.closing(connect(folder, writable=True)) as connection:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN IMMEDIATE")
        if stored_version(connection, folder) in UPGRADABLE:
            _replace_state(connection)
            _replace_segments(connection, folder)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")


def _replace_state(connection: sqlite3.Connection) -> None:
    row: Any = connection.execute(
        "SELECT next_number, generation, documents, digest FROM state"
    ).fetchone()
    if row is None or row_digest(*row[:-1]) != row[-1]:
        raise damaged("the state has a wrong checksum")
    connection.execute("DROP TABLE state")
    connection.execute(definition_of("state"))
    next_number, generation, documents, _ = row
    insert_state(connection, State(next_number, generation, documents, new_index_id()))


def _replace_segments(connection: sqlite3.Connection, folder: Path) -> None:
    rows = connection.execute("SELECT name, documents, place FROM runs").fetchall()
    connection.execute("DROP TABLE runs")
    connection.execute(definition_of("runs"))
    for name, num_docs, order in rows:
        digest = _digest_of_file(folder, name)
        connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?)", (name, num_docs, order, digest))


def _digest_of_file(folder: Path, name: Any) -> bytes:
    if not isinstance(name, str) or os.path.basename(name) != name:  # noqa: PTH119
        return _UNREADABLE
    try:
        return header_digest_of(folder / SEGMENTS / name)
    except OSError:
        return _UNREADABLE
