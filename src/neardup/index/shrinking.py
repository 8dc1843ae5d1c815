"""The SQLite file is kept small, and its log short, in steps between which others write."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, Protocol

from neardup.index import sqlite
from neardup.index.forking import OUTSIDE_SQLITE
from neardup.index.sqlite import Tables

INCREMENTAL: Final = 2
_FIRST_STEP_PAGES: Final = 64
_STEP_SECONDS: Final = 0.005


class ShrinkingHome(Protocol):
    """The part of a store that shrinking uses."""

    folder: Path

    def with_writer(self, make: Callable[[Tables], object]) -> None:
        """Call a function with the connection that writes, outside of a transaction, while nobody else writes."""


def shrink(home: ShrinkingHome, between: Callable[[], None]) -> None:
    """Free the unused pages of the SQLite file if these are at least a quarter of it; else SQLite reuses them.

    between: called between two steps. If the disk is too full, later inserts reuse the pages.
    """
    with (
        contextlib.suppress(sqlite3.OperationalError),
        contextlib.closing(sqlite.connect(home.folder, writable=True)) as connection,
    ):
        unused = _value_of(connection, "freelist_count")
        if unused * 4 < _value_of(connection, "page_count"):
            return
        if _value_of(connection, "auto_vacuum") == INCREMENTAL:
            _free_in_steps(home, connection, between)
        else:
            home.with_writer(lambda tables: tables.connection.execute("VACUUM"))
        _shorten_log(connection)


def copy_log(home: ShrinkingHome) -> None:
    """Copy the log into the SQLite file: most of it while others write, the rest while nobody does.

    Then the log starts anew. A commit that does all of this itself waits for two syncs of many
    pages.
    """
    with (
        OUTSIDE_SQLITE,
        contextlib.closing(sqlite.connect(home.folder, writable=True)) as connection,
    ):
        _copy(Tables(connection))
        _copy(Tables(connection))
    home.with_writer(_copy)


def _copy(tables: Tables) -> None:
    tables.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def _value_of(connection: sqlite3.Connection, name: str) -> int:
    value: int = connection.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _free_in_steps(
    home: ShrinkingHome, connection: sqlite3.Connection, between: Callable[[], None]
) -> None:
    pages = _FIRST_STEP_PAGES
    while _value_of(connection, "freelist_count"):
        between()
        began = time.monotonic()
        home.with_writer(partial(_free, pages))
        if time.monotonic() - began < _STEP_SECONDS:
            pages *= 2
        else:
            pages = max(1, pages // 2)


def _free(pages: int, tables: Tables) -> None:
    tables.connection.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()


def _shorten_log(connection: sqlite3.Connection) -> None:
    """Copy the log into the file, most of it while others write; a reader that still needs the log keeps it."""
    connection.execute("PRAGMA busy_timeout = 0")
    for mode in ("PASSIVE", "TRUNCATE"):
        connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
