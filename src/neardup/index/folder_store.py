"""The store in one folder: a SQLite file with documents, transactions and unflushed inserts, and segments beside it.

A change becomes visible with its SQLite commit, and its call returns once the commit is synced. A
segment is synced before the commit that names it, and deleted after a commit that no longer does is
synced.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from neardup.errors import ConfigError, DataError, NearDupError
from neardup.index import forking, index_folder, sqlite
from neardup.index.disk_sync import CommitLog, sync_file, sync_folder
from neardup.index.folder_view import FolderChange, FolderView, SegmentVanishedError
from neardup.index.index_folder import SEGMENTS
from neardup.index.integrity import find_damage
from neardup.index.merge_thread import Merging
from neardup.index.opened_files import FileChangedError, OpenedFiles
from neardup.index.repair import Repair, apply_repair, find_lost
from neardup.index.segment import Segment, write_segment
from neardup.index.settings import stored_settings
from neardup.index.sketches import Layout, Sketches, damaged
from neardup.index.sqlite import StoredSegment, Tables
from neardup.index.sqlite_errors import explained
from neardup.index.store import Result
from neardup.index.writer_lock import WriterLock
from neardup.io.storage.work_folder import check_writable, remove_folder, reserve
from neardup.measures.base import I64

_ATTEMPTS: Final = 8


class FolderStore:
    """An index in one folder; many processes and threads read while one process writes."""

    def __init__(
        self, folder: Path, layout: Layout, *, read_only: bool, durability: str, timeout: float
    ) -> None:
        self.folder = folder
        self.layout = layout
        self._is_durable = durability == "full"
        self._is_closed = False
        self._process = os.getpid()
        self._writing = threading.RLock()
        self._reopening = threading.Lock()
        self._log = CommitLog(folder / sqlite.LOG)
        self._lock: WriterLock | None = None
        self._writer: sqlite3.Connection | None = None
        self._opened = OpenedFiles(folder, layout, is_writer=not read_only)
        self._merging = Merging(self)
        try:
            if not read_only:
                self._lock = WriterLock(folder, timeout)
                self._open_writer()
        except BaseException:
            self._release()
            raise
        forking.register(self)

    def _open_writer(self) -> None:
        with explained(self.folder):
            self._writer = sqlite.connect(self.folder, writable=True)
            # A list of segments that cannot be read: `check` and `repair` name it.
            with contextlib.suppress(DataError):
                self._remove_orphans()

    def read(self, ask: Callable[[Any], Result]) -> Result:
        """Answer a question from one commit; retry if a segment was merged away, or the disk changed, in between."""
        for attempt in range(_ATTEMPTS):
            files = self._files()
            try:
                with files.reading() as tables:
                    return ask(FolderView(files, tables))
            except (SegmentVanishedError, FileChangedError) as error:
                if attempt == _ATTEMPTS - 1:
                    raise damaged(str(error)) from error
        raise AssertionError("the last attempt returns or raises")

    def _files(self) -> OpenedFiles:
        """Return what is open of the index at the path; if another one has taken the path, open that one."""
        self._check_open()
        files = self._opened
        if files.is_current():
            return files
        with self._reopening:
            if self._opened is files:
                if self._writer is not None:
                    raise replaced(self.folder)
                self._check_alike()
                self._opened = OpenedFiles(self.folder, self.layout)
                files.close()
        return self._opened

    def _check_alike(self) -> None:
        """Raise if the index at the path has other settings than the one that was opened."""
        found = stored_settings(self.folder, sqlite.read_meta(self.folder)).layout
        if found != self.layout:
            raise DataError(
                f"the index {self.folder} was replaced by one with other settings while it was open",
                hint="open it again",
            )

    def change(self, make: Callable[[Any], Result]) -> Result:
        """Make one change, completely or not at all; return once it is on disk. Threads share the wait for the disk."""
        # Before the lock: a thread of the parent may hold it in a forked child, for ever.
        self._check_open()
        with self._writing, explained(self.folder):
            self._check_writable()
            self._merging.raise_untold()
            try:
                result, change, number = self._commit(make)
            except SegmentVanishedError as error:  # only this process merges segments
                raise damaged(str(error)) from error
        self._merging.note(change)
        if self._is_durable:
            self._log.wait(number)
        return result

    def _commit(self, make: Callable[[Any], Result]) -> tuple[Result, FolderChange, int]:
        """Make and commit one change; return the number of its commit too."""
        writer = self._check_writable()
        change: FolderChange | None = None
        try:
            self._begin(writer)
            change = FolderChange(self._opened, Tables(writer), self)
            result = make(change)
            change.finish()
            writer.execute("COMMIT")
        except BaseException:
            self._undo(writer, change.new_segments if change is not None else [])
            raise
        return result, change, self._log.add()

    def commit_segments(self, make: Callable[[Tables], None]) -> int:
        """Make one commit that changes the list of segments; return its number."""
        with self._writing, forking.OUTSIDE_SQLITE:
            writer = self._check_writable()
            try:
                self._begin(writer)
                make(Tables(writer))
                writer.execute("COMMIT")
            except BaseException:
                self._undo(writer, [])
                raise
            return self._log.add()

    @staticmethod
    def _begin(writer: sqlite3.Connection) -> None:
        """Begin a transaction; if an interrupt came while the last one was undone, undo that first."""
        if writer.in_transaction:
            writer.execute("ROLLBACK")
        writer.execute("BEGIN IMMEDIATE")

    @staticmethod
    def _undo(writer: sqlite3.Connection, new_segments: Sequence[Path]) -> None:
        """Undo a change that failed or was interrupted, unless it was committed already: the database decides."""
        if writer.in_transaction:
            writer.execute("ROLLBACK")
        named = {segment.name for segment in Tables(writer).segments()}
        for path in new_segments:
            if path.name not in named:
                path.unlink(missing_ok=True)

    def with_writer(self, make: Callable[[Tables], object]) -> None:
        """Call a function with the connection that writes, outside of a transaction, while nobody else writes."""
        with self._writing, forking.OUTSIDE_SQLITE:
            make(Tables(self._check_writable()))

    def wait_for_disk(self, number: int) -> None:
        """Return when the commit of this number is on disk."""
        self._log.wait(number)

    def compact(self) -> None:
        """Merge all segments and the unflushed documents, without removed and expired ones; others write meanwhile."""
        self._check_writable()
        self._merging.compact()
        self._log.sync()

    def finish_merging(self) -> None:
        """Return when all segments that are due are written and merged, which a thread does beside the changes."""
        self._merging.finish()

    def new_segment(self) -> Path:
        """Return the path of the next segment."""
        used = [int(name[:8]) for name in _segment_names(self.folder)]
        number = max(used, default=0) + 1
        return self.folder / SEGMENTS / f"{number:08}-{secrets.token_hex(4)}.run"

    def write_segment(self, path: Path, numbers: I64, sketches: Sketches) -> bytes:
        """Write a segment, and sync its folder entry; return the digest of its header."""
        digest = write_segment(path, numbers, sketches, self.layout)
        sync_folder(path.parent)
        return digest

    def check(self) -> list[str]:
        """Read everything; describe any damage."""
        found: list[str] = []
        for _ in range(_ATTEMPTS):
            files = self._files()
            with files.reading() as tables:
                generation = tables.state().generation
                found = find_damage(tables, self.folder / SEGMENTS, self.layout)
            # Beside a writer, a segment that this commit names may have been merged with others and
            # deleted.
            if not found or self.read(lambda view: view.generation) == generation:
                break

        def is_new(what: str) -> bool:
            return not any(text in what for text in found)

        return found + list(filter(is_new, self.damage()))

    @property
    def num_merges(self) -> int:
        """How many times segments were merged since the store was opened."""
        return self._merging.num_merges

    def damage(self) -> list[str]:
        """Describe the damage that merging has found since the index was opened."""
        return list(self._merging.damage)

    def repair(self, sketch_again: Callable[[Sequence[str]], Sketches] | None) -> Repair:
        """Give up segments that are missing or damaged; sketch_again: how to store documents whose text is stored."""
        self._check_writable()
        with self._merging.paused(), self._writing:
            plan = self.read(
                lambda view: find_lost(view.tables, self.folder / SEGMENTS, self.layout)
            )
            self._merging.forget_damage()
            if plan.is_empty:
                return Repair([], [], 0)
            return self.change(lambda change: apply_repair(change, plan, sketch_again))

    def snapshot(self, path: Path, *, copy: bool = False) -> None:
        """Copy one commit to another folder, completely or not at all; copy: segments too, instead of linking them."""
        if os.path.lexists(path):
            raise ConfigError(f"{path} already exists", hint="choose another path for the snapshot")
        if self.folder.resolve() in path.resolve().parents:
            raise ConfigError(
                f"{path} is inside the index {self.folder}", hint="choose a path outside it"
            )
        check_writable(path, "path")
        for attempt in range(_ATTEMPTS):
            with explained(path), reserve(path, draft="index") as work:
                try:
                    self._copy(work / "index", copy=copy)
                except FileNotFoundError as error:
                    # A segment was merged with others before it was copied.
                    remove_folder(work)
                    if attempt == _ATTEMPTS - 1:
                        raise damaged(str(error)) from error
                    continue
                (work / "index").rename(path)
                sync_folder(path.parent)
                remove_folder(work)
                return

    def _copy(self, target: Path, *, copy: bool) -> None:
        make_folder(target)
        with (
            explained(self.folder),
            contextlib.closing(sqlite3.connect(target / index_folder.FILE)) as copied,
        ):
            with self._files().reading() as tables:
                tables.connection.backup(copied)
            copied.execute("PRAGMA journal_mode = WAL")
            tables = Tables(copied)
            segments = tables.segments()
            # Another id, because the two will differ: a reader must notice when one takes the place
            # of the other.
            tables.replace_state(tables.state()._replace(index_id=sqlite.new_index_id()))
            copied.commit()
        for segment in segments:
            self._copy_segment(segment, target / SEGMENTS, copy=copy)
        sync_file(target / index_folder.FILE)
        for folder in (target / SEGMENTS, target):
            sync_folder(folder)

    def _copy_segment(self, segment: StoredSegment, target: Path, *, copy: bool) -> None:
        source = self.folder / SEGMENTS / segment.name
        damage = Segment(source, self.layout, digest=segment.digest, is_scanned=True).check()
        if damage is not None:
            raise damaged(damage)
        if copy:
            _copy_file(source, target / segment.name)
        else:
            _link_or_copy(source, target / segment.name)

    def close(self) -> None:
        """Close all connections, and let others write; the last connection that may write removes SQLite's log."""
        if self._is_forked():
            self._is_closed = True
            return
        try:
            self._merging.close()
        finally:
            with self._writing:
                self._release()

    def _release(self) -> None:
        """Close everything; the lock too if an interrupt or an error comes before the end."""
        self._is_closed = True
        try:
            self._opened.close()
            if self._writer is not None:
                # Raised by the change itself, or waived by durability="fast".
                with contextlib.suppress(NearDupError):
                    self._log.sync()
                self._writer.close()
                self._writer = None
            self._log.close()
        finally:
            if self._lock is not None:
                self._lock.release()

    def _is_forked(self) -> bool:
        return self._process != os.getpid()

    def disown(self) -> Iterator[sqlite3.Connection]:
        """In a forked child: give up the lock; yield the connections, which only the parent may close."""
        if self._lock is not None:
            self._lock.release()
        yield from self._opened.idle_connections()
        if self._writer is not None:
            yield self._writer

    def _check_open(self) -> None:
        if self._is_forked():
            raise NearDupError(
                f"the index {self.folder} was opened by process {self._process}, and cannot be used in process"
                f" {os.getpid()}, which was forked from it",
                hint="open it in each process, after the fork: neardup.Index.open(path, read_only=True)",
            )
        if self._is_closed:
            raise NearDupError(
                f"the index {self.folder} is closed", hint="open it again with neardup.Index.open"
            )

    def _check_writable(self) -> sqlite3.Connection:
        self._check_open()
        if self._writer is None or self._lock is None:
            raise ConfigError(
                f"the index {self.folder} was opened read-only",
                hint="open it without read_only=True",
            )
        self._lock.check()
        if not self._opened.is_current():
            raise replaced(self.folder)
        self._log.check()
        return self._writer

    def _remove_orphans(self) -> None:
        """Delete segments that no commit names, left by a killed process; none while a named one is missing."""
        named = {segment.name for segment in Tables(self._check_writable()).segments()}
        found = set(_segment_names(self.folder))
        orphans = found - named
        if orphans and named <= found:
            self._log.sync()  # the commit that dropped them may not be on disk yet
            for name in orphans:
                (self.folder / SEGMENTS / name).unlink(missing_ok=True)


def replaced(folder: Path) -> NearDupError:
    """Return the error for an index whose path was taken by another one."""
    return NearDupError(
        f"the index {folder} was replaced while it was open for writing",
        hint="close it and open it again",
    )


def _segment_names(folder: Path) -> list[str]:
    """Return the names of the files in the folder of segments that are named like segments."""
    names = []
    with os.scandir(folder / SEGMENTS) as entries:
        for entry in entries:
            is_named = sqlite.SEGMENT_NAME.fullmatch(entry.name)
            if is_named and not entry.is_dir(follow_symlinks=False):
                names.append(entry.name)
    return names


def make_folder(folder: Path) -> None:
    """Create the folders of an index, closed to other users."""
    folder.mkdir(mode=0o700)
    (folder / SEGMENTS).mkdir(mode=0o700)


def _link_or_copy(source: Path, target: Path) -> None:
    """Make a hard link, because segments never change; copy the file if it goes to another disk."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:
        _copy_file(source, target)


def _copy_file(source: Path, target: Path) -> None:
    shutil.copyfile(source, target, follow_symlinks=False)
    sync_file(target)
