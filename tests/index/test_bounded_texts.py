"""Stored texts are read a bounded part at a time, however many of them inflate to a lot."""

from __future__ import annotations

import pytest

from neardup import Index
from neardup.index import bulk, repair

TEXTS = {
    f"d{number}": f"text {number} of some words, all of about one length" for number in range(9)
}
SETTINGS = {"store": "text", "size": 1, "num_perm": 64, "threshold": 0.5}


@pytest.fixture
def index(tmp_path, monkeypatch):
    """An index whose texts are read about three at a time."""
    monkeypatch.setattr(bulk, "_CHARACTERS_AT_ONCE", 3 * len(TEXTS["d0"]))
    monkeypatch.setattr(repair, "_CHARACTERS_AT_ONCE", 3 * len(TEXTS["d0"]))
    with Index.create(tmp_path / "index", **SETTINGS) as made:
        made.insert_many(TEXTS)
        made.insert_new("alias", TEXTS["d7"], on_duplicate="link")
        made.compact()
        yield made


def test_an_export_holds_few_texts_at_once(index):
    tables = []
    count = index._store.read(lambda view: bulk.export(view, tables.append))
    assert (count, [table.num_rows for table in tables]) == (9, [0, 3, 3, 3])
    exported = [row for table in tables for row in table.to_pylist()]
    assert {row["doc_id"]: row["text"] for row in exported} == TEXTS
    assert exported[7]["aliases"] == '["alias"]'


def test_a_merge_stores_few_texts_at_once_and_keeps_everything(index, tmp_path):
    with Index.create(tmp_path / "other", **SETTINGS) as other:
        other.insert("before", "a text that was stored before")
        assert other.merge(index) == 9
        assert list(other.ids()) == ["before", *TEXTS]
        assert {doc_id: stored.text for doc_id, stored in other.get_many(TEXTS).items()} == TEXTS
        assert other.aliases() == {"alias": "d7"}
        assert other.check() == []


def test_a_repair_sketches_few_texts_at_once(index, monkeypatch):
    counts = []
    sketch = index._sketch_texts

    def counting(texts):
        counts.append(len(texts))
        return sketch(texts)

    monkeypatch.setattr(index, "_sketch_texts", counting)
    (run,) = (index.path / "runs").glob("*.run")
    run.unlink()
    assert index.repair().restored == 9
    assert counts == [3, 3, 3]
    assert (index.check(), list(index.ids())) == ([], list(TEXTS))
