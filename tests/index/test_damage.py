"""A flipped bit is detected on reading or by check(), or is harmless; it never causes a crash."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3

import pytest

from neardup import Index
from neardup.errors import NearDupError

TEXTS = [f"some words {number} that every text repeats" for number in range(5)]
SETTINGS = {"size": 2, "num_perm": 16, "bands": 2, "rows": 4, "signature_filter": False}


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """An index of 15 KB with a segment, unflushed documents, texts, an alias, a removed document; and its answers."""
    path = tmp_path_factory.mktemp("sound") / "index"
    with Index.create(path, store="text", containment=True, **SETTINGS) as index:
        index.insert_many({"a": TEXTS[0], "b": TEXTS[1], "gone": TEXTS[2]})
        index.compact()
        index.insert("c", TEXTS[2], payload={"n": 1})
        index.insert("d", TEXTS[3], expires=4e9)
        index.insert_new("alias", TEXTS[0], on_duplicate="link")
        index.remove("gone")
    with contextlib.closing(
        sqlite3.connect(path / "index.sqlite", isolation_level=None)
    ) as connection:
        # Pages of 512 bytes instead of 4,096: the same tables in a fifth of the bytes.
        for statement in ("journal_mode = DELETE", "page_size = 512"):
            connection.execute(f"PRAGMA {statement}")
        connection.execute("VACUUM")
        connection.execute("PRAGMA journal_mode = WAL")
    with Index.open(path) as index:
        assert index.check() == []
        return path, answers(index)


def answers(index):
    documents = [index.get(doc_id) for doc_id in index.ids()]
    found = [index.query(text, k=None) for text in (TEXTS[0], TEXTS[2])]
    return documents, found, index.query(TEXTS[1], containment=0.5), "alias" in index


def flip(path, expected, file, place):
    """Flip one bit of a byte in place, and restore it; raise if that is neither detected nor harmless."""
    with file.open("r+b", buffering=0) as opened:

        def invert():
            opened.seek(place)
            byte = opened.read(1)[0]
            opened.seek(place)
            opened.write(bytes([byte ^ 1 << place % 8]))

        invert()
        try:
            with Index.open(path, read_only=True) as index:
                found = answers(index)
                damage = index.check()
            assert damage or found == expected, (
                f"byte {place} of {file.name} changed the answer, and nobody noticed"
            )
        except NearDupError:
            pass
        finally:
            invert()
            for name in ("index.sqlite-wal", "index.sqlite-shm"):
                (path / name).unlink(missing_ok=True)


def sweep(sound, tmp_path, step):
    path = tmp_path / "copy"
    expected = sound[1]
    shutil.copytree(sound[0], path)
    files = [file for file in path.rglob("*") if file.is_file()]
    assert {file.suffix for file in files} == {".run", ".sqlite", ".lock"}
    for file in files:
        for place in range(step // 2 if step > 1 else 0, file.stat().st_size, step):
            flip(path, expected, file, place)
    with Index.open(path, read_only=True) as index:
        assert (answers(index), index.check()) == (expected, [])


def test_flipped_bytes_are_detected_or_harmless(sound, tmp_path):
    sweep(sound, tmp_path, 61)


@pytest.mark.long
@pytest.mark.slow("opens an index once for every byte of it")
def test_a_flipped_byte_anywhere_is_detected_or_harmless(sound, tmp_path):
    sweep(sound, tmp_path, 1)


@pytest.mark.parametrize("size", [0, 100, 4096, 5000])
def test_a_truncated_segment_is_reported(sound, tmp_path, size):
    copy = tmp_path / "copy"
    shutil.copytree(sound[0], copy)
    segment = next(copy.rglob("*.run"))
    segment.write_bytes(segment.read_bytes()[:size])
    with Index.open(copy, read_only=True) as index:
        with pytest.raises(NearDupError, match="damaged"):
            index.query(TEXTS[1])
        assert index.check()


def test_a_missing_segment_is_reported(sound, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(sound[0], copy)
    next(copy.rglob("*.run")).unlink()
    with Index.open(copy, read_only=True) as index:
        with pytest.raises(NearDupError, match="is missing"):
            index.query(TEXTS[1])
        assert index.check()


def test_a_missing_text_is_reported(sound, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(sound[0], copy)
    with contextlib.closing(
        sqlite3.connect(copy / "index.sqlite", isolation_level=None)
    ) as connection:
        connection.execute("DELETE FROM texts WHERE number = (SELECT MIN(number) FROM texts)")
    with Index.open(copy, read_only=True) as index:
        with pytest.raises(NearDupError, match="damaged: the text of document number 1 is missing"):
            index.get("a")
        assert index.check() == ["1 documents without a text"]


def test_a_changed_definition_of_a_table_is_reported(sound, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(sound[0], copy)
    data = (copy / "index.sqlite").read_bytes()
    (copy / "index.sqlite").write_bytes(data.replace(b"text BLOB NOT NULL", b"text BLOC NOT NULL"))
    with pytest.raises(NearDupError, match="are not those of an index"):
        Index.open(copy)


def test_a_list_of_segments_that_cannot_be_read_is_reported(sound, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(sound[0], copy)
    with contextlib.closing(
        sqlite3.connect(copy / "index.sqlite", isolation_level=None)
    ) as connection:
        connection.execute("UPDATE runs SET name = x'00'")
    said = "the index is damaged: index.sqlite lists b'\\x00', which is not the name of a segment"
    with Index.open(copy, read_only=True) as index:
        with pytest.raises(NearDupError, match=re.escape(said)):
            index.query(TEXTS[1])
        assert said in index.check()
