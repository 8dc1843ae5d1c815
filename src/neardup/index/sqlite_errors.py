"""Errors of SQLite and the disk, as errors that name the index and say what to do."""

from __future__ import annotations

import contextlib
import errno
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from neardup.errors import DataError, FullDiskError, NearDupError
from neardup.index.index_folder import FILE
from neardup.index.sketches import damaged


@contextlib.contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn SQLite errors into errors that name the index."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise _operational(folder, error) from error
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise damaged(f"{folder / FILE}: {error}") from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise _full(folder) from error
        raise


def _operational(folder: Path, error: sqlite3.OperationalError) -> NearDupError:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_FULL"):
        return _full(folder)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return NearDupError(f"the index {folder} is busy: {error}", hint="try again")
    if name.startswith(("SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM")):
        return DataError(
            f"the index {folder} cannot be read or written: {error}",
            hint="check the permissions of the folder, and the free space and health of the disk",
        )
    return damaged(f"{folder / FILE}: {error}")


def _full(folder: Path) -> FullDiskError:
    return FullDiskError(
        f"the disk of the index {folder} is full; this change was not stored",
        hint="free some space on its disk",
    )
