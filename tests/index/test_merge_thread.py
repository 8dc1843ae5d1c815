"""Segments are written and merged beside the changes: nobody waits, nothing is lost, and damage is never copied."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import subprocess
import sys
import threading

import pytest

from neardup import Index
from neardup.errors import DataError
from neardup.index import folder_view, merge_thread, segment, sqlite
from neardup.index.segment import Segment
from support.index_texts import texts

TEXT = "a text of some words that nobody else has written in this order"


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An index that flushes at 4 documents and merges 2 segments."""
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 4)
    monkeypatch.setattr(merge_thread, "TIER", 2)
    with Index.create(tmp_path / "i", durability="fast") as made:
        yield made


def segments_of(index):
    return index._store.read(lambda view: [name for name, *_ in view.tables.segments()])


def meanwhile(monkeypatch, act):
    """Call a function once, in another thread, while the next merge copies its first piece."""
    merge = merge_thread.merge_segments
    waiting = [act]

    def merge_segments(path, segments, is_live, layout, between):
        def act_between():
            if waiting:
                thread = threading.Thread(target=waiting.pop())
                thread.start()
                thread.join(20)
                assert not thread.is_alive(), "it waits for the merge"
            between()

        return merge(path, segments, is_live, layout, act_between)

    monkeypatch.setattr(merge_thread, "merge_segments", merge_segments)


def test_an_insert_does_not_wait_for_a_merge(index, monkeypatch):
    meanwhile(monkeypatch, lambda: index.insert("beside", TEXT))
    for number in range(8):
        index.insert(str(number), f"{TEXT} {number}")
        index._store.finish_merging()
    assert "beside" in index
    assert len(index.query(TEXT, k=None)) == 9
    assert index.check() == []


def test_documents_are_written_while_an_index_is_compacted(index, monkeypatch):
    documents = texts(40, seed=1)
    index.insert_many(documents)
    seen = []

    def write():
        index.remove("1-3")
        index.insert("beside", TEXT)
        seen.append(sorted(index.ids()))

    meanwhile(monkeypatch, write)
    index.compact()
    expected = sorted({*documents, "beside"} - {"1-3"})
    assert seen == [expected]
    assert sorted(index.ids()) == expected
    assert "1-3" not in [match.doc_id for match in index.query(documents["1-3"])]
    assert [match.doc_id for match in index.query(TEXT)] == ["beside"]
    assert (index.info()["segments"], index.info()["unflushed"], index.check()) == (1, 1, [])
    index.compact()
    assert (index.info()["segments"], index.info()["unflushed"]) == (1, 0)


def test_unflushed_documents_are_flushed_while_a_merge_goes_on(index, monkeypatch):
    index.insert_many(texts(40, seed=1))
    meanwhile(monkeypatch, lambda: [index.insert(f"{at}", f"{TEXT} {at}") for at in range(5)])
    index.compact()
    assert (index.info()["segments"], index.info()["unflushed"]) == (2, 0)
    assert len(index.query(TEXT, k=None)) == 5


def test_small_batches_become_one_segment_when_they_are_flushed(index, monkeypatch):
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 45)  # 40 and a batch of 10 do not fit
    monkeypatch.setattr(merge_thread, "TIER", 100)
    documents = list(texts(200, seed=2).items())
    for first in range(0, 200, 10):
        index.insert_many(dict(documents[first : first + 10]))
        index._store.finish_merging()
    assert (index.info()["segments"], index.info()["unflushed"]) == (4, 0)
    assert index.check() == []


def test_unflushed_documents_are_flushed_by_their_bytes_too(index, monkeypatch):
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 1000)
    monkeypatch.setattr(folder_view, "UNFLUSHED_BYTES", 100_000)
    long = " ".join(f"word{number}" for number in range(3_000))  # 24 KB of shingles
    for number in range(6):
        index.insert(f"{number}", f"{number} {long}")
        index._store.finish_merging()
    assert (index.info()["segments"], index.info()["unflushed"]) == (1, 1)  # five of them
    assert len(index.query(long, k=None)) == 6


def test_a_batch_is_split_into_segments_by_bytes(index, monkeypatch):
    monkeypatch.setattr(folder_view, "SEGMENT_BYTES", 1)
    monkeypatch.setattr(merge_thread, "TIER", 100)
    monkeypatch.setattr("neardup.io.documents.in_memory.BATCH_ROWS", 10)
    index.insert_many(texts(40, seed=3))
    assert (index.info()["segments"], index.info()["unflushed"], index.check()) == (4, 0, [])


def test_segments_of_many_bytes_are_not_merged_automatically(index, monkeypatch):
    monkeypatch.setattr(merge_thread, "MAX_JOINED_BYTES", 1)
    for seed in range(6):
        index.insert_many(texts(10, seed))
    index._store.finish_merging()
    assert index.info()["segments"] == 6


