"""The store in one folder: a SQLite file for documents, transactions and fresh inserts, and sorted runs beside it.

A change becomes visible with its SQLite commit, and its call returns once the commit is synced. A run is synced before
the commit that names it, and deleted after a commit that no longer does is synced.
"""

from __future__ import annotations

import contextlib
import os
import queue
import re
import secrets
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from neardup.errors import ConfigError, NearDupError
from neardup.index import database, index_folder
from neardup.index.database import Tables, explained
from neardup.index.disk_sync import CommitLog, sync_file, sync_folder
from neardup.index.folder_view import FolderChange, FolderView, Fresh, RunVanishedError
from neardup.index.integrity import find_damage
from neardup.index.merging import RUNS, Merging
from neardup.index.page_requests import DiskReads
from neardup.index.run_file import RunFile, write_run
from neardup.index.sketches import Layout, Sketches, damaged
from neardup.index.store import Answer
from neardup.index.writer_lock import WriterLock
from neardup.io.work_folder import check_writable, remove_folder, reserve
from neardup.measures.base import I64

_RUN_NAME: Final = re.compile(r"[0-9]{8}-[0-9a-f]{8}\.run")
_ATTEMPTS: Final = 8


class FolderStore:
    """An index in one folder; many processes and threads read while one process writes."""

    def __init__(self, folder: Path, layout: Layout, *, read_only: bool, durability: str, timeout: float) -> None:
        self.folder, self.layout, self._is_durable = folder, layout, durability == "full"
        self._lock = None if read_only else WriterLock(folder, timeout)
        self._writing = threading.RLock()
        self._readers: queue.SimpleQueue[sqlite3.Connection] = queue.SimpleQueue()
        self._cached: tuple[int, list[RunFile]] = -1, []
        self._fresh, self.disk_reads = Fresh(-1), DiskReads()
        self._writer: sqlite3.Connection | None = None
        self._log = CommitLog(folder / database.LOG)
        self._is_closed = False
        self._merging = Merging(self)
        if not read_only:
            with explained(folder):
                self._writer = database.connect(folder, writable=True)
                self._remove_orphans()

    def read(self, ask: Callable[[Any], Answer]) -> Answer:
        """Answer a question from one commit; retry if a run has been merged away in between."""
        self._check_open()
        for attempt in range(_ATTEMPTS):
            try:
                with self._reading() as tables:
                    return ask(FolderView(self, tables))
            except RunVanishedError as error:
                if attempt == _ATTEMPTS - 1:
                    raise damaged(str(error)) from error
        raise AssertionError("the last attempt returns or raises")

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Tables]:
        with explained(self.folder):
            try:
                connection = self._readers.get_nowait()
            except queue.Empty:
                connection = database.connect(self.folder, writable=False)
            try:
                connection.execute("BEGIN")
                yield Tables(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if self._is_closed:
                    connection.close()
                else:
                    self._readers.put(connection)

    def change(self, make: Callable[[Any], Answer]) -> Answer:
        """Make one change, completely or not at all; return once it is on disk. Threads share the wait for the disk."""
        with self._writing, explained(self.folder):
            self._check_writable()
            self._merging.raise_untold()
            answer, change, number = self._commit(make)
        self._merging.note(change)
        if self._is_durable:
            self._log.wait(number)
        return answer

    def _commit(self, make: Callable[[Any], Answer]) -> tuple[Answer, FolderChange, int]:
        """Make and commit one change; return the number of its commit too."""
        writer = self._check_writable()
        writer.execute("BEGIN IMMEDIATE")
        change: FolderChange | None = None
        try:
            change = FolderChange(self, Tables(writer))
            answer = make(change)
            change.store_waiting()
            generation = change.generation + bool(change.new_runs)
            change.tables.set_state(change.next_number, generation, change.num_documents)
            writer.execute("COMMIT")
        except BaseException:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            for path in change.new_runs if change is not None else ():
                path.unlink(missing_ok=True)
            raise
        return answer, change, self._log.add()

    def commit_runs(self, make: Callable[[Tables], None]) -> int:
        """Make one commit that changes the list of runs; return its number."""
        with self._writing:
            tables = Tables(self._check_writable())
            tables.connection.execute("BEGIN IMMEDIATE")
            try:
                make(tables)
                tables.connection.execute("COMMIT")
            except BaseException:
                if tables.connection.in_transaction:
                    tables.connection.execute("ROLLBACK")
                raise
            return self._log.add()

    def with_writer(self, make: Callable[[Tables], object]) -> None:
        """Call a function with the connection that writes, outside of a transaction, while nobody else writes."""
        with self._writing:
            make(Tables(self._check_writable()))

    def wait_for_disk(self, number: int) -> None:
        """Return when the commit of this number is on disk."""
        self._log.wait(number)

    def compact(self) -> None:
        """Merge all runs and the fresh documents, without removed and expired ones; others write meanwhile."""
        self._check_writable()
        self._merging.compact()
        self._log.sync()

    def finish_merging(self) -> None:
        """Return when all runs that are due are written and merged, which a thread does beside the changes."""
        self._merging.finish()

    def new_run(self) -> Path:
        """Return the path of the next run."""
        used = [int(name[:8]) for name in os.listdir(self.folder / RUNS) if _RUN_NAME.fullmatch(name)]  # noqa: PTH208
        return self.folder / RUNS / f"{max(used, default=0) + 1:08}-{secrets.token_hex(4)}.run"

    def write_run(self, path: Path, numbers: I64, sketches: Sketches) -> bytes:
        """Write a run, and sync its folder entry; return the digest of its header."""
        digest = write_run(path, numbers, sketches, self.layout)
        sync_folder(path.parent)
        return digest

    def runs_of(self, view: FolderView) -> list[RunFile]:
        """Return the runs of a commit, each opened once."""
        generation, runs = self._cached
        if generation == view.generation:
            return runs
        held = {run.path.name: run for run in runs}
        found: list[RunFile] = []
        for name, num_docs in view.tables.runs():
            if not _RUN_NAME.fullmatch(name):
                raise damaged(f"{name!r} is not the name of a run file")
            try:
                run = held.get(name) or RunFile(self.folder / RUNS / name, self.layout)
            except FileNotFoundError as error:
                raise RunVanishedError(f"the run file {name} is missing") from error
            if run.num_docs != num_docs:
                raise damaged(f"the run file {name} has {run.num_docs:,} documents instead of {num_docs:,}")
            found.append(run)
        self._cached = view.generation, found
        return found

    def fresh_of(self, generation: int) -> Fresh:
        """Return the fresh documents of a generation; all threads share those of the latest."""
        fresh = self._fresh
        if fresh.generation == generation:
            return fresh
        if generation < fresh.generation:
            return Fresh(generation)
        fresh = Fresh(generation, fresh)
        self._fresh = fresh
        return fresh

    def check(self) -> list[str]:
        """Read everything; describe any damage."""
        self._check_open()
        with self._reading() as tables:
            found = find_damage(tables, self.folder / RUNS, self.layout)
        return found + [what for what in self.damage() if not any(text in what for text in found)]

    def damage(self) -> list[str]:
        """Describe the damage that merging has found since the index was opened."""
        return list(self._merging.damage)

    def snapshot(self, path: Path) -> None:
        """Copy one commit to another folder, completely or not at all."""
        self._check_open()
        if os.path.lexists(path):
            raise ConfigError(f"{path} already exists", hint="choose another path for the snapshot")
        if self.folder.resolve() in path.resolve().parents:
            raise ConfigError(f"{path} is inside the index {self.folder}", hint="choose a path outside it")
        check_writable(path, "path")
        for attempt in range(_ATTEMPTS):
            with explained(path), reserve(path, draft="index") as work:
                try:
                    self._copy(work / "index")
                except FileNotFoundError as error:  # a run was merged with others before it was copied
                    remove_folder(work)
                    if attempt == _ATTEMPTS - 1:
                        raise damaged(str(error)) from error
                    continue
                (work / "index").rename(path)
                sync_folder(path.parent)
                remove_folder(work)
                return

    def _copy(self, target: Path) -> None:
        make_folder(target)
        with explained(self.folder), contextlib.closing(sqlite3.connect(target / index_folder.FILE)) as copy:
            with self._reading() as tables:
                tables.connection.backup(copy)
            copy.execute("PRAGMA journal_mode = WAL")
            names = [name for (name,) in copy.execute("SELECT name FROM runs")]
        for name in names:
            _link_or_copy(self.folder / RUNS / name, target / RUNS / name)
        sync_file(target / index_folder.FILE)
        for folder in (target / RUNS, target):
            sync_folder(folder)

    def close(self) -> None:
        """Close all connections, and let others write; the last connection that may write removes SQLite's log."""
        self._merging.close()
        with self._writing:
            self._is_closed = True
            self._cached, self._fresh = (-1, []), Fresh(-1)  # unmaps the runs, once no thread reads them
            with contextlib.suppress(queue.Empty):
                while True:
                    self._readers.get_nowait().close()
            if self._writer is not None:
                with contextlib.suppress(NearDupError):  # raised by the change itself, or waived by durability="fast"
                    self._log.sync()
                self._log.close()
                self._writer.close()
                self._writer = None
            if self._lock is not None:
                self._lock.release()

    def _check_open(self) -> None:
        if self._is_closed:
            raise NearDupError(f"the index {self.folder} is closed", hint="open it again with neardup.Index.open")

    def _check_writable(self) -> sqlite3.Connection:
        self._check_open()
        if self._writer is None:
            raise ConfigError(f"the index {self.folder} was opened read-only", hint="open it without read_only=True")
        self._log.check()
        return self._writer

    def _remove_orphans(self) -> None:
        """Delete runs that no commit names, left by a process that was killed."""
        named = {name for name, _ in Tables(self._check_writable()).runs()}
        found = [name for name in os.listdir(self.folder / RUNS) if _RUN_NAME.fullmatch(name)]  # noqa: PTH208
        if orphans := [name for name in found if name not in named]:
            self._log.sync()  # the commit that dropped them may not be on disk yet
            for name in orphans:
                (self.folder / RUNS / name).unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Create the folders of an index, closed to other users."""
    folder.mkdir(mode=0o700)
    (folder / RUNS).mkdir(mode=0o700)


def _link_or_copy(source: Path, target: Path) -> None:
    """Make a hard link, because runs never change; copy the file if it goes to another disk."""
    try:
        os.link(source, target, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)
        sync_file(target)
