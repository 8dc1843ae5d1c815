"""Forged values behind valid digests: every use raises an error that names the row or the file."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import time
import zlib

import numpy as np
import pytest

from neardup import Index
from neardup.errors import DataError
from neardup.index import sqlite
from support.forging import forge_section, forged

TEXTS = [f"some words {number} that every text repeats once more" for number in range(6)]
RUN_FILE = r"[0-9]{8}-[0-9a-f]{8}\.run"


@pytest.fixture
def path(tmp_path):
    """An index with a run of four documents and a fresh one."""
    path = tmp_path / "index"
    with Index.create(path, store="text", size=1, num_perm=64, threshold=0.5) as index:
        index.insert_many({f"d{number}": TEXTS[number] for number in range(4)})
        index.compact()
        index.insert("fresh", TEXTS[4], payload={"day": 1})
    return path


PAYLOADS = ["{", "7", "[1]", "[" * 100_000, '{"a": %s}' % ("9" * 5_000)]


@pytest.mark.parametrize("payload", PAYLOADS, ids=["cut", "number", "list", "deep", "digits"])
def test_a_payload_that_is_no_json_object_names_its_document(path, tmp_path, payload):
    with forged(path, "documents") as connection:
        connection.execute("UPDATE documents SET payload = ? WHERE doc_id = 'fresh'", (payload,))
    named = "the payload of document number 5"
    create = Index.create(tmp_path / "other", store="text", size=1, num_perm=64, threshold=0.5)
    with Index.open(path, read_only=True) as index, create as other:
        for ask in (
            lambda: index.query(TEXTS[4]),
            lambda: index.get("fresh"),
            lambda: index.count(where={"day": 1}),
            lambda: index.export(tmp_path / "export.csv"),
            lambda: other.merge(index),
        ):
            with pytest.raises(DataError, match=named):
                ask()
        assert [what for what in index.check() if named in what]
        assert (len(other), other.check()) == (0, [])


@pytest.mark.parametrize(
    ("packed", "said"),
    [
        (zlib.compress(b"\xff\xfe"), "cannot be read"),
        (b"no zlib", "cannot be read"),
        (zlib.compress(b"cut")[:-2], "ends early"),
    ],
)
def test_a_text_that_cannot_be_read_names_its_document(path, packed, said):
    with forged(path, "texts") as connection:
        connection.execute("UPDATE texts SET text = ? WHERE number = 2", (packed,))
    with Index.open(path, read_only=True) as index:
        with pytest.raises(DataError, match=f"the text of document number 2 {said}"):
            index.get("d1")
        assert [what for what in index.check() if "the text of document number 2" in what]


def test_a_text_that_inflates_to_more_than_any_that_is_stored_is_not_inflated(path, monkeypatch):
    monkeypatch.setattr(sqlite, "MAX_TEXT_BYTES", 1_000)
    with forged(path, "texts") as connection:
        packed = zlib.compress(b"a" * 1_001)
        connection.execute("UPDATE texts SET text = ? WHERE number = 2", (packed,))
    with Index.open(path, read_only=True) as index:
        with pytest.raises(DataError, match=r"the text of document number 2 .* is larger than any"):
            index.get("d1")
        assert [what for what in index.check() if "the text of document number 2" in what]


@pytest.mark.parametrize("size", [-1, 2**62, 3])
def test_a_fresh_sketch_of_another_size_names_its_document(path, size):
    with forged(path, "fresh") as connection:
        (sketch,) = connection.execute("SELECT sketch FROM fresh").fetchone()
        forged_sketch = size.to_bytes(8, "little", signed=True) + sketch[8:]
        connection.execute("UPDATE fresh SET sketch = ?", (forged_sketch,))
    with (
        Index.open(path, read_only=True) as index,
        pytest.raises(DataError, match="document number 5, which is not"),
    ):
        index.query(TEXTS[4])


def test_a_document_with_an_impossible_number_is_named(path):
    with forged(path, "documents") as connection:
        connection.execute("UPDATE documents SET number = -3 WHERE doc_id = 'd0'")
    with (
        Index.open(path, read_only=True) as index,
        pytest.raises(DataError, match="document number -3"),
    ):
        list(index.ids())


def test_sizes_that_do_not_match_the_sets_of_a_run_are_damage(path):
    forge_section(path, "sizes", [8, 8, 8, 8])
    with Index.open(path) as index:
        for ask in (lambda: index.query(TEXTS[1]), index.compact):
            with pytest.raises(
                DataError, match=rf"the sizes in \S*{RUN_FILE} do not match its sets"
            ):
                ask()
        assert [what for what in index.check() if "do not match its sets" in what]
        assert index.repair().restored == 4  # from their texts
        assert index.check() == []


@pytest.mark.parametrize("sizes", [[2**60, 1, 1, 1], [2**40, 1, 1, 1], [-5, 20, 1, 1]])
def test_a_merge_does_not_make_room_for_forged_sizes(path, sizes):
    forge_section(path, "sizes", sizes)
    with Index.open(path) as index, pytest.raises(DataError, match="do not match its sets"):
        index.compact()


def test_sets_that_end_before_they_begin_name_the_run(path):
    forge_section(path, "ends", [0, 9, 3, 12])
    said = rf"a set in \S*{RUN_FILE} ends before it begins"
    with Index.open(path, read_only=True) as index, pytest.raises(DataError, match=said):
        index.query(TEXTS[1])


def test_sets_that_overlap_need_no_more_memory_than_the_file_has_bytes(path):
    # Documents 0 and 2 both claim every shingle of the run.
    (run,) = (path / "runs").glob("*.run")
    forge_section(path, "ends", [0, 36, 0, 36])
    forge_section(path, "sizes", [36, 0, 36, 0])
    with Index.open(path, read_only=True) as index:
        held = index._store.read(lambda view: view._segments()[0])
        assert held.path == run
        with pytest.raises(DataError, match="is in another one"):
            held.take(np.array([0, 2]))


@pytest.mark.parametrize(
    ("measure", "section", "value", "said"),
    [
        ("weighted", "weights", [0.0], "a weight in"),
        ("weighted", "weights", [-1.0], "a weight in"),
        ("weighted", "weights", [np.nan], "a weight in"),
        ("cosine", "norms", [0.0], "the length of a vector in"),
        ("cosine", "norms", [np.inf], "the length of a vector in"),
    ],
)
def test_weights_and_lengths_of_vectors_that_are_not_above_0_are_damage(
    tmp_path, measure, section, value, said
):
    is_cosine = measure == "cosine"
    settings = {"dimension": 4} if is_cosine else {}
    contents = (
        [np.arange(1.0, 5.0), np.ones(4)] if is_cosine else [{"a": 1.0, "b": 2.0}, {"c": 1.0}]
    )
    path = tmp_path / "index"
    with Index.create(path, measure=measure, threshold=0.5, **settings) as index:
        index.insert_many(np.array(contents) if is_cosine else contents, ids=["a", "b"])
        index.compact()
    forge_section(path, section, value)
    with Index.open(path, read_only=True) as index:
        with pytest.raises(DataError, match=rf"{said} \S*{RUN_FILE} is not above 0"):
            index.query(contents[0])
        assert [what for what in index.check() if said in what]


def test_a_change_beside_a_missing_run_names_it(path):
    (run,) = (path / "runs").glob("*.run")
    with Index.open(path) as index:
        run.unlink()
        with pytest.raises(DataError, match=f"the segment {run.name} is missing"):
            index.insert_new("new", TEXTS[5])


def test_the_size_of_an_index_does_not_follow_links(path):
    (path / "loop").symlink_to("loop")
    with Index.open(path, read_only=True) as index:
        assert index.info()["documents"] == 5


def test_a_folder_that_is_named_like_a_run_does_not_stop_a_writer(path):
    (path / "runs" / "00000099-0123abcd.run").mkdir()
    with Index.open(path) as index:
        index.insert("new", TEXTS[5])
        assert index.check() == []


@pytest.mark.parametrize("ending", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_link_or_a_pipe_beside_the_sqlite_file_is_refused(path, tmp_path, ending, kind):
    beside = path / f"index.sqlite{ending}"
    foreign = tmp_path / "foreign"
    foreign.write_text("a file of somebody else")
    if kind == "link":
        beside.symlink_to(foreign)
    else:
        os.mkfifo(beside)
    for read_only in (True, False):
        with pytest.raises(DataError, match=rf"index\.sqlite{ending} is not a regular file"):
            Index.open(path, read_only=read_only)
    assert foreign.read_text() == "a file of somebody else"


def test_settings_that_cannot_be_used_name_the_file(path):
    with forged(path, "meta") as connection:
        (settings,) = connection.execute(
            "SELECT value FROM meta WHERE name = 'settings'"
        ).fetchone()
        changed = settings.replace('"jaccard"', '"nothing"')
        assert changed != settings
        connection.execute("UPDATE meta SET value = ? WHERE name = 'settings'", (changed,))
    with pytest.raises(
        DataError, match=r"the settings in \S*index\.sqlite cannot be used"
    ) as raised:
        Index.open(path)
    assert str(raised.value).count("hint:") == 1


@pytest.mark.parametrize(("store", "measure"), [("shingles", "hamming"), ("signature", "jaccard")])
def test_settings_that_no_index_can_have_together_are_damage(tmp_path, store, measure):
    path = tmp_path / "index"
    Index.create(
        path, store=store, measure=measure, dimension=64 if measure == "hamming" else None
    ).close()
    with forged(path, "meta") as connection:
        (settings,) = connection.execute(
            "SELECT value FROM meta WHERE name = 'settings'"
        ).fetchone()
        changed = settings.replace('"containment": false', '"containment": true')
        assert changed != settings
        connection.execute("UPDATE meta SET value = ? WHERE name = 'settings'", (changed,))
    with pytest.raises(DataError, match="cannot be used: containment=True needs stored sets"):
        Index.open(path)


def test_an_alias_that_is_no_text_names_its_document(path, tmp_path):
    with Index.open(path) as index:
        index.insert_new("alias", TEXTS[0], on_duplicate="link")
    with forged(path, "names") as connection:
        connection.execute("UPDATE names SET doc_id = x'0001' WHERE is_alias")
    with Index.open(path, read_only=True) as index:
        for ask in (
            index.aliases,
            lambda: index.get("d0"),
            lambda: index.export(tmp_path / "export.csv"),
        ):
            with pytest.raises(DataError, match=r"document number 1 has the alias b'.x00.x01'"):
                ask()
        assert index.check() == ["1 ids without a document"]


def test_an_index_whose_sqlite_file_is_in_another_mode_can_be_written_beside_readers(path):
    with contextlib.closing(
        sqlite3.connect(path / "index.sqlite", isolation_level=None)
    ) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    with Index.open(path) as index:
        reader = sqlite3.connect(path / "index.sqlite", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM documents").fetchall()
        began = time.monotonic()
        index.insert("new", TEXTS[5])
        assert time.monotonic() - began < 30  # in the other mode it would wait 60 s, and fail
        reader.close()


def test_forged_numbers_that_nothing_relies_on_leave_the_rest_usable(path, tmp_path):
    shutil.copytree(path, tmp_path / "copy")
    with forged(tmp_path / "copy", "documents") as connection:
        connection.execute("UPDATE documents SET met = ?", (2**62,))
    with Index.open(tmp_path / "copy") as index:
        assert index.get("d1").times_matched == 2**62
