"""The frozen format: golden files, and invalid headers that are refused before any of it is used."""

from __future__ import annotations

import contextlib
import re
import shutil
import sqlite3
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup import Index
from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.index import sqlite
from neardup.index.candidates import CandidateSearch
from neardup.index.merge import merge_segments
from neardup.index.segment import HEADER_BYTES, Segment, digest_of, write_segment
from neardup.index.settings import new_settings
from neardup.index.sketches import from_bytes, sketch_contents, to_bytes
from neardup.index.store import Document

GOLDEN = Path(__file__).parent / "golden"
PAGE = (Path(__file__).parents[2] / "docs" / "index-format.md").read_text("utf-8")
SETTINGS = new_settings(Config.of(size=2, num_perm=16, bands=2, rows=4, seed=1), "shingles")
TEXTS = ["to be or not to be", "or not to be", "..."]


OLDER = SETTINGS._replace(config=SETTINGS.config.for_format("fast-2 word-2"))


def sketches():
    return sketch_contents(pa.array(TEXTS, pa.large_string()), SETTINGS.plan, SETTINGS.config)


def test_a_segment_matches_the_golden_file(tmp_path):
    write_segment(tmp_path / "a.run", np.array([1, 2, 4]), sketches(), SETTINGS.layout)
    assert (tmp_path / "a.run").read_bytes() == (GOLDEN / "three.run").read_bytes()
    segment = Segment(GOLDEN / "three.run", SETTINGS.layout)
    assert segment.check() is None
    assert (
        segment.take(np.array([0, 1, 2])).items.shingles.tolist()
        == sketches().items.shingles.tolist()
    )


def test_a_segment_of_version_1_is_read_and_merged_into_one_of_version_2(tmp_path):
    old = Segment(GOLDEN / "three-1.run", OLDER.layout)
    assert old.check() is None
    assert "bitmaps" not in old.arrays
    assert [array.tolist() for array in CandidateSearch(old, sketches(), 0.1, 0).find()] == [
        [0, 1],
        [0, 1],
    ]
    merge_segments(tmp_path / "new.run", [old], [np.ones(3, np.bool_)], OLDER.layout)
    assert (tmp_path / "new.run").read_bytes() == (GOLDEN / "three-fast-2.run").read_bytes()


def test_an_unflushed_sketch_matches_the_golden_file():
    data = (GOLDEN / "fresh.bin").read_bytes()
    assert to_bytes(sketches(), 0) == data
    assert to_bytes(from_bytes([1, 2], [data, data], SETTINGS.layout), 1) == data


def test_the_page_shows_the_golden_file():
    data = (GOLDEN / "three.run").read_bytes()
    segment = Segment(GOLDEN / "three.run", SETTINGS.layout)
    answers = PAGE.partition("## Test vectors")[2]
    assert (
        re.search(r"bytes 0 to 47 +([0-9a-f ]+)\n", answers)[1].replace(" ", "") == data[:48].hex()
    )
    assert re.search(r"bytes 4080 to 4095 +([0-9a-f]+)\n", answers)[1] == data[4080:4096].hex()
    for name in ("sizes", "shingles", "bitmaps", "keys", "docs", "directory"):
        shown = re.search(rf"^    {name} +((?:[0-9]+\s+)+)", answers, re.MULTILINE)[1].split()
        assert list(map(int, shown)) == segment.arrays[name].tolist()


def test_the_page_shows_the_digest_of_a_row(tmp_path):
    sqlite.create(tmp_path, {})
    with contextlib.closing(sqlite.connect(tmp_path, writable=True)) as connection:
        sqlite.Tables(connection).add_documents([Document(1, "a", 2.5)])
        digest = connection.execute("SELECT digest FROM documents").fetchone()[0]
    assert f"has {digest}." in PAGE


def with_header(data, offset, packed):
    """Replace bytes of a header, and update its digest."""
    head = bytearray(data[: HEADER_BYTES - 16])
    head[offset : offset + len(packed)] = packed
    return bytes(head) + digest_of(bytes(head)).digest() + data[HEADER_BYTES:]


