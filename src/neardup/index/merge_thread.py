"""Flushing and merging beside the changes, by a thread of the writing process.

Unflushed documents become segments, and segments are merged. The thread reads one commit through a
connection of its own, and writes and syncs a new segment, all without a lock. Then one short commit
names the new segment instead of what it was made of. Old files are deleted once that commit is
synced.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from neardup.errors import DataError, NearDupError
from neardup.index import folder_view, shrinking, sqlite
from neardup.index.disk_sync import sync_folder
from neardup.index.forking import OUTSIDE_SQLITE
from neardup.index.index_folder import SEGMENTS
from neardup.index.merge import Merged, merge_segments
from neardup.index.segment import Segment
from neardup.index.segment_list import (
    are_stored,
    oldest_unflushed,
    remove_expired,
    replace_segments,
)
from neardup.index.sketches import Layout, Sketches, damaged, from_bytes
from neardup.index.sqlite import StoredSegment, Tables
from neardup.index.sqlite_errors import explained
from neardup.measures.base import I64

# Segments of one tier are merged when there are this many; each tier is this many times larger than
# the one before.
TIER: Final = 8
# The most documents of an automatic merge, and the most bytes of their files; larger segments are
# left to `compact`.
MAX_JOINED: Final = folder_view.SEGMENT_DOCS
MAX_JOINED_BYTES: Final = 512 << 20
# A flush takes at most this many times the documents and bytes that cause it, so that its commit
# stays short.
_FLUSHED_AT_ONCE: Final = 4
# After a full disk, the next attempt waits this many times as long as the failed one took.
RETRY_RATIO: Final = 10
# Pages of the log that are copied into the SQLite file together, as SQLite itself would; and how
# many a commit writes,
# about: some of its own, and one for every few documents.
LOG_PAGES: Final = 1_000
_PAGES_OF_COMMIT: Final = 8
_DOCS_OF_PAGE: Final = 4
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_UNFLUSHED: Final = "the unflushed documents"


class MergingHome(shrinking.ShrinkingHome, Protocol):
    """The part of a store that merging uses."""

    layout: Layout

    def new_segment(self) -> Path:
        """Return the path of the next segment."""

    def write_segment(self, path: Path, numbers: I64, sketches: Sketches) -> bytes:
        """Write a segment; return the digest of its header."""

    def commit_segments(self, make: Callable[[Tables], None]) -> int:
        """Make one commit that changes the list of segments; return its number."""

    def wait_for_disk(self, number: int) -> None:
        """Return when the commit of this number is on disk."""


class _Stopped(Exception):  # noqa: N818 - not an error
    """The process ends, and the merge with it."""


class Merging:
    """Flushes and merges, in a thread that exists only while there is something to do."""

    def __init__(self, home: MergingHome) -> None:
        self._home = home
        self._process = os.getpid()
        # Held while segments are written: by our thread, or by the caller of `compact`.
        self._working = threading.Lock()
        # Guards the fields below, and is never held for long.
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_due = False
        # At first, an earlier process may have left work; after a full disk, some is left too.
        self._may_be_due = True
        self._is_stopped = False
        self._not_before = -1.0
        self._unflushed_docs = 0
        self._unflushed_bytes = 0
        self._log_pages = 0
        self._refused = set[str]()
        self._untold: NearDupError | None = None
        self.damage: list[str] = []
        self.num_merges = 0
        _UNCOLLECTED.add(self)

    def note(self, change: folder_view.FolderChange) -> None:
        """Count what a commit has added; start to flush or merge if that is due."""
        with self._guard:
            self._unflushed_docs += change.unflushed_docs
            self._unflushed_bytes += change.unflushed_bytes
            self._log_pages += _PAGES_OF_COMMIT + change.num_added // _DOCS_OF_PAGE
            is_due = (
                self._may_be_due
                or bool(change.new_segments)
                or self._must_flush()
                or self._log_pages >= LOG_PAGES
            )
            if is_due and time.monotonic() >= self._not_before:
                self._is_due = True
            if self._is_due and self._thread is None and os.getpid() == self._process:
                self._start()

    def _start(self) -> None:
        thread = threading.Thread(target=self._run, name="neardup-merging", daemon=True)
        # If the system has no thread left, a later change starts it.
        with contextlib.suppress(RuntimeError):
            thread.start()
            self._thread = thread

    def raise_untold(self) -> None:
        """Raise the damage that was found since the last call."""
        with self._guard:
            error = self._untold
            self._untold = None
        if error is not None:
            raise DataError(
                f"{error.message}; this was found while merging segments, and this change was not made",
                hint=f"{error.hint or 'run `neardup index check`'}; further changes are made, without merging this",
            ) from error

    def finish(self) -> None:
        """Return when everything that is due is flushed and merged."""
        while os.getpid() == self._process:
            with self._guard:
                thread = self._thread
            if thread is None:
                return
            thread.join()

    def close(self) -> None:
        """Finish what is due, and `compact` if it is running; an interrupt stops it."""
        if os.getpid() != self._process:
            return
        try:
            self.finish()
        except BaseException:
            self.stop()
            raise
        with self._working:
            self._is_stopped = True
        self.finish()

    def stop(self) -> None:
        """End the thread at the next piece of its work, without what it was writing."""
        if os.getpid() == self._process:
            self._is_stopped = True
            self.finish()

    def _run(self) -> None:
        try:
            while self._take_up():
                self._work_noting_failure()
        finally:
            with self._guard:
                # After an exception that is no error, this is still our thread; nobody should wait
                # for it again.
                if self._thread is threading.current_thread():
                    self._thread = None

    def _take_up(self) -> bool:
        """Whether there is something to do; if not, the thread ends."""
        with self._guard:
            is_due = self._is_due and not self._is_stopped
            self._is_due = False
            if not is_due:
                self._thread = None
            return is_due

    def _work_noting_failure(self) -> None:
        began = time.monotonic()
        try:
            with self._working:
                self._work()
        except _Stopped:
            pass
        except Exception as error:  # noqa: BLE001 - kept, and raised by the next change
            self._note_failure(error, time.monotonic() - began)

    def _work(self) -> None:
        with self._guard:
            self._may_be_due = False
        self._count_unflushed()
        is_left = True
        while is_left:
            self._copy_log_if_due()
            is_left = self._flush_if_due() or self._merge_if_due()

    def _note_failure(self, error: Exception, seconds: float) -> None:
        """Try again later if the disk was full; tell the next change of anything else."""
        with self._guard:
            self._may_be_due = True
            self._not_before = time.monotonic() + RETRY_RATIO * seconds
            if not _is_full(error):
                self._untold = _named(error, self._home.folder)
                self.damage.append(self._untold.message)

    @contextlib.contextmanager
    def _refusing(self, *names: str) -> Iterator[None]:
        """Never again merge automatically what failed, unless because of a full disk."""
        try:
            yield
        except (_Stopped, NearDupError) as error:
            if isinstance(error, NearDupError):
                self._refused.update(names)
            raise
        except Exception as error:
            if not _is_full(error):
                self._refused.update(names)
            raise

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Tables]:
        """Read one commit."""
        with (
            OUTSIDE_SQLITE,
            contextlib.closing(sqlite.connect(self._home.folder, writable=False)) as connection,
        ):
            connection.execute("BEGIN")
            yield Tables(connection)

    def _count_unflushed(self) -> None:
        with self._reading() as tables:
            row = tables.connection.execute(
                "SELECT COUNT(*), SUM(LENGTH(sketch)) FROM fresh"
            ).fetchone()
        with self._guard:
            self._unflushed_docs = row[0]
            self._unflushed_bytes = row[1] or 0

    def _must_flush(self) -> bool:
        is_many = (
            self._unflushed_docs >= folder_view.UNFLUSHED_DOCS
            or self._unflushed_bytes >= folder_view.UNFLUSHED_BYTES
        )
        return is_many and _UNFLUSHED not in self._refused

    def _flush_if_due(self) -> bool:
        return self._must_flush() and self._flush()

    def _copy_log_if_due(self) -> None:
        if self._log_pages >= LOG_PAGES:
            with self._guard:
                self._log_pages = 0
            shrinking.copy_log(self._home)

    def _between(self) -> None:
        """Called between two pieces of a merge: flush first, so that queries stay fast while a long merge goes on."""
        if self._is_stopped:
            raise _Stopped
        began = time.monotonic()
        if began >= self._not_before:
            try:
                self._copy_log_if_due()
                self._flush_if_due()
            except Exception as error:  # noqa: BLE001 - kept, and raised by the next change
                self._note_failure(error, time.monotonic() - began)

    def _flush(self, before: int = 1 << 62) -> bool:
        """Flush the oldest documents with numbers below `before` to a segment; return whether there were any."""
        with self._refusing(_UNFLUSHED):
            with self._reading() as tables:
                unflushed = oldest_unflushed(tables, before, _FLUSHED_AT_ONCE)
            if not unflushed.numbers:
                return False
            live = np.flatnonzero(unflushed.is_live)
            with self._new_segment() as path:
                digest = b""
                if live.size:
                    numbers = np.array(unflushed.numbers, np.int64)[live]
                    blobs = [unflushed.blobs[at] for at in live.tolist()]
                    sketches = from_bytes(numbers.tolist(), blobs, self._home.layout)
                    digest = self._home.write_segment(path, numbers, sketches)
                replace = partial(
                    replace_segments, unflushed.numbers, [], path.name, Merged(live.size, digest)
                )
                self._home.wait_for_disk(self._home.commit_segments(replace))
        with self._guard:
            self._unflushed_docs -= len(unflushed.numbers)
            self._unflushed_bytes -= sum(map(len, unflushed.blobs))
        return True

    def _merge_if_due(self) -> bool:
        with self._reading() as tables:
            segments = [
                segment for segment in tables.segments() if segment.name not in self._refused
            ]
        chosen = _too_many(
            segments, {segment.name: self._bytes_of(segment.name) for segment in segments}
        )
        if chosen:
            self._merge(chosen)
        return bool(chosen)

    def _merge(self, chosen: Sequence[StoredSegment]) -> None:
        """Merge segments into one, without the documents that were removed."""
        layout = self._home.layout
        names = [stored.name for stored in chosen]
        segments = []
        for stored in chosen:
            with self._refusing(stored.name):
                segments.append(self._open_intact(stored))
        with self._refusing(*names), self._new_segment() as target:
            with self._reading() as tables:
                is_live = [are_stored(segment.arrays["numbers"], tables) for segment in segments]
            merged = merge_segments(target, segments, is_live, layout, self._between)
            sync_folder(target.parent)
            number = self._home.commit_segments(
                partial(replace_segments, [], names, target.name, merged)
            )
            self._home.wait_for_disk(number)
        self.num_merges += 1
        for name in names:
            self._path_of(name).unlink(missing_ok=True)

    def _open_intact(self, stored: StoredSegment) -> Segment:
        """Open a segment to merge it, and verify all of it once: later, its damage would have valid digests."""
        path = self._path_of(stored.name)
        try:
            segment = Segment(path, self._home.layout, digest=stored.digest, is_scanned=True)
        except FileNotFoundError as error:
            raise damaged(f"the segment {stored.name} is missing") from error
        what = segment.check(self._between)
        if what is not None:
            raise damaged(what)
        return segment

    def _bytes_of(self, name: str) -> int:
        with self._refusing(name):
            try:
                return self._path_of(name).stat().st_size
            except FileNotFoundError as error:
                raise damaged(f"the segment {name} is missing") from error

    def _path_of(self, name: str) -> Path:
        return self._home.folder / SEGMENTS / name

    @contextlib.contextmanager
    def _new_segment(self) -> Iterator[Path]:
        """Name a new segment; after an error, delete it unless a commit names it."""
        path = self._home.new_segment()
        try:
            yield path
        except BaseException:
            # If the database cannot be asked, the next process that opens the index decides.
            with contextlib.suppress(sqlite3.Error, NearDupError), self._reading() as tables:
                if path.name not in {segment.name for segment in tables.segments()}:
                    path.unlink(missing_ok=True)
            raise

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Let no segment be written or merged meanwhile."""
        with self._working:
            yield

    def forget_damage(self) -> None:
        """Forget the damage that was found, because the index was read as a whole and is being repaired."""
        with self._guard:
            self._refused.clear()
            self._untold = None
            self.damage.clear()

    def compact(self) -> None:
        """Merge what was there when this was called, without removed and expired documents; then free space."""
        with self._working, explained(self._home.folder):
            self._remove_expired(time.time())
            with self._reading() as tables:
                next_number = tables.state().next_number
            while self._flush(next_number):
                pass
            with self._reading() as tables:
                segments = tables.segments()
            if segments:
                self._merge(segments)
            shrinking.shrink(self._home, self._between)

    def _remove_expired(self, now: float) -> None:
        with self._reading() as tables:
            numbers = tables.expired(now)
        for chunk in sqlite.chunks(numbers):
            self._home.commit_segments(partial(remove_expired, chunk, now))


