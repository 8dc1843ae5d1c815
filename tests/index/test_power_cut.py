"""A power cut at any moment: only what was synced is left, and every acknowledged document is among it."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sqlite3
import threading
import time
from pathlib import Path

import pytest

from neardup import Index
from neardup.errors import NearDupError
from neardup.index import folder_view, merge_thread
from support.index_texts import texts

SQLITE = ("index.sqlite", "index.sqlite-wal")


def names_in(folder):
    return {path.name for path in folder.iterdir()}


class Disk:
    """What a power cut would leave of an index in the worst case.

    A file has the contents of its last sync, a new file appears with the next sync of its folder,
    and a deleted one is gone at once. SQLite syncs its main file around a checkpoint, so this file
    counts as synced with every commit.
    """

    def __init__(self, path, target, monkeypatch):
        self.path = path
        self.target = target
        self.synced = {}
        self.entries = set()
        self.cuts = 0
        self.when_deleted = lambda: None
        for name, after in (
            ("fsync", self.after_sync),
            ("fdatasync", self.after_sync),
            ("unlink", self.after_unlink),
        ):
            monkeypatch.setattr(os, name, self.followed(getattr(os, name), after))

    @staticmethod
    def followed(call, after):
        def both(*arguments, **named):
            call(*arguments, **named)
            after(*arguments)

        return both

    def after_sync(self, file):
        path = Path(f"/proc/self/fd/{file}").readlink()
        if path == self.path / "runs":
            self.entries = names_in(path)
        elif path.name in SQLITE and path.parent == self.path:
            self.synced |= {name: (self.path / name).read_bytes() for name in SQLITE}
        elif path.suffix == ".run":
            self.synced[path.name] = path.read_bytes()

    def after_unlink(self, path, **_):
        if Path(path).parent == self.path / "runs":
            self.when_deleted()

    @contextlib.contextmanager
    def cut(self):
        """The index after a power cut at this moment; the real one continues."""
        self.cuts += 1
        shutil.rmtree(self.target, ignore_errors=True)
        (self.target / "runs").mkdir(parents=True)
        for name in SQLITE:
            (self.target / name).write_bytes(self.synced[name])
        for name in self.entries & names_in(self.path / "runs"):
            (self.target / "runs" / name).write_bytes(self.synced.get(name, b""))
        with Index.open(self.target, read_only=True) as index:
            yield index


@pytest.fixture
def _small_limits(monkeypatch):
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 4)
    monkeypatch.setattr(merge_thread, "TIER", 2)


def change_often(index, acknowledge):
    """Insert one by one and in batches, remove, and compact; acknowledge each."""
    for round_number in range(3):
        for name, text in texts(12, seed=round_number).items():
            index.insert(name, text)
            acknowledge(added=[name])
        batch = texts(7, seed=100 + round_number)
        index.insert_many(batch)
        acknowledge(added=batch)
        gone = list(index.ids())[:3]
        index.remove(gone)
        acknowledge(removed=gone)
        if round_number == 1:
            index.compact()
            acknowledge()


@pytest.mark.usefixtures("_small_limits")
@pytest.mark.parametrize("durability", ["full", "fast"])
def test_a_power_cut_leaves_what_was_acknowledged(tmp_path, monkeypatch, durability):
    Index.create(tmp_path / "i").close()
    disk = Disk(tmp_path / "i", tmp_path / "cut", monkeypatch)
    expected = []

    def left_intact():
        with disk.cut() as left:
            assert left.check() == []
            return list(left.ids())

    def acknowledge(added=(), removed=()):
        expected[:] = [name for name in [*expected, *added] if name not in set(removed)]
        index._store.finish_merging()  # with cuts whenever a segment is deleted
        assert left_intact() == expected or durability == "fast"

    with Index.open(tmp_path / "i", durability=durability) as index:
        index.insert("first", "a text that is there before the first power cut")
        index.compact()  # which syncs, whatever the durability
        disk.when_deleted = left_intact
        acknowledge(added=["first"])
        change_often(index, acknowledge)
    assert disk.cuts > 60
    assert left_intact() == expected  # closing syncs too


@pytest.mark.usefixtures("_small_limits")
def test_a_process_that_was_killed_before_its_sync_loses_no_segment_to_a_power_cut(
    tmp_path, monkeypatch
):
    with Index.create(tmp_path / "i") as index:
        index.insert_many(texts(9, seed=1))
        index.insert_many(texts(9, seed=2))
        disk = Disk(tmp_path / "i", tmp_path / "cut", monkeypatch)
        index.insert("last", "a document that is synced")
        index._store.finish_merging()
        disk.entries = names_in(tmp_path / "i" / "runs")
        disk.synced |= {
            path.name: path.read_bytes() for path in (tmp_path / "i" / "runs").iterdir()
        }
        with (
            monkeypatch.context() as patch
        ):  # as if killed after the commit of a merge, before its sync
            patch.setattr(
                index._store._log, "_sync", lambda: (_ for _ in ()).throw(KeyboardInterrupt)
            )
            with pytest.raises(KeyboardInterrupt):
                index.compact()
        index._store._lock.release()
        with Index.open(tmp_path / "i") as again, disk.cut() as left:
            assert (left.check(), again.check()) == ([], [])
            assert list(left.ids()) == list(again.ids())


def test_threads_share_syncs_and_each_insert_waits_for_one(tmp_path, monkeypatch):
    threads = 8
    each = 6
    copies = []
    acknowledged = []
    with Index.create(tmp_path / "i") as index:
        index.insert("warm", "a first text")
        sync = os.fdatasync
        log = index._store._log
        before = index._store._log._committed
        rounds = itertools.count(1)
        target = [0]
        barrier = threading.Barrier(
            threads, lambda: target.__setitem__(0, before + threads * next(rounds))
        )

        def slow_sync(file):
            sync(file)
            copies.append({name: (tmp_path / "i" / name).read_bytes() for name in SQLITE})
            while log._committed < target[0]:  # it lasts until every thread has committed
                time.sleep(0.001)

        monkeypatch.setattr(os, "fdatasync", slow_sync)

        def insert(thread):
            for number in range(each):
                barrier.wait(60)
                index.insert(f"{thread}/{number}", f"text {number} of thread {thread}")
                acknowledged.append((f"{thread}/{number}", len(copies)))

        running = [threading.Thread(target=insert, args=(thread,)) for thread in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        # In a round, the first sync covers one thread or more, and the second all others.
        assert len(copies) <= 2 * each
    assert len(acknowledged) == threads * each
    for number, files in enumerate(copies, 1):
        for name, data in files.items():
            (tmp_path / name).write_bytes(data)
        with contextlib.closing(sqlite3.connect(tmp_path / SQLITE[0])) as copy:
            held = {doc_id for (doc_id,) in copy.execute("SELECT doc_id FROM documents")}
        assert {doc_id for doc_id, syncs in acknowledged if syncs == number} <= held


def test_a_failed_sync_is_an_error_and_no_later_change_is_acknowledged(tmp_path, monkeypatch):
    with Index.create(tmp_path / "i") as index:
        index.insert("first", "a text")
        with monkeypatch.context() as patch:
            patch.setattr(
                os, "fdatasync", lambda _: (_ for _ in ()).throw(OSError(5, "Input/output error"))
            )
            with pytest.raises(
                NearDupError,
                match=r"the disk did not confirm the last changes .*Input/output error",
            ):
                index.insert("second", "another text")
        with pytest.raises(NearDupError, match="the disk did not confirm"):
            index.insert("third", "one more text")
        assert "third" not in index
    with Index.open(tmp_path / "i") as index:
        index.insert("fourth", "a text after the disk was checked")
