"""Documents with a time to live: from the moment they expire they are absent everywhere, and go by themselves."""

from __future__ import annotations

import time

import pyarrow.parquet as pq
import pytest

from neardup import Index
from neardup.errors import DataError
from neardup.index import folder_view, sqlite
from support.index_texts import texts

TEXT = "the quick brown fox jumps over the lazy dog and runs away into the dark green forest"
OTHER = "a completely different sentence about cooking rice with butter and salt in a large pot"
NOW = time.time()


class Clock:
    """A clock that tests put forward."""

    def __init__(self):
        self.now = NOW

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(time, "time", made)
    return made


@pytest.fixture
def index(tmp_path, clock):  # noqa: ARG001 - the index lives by this clock
    with Index.create(
        tmp_path / "pages.index", store="text", containment=True, durability="fast"
    ) as made:
        yield made


@pytest.fixture
def expired(index, clock):
    """The index, with a document and its alias that have expired, and one that has not."""
    index.insert("old", TEXT, expires=NOW + 10)
    index.insert_new("old alias", TEXT, on_duplicate="link")
    index.insert("kept", OTHER, expires=NOW + 1000)
    clock.now = NOW + 10
    return index


def stored_rows(index):
    """How many rows there are in each table of SQLite."""
    tables = ("documents", "names", "texts")
    return index._store.read(lambda view: {table: view.tables.count(table) for table in tables})


def test_a_document_expires_at_its_time_and_not_before(index, clock):
    index.insert("a", TEXT, expires=NOW + 10)
    clock.now = NOW + 9.999
    assert "a" in index
    clock.now = NOW + 10
    assert "a" not in index


def test_an_expired_document_is_absent_from_every_answer(expired, tmp_path):
    assert list(expired.ids()) == ["kept"]
    assert len(expired) == 1
    assert ("old" in expired, "old alias" in expired) == (False, False)
    assert expired.known_ids(["old", "old alias", "kept"]) == ["kept"]
    assert expired.query(TEXT) == []
    assert expired.query(TEXT, containment=0.5) == []
    assert (expired.info()["documents"], expired.info()["aliases"]) == (1, 0)
    for name in ("old", "old alias"):
        with pytest.raises(DataError, match="no document"):
            expired.get(name)
    assert expired.export(tmp_path / "all.parquet") == 1
    assert pq.read_table(tmp_path / "all.parquet").column("doc_id").to_pylist() == ["kept"]
    assert expired.check() == []


def test_an_expired_document_is_in_no_pair_and_not_merged(expired, tmp_path):
    with Index.create(tmp_path / "other", store="text", containment=True) as other:
        other.insert_many({"copy": TEXT, "copy of kept": OTHER})
        assert expired.pairs(other).column("doc_a").to_pylist() == ["kept"]
        assert other.pairs(expired).column("doc_b").to_pylist() == ["kept"]
        assert other.merge(expired) == 1
        assert list(other.ids()) == ["copy", "copy of kept", "kept"]


def test_an_expired_document_cannot_be_replaced_removed_or_matched(expired):
    with pytest.raises(DataError, match="no document 'old'"):
        expired.replace("old", OTHER)
    assert expired.remove(["old", "old alias"]) == 0
    assert expired.insert_new("new", TEXT).is_new


@pytest.mark.parametrize("name", ["old", "old alias"])
@pytest.mark.parametrize(
    "how", ["insert", "insert_many", "insert_new", "insert_new_many", "link", "merge"]
)
def test_the_id_and_the_aliases_of_an_expired_document_are_free(expired, tmp_path, how, name):
    new = "some words about the weather of the coming week in the north of the country"
    if how == "insert":
        expired.insert(name, new)
    elif how == "insert_many":
        expired.insert_many({name: new})
    elif how == "insert_new":
        expired.insert_new(name, new)
    elif how == "insert_new_many":
        expired.insert_new_many({name: new})
    elif how == "link":
        expired.insert_new(name, OTHER, on_duplicate="link")
    else:
        with Index.create(tmp_path / "other", store="text", containment=True) as other:
            other.insert(name, new)
            expired.merge(other)
    assert expired.get(name).text == (OTHER if how == "link" else new)
    assert sorted({"old", "old alias"} & set(expired.known_ids(["old", "old alias"]))) == [name]
    assert expired.check() == []


def test_names_of_expired_documents_are_free_when_more_expired_than_one_change_sweeps(
    index, clock, monkeypatch
):
    monkeypatch.setattr(folder_view, "_SWEPT_AT_ONCE", 0)
    documents = texts(40, seed=41)
    for name, text in documents.items():
        index.insert(name, text, expires=NOW + 10)
    clock.now = NOW + 20
    last = list(documents)[-1]
    index.insert(last, TEXT)
    assert (list(index.ids()), index.check()) == ([last], [])
    assert stored_rows(index)["documents"] >= 30


def test_expired_documents_go_by_themselves_a_bounded_number_with_each_change(
    index, clock, monkeypatch
):
    monkeypatch.setattr(folder_view, "_SWEPT_AT_ONCE", 8)
    for name, text in texts(30, seed=42).items():
        index.insert(name, text, expires=NOW + 10)
    clock.now = NOW + 20
    held = []
    for name, text in texts(4, seed=43).items():
        index.insert(name, text)
        held.append(stored_rows(index)["documents"])
    assert held == [21, 12, 3, 4]  # each insert adds one and removes up to ten
    assert stored_rows(index) == {"documents": 4, "names": 4, "texts": 4}
    assert (len(index), index.check()) == (4, [])


def test_batches_remove_more_than_they_store_so_that_expired_documents_never_pile_up(index, clock):
    for step in range(6):
        clock.now = NOW + 100 * step
        index.insert_many(texts(300, seed=50 + step), expires=[clock.now + 10] * 300)
    assert stored_rows(index)["documents"] == 300
    assert index.check() == []


def test_a_change_that_only_counts_a_match_or_removes_sweeps_too(index, clock, monkeypatch):
    monkeypatch.setattr(folder_view, "_SWEPT_AT_ONCE", 4)
    for name, text in texts(8, seed=44).items():
        index.insert(name, text, expires=NOW + 10)
    index.insert("kept", OTHER)
    index.insert("other", TEXT)
    clock.now = NOW + 20
    assert not index.insert_new("known", OTHER).is_new
    assert stored_rows(index)["documents"] == 6
    index.remove("other")
    assert stored_rows(index)["documents"] == 1


def test_neither_an_insert_nor_a_count_loads_the_rows_of_expired_documents(
    index, clock, monkeypatch
):
    for name, text in texts(200, seed=45).items():
        index.insert(name, text, expires=NOW + 10)
    clock.now = NOW + 20
    loaded = []
    checked = sqlite._checked
    monkeypatch.setattr(sqlite, "_checked", lambda row: loaded.append(row[0]) or checked(row))
    assert len(index) == 0
    assert loaded == []
    index.insert("new", TEXT)
    assert len(loaded) <= folder_view._SWEPT_AT_ONCE + 2


def test_compaction_deletes_all_that_has_expired(expired):
    expired.compact()
    assert stored_rows(expired) == {"documents": 1, "names": 1, "texts": 1}
    assert (list(expired.ids()), expired.check()) == (["kept"], [])
