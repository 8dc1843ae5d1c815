"""Many readers beside one writer: each call sees one commit, and a second writer gets an error that names the first."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from neardup import Index
from neardup.errors import NearDupError
from neardup.index import folder_view, merge_thread
from support.index_texts import texts


def test_a_second_writer_gets_an_error_that_names_the_first(tmp_path):
    with Index.create(tmp_path / "i") as index:
        index.insert("a", "some text")
        with pytest.raises(
            NearDupError, match=rf"another process is writing .*\(process {os.getpid()}\)"
        ):
            Index.open(tmp_path / "i", timeout=0.05)
        with Index.open(tmp_path / "i", read_only=True) as reader:
            assert "a" in reader
    Index.open(tmp_path / "i", timeout=0).close()


def test_a_second_writer_waits_for_the_first(tmp_path):
    index = Index.create(tmp_path / "i")
    threading.Timer(0.2, index.close).start()
    with Index.open(tmp_path / "i", timeout=20) as second:
        second.insert("b", "text")


def test_readers_see_whole_batches_while_segments_are_written_and_merged(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 6)
    monkeypatch.setattr(merge_thread, "TIER", 2)
    text = "one text that all of them share, word for word, from the first to the last"
    size = 5
    wrong = []
    stop = threading.Event()
    with Index.create(tmp_path / "i", durability="fast") as index:
        index.insert_many({f"0/{at}": text for at in range(size)})
        readers = [
            Index.open(tmp_path / "i", read_only=True),
            Index.open(tmp_path / "i", read_only=True),
        ]

        def read(reader):
            seen = 0
            while not stop.is_set():
                ids = [match.doc_id for match in reader.query(text, k=None)]
                if len(ids) % size or len(ids) < seen or len(set(ids)) < len(ids):
                    wrong.append(ids)
                seen = len(ids)

        threads = [
            threading.Thread(target=read, args=(reader,))
            for reader in (*readers, readers[0], index)
        ]
        for thread in threads:
            thread.start()
        for number in range(1, 25):
            index.insert_many({f"{number}/{at}": text for at in range(size)})
            if number % 6 == 0:
                index.compact()
        stop.set()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert len(readers[0].query(text, k=None)) == 25 * size
        for reader in readers:
            reader.close()


def test_a_call_whose_segments_are_merged_away_under_it_is_repeated(tmp_path):
    documents = texts(30, seed=3)
    seen = []
    with Index.create(tmp_path / "i") as index:
        index.insert_many(documents)
        index.compact()
        with Index.open(tmp_path / "i", read_only=True) as reader:

            def ask(view):
                seen.append(view.generation)
                if len(seen) == 1:  # the commit is chosen, its segment is not open yet
                    index.insert("more", "a document that makes another segment")
                    index.compact()
                return sum(numbers.size for numbers, _ in view.sketches())

            assert reader._store.read(ask) == 31
    assert len(seen) == 2


def test_another_process_finds_what_was_inserted(tmp_path):
    documents = texts(30, seed=2)
    program = (
        "import sys, neardup\n"
        "with neardup.Index.open(sys.argv[1], read_only=True) as index: print(*index.ids(), sep='\\n')"
    )
    with Index.create(tmp_path / "i") as index:
        index.insert_many(documents)
        index.remove("2-4")
        finished = subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / "i")],
            capture_output=True,
            text=True,
            check=True,
        )
    assert finished.stdout.split("\n")[:-1] == [name for name in documents if name != "2-4"]