# Weak: an index that was given up without being closed, as after an interrupt, gives up its lock too.
_UNCOLLECTED: Final[weakref.WeakSet[Merging]] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """End all threads: one that still works while the interpreter is torn down could crash it."""
    for merging in list(_UNCOLLECTED):
        merging.stop()


def _too_many(segments: Sequence[StoredSegment], sizes: dict[str, int]) -> list[StoredSegment]:
    """Return the segments to merge now: the smallest of the lowest tier that has too many, as many as may be merged.

    sizes: the bytes of each file.
    """
    tiers: dict[int, list[StoredSegment]] = {}
    for segment in segments:
        num_bytes = sizes[segment.name]
        tier = 0
        while (
            segment.documents > folder_view.UNFLUSHED_DOCS * TIER**tier
            or num_bytes > folder_view.UNFLUSHED_BYTES * TIER**tier
        ):
            tier += 1
        tiers.setdefault(tier, []).append(segment)
    for _, members in sorted(tiers.items()):
        if len(members) < TIER:
            continue
        chosen: list[StoredSegment] = []
        docs = 0
        num_bytes = 0
        for segment in sorted(members, key=lambda member: (member.documents, member.name)):
            docs += segment.documents
            num_bytes += sizes[segment.name]
            if docs <= MAX_JOINED and num_bytes <= MAX_JOINED_BYTES:
                chosen.append(segment)
        if len(chosen) > 1:
            return chosen
    return []


def _is_full(error: BaseException) -> bool:
    """Whether an error says that there is no space, so that a later attempt may succeed."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_FULL", "SQLITE_BUSY"))


def _named(error: Exception, folder: Path) -> NearDupError:
    """Return an error that names the index."""
    try:
        with explained(folder):
            raise error
    except NearDupError as named:
        return named
    except Exception as other:  # noqa: BLE001 - named below
        return DataError(f"the segments of the index {folder} cannot be merged: {other!r}")
