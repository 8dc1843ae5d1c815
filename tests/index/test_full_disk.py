"""A full disk at any write: nothing of the change is stored, and earlier documents are intact."""

from __future__ import annotations

import errno
import os
import sqlite3

import pytest

from neardup import Index
from neardup.errors import DataError
from neardup.index import folder_store, folder_view, segment
from support.index_texts import texts

TEXT = "a text of some words that nobody else has written in this order"


@pytest.fixture
def index(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 4)
    with Index.create(tmp_path / "i") as made:
        made.insert("first", TEXT)
        yield made


def fail_at(monkeypatch, number):
    """Simulate a full disk at the n-th write."""
    writes = iter(range(10**9))
    write = os.pwrite

    def pwrite(*arguments):
        if next(writes) >= number:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(*arguments)

    monkeypatch.setattr(segment.os, "pwrite", pwrite)


def test_a_batch_that_does_not_fit_on_the_disk_is_not_stored(index, monkeypatch):
    documents = texts(20, seed=4)
    for number in range(9):
        with monkeypatch.context() as patch:
            fail_at(patch, number)
            with pytest.raises(DataError, match="the disk of the index"):
                index.insert_many(documents)
        assert list(index.ids()) == ["first"]
        assert list((index.path / "runs").iterdir()) == []
    assert index.check() == []
    index.insert_many(documents)
    assert len(index) == 21


def test_inserted_documents_survive_a_failed_compaction(index, monkeypatch):
    with monkeypatch.context() as patch:
        fail_at(patch, 0)
        for number in range(3):
            index.insert(f"{number}", f"{TEXT} {number}")
        with pytest.raises(DataError, match=r"the disk of the index .* is full"):
            index.compact()
    assert (list(index.ids()), index.info()["segments"]) == (["first", "0", "1", "2"], 0)
    index.compact()
    assert (index.info()["segments"], index.check(), len(index.query(TEXT))) == (1, [], 4)


def test_sqlite_that_cannot_grow_stores_nothing_of_a_change(index):
    sqlite = index._store._check_writable()
    pages = sqlite.execute("PRAGMA page_count").fetchone()[0]
    large = {"large": "x" * 60_000}
    for more in range(0, 12, 3):  # 60,000 bytes need 15 pages
        sqlite.execute(f"PRAGMA max_page_count = {pages + more}")
        with pytest.raises(DataError, match="the disk of the index"):
            index.insert("second", TEXT, payload=large)
        assert (list(index.ids()), index.check(), len(index.query(TEXT))) == (["first"], [], 1)
    sqlite.execute(f"PRAGMA max_page_count = {pages + 1000}")
    index.insert("second", TEXT, payload=large)
    assert (list(index.ids()), index.check()) == (["first", "second"], [])


def test_a_snapshot_that_does_not_fit_leaves_nothing(index, monkeypatch):
    index.compact()
    for part in ("_copy", "_link_or_copy"):
        target = folder_store.FolderStore if part == "_copy" else folder_store
        with monkeypatch.context() as patch:
            patch.setattr(
                target,
                part,
                lambda *_, **__: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left")),
            )
            with pytest.raises(DataError, match="the disk of the index"):
                index.snapshot(index.path.with_name("copy"))
        assert [path.name for path in index.path.parent.iterdir()] == ["i"]
    index.snapshot(index.path.with_name("copy"))


def test_an_input_output_error_is_not_called_damage(index, monkeypatch):
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_SHMSIZE"
    monkeypatch.setattr(folder_store.Tables, "set_state", lambda *_: (_ for _ in ()).throw(error))
    with pytest.raises(DataError, match="cannot be read or written: disk I/O error"):
        index.insert("second", TEXT)


def test_a_segment_of_a_change_that_cannot_be_committed_is_deleted(index, monkeypatch):
    with monkeypatch.context() as patch:
        full = OSError(errno.ENOSPC, "No space left on device")
        patch.setattr(folder_store.Tables, "set_state", lambda *_: (_ for _ in ()).throw(full))
        with pytest.raises(DataError, match="the disk of the index"):
            index.insert_many(texts(20, seed=4))
    assert list((index.path / "runs").iterdir()) == []
    assert (list(index.ids()), index.check()) == (["first"], [])
