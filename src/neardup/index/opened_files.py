"""What a store has open of one index: read connections, segments, and the unflushed documents in memory.

Another index may take the path of the folder while it is open. Nothing of the old one must then
answer for the new one, so everything that was opened together is kept, and given up, together.
"""

from __future__ import annotations

import contextlib
import os
import queue
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from neardup.errors import DataError
from neardup.index import index_folder, sqlite
from neardup.index.folder_view import FolderView, SegmentVanishedError, Unflushed
from neardup.index.index_folder import SEGMENTS
from neardup.index.page_requests import DiskReads
from neardup.index.segment import Segment
from neardup.index.sketches import Layout, damaged
from neardup.index.sqlite import Tables
from neardup.index.sqlite_errors import explained


class FileChangedError(Exception):
    """The SQLite file changed while it was read without locks, as on a read-only disk."""


class Identity(NamedTuple):
    """What tells the SQLite file at a path from another one; without locks also from another version of itself."""

    device: int
    inode: int
    is_immutable: bool
    modified_ns: int = 0
    size: int = 0


class OpenedFiles:
    """Everything that is open of the index whose SQLite file is at a path now; see `is_current`."""

    def __init__(self, folder: Path, layout: Layout, *, is_writer: bool = False) -> None:
        self._folder = folder
        self.layout = layout
        self.disk_reads = DiskReads()
        self._identity = _identity_of(
            folder, is_immutable=not is_writer and sqlite.is_immutable(folder)
        )
        self._connections: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        self._is_closed = False
        # The index and generation that the segments belong to; replaced as a whole, because threads
        # share it.
        self._segments: tuple[tuple[str, int], list[Segment]] = ("", -1), []
        self._unflushed = Unflushed("", -1)

    def is_current(self) -> bool:
        """Whether the files at the path are still those that are open; raise if there are none."""
        is_immutable = self._identity.is_immutable
        if is_immutable and not sqlite.is_immutable(self._folder):
            return False
        return self._identity == _identity_of(self._folder, is_immutable=is_immutable)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Tables]:
        """Read the tables of one commit."""
        with explained(self._folder):
            connection = self._take_connection()
            try:
                connection.execute("BEGIN")
                yield Tables(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if self._is_closed:
                    connection.close()
                else:
                    self._connections.put(connection)
        if self._identity.is_immutable and not self.is_current():
            raise FileChangedError(f"{self._folder} changed while it was read")

    def _take_connection(self) -> sqlite3.Connection:
        try:
            return self._connections.get_nowait()
        except queue.Empty:
            return sqlite.connect(
                self._folder, writable=False, immutable=self._identity.is_immutable
            )

    def segments_of(self, view: FolderView) -> list[Segment]:
        """Return the segments of a commit, each opened once."""
        key = view.index_id, view.generation
        opened_for, opened = self._segments
        if opened_for == key:
            return opened
        by_name = {(segment.path.name, segment.digest): segment for segment in opened}
        found: list[Segment] = []
        for name, num_docs, digest in view.tables.segments():
            segment = by_name.get((name, digest)) or self._open_segment(name, digest)
            if segment.num_docs != num_docs:
                raise damaged(
                    f"the segment {name} has {segment.num_docs:,} documents instead of {num_docs:,}"
                )
            found.append(segment)
        self._segments = key, found
        return found

    def _open_segment(self, name: str, digest: bytes) -> Segment:
        try:
            return Segment(self._folder / SEGMENTS / name, self.layout, digest=digest)
        except FileNotFoundError as error:
            raise SegmentVanishedError(f"the segment {name} is missing") from error

    def unflushed_of(self, view: FolderView) -> Unflushed:
        """Return the unflushed documents of a generation; all threads share those of the latest."""
        latest = self._unflushed
        if (latest.index_id, latest.generation) == (view.index_id, view.generation):
            return latest
        if latest.index_id == view.index_id:
            if view.generation < latest.generation:
                return Unflushed(view.index_id, view.generation)
            unflushed = Unflushed(view.index_id, view.generation, latest)
        else:
            unflushed = Unflushed(view.index_id, view.generation)
        self._unflushed = unflushed
        return unflushed

    def close(self) -> None:
        """Close the connections that no thread uses; the others are closed when they are given back."""
        self._is_closed = True
        self._segments = ("", -1), []  # unmaps the segments, once no thread reads them
        self._unflushed = Unflushed("", -1)
        for connection in self.idle_connections():
            connection.close()

    def idle_connections(self) -> Iterator[sqlite3.Connection]:
        """Take out the connections that no thread uses."""
        with contextlib.suppress(queue.Empty):
            while True:
                yield self._connections.get_nowait()


def _identity_of(folder: Path, *, is_immutable: bool) -> Identity:
    try:
        status = os.stat(folder / index_folder.FILE, follow_symlinks=False)  # noqa: PTH116 - half the time of Path.stat
    except FileNotFoundError as error:
        raise DataError(
            f"the index {folder} no longer exists",
            hint="it was moved or deleted after it was opened; open it again",
        ) from error
    if is_immutable:
        return Identity(status.st_dev, status.st_ino, True, status.st_mtime_ns, status.st_size)
    return Identity(status.st_dev, status.st_ino, False)
