"""An index that lost segments, or holds damaged ones, is usable again after a repair that names what is lost."""

from __future__ import annotations

import shutil

import pytest

from neardup import Index
from neardup.errors import NearDupError
from neardup.index import folder_view
from support.index_texts import texts


@pytest.fixture(autouse=True)
def _small_limit(monkeypatch):
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 4)


def lose_a_segment(path):
    """Delete the first segment of an index."""
    next(iter(sorted((path / "runs").iterdir()))).unlink()


def test_nothing_is_deleted_while_a_named_segment_is_missing(tmp_path):
    path = tmp_path / "i"
    with Index.create(path, durability="fast") as index:
        index.insert_many(texts(9, seed=1))
    orphan = path / "runs" / "00000009-00000000.run"
    shutil.copy(next((path / "runs").iterdir()), orphan)
    lose_a_segment(path)
    Index.open(path).close()
    assert orphan.exists()


def test_repair_gives_up_missing_segments_and_lists_the_ids_that_are_lost(tmp_path):
    path = tmp_path / "i"
    first = texts(9, seed=1)
    second = texts(9, seed=2)
    with Index.create(path, durability="fast") as index:
        index.insert_many(first)
        index.insert_many(second)
        index.insert("fresh", "one document that is in no segment yet")
    lost_segment = sorted((path / "runs").iterdir())[0]
    lose_a_segment(path)
    with Index.open(path) as index:
        with pytest.raises(NearDupError, match="is missing"):
            index.query("anything at all, as long as it has words")
        repair = index.repair()
        assert repair.dropped == [f"the segment {lost_segment.name} is missing"]
        assert repair.lost == list(first)
        assert (index.check(), list(index.ids())) == ([], [*second, "fresh"])
        assert index.query(second["2-3"], k=1)[0].similarity == 1.0
        index.insert_many(first)
        assert index.check() == []


def test_repair_stores_documents_again_whose_texts_are_stored(tmp_path):
    path = tmp_path / "i"
    documents = texts(9, seed=1)
    with Index.create(path, store="text", durability="fast") as index:
        index.insert_many(documents)
        expected = [index.query(text) for text in documents.values()]
    lose_a_segment(path)
    with Index.open(path) as index:
        repair = index.repair()
        assert (repair.lost, repair.restored) == ([], 9)
        assert [index.query(text) for text in documents.values()] == expected
        assert index.check() == []


def test_repair_gives_up_damaged_segments_and_damaged_unflushed_rows(tmp_path):
    path = tmp_path / "i"
    with Index.create(path, durability="fast") as index:
        index.insert_many(texts(9, seed=1))
        index.insert("fresh", "one document that is in no segment yet")
        index.insert("intact", "one more document that is in no segment yet")
    segment = next((path / "runs").iterdir())
    data = bytearray(segment.read_bytes())
    data[5000] ^= 1
    segment.write_bytes(data)
    with Index.open(path) as index:
        index._store._writer.execute("UPDATE fresh SET digest = 0 WHERE number = 10")
        repair = index.repair()
        assert repair.lost == [*texts(9, seed=1), "fresh"]
        assert repair.dropped == [
            f"the section signatures of {segment} has a wrong checksum",
            "the sketch of document number 10 is damaged",
        ]
        assert (index.check(), list(index.ids())) == ([], ["intact"])


def test_repair_of_an_intact_index_changes_nothing(tmp_path):
    with Index.create(tmp_path / "i", durability="fast") as index:
        index.insert_many(texts(9, seed=1))
        before = (tmp_path / "i" / "index.sqlite").stat().st_mtime_ns
        repair = index.repair()
        assert (repair.dropped, repair.lost, repair.restored) == ([], [], 0)
        assert (tmp_path / "i" / "index.sqlite").stat().st_mtime_ns == before