@pytest.mark.parametrize(
    ("offset", "packed", "message"),
    [
        (0, b"PARQUET!", "is not a segment"),
        (8, struct.pack("<I", 3), "has segment format 3, but this neardup reads 1 and 2"),
        (12, struct.pack("<I", 2**31), "2,147,483,648 sections"),
        (12, struct.pack("<I", 3), "does not have the sections of a segment"),
        (16, struct.pack("<Q", 2**60), "bytes instead of"),
        (24, struct.pack("<Q", 2**63), "does not have the sections of a segment"),
        (32, b"x" * 16, "was written with other settings"),
        (48 + 16, b"|O8\0", "does not have the sections of a segment"),
        (48 + 24, struct.pack("<Q", 2**50), "does not have the sections of a segment"),
        (48 + 40, struct.pack("<Q", 2**40), "is outside"),
        (48 + 40, struct.pack("<Q", 8), "is outside"),
    ],
)
def test_a_header_with_wrong_values_is_an_error(tmp_path, offset, packed, message):
    (tmp_path / "a.run").write_bytes(
        with_header((GOLDEN / "three.run").read_bytes(), offset, packed)
    )
    with pytest.raises(DataError, match=message):
        Segment(tmp_path / "a.run", SETTINGS.layout)


@pytest.fixture
def version_1(tmp_path):
    """A copy of an index that version 1 of the format was written in, with an alias and a removed document."""
    return Path(shutil.copytree(GOLDEN / "version-1.index", tmp_path / "old.index"))


def test_an_index_of_version_1_is_upgraded_when_it_is_opened_for_writing(version_1):
    with Index.open(version_1) as index:
        assert index.check() == []
        assert list(index.ids()) == ["a", "b", "c"]
        assert index.get("alias").doc_id == "a"
        assert index.get("c").payload == {"n": 1}
        assert index.query("some words 1 that every text repeats", k=1)[0].doc_id == "b"
        index.remove("c")
    with Index.open(version_1, read_only=True) as index:
        assert (len(index), index.check()) == (2, [])


def test_an_index_of_version_1_cannot_be_read_before_its_upgrade(version_1):
    with pytest.raises(DataError, match="has the format 1, but this neardup reads 2") as caught:
        Index.open(version_1, read_only=True)
    assert caught.value.hint == "open it for writing once, which updates the format"


