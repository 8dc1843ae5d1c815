"""A forked process, another index at the same path, a deleted lock, a read-only disk: nothing answers for another."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from neardup import Index
from neardup.errors import ConfigError, DataError, NearDupError
from neardup.index import folder_view, sqlite
from support.index_texts import texts


def in_child(work):
    """Segment a function in a forked child; return what it returned or raised, as text."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            result = str(work())
        except NearDupError as error:
            result = error.message
        os.write(writing, result.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    return said


def test_a_forked_child_cannot_use_the_index_of_its_parent(tmp_path):
    with Index.create(tmp_path / "i") as index:
        index.insert("a", "a text of the parent")
        for use in (
            lambda: index.insert("b", "a text of the child"),
            lambda: index.query("a text"),
            index.compact,
        ):
            assert "cannot be used in process" in in_child(use)
        index.insert("c", "another text of the parent")
        assert (list(index.ids()), index.check()) == (["a", "c"], [])


def test_a_forked_child_does_not_wait_for_a_lock_that_a_thread_of_its_parent_held(tmp_path):
    with Index.create(tmp_path / "i") as index:
        is_held = threading.Event()
        may_end = threading.Event()

        def hold():
            with index._store._writing:
                is_held.set()
                may_end.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        is_held.wait()
        try:
            uses = [
                lambda: index.insert("b", "a text of the child"),
                lambda: index.put("b", "a text of the child"),
                lambda: index.remove("a"),
                index.compact,
                index.repair,
                index.check,
                lambda: index.snapshot(tmp_path / "copy"),
            ]
            for use in uses:
                assert "cannot be used in process" in in_child(use)
            assert in_child(index.close) == "None"
        finally:
            may_end.set()
            thread.join()


def test_a_forked_child_can_open_the_index_itself(tmp_path):
    with Index.create(tmp_path / "i") as index:
        index.insert("a", "a text of the parent")

        def read():
            with Index.open(tmp_path / "i", read_only=True) as own:
                return list(own.ids())

        assert in_child(read) == "['a']"


def test_a_child_that_outlives_its_parent_does_not_keep_the_lock(tmp_path):
    program = (
        "import os, sys, time, neardup\n"
        "index = neardup.Index.open(sys.argv[1])\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os.close(1)\n"
        "    os.close(2)\n"
        "    time.sleep(60)\n"
        "print(child, flush=True)\n"
        "os._exit(0)\n"
    )
    Index.create(tmp_path / "i").close()
    finished = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "i")], capture_output=True, check=True
    )
    try:
        Index.open(tmp_path / "i", timeout=0.5).close()
    finally:
        os.kill(int(finished.stdout), signal.SIGKILL)


def test_a_child_that_ends_as_usual_leaves_the_index_of_its_parent_alone(tmp_path):
    program = (
        "import os, sys, neardup\n"
        "index = neardup.Index.open(sys.argv[1])\n"
        "index.insert('a', 'a text of the parent')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    index.close()\n"
        "    sys.exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "index.insert('b', 'another text of the parent')\n"
        "print(*index.ids(), index.check())\n"
    )
    Index.create(tmp_path / "i").close()
    finished = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "i")], capture_output=True, check=True
    )
    assert finished.stdout.decode() == "a b []\n"


def made(path, seed, **settings):
    """An index of documents of its own."""
    with Index.create(path, durability="fast", **settings) as index:
        index.insert_many(texts(9, seed=seed))
        index.compact()


def put_in_place(new, path):
    """Let another index take a path, as a nightly job does."""
    path.rename(path.with_name("before.index"))
    new.rename(path)


def test_a_reader_follows_when_another_index_takes_the_path(tmp_path):
    made(tmp_path / "i", seed=1)
    made(tmp_path / "new", seed=2)
    with Index.open(tmp_path / "i", read_only=True) as reader:
        assert [match.doc_id for match in reader.query(texts(9, seed=1)["1-0"], k=1)] == ["1-0"]
        put_in_place(tmp_path / "new", tmp_path / "i")
        assert reader.query(texts(9, seed=1)["1-0"]) == []
        assert list(reader.ids()) == list(texts(9, seed=2))
        assert [match.doc_id for match in reader.query(texts(9, seed=2)["2-0"], k=1)] == ["2-0"]


