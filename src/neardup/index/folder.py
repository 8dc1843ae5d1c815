"""The store in one folder: a SQLite file for documents, transactions and fresh inserts, and sorted runs beside it.

A change becomes visible with its SQLite commit, and its call returns once the commit is synced. A run is synced before
the commit that names it, and deleted after a commit that no longer does is synced.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import re
import secrets
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from neardup.errors import ConfigError, NearDupError
from neardup.index import database, index_folder
from neardup.index.compaction import Bools, merge_runs
from neardup.index.database import Tables, explained
from neardup.index.disk_sync import CommitLog, sync_file, sync_folder
from neardup.index.folder_view import FRESH_DOCS, RUN_DOCS, FolderChange, FolderView, Fresh, RunVanishedError
from neardup.index.integrity import find_damage
from neardup.index.page_requests import DiskReads
from neardup.index.run_file import RunFile, write_run
from neardup.index.sketches import Layout, Sketches, damaged, from_bytes
from neardup.index.store import Answer
from neardup.index.writer_lock import WriterLock
from neardup.io.storage.work_folder import check_writable, remove_folder, reserve
from neardup.measures.base import I64

RUNS: Final = "runs"
_RUN_NAME: Final = re.compile(r"[0-9]{8}-[0-9a-f]{8}\.run")
# Runs of one tier are merged when there are this many; each tier is this many times larger than the one before.
TIER: Final = 8
# The most documents merged automatically, which takes about a second; more would delay a single insert too long.
MOST_JOINED: Final = RUN_DOCS
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
            answer, number = self._commit(make)
            # The change is stored; if the disk is too full to merge runs, a later change merges them.
            with contextlib.suppress(OSError, sqlite3.OperationalError):
                self._tidy()
        if self._is_durable:
            self._log.wait(number)
        return answer

    def _commit(self, make: Callable[[Any], Answer]) -> tuple[Answer, int]:
        """Make and commit one change; return the number of its commit too."""
        writer = self._check_writable()
        writer.execute("BEGIN IMMEDIATE")
        change: FolderChange | None = None
        try:
            change = FolderChange(self, Tables(writer))
            answer = make(change)
            change.write_waiting(1)
            generation = change.generation + bool(change.new_runs)
            change.tables.set_state(change.next_number, generation, change.num_documents)
            writer.execute("COMMIT")
        except BaseException:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            for path in change.new_runs if change is not None else ():
                path.unlink(missing_ok=True)
            raise
        return answer, self._log.add()

    def _tidy(self) -> None:
        """Flush fresh documents and merge small runs when there are many."""
        tables = Tables(self._check_writable())
        if tables.count("fresh") >= FRESH_DOCS:
            self._flush()
        while chosen := _too_many(tables.runs()):
            self._join(chosen, is_flushed=False)

    def _flush(self) -> None:
        """Turn the fresh documents into a run."""
        with self._writing:
            self._join([], is_flushed=True)

    def compact(self) -> None:
        """Merge all runs and the fresh documents, without removed and expired ones."""
        with self._writing, explained(self.folder):
            tables = Tables(self._check_writable())
            self._join([name for name, _ in tables.runs()], is_flushed=True, is_final=True)
            # The runs are merged; if the disk is too full to shrink the SQLite file, later inserts reuse its pages.
            with contextlib.suppress(sqlite3.OperationalError):
                tables.vacuum()

    def _join(self, names: Sequence[str], *, is_flushed: bool, is_final: bool = False) -> None:
        """Replace runs and the fresh documents by one run; `is_final` drops expired documents, too."""
        tables, drafts = Tables(self._check_writable()), list[Path]()
        now = time.time() if is_final else -math.inf
        next_number, generation, num_documents = tables.state()
        numbers: list[int] = []
        try:
            paths = [self.folder / RUNS / name for name in names]
            if is_flushed:
                numbers, blobs = tables.fresh(-1, next_number)
                if blobs:
                    drafts.append(self.new_run())
                    self.write_run(drafts[0], np.array(numbers, np.int64), from_bytes(blobs, self.layout))
            if drafts and not paths and not is_final:
                target, count = drafts.pop(), len(numbers)
            else:
                target = self.new_run()
                count = self._merge(target, [*paths, *drafts], tables, now)
            tables.connection.execute("BEGIN IMMEDIATE")
            self._swap(tables, names, (target.name, count), numbers)
            removed = tables.remove(tables.fetch(tables.expired(now), -math.inf).values())
            tables.set_state(next_number, generation + 1, num_documents - removed)
            tables.connection.execute("COMMIT")
            self._log.wait(self._log.add())
        except BaseException:
            if tables.connection.in_transaction:
                tables.connection.execute("ROLLBACK")
            self._remove_orphans()
            raise
        for path in [*paths, *drafts]:
            path.unlink(missing_ok=True)

    def _merge(self, target: Path, paths: Sequence[Path], tables: Tables, now: float) -> int:
        runs = [RunFile(path, self.layout, is_scanned=True) for path in paths]
        count = merge_runs(target, runs, [_live(run, tables, now) for run in runs], self.layout) if runs else 0
        sync_folder(target.parent)
        return count

    @staticmethod
    def _swap(tables: Tables, names: Sequence[str], new: tuple[str, int], numbers: Sequence[int]) -> None:
        """Replace other runs and the fresh documents by a new run."""
        for name in names:
            tables.connection.execute("DELETE FROM runs WHERE name = ?", (name,))
        if new[1]:
            tables.add_run(*new)
        if numbers:
            tables.connection.execute("DELETE FROM fresh WHERE number <= ?", (numbers[-1],))

    def new_run(self) -> Path:
        """Return the path of the next run."""
        used = [int(name[:8]) for name in os.listdir(self.folder / RUNS) if _RUN_NAME.fullmatch(name)]  # noqa: PTH208
        return self.folder / RUNS / f"{max(used, default=0) + 1:08}-{secrets.token_hex(4)}.run"

    def write_run(self, path: Path, numbers: I64, sketches: Sketches) -> None:
        """Write a run, and sync its folder entry."""
        write_run(path, numbers, sketches, self.layout)
        sync_folder(path.parent)

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
        fresh = Fresh(generation)
        if generation > self._fresh.generation:
            self._fresh = fresh
        return fresh

    def check(self) -> list[str]:
        """Read everything; describe any damage."""
        self._check_open()
        with self._reading() as tables:
            return find_damage(tables, self.folder / RUNS, self.layout)

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


def _too_many(runs: Sequence[tuple[str, int]]) -> list[str]:
    """Return the runs to merge now: the smallest of the lowest tier that has too many, as many as may be merged."""
    tiers: dict[int, list[tuple[int, str]]] = {}
    for name, num_docs in runs:
        tier = 0
        while num_docs > FRESH_DOCS * TIER**tier:
            tier += 1
        tiers.setdefault(tier, []).append((num_docs, name))
    for _, members in sorted(tiers.items()):
        chosen, total = list[str](), 0
        for num_docs, name in sorted(members) if len(members) >= TIER else ():
            total += num_docs
            if total <= MOST_JOINED:
                chosen.append(name)
        if len(chosen) > 1:
            return chosen
    return []


def _live(run: RunFile, tables: Tables, now: float) -> Bools:
    """Return which documents of a run are neither removed nor, at a time, expired."""
    numbers = run.arrays["numbers"]
    if not numbers.size:
        return np.zeros(0, np.bool_)
    rows = tables.connection.execute(
        "SELECT number FROM documents WHERE number BETWEEN ? AND ? AND (expires IS NULL OR expires > ?)",
        (int(numbers.min()), int(numbers.max()), now),
    )
    live = np.fromiter((number for (number,) in rows), np.int64)
    is_live: Bools = np.isin(numbers, live)
    return is_live