def test_an_upgrade_that_is_interrupted_leaves_the_old_version(version_1, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("neardup.index.upgrade._replace_segments", stop)
        with pytest.raises(KeyboardInterrupt):
            Index.open(version_1)
    with Index.open(version_1) as index:
        assert index.check() == []


def test_an_index_of_another_version_is_refused_with_a_hint(tmp_path):
    Index.create(tmp_path / "i").close()
    with contextlib.closing(sqlite3.connect(tmp_path / "i" / "index.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 3")
    with pytest.raises(DataError, match="has the format 3, but this neardup reads 2") as caught:
        Index.open(tmp_path / "i")
    assert "build the index again" in caught.value.hint


# The indexes fast-2-*.index: written before invisible characters were dropped.

PLAIN = "the ferry to the island leaves every morning at nine from the second pier"
HYPHENS = "Die Donau\u00addampf\u00adschiff\u00adfahrt fährt im Sommer jeden Morgen um neun von der zweiten Brücke ab"
ADDITIONS = {
    "insert": lambda index: index.insert("new", PLAIN),
    "insert_many": lambda index: index.insert_many({"new": PLAIN}),
    "insert_new": lambda index: index.insert_new("new", PLAIN),
    "insert_new_many": lambda index: index.insert_new_many({"new": PLAIN}),
    "put": lambda index: index.put("new", PLAIN),
    "put_many": lambda index: index.put_many({"new": PLAIN}),
    "replace": lambda index: index.replace("spaces", PLAIN),
    "merge": lambda index: index.merge(index),
}


@pytest.fixture(params=["text", "shingles"])
def fast_2(request, tmp_path):
    return Path(shutil.copytree(GOLDEN / f"fast-2-{request.param}.index", tmp_path / "old.index"))


def similarities(matches):
    return {match.doc_id: match.similarity for match in matches}


@pytest.mark.parametrize("read_only", [False, True])
def test_an_index_of_the_older_folding_answers_as_it_did(fast_2, read_only):
    with Index.open(fast_2, read_only=read_only) as index:
        assert index.info()["signature_format"].startswith("fast-2 word-2 ")
        assert index.check() == []
        same = {"zero width": 1.0, "spaces": 1.0, "joined": 1.0}
        assert similarities(index.query(PLAIN)) == same
        assert similarities(index.query(PLAIN.replace(" ", "\u200b"))) == same
        assert similarities(index.query(HYPHENS))["hyphens"] == 1
        assert similarities(index.query(HYPHENS))["no hyphens"] < 1
        found = index.query_many({"q": PLAIN}).to_pydict()
        assert sorted(found["doc_id"]) == sorted(same)


def test_an_index_of_the_older_folding_is_exported_shrunk_and_compacted(fast_2, tmp_path):
    with Index.open(fast_2) as index:
        assert index.export(tmp_path / "all.jsonl") == 5
        assert index.remove("joined") == 1
        index.compact()
        index.snapshot(tmp_path / "copy.index")
        assert index.repair().lost == []
    with Index.open(tmp_path / "copy.index", read_only=True) as index:
        assert index.check() == []
        assert sorted(similarities(index.query(PLAIN))) == ["spaces", "zero width"]


@pytest.mark.parametrize("addition", ADDITIONS)
def test_documents_cannot_be_added_to_an_index_of_the_older_folding(fast_2, addition):
    with Index.open(fast_2) as index:
        with pytest.raises(DataError, match=r"`fast-2 word-2 .* writes `fast-3 word-2 ") as caught:
            ADDITIONS[addition](index)
        assert f"`neardup index export {fast_2} -o FILE.jsonl`" in caught.value.hint
        assert len(index) == 5


def test_an_index_of_the_older_folding_is_built_again_from_its_texts(tmp_path):
    shutil.copytree(GOLDEN / "fast-2-text.index", tmp_path / "old.index")
    with Index.open(tmp_path / "old.index", read_only=True) as old:
        old.export(tmp_path / "all.jsonl")
        settings = {name: getattr(old.config, name) for name in ("size", "num_perm", "threshold")}
    with Index.create(tmp_path / "new.index", store="text", **settings) as index:
        index.insert_many(
            tmp_path / "all.jsonl", config=Config.of(index.config, id_column="doc_id")
        )
        assert len(index) == 5
        assert similarities(index.query(HYPHENS)) == {"hyphens": 1.0, "no hyphens": 1.0}


def test_a_run_against_an_index_of_the_older_folding_says_how_to_build_it_again(fast_2, tmp_path):
    pages = tmp_path / "pages.jsonl"
    pages.write_text('{"id": "a", "text": "some words"}\n', "utf-8")
    with pytest.raises(ConfigError, match=r"signatures jaccard fast-2 .* fast-3 ") as caught:
        neardup.deduplicate(
            str(pages),
            against=str(fast_2),
            out=tmp_path / "out",
            size=2,
            num_perm=16,
            threshold=0.5,
        )
    assert "build the index again" in caught.value.hint


def test_an_index_of_items_has_the_format_it_had(tmp_path):
    with Index.create(tmp_path / "items.index", items_column="items") as index:
        assert index.info()["signature_format"].startswith("fast-2 items ")
        index.insert("a", ["bread", "milk"])
    with Index.open(tmp_path / "items.index") as index:
        index.insert("b", ["bread", "milk"])
        assert sorted(similarities(index.query(["bread", "milk"]))) == ["a", "b"]