def test_readers_beside_a_replacement_answer_from_one_index_or_the_other(tmp_path):
    path = tmp_path / "i"
    wrong = []
    stop = threading.Event()
    for number in range(6):
        made(tmp_path / str(number), seed=number % 2)
    (tmp_path / "0").rename(path)
    asked = [texts(9, seed=seed) for seed in (0, 1)]
    with Index.open(path, read_only=True) as reader:

        def read():
            while not stop.is_set():
                with contextlib.suppress(DataError):  # there is no index for a moment
                    found = reader.query(asked[0]["0-3"], k=None)
                    wrong.extend(match for match in found if match.doc_id not in asked[0])

        threads = [threading.Thread(target=read) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(1, 6):
            path.rename(tmp_path / f"before-{number}")
            (tmp_path / str(number)).rename(path)
            time.sleep(0.02)
        stop.set()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert list(reader.ids()) == list(asked[1])


def test_a_reader_notices_that_the_index_at_its_path_has_other_settings(tmp_path):
    made(tmp_path / "i", seed=1)
    made(tmp_path / "new", seed=2, size=3)
    with Index.open(tmp_path / "i", read_only=True) as reader:
        assert len(reader) == 9
        put_in_place(tmp_path / "new", tmp_path / "i")
        with pytest.raises(DataError, match="was replaced by one with other settings"):
            reader.query("some words that both could hold")


def test_a_reader_says_that_its_index_was_deleted(tmp_path):
    made(tmp_path / "i", seed=1)
    with Index.open(tmp_path / "i", read_only=True) as reader:
        assert len(reader) == 9
        shutil.rmtree(tmp_path / "i")
        with pytest.raises(DataError, match="no longer exists"):
            len(reader)


def test_a_writer_does_not_write_to_an_index_that_was_replaced(tmp_path):
    made(tmp_path / "i", seed=1)
    made(tmp_path / "new", seed=2)
    with Index.open(tmp_path / "i") as writer:
        put_in_place(tmp_path / "new", tmp_path / "i")
        with pytest.raises(NearDupError, match="was replaced"):
            writer.insert("a", "a text for the index that was here")
        with pytest.raises(NearDupError, match="was replaced"):
            len(writer)
    with Index.open(tmp_path / "i") as again:
        assert (list(again.ids()), again.check()) == (list(texts(9, seed=2)), [])


def test_a_deleted_lock_lets_no_second_process_write(tmp_path):
    with Index.create(tmp_path / "i") as first:
        first.insert("a", "a text of the first writer")
        (tmp_path / "i" / "writer.lock").unlink()
        with Index.open(tmp_path / "i") as second:
            second.insert("b", "a text of the second writer")
            with pytest.raises(NearDupError, match=r"its writer\.lock deleted"):
                first.insert("c", "a text that would collide")
            assert (list(second.ids()), second.check()) == (["a", "b"], [])


def test_a_lock_that_is_no_regular_file_is_refused(tmp_path):
    Index.create(tmp_path / "i").close()
    (tmp_path / "i" / "writer.lock").unlink()
    os.mkfifo(tmp_path / "i" / "writer.lock")
    with pytest.raises(DataError, match=r"writer.lock is not a regular file"):
        Index.open(tmp_path / "i")


def test_a_snapshot_that_takes_the_place_of_its_index_is_another_index(tmp_path):
    made(tmp_path / "i", seed=1)
    with Index.open(tmp_path / "i") as index:
        index.snapshot(tmp_path / "copy")
        identity = index._store.read(lambda view: view.index_id)
    with Index.open(tmp_path / "copy") as copy:
        assert copy._store.read(lambda view: view.index_id) != identity
        assert (list(copy.ids()), copy.check()) == (list(texts(9, seed=1)), [])


def test_a_reader_of_a_disk_that_it_cannot_write_to_is_not_stale(tmp_path, monkeypatch):
    path = tmp_path / "i"
    made(path, seed=1)
    is_allowed = os.access
    with monkeypatch.context() as patch:  # root may write to any folder
        patch.setattr(
            sqlite.os, "access", lambda place, mode: mode != os.W_OK and is_allowed(place, mode)
        )
        with Index.open(path, read_only=True) as reader:
            assert reader._store._opened._identity.is_immutable
            assert len(reader) == 9
            with monkeypatch.context() as writers, Index.open(path) as writer:
                writers.setattr(sqlite.os, "access", is_allowed)
                writer.insert("a", "a text that is written elsewhere")
                assert "a" in reader
            assert len(reader) == 10
            with Index.open(path) as writer:
                writer.remove("a")
            assert len(reader) == 9


def test_a_segment_with_the_name_of_a_file_elsewhere_is_damage_and_that_file_stays(tmp_path):
    made(tmp_path / "victim", seed=1)
    made(tmp_path / "i", seed=2)
    victim = next((tmp_path / "victim" / "runs").iterdir())
    with contextlib.closing(
        sqlite3.connect(tmp_path / "i" / "index.sqlite", isolation_level=None)
    ) as connection:
        connection.execute("UPDATE runs SET name = ?", (f"../../victim/runs/{victim.name}",))
    with Index.open(tmp_path / "i") as index:
        for use in (
            index.compact,
            lambda: index.snapshot(tmp_path / "copy"),
            lambda: index.query("some words"),
        ):
            with pytest.raises(DataError, match="is not the name of a segment"):
                use()
        assert any("is not the name of a segment" in damage for damage in index.check())
        assert index.repair().lost == list(texts(9, seed=2))
        assert index.check() == []
    assert victim.exists()
    with Index.open(tmp_path / "victim") as index:
        assert index.check() == []


def test_a_segment_of_another_index_in_place_of_the_own_is_damage(tmp_path):
    made(tmp_path / "i", seed=1)
    made(tmp_path / "other", seed=2)
    own, other = (next((tmp_path / name / "runs").iterdir()) for name in ("i", "other"))
    shutil.copy(other, own)
    with Index.open(tmp_path / "i", read_only=True) as index:
        with pytest.raises(DataError, match="is not the file that the index wrote"):
            index.query(texts(9, seed=2)["2-0"])
        assert any("is not the file that the index wrote" in damage for damage in index.check())


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
def test_a_segment_that_is_no_regular_file_is_damage_and_is_not_waited_for(tmp_path, kind):
    made(tmp_path / "i", seed=1)
    segment = next((tmp_path / "i" / "runs").iterdir())
    moved = segment.rename(tmp_path / "moved")
    if kind == "pipe":
        os.mkfifo(segment)
    elif kind == "link":
        segment.symlink_to(moved)
    else:
        segment.mkdir()
    with Index.open(tmp_path / "i", read_only=True) as index:
        with pytest.raises(DataError, match=r"is not a regular file|is a symbolic link"):
            index.query(texts(9, seed=1)["1-0"])
        assert index.check()


def test_no_copy_of_a_damaged_index_is_made_and_the_error_names_the_file(tmp_path):
    made(tmp_path / "i", seed=1)
    made(tmp_path / "other", seed=2)
    run = next((tmp_path / "i" / "runs").iterdir())
    data = bytearray(run.read_bytes())
    data[-100] ^= 1
    run.write_bytes(data)
    with Index.open(tmp_path / "i") as index, Index.open(tmp_path / "other") as other:
        for copy in (
            index.compact,
            lambda: index.snapshot(tmp_path / "copy"),
            lambda: index.export(tmp_path / "copy.parquet"),
            lambda: other.merge(index),
        ):
            with pytest.raises(DataError, match=f"of .*{run.name} has a wrong checksum"):
                copy()
        assert list(other.ids()) == list(texts(9, seed=2))
    assert not list(tmp_path.glob("copy*"))


def test_a_snapshot_shares_its_segments_unless_a_copy_is_asked_for(tmp_path):
    made(tmp_path / "i", seed=1)
    with Index.open(tmp_path / "i") as index:
        index.snapshot(tmp_path / "linked")
        index.snapshot(tmp_path / "copied", copy=True)
    (segment,) = (tmp_path / "i" / "runs").iterdir()
    assert segment.samefile(tmp_path / "linked" / "runs" / segment.name)
    assert not segment.samefile(tmp_path / "copied" / "runs" / segment.name)
    with Index.open(tmp_path / "copied") as copy:
        assert (len(copy), copy.check()) == (9, [])


@pytest.mark.parametrize(
    "address", ["postgresql://host/pages", "s3://bucket/pages.index", "file:///tmp/pages.index"]
)
def test_an_address_is_not_a_path_of_an_index(tmp_path, monkeypatch, address):
    monkeypatch.chdir(tmp_path)
    for use in (Index.create, Index.open):
        with pytest.raises(ConfigError, match="must be a folder on this machine, got the address"):
            use(address)
    assert list(tmp_path.iterdir()) == []


def test_check_beside_a_writer_reports_no_damage(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 4)
    found = []
    stop = threading.Event()
    with Index.create(tmp_path / "i", durability="fast") as index:
        index.insert_many(texts(9, seed=0))
        with Index.open(tmp_path / "i", read_only=True) as reader:

            def check():
                while not stop.is_set():
                    found.extend(reader.check())

            thread = threading.Thread(target=check)
            thread.start()
            for seed in range(1, 60):
                index.insert_many(texts(6, seed=seed))
                index.compact()
            stop.set()
            thread.join()
    assert found == []


def test_a_segment_that_is_merged_away_under_a_check_is_no_damage(tmp_path, monkeypatch):
    made(tmp_path / "i", seed=1)
    with Index.open(tmp_path / "i") as index:
        find_damage = folder_view_of_check(monkeypatch, index)
        assert index.check() == []
        assert find_damage == [False, True]


def folder_view_of_check(monkeypatch, index):
    """Compact the index after a check has read its commit, before it opens the segment; note which try was sound."""
    from neardup.index import folder_store

    find_damage = folder_store.find_damage
    tries = []

    def compacted_first(tables, segments, layout):
        if not tries:
            index.insert("more", "a document that makes another segment")
            index.compact()
        found = find_damage(tables, segments, layout)
        tries.append(found == [])
        return found

    monkeypatch.setattr(folder_store, "find_damage", compacted_first)
    return tries


def test_a_reader_of_an_earlier_commit_finds_a_document_that_was_replaced_since(tmp_path):
    text = "one text that is replaced by itself again and again and again"
    with Index.create(tmp_path / "i", durability="fast") as index:
        index.insert("a", text)
        index.compact()  # a new generation: what is unflushed of it is not in memory yet
        index.insert("b", "another text that stays as it is")

        def ask(view):
            index.replace("b", "another text that stays as it was")
            assert (
                index.query("another text that stays as it was")[0].doc_id == "b"
            )  # reads what is unflushed now
            sketches = index._sketch("another text that stays as it is")
            return [
                int(number)
                for candidates in view.look_up(sketches, 0.0, 0)
                for number in candidates.numbers[candidates.docs]
            ]

        assert 2 in index._store.read(ask)


def test_a_fork_waits_until_the_merging_thread_is_outside_of_sqlite(tmp_path):
    is_inside = threading.Event()
    order = []
    with Index.create(tmp_path / "i", durability="fast") as index:

        def read():
            with index._store._merging._reading() as tables:
                is_inside.set()
                time.sleep(0.1)
                tables.state()
                order.append("outside of SQLite")

        thread = threading.Thread(target=read)
        thread.start()
        is_inside.wait(20)
        assert in_child(lambda: "a child") == "a child"
        order.append("forked")
        thread.join()
    assert order == ["outside of SQLite", "forked"]