def test_unflushed_documents_are_read_once_although_segments_change(index, monkeypatch):
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 8)
    index.insert_many({"a": TEXT, "b": f"{TEXT} b"})
    assert len(index.query(TEXT)) == 2
    index.insert_many(texts(20, seed=4))
    index.insert("c", f"{TEXT} c")
    read = []
    unflushed = sqlite.Tables.unflushed

    def followed(tables, after, before):
        numbers, blobs = unflushed(tables, after, before)
        read.extend(numbers)
        return numbers, blobs

    monkeypatch.setattr(sqlite.Tables, "unflushed", followed)
    assert len(index.query(TEXT)) == 3
    assert read == [23]


def test_a_full_disk_is_tried_again_at_a_later_change(index, monkeypatch):
    monkeypatch.setattr(merge_thread, "RETRY_RATIO", 0)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(segment.os, "pwrite", full)
        for number in range(6):
            index.insert(f"{number}", f"{TEXT} {number}")
            index._store.finish_merging()
        assert (index.info()["segments"], index.info()["unflushed"]) == (0, 6)
        assert list((index.path / "runs").iterdir()) == []
    index.insert("later", TEXT)
    index._store.finish_merging()
    assert (index.info()["segments"], index.info()["unflushed"], index.check()) == (1, 0, [])


def damage(path, at):
    """Flip a bit of a section of a segment."""
    with path.open("r+b", buffering=0) as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def sections_of(index):
    """Path of the only segment, and its sections."""
    (name,) = segments_of(index)
    path = index.path / "runs" / name
    return path, [
        section
        for section in Segment(path, index._settings.layout).sections.values()
        if section.num_bytes
    ]


@pytest.mark.parametrize("measure", ["jaccard", "weighted", "cosine"])
def test_damage_of_any_section_is_refused_by_compact(tmp_path, measure):
    settings = {"jaccard": {"containment": True}, "weighted": {}, "cosine": {"dimension": 4}}[
        measure
    ]
    documents = {"jaccard": {"a": TEXT, "b": TEXT}, "weighted": {"a": {"x": 1.0}, "b": {"y": 2.0}}}
    documents["cosine"] = {"a": [1.0, 2, 3, 4], "b": [4.0, 3, 2, 1]}
    with Index.create(tmp_path / "i", measure=measure, **settings) as index:
        for doc_id, content in documents[measure].items():
            index.insert(doc_id, content)
        index.compact()
        path, sections = sections_of(index)
        for section in sections:
            damage(path, section.offset)
            expected = f"the section {section.name} of {path} has a wrong checksum"
            with pytest.raises(DataError, match=expected):
                index.compact()
            assert expected in index.check()[0]
            assert segments_of(index) == [path.name]
            assert list(path.parent.iterdir()) == [path]
            damage(path, section.offset)
        index.compact()
        assert (index.check(), len(index)) == ([], 2)


@pytest.mark.long
@pytest.mark.slow("compacts an index once for every byte of its segment")
def test_damage_of_any_byte_of_any_section_is_refused_by_compact(tmp_path):
    with Index.create(tmp_path / "i", containment=True, num_perm=16, bands=2, rows=4) as index:
        index.insert_many({"a": TEXT, "b": f"{TEXT} b"})
        index.compact()
        path, sections = sections_of(index)
        for section in sections:
            for at in range(section.offset, section.offset + section.num_bytes):
                damage(path, at)
                with pytest.raises(DataError, match=f"the section {section.name} of "):
                    index.compact()
                damage(path, at)
        assert index.check() == []


def test_damage_found_by_a_merge_is_raised_once_and_never_merged(index, monkeypatch):
    index.insert_many(texts(10, seed=5))
    path, sections = sections_of(index)
    damage(path, next(section.offset for section in sections if section.name == "keys"))
    checked = []
    check = Segment.check
    monkeypatch.setattr(
        Segment,
        "check",
        lambda segment, *rest: [checked.append(segment.path), check(segment, *rest)][1],
    )
    expected = f"the section keys of {path} has a wrong checksum"
    # The wait after a failure, in proportion to what it took, is long on a busy machine.
    monkeypatch.setattr("neardup.index.merge_thread.RETRY_RATIO", 0)

    index.insert_many(texts(10, seed=6))
    index._store.finish_merging()
    with pytest.raises(
        DataError,
        match=f"{expected}; this was found while merging segments, and this change was not made",
    ):
        index.insert("a", TEXT)
    assert "a" not in index
    index.insert("a", TEXT)
    for seed in range(7, 12):
        index.insert_many(texts(10, seed))
        index._store.finish_merging()

    assert path.name in segments_of(index)
    assert checked.count(path) == 1
    assert len(segments_of(index)) < 6  # the others were merged
    assert any(expected in what for what in index.info()["damage"])
    assert any(expected in what for what in index.check())


