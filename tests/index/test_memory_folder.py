"""An index in memory: the answers of one on disk, and nothing left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import neardup
from neardup import Index
from neardup.errors import ConfigError, DataError
from neardup.index import memory_folder
from support.index_texts import texts

TEXTS = texts(60, seed=3)
MAKE = """
import sys, time
from neardup import Index
index = Index.create(None)
print(index.path, flush=True)
sys.stdin.read()
"""


def test_an_index_in_memory_answers_as_one_on_disk(tmp_path):
    with (
        Index.create(tmp_path / "i", threshold=0.5) as disk,
        Index.create(None, threshold=0.5) as memory,
    ):
        for index in (disk, memory):
            index.insert_many(TEXTS)
            index.compact()
            index.remove(list(TEXTS)[::7])
        asked = memory.query_many(TEXTS, k="all")
        assert asked.num_rows > len(TEXTS) // 2
        assert asked == disk.query_many(TEXTS, k="all")
        memory.snapshot(tmp_path / "copy")
        assert memory.check() == []
    with Index.open(tmp_path / "copy", read_only=True) as copy:
        assert copy.query_many(TEXTS, k="all") == asked


def test_an_index_in_memory_is_gone_once_closed_or_unused():
    index = Index.create(None)
    index.insert("a", "to be or not to be")
    assert repr(index) == "<Index in memory: 1 document, jaccard, threshold 0.8>"
    folder = index.path.parent
    index.close()
    assert not folder.exists()
    assert repr(index) == "<Index in memory: jaccard, threshold 0.8>"
    index.close()
    other = Index.create(None)
    folder = other.path.parent
    del other
    assert not folder.exists()


def test_what_a_killed_process_left_is_deleted_and_what_is_open_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(memory_folder.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(memory_folder, "_SHARED_MEMORY", tmp_path / "none")
    programs = []
    for _ in range(2):
        program = subprocess.Popen(
            [sys.executable, "-c", MAKE.replace("index = ", _NO_SHARED + "index = ")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        programs.append((program, Path(program.stdout.readline().strip()).parent))
    (killed, left), (alive, used) = programs
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    for folder in (left, used):
        assert folder.parent == tmp_path
        os.utime(folder, (0, 0))
    with Index.create(None) as index:
        assert not left.exists()
        assert used.exists()
        assert index.path.parent.parent == tmp_path
    alive.communicate("")
    assert list(tmp_path.iterdir()) == []


_NO_SHARED = (
    "from neardup.index import memory_folder; from pathlib import Path; "
    "memory_folder._SHARED_MEMORY = Path('/nowhere')\n"
)


def test_wrong_settings_leave_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_folder.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(memory_folder, "_SHARED_MEMORY", tmp_path / "none")
    with pytest.raises(ConfigError):
        Index.create(None, threshold=80)
    with pytest.raises(ConfigError):
        Index.create(None, store="all")
    assert list(tmp_path.iterdir()) == []


def test_whole_numbers_are_ids_everywhere():
    with Index.create(None) as index:
        index.insert(7, "to be or not to be")
        index.insert_many({8: "all the world is a stage"})
        index.insert_many(["the rest is silence"], ids=np.array([9]))
        assert index.put(np.int64(9), "the rest is silence") == "replaced"
        assert index.insert_new(10, "to be or not to be").match.doc_id == "7"
        index.replace(8, "all the world is a stage, he said")
        assert list(index.ids()) == ["7", "9", "8"]
        assert index.get(7) == index.get("7")
        assert list(index.get_many([7, "8"])) == ["7", "8"]
        assert list(index.get_many(9)) == ["9"]
        assert index.known_ids([7, "x"]) == ["7"]
        assert 7 in index
        assert "7" in index
        assert True not in index
        assert index.remove(7) == 1
        assert index.remove([8, 9]) == 2
        with pytest.raises(
            ConfigError, match=r"`doc_id` must be a string or a whole number, got 1\.5"
        ):
            index.insert(1.5, "a")


def test_signatures_are_not_stored_as_documents():
    signed = neardup.signatures(["to be or not to be", "all the world is a stage"])
    with Index.create(None) as texts_index, Index.create(None, items_column="items") as items_index:
        for source in (signed, list(signed)):
            for index in (texts_index, items_index):
                with pytest.raises(DataError, match="array of uint32, as signatures are"):
                    index.insert_many(source, ids=["a", "b"])
        with pytest.raises(DataError, match="a document must be a text, got ndarray"):
            texts_index.insert("a", signed[0])
        with pytest.raises(DataError, match="array of uint32, as signatures are"):
            items_index.insert("a", signed[0])
        assert len(texts_index) == len(items_index) == 0
    for source in (signed, list(signed)):
        with pytest.raises(DataError, match=r"neardup\.estimate\(a, b\) compares two signatures"):
            neardup.find_pairs(source)
        with pytest.raises(DataError, match="`items` is an array of uint32"):
            neardup.find_pairs(items=source)
    numbers = signed.astype("int64")
    assert neardup.find_pairs(items=numbers).documents == 2
