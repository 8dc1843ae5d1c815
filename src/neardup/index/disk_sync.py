"""Syncing to disk: files, the entries of folders, and the log of commits, whose syncs threads share."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from pathlib import Path
from typing import Final

from neardup.errors import UnsyncedError

# On macOS, fsync leaves the data in the cache of the drive, where a power cut loses it.
_EMPTY_DRIVE_CACHE: Final[int | None] = getattr(fcntl, "F_FULLFSYNC", None)
_OPEN: Final = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to disk."""
    sync_file(folder)


def sync_file(path: Path) -> None:
    """Sync a file to disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        sync_all(file)
    finally:
        os.close(file)


def sync_data(file: int) -> None:
    """Sync the contents of an open file to disk, without the times of its last use."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(file)
    else:
        sync_all(file)


def sync_all(file: int) -> None:
    """Sync an open file or folder to disk."""
    if _EMPTY_DRIVE_CACHE is not None:
        # Disks of a network may refuse it.
        with contextlib.suppress(OSError):
            fcntl.fcntl(file, _EMPTY_DRIVE_CACHE)
            return
    os.fsync(file)


class CommitLog:
    """The write-ahead log of SQLite; one sync makes every commit before it durable (group commit).

    SQLite commits without syncing (`synchronous = NORMAL`), so that the next thread can commit in
    the meantime.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1
        self._committed = self._synced = 0
        self._syncing = threading.Lock()
        self._failure: OSError | None = None

    def add(self) -> int:
        """Count a commit; return its number. Called by one thread at a time, before the next commit begins."""
        self._committed += 1
        return self._committed

    def wait(self, number: int) -> None:
        """Return when the commit of this number is on disk, synced by this thread or another."""
        with self._syncing:
            if self._synced < number:
                latest = self._committed
                self._sync()
                self._synced = latest

    def sync(self) -> None:
        """Sync everything that was committed, including by earlier processes."""
        with self._syncing:
            latest = self._committed
            self._sync()
            self._synced = latest

    def _sync(self) -> None:
        self.check()
        try:
            if self._file < 0:
                file = os.open(self._path, _OPEN)
                sync_folder(self._path.parent)
                self._file = file
            sync_data(self._file)
        except OSError as error:
            self._failure = error
            self.check()

    def check(self) -> None:
        """Raise if a sync has failed: a later one could succeed although the system has dropped the data."""
        if self._failure is not None:
            raise UnsyncedError(
                f"the disk did not confirm the last changes of the index {self._path.parent}: {self._failure.strerror}",
                hint="check the disk, then open the index again; changes that raised this error may be lost",
            ) from self._failure

    def close(self) -> None:
        """Close the file."""
        with self._syncing:
            file = self._file
            self._file = -1
            if file >= 0:
                os.close(file)