def test_a_missing_segment_is_damage_that_a_merge_reports(index):
    index.insert_many(texts(10, seed=5))
    (name,) = segments_of(index)
    index._store.finish_merging()
    (index.path / "runs" / name).unlink()
    index.insert_many(texts(10, seed=6))
    index._store.finish_merging()
    with pytest.raises(DataError, match=f"{name} is missing"):
        index.insert("a", TEXT)


def test_closing_finishes_what_is_due(tmp_path, monkeypatch):
    monkeypatch.setattr(merge_thread, "TIER", 2)
    with Index.create(tmp_path / "i") as index:
        for seed in range(5):
            index.insert_many(texts(2050, seed))
        threads = [thread for thread in threading.enumerate() if thread.name == "neardup-merging"]
        assert len(threads) <= 1
    assert not any(thread.is_alive() for thread in threads)
    assert len(list((tmp_path / "i" / "runs").iterdir())) < 4


def test_a_process_that_ends_without_closing_ends_cleanly(tmp_path):
    program = (
        "import sys, neardup\n"
        "from neardup.index import folder_view, merge_thread\n"
        "folder_view.UNFLUSHED_DOCS, merge_thread.TIER = 4, 2\n"
        "index = neardup.Index.create(sys.argv[1], durability='fast')\n"
        "for number in range(60): index.insert(str(number), f'text {number}')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "i")], capture_output=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")
    with Index.open(tmp_path / "i") as index:
        assert (len(index), index.check()) == (60, [])


def test_a_forked_child_can_close_while_its_parent_merges(index, monkeypatch):
    codes = []

    def fork():
        child = os.fork()
        if child == 0:
            index._store._merging.finish()
            index._store._merging.close()
            os._exit(threading.active_count())
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    meanwhile(monkeypatch, fork)
    index.insert_many(texts(40, seed=1))
    index.compact()
    assert codes == [1]


def unused_pages(index):
    with contextlib.closing(sqlite3.connect(index.path / "index.sqlite")) as connection:
        return connection.execute("PRAGMA freelist_count").fetchone()[0]


@pytest.mark.parametrize("is_old", [False, True])
def test_compact_frees_pages_of_new_and_old_indexes(tmp_path, is_old):
    path = tmp_path / "i"
    Index.create(path, store="text").close()
    if is_old:  # a file that an earlier version made
        with contextlib.closing(
            sqlite3.connect(path / "index.sqlite", isolation_level=None)
        ) as connection:
            for statement in ("PRAGMA auto_vacuum = NONE", "VACUUM"):
                connection.execute(statement)
    with Index.open(path, durability="fast") as index:
        index.insert_many(texts(2_000, seed=7))
        index.remove(list(index.ids())[10:])
        assert unused_pages(index) > 50
        index.compact()
        assert unused_pages(index) == 0
        assert (index.check(), len(index)) == ([], 10)


def test_documents_are_written_while_pages_are_freed(tmp_path, monkeypatch):
    with Index.create(tmp_path / "i", store="text", durability="fast") as index:
        index.insert_many(texts(3_000, seed=7))
        index.remove(list(index.ids())[10:])
        seen = []
        monkeypatch.setattr("neardup.index.shrinking._FIRST_STEP_PAGES", 1)
        between = index._store._merging._between

        def insert():
            if unused_pages(index) > 10 and index.info()["segments"] == 1:
                seen.append(unused_pages(index))
                index.insert(f"new {len(seen)}", TEXT)
            between()

        monkeypatch.setattr(index._store._merging, "_between", insert)
        index.compact()
        assert seen == sorted(seen, reverse=True)
        assert seen
        assert (index.check(), len(index)) == ([], 10 + len(seen))


def test_expired_documents_are_deleted_by_compact_in_several_commits(index):
    index.insert_many(texts(10, seed=8))
    for number in range(30):
        index.insert(f"old {number}", f"{TEXT} {number}", expires=1.0)
    index.compact()
    rows = index._store.read(lambda view: view.tables.count("documents"))
    assert (rows, len(index), index.check()) == (10, 10, [])


def test_merging_starts_again_after_an_index_is_opened(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 100)
    with Index.create(tmp_path / "i") as index:
        index.insert_many(texts(50, seed=9))
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 4)
    with Index.open(tmp_path / "i") as index:
        index.insert("one", TEXT)
        index._store.finish_merging()
        assert index.info()["unflushed"] < 51


def test_the_log_of_sqlite_is_copied_beside_the_changes(index, monkeypatch):
    monkeypatch.setattr(merge_thread, "LOG_PAGES", 100)
    for number in range(300):
        index.insert(f"{number}", f"{TEXT} {number}")
    index._store.finish_merging()
    log = index.path / sqlite.LOG
    assert log.stat().st_size < 6 << 20  # the inserts write 10 MB or more
