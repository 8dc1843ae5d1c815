"""Documents by id: put, get_many, count and remove by payload, and aliases."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from neardup import Index, PutResult
from neardup.errors import ConfigError, DataError
from neardup.index import folder_view, merge_thread
from support.index_texts import texts

TEXT = "the quick brown fox jumps over the lazy dog and runs away into the dark green forest"
NEAR = TEXT + " today"
OTHER = "a completely different sentence about cooking rice with butter and salt in a large pot"


@pytest.fixture
def index(tmp_path):
    with Index.create(tmp_path / "pages.index", store="text", durability="fast") as made:
        yield made


def outcomes(result):
    return [tuple(row.values()) for row in result.rows.to_pylist()]


def state(index):
    """Everything that is stored except times, in insertion order."""
    return [
        (doc_id, found.text, found.payload, found.aliases)
        for doc_id, found in index.get_many(index.ids()).items()
    ]


def test_put_inserts_a_new_id_and_replaces_a_known_one(index):
    assert index.put("a", TEXT, payload={"version": 1}) == "inserted"
    index.insert("b", OTHER)
    assert index.put("a", NEAR, payload={"version": 2}) == "replaced"
    assert state(index) == [("b", OTHER, None, ()), ("a", NEAR, {"version": 2}, ())]
    assert index.put("c", TEXT, expires=1.0) == "inserted"
    assert index.put("c", TEXT) == "inserted"  # the one before had expired
    assert (len(index), index.check()) == (3, [])


def test_put_makes_an_alias_a_document_and_removes_the_aliases_of_a_replaced_one(index):
    index.insert("a", TEXT)
    for alias in ("b", "c"):
        index.insert_new(alias, TEXT, on_duplicate="link")
    assert index.put("b", OTHER) == "replaced"
    assert state(index) == [("a", TEXT, None, ("c",)), ("b", OTHER, None, ())]
    assert index.put("a", NEAR) == "replaced"
    assert state(index) == [("b", OTHER, None, ()), ("a", NEAR, None, ())]
    assert "c" not in index
    assert index.check() == []


def test_put_many_says_what_happened_to_every_row(index):
    index.insert("known", TEXT)
    result = index.put_many([("new", OTHER), ("known", NEAR), ("bad", None), ("new", TEXT)])
    assert outcomes(result) == [("new", "inserted"), ("known", "replaced"), ("new", "replaced")]
    assert (result.inserted, result.replaced) == (1, 2)
    assert result.rejected == (("row 2", "text is null"),)
    assert state(index) == [("known", NEAR, None, ()), ("new", TEXT, None, ())]
    assert index.put_many({}) == PutResult(result.rows.slice(0, 0))


def test_put_many_rejects_an_id_that_cannot_be_stored(index):
    result = index.put_many({"a": TEXT, "b\0": OTHER})
    assert outcomes(result) == [("a", "inserted")]
    assert result.rejected == (("'b\\x00'", "the id 'b\\x00' contains a NUL character"),)


def test_put_many_stores_all_or_none(index, tmp_path):
    (tmp_path / "good.jsonl").write_text(json.dumps({"id": "a", "text": TEXT}) + "\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"broken\.parquet"):
        index.put_many([tmp_path / "good.jsonl", tmp_path / "broken.parquet"])
    assert len(index) == 0


def test_put_many_counts_a_row_that_has_expired_as_absent_from_the_next_one(index):
    rows = [{"id": "a", "text": text} for text in (TEXT, OTHER, NEAR)]
    assert outcomes(index.put_many(rows, expires=[None, 1.0, None])) == [
        *(("a", "inserted"), ("a", "replaced"), ("a", "inserted"))
    ]
    assert state(index) == [("a", NEAR, None, ())]


@pytest.mark.parametrize("seed", range(6))
def test_put_many_equals_put_in_a_loop(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 8)
    pool = list(texts(6, seed=70 + seed).items())
    pairs = [
        (f"id{(seed + 7 * step) % 11}", pool[(step * step + seed) % 6][1]) for step in range(30)
    ]
    with (
        Index.create(tmp_path / "one", store="text") as one,
        Index.create(tmp_path / "many", store="text") as many,
    ):
        for made in (one, many):
            for number, (doc_id, text) in enumerate(pool):
                made.insert(doc_id, text)
                made.insert_new(f"id{number}", text, on_duplicate="link")
        ids = [doc_id for doc_id, _ in pool]
        mixed = [
            *pairs[:10],
            (ids[1], pool[2][1]),
            *pairs[10:20],
            (ids[3], pool[0][1]),
            *pairs[20:],
        ]
        expected = [(doc_id, one.put(doc_id, text)) for doc_id, text in mixed]
        assert outcomes(many.put_many(mixed)) == expected
        assert state(many) == state(one)
        assert (one.check(), many.check()) == ([], [])


def test_get_many_returns_the_documents_that_exist_by_the_names_they_were_asked_for(index):
    index.insert("a", TEXT)
    index.insert_new("alias", TEXT, on_duplicate="link")
    index.insert("b", OTHER, payload={"n": 1})
    found = index.get_many(["b", "never", "alias", "a"])
    assert [(name, stored.doc_id) for name, stored in found.items()] == [
        ("b", "b"),
        ("alias", "a"),
        ("a", "a"),
    ]
    assert found["b"] == index.get("b")
    assert (index.get_many([]), index.get_many("a").keys()) == ({}, {"a"})
    with pytest.raises(ConfigError, match=r"`ids` must be an id or several, got 5\.5"):
        index.get_many(5.5)


def filled(index):
    index.insert_many(
        [
            {"id": "de", "text": TEXT, "payload": {"lang": "de", "n": 1}},
            {"id": "en", "text": OTHER, "payload": {"lang": "en", "n": 2}},
            {"id": "bare", "text": NEAR},
            {
                "id": "old",
                "text": "some words about the weather of the coming week",
                "payload": {"lang": "de"},
            },
        ],
        expires=[None, None, None, 1.0],
    )


def test_count_takes_conditions(index):
    filled(index)
    assert index.count() == len(index) == 3
    assert index.count(where={"lang": "de"}) == 1
    assert index.count(where={"n": {"gte": 1}}) == 2
    assert index.count(where={"lang": ["fr"]}) == 0


def test_remove_takes_conditions(index):
    filled(index)
    index.insert_new("alias", TEXT, on_duplicate="link")
    assert index.remove(where={"lang": "de"}) == 1
    assert list(index.ids()) == ["en", "bare"]
    assert "alias" not in index
    assert index.remove(where={"lang": "de"}) == 0
    assert index.remove(where={"n": {"gte": 0}}) == 1
    assert (list(index.ids()), index.check()) == (["bare"], [])


def test_remove_without_a_condition_removes_nothing(index):
    filled(index)
    with pytest.raises(ConfigError, match="it would remove every document"):
        index.remove(where={})
    with pytest.raises(ConfigError, match="takes `ids` or `where`, not both"):
        index.remove("de", where={"lang": "de"})
    with pytest.raises(ConfigError, match="`ids` must be an id or several, got None"):
        index.remove()
    assert len(index) == 3


def test_a_document_changed_since_it_was_listed_is_only_removed_if_it_still_matches(index):
    filled(index)
    index.insert("changed", "some words about a train that was late", payload={"lang": "de"})
    read = index._store.read

    def read_then_replace(ask):
        answer = read(ask)
        index.replace("changed", "some words about a train that was late", payload={"lang": "en"})
        index.insert(
            "meanwhile", "another page about the harbour and its boats", payload={"lang": "de"}
        )
        return answer

    index._store.read = read_then_replace
    assert index.remove(where={"lang": "de"}) == 1
    index._store.read = read
    assert list(index.ids()) == ["en", "bare", "changed", "meanwhile"]


def test_aliases_are_listed_and_exported(index, tmp_path):
    index.insert("a", TEXT)
    index.insert("b", OTHER)
    for alias, text in (("z", OTHER), ("x", TEXT), ("y", TEXT)):
        index.insert_new(alias, text, on_duplicate="link")
    assert index.aliases() == {"x": "a", "y": "a", "z": "b"}
    assert list(index.aliases()) == ["x", "y", "z"]
    assert (index.get("x").aliases, index.get("b").aliases) == (("x", "y"), ("z",))
    index.insert("c", "some words about the weather of the coming week")
    index.export(tmp_path / "all.parquet")
    rows = pq.read_table(tmp_path / "all.parquet").select(["doc_id", "aliases"]).to_pylist()
    assert [(row["doc_id"], row["aliases"]) for row in rows] == [
        ("a", '["x", "y"]'),
        ("b", '["z"]'),
        ("c", None),
    ]
    index.remove("y")
    assert index.aliases() == {"x": "a", "z": "b"}


def test_merge_keeps_aliases_payloads_and_the_order_of_insertion(tmp_path, monkeypatch):
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 4)
    monkeypatch.setattr(merge_thread, "TIER", 2)
    documents = texts(60, seed=81)
    with (
        Index.create(tmp_path / "a", store="text") as one,
        Index.create(tmp_path / "b", store="text") as two,
    ):
        rows = [
            {"id": doc_id, "text": text, "payload": {"n": doc_id}}
            for doc_id, text in documents.items()
        ]
        for first, stop in (
            (0, 5),
            (5, 50),
            (50, 55),
        ):  # the two small segments are merged, and then follow the large one
            two.insert_many(rows[first:stop])
        for number, row in enumerate(rows[:20]):
            two.insert_new(f"alias {number}", row["text"], on_duplicate="link")
        two.put_many(rows[8:12] + rows[55:])
        one.insert("first", TEXT)
        assert segments_out_of_order(two)
        assert one.merge(two) == 60
        assert state(one) == [("first", TEXT, None, ()), *state(two)]
        assert list(one.aliases().items()) == list(two.aliases().items())
        one.insert("last", OTHER)
        assert (list(one.ids())[-1], one.check()) == ("last", [])
        assert one.query(documents["81-7"], k=1)[0].similarity == 1
    with Index.open(tmp_path / "a", read_only=True) as again:
        assert again.query(OTHER)[0].doc_id == "last"


def segments_out_of_order(index):
    """Whether the stored sketches are in another order than the documents: otherwise the test shows nothing."""
    numbers = index._store.read(
        lambda view: [number for part, _ in view.sketches() for number in part.tolist()]
    )
    return numbers != sorted(numbers)


def test_an_alias_that_the_other_index_uses_too_merges_nothing(tmp_path):
    with Index.create(tmp_path / "a") as one, Index.create(tmp_path / "b") as two:
        two.insert("x", TEXT)
        two.insert_new("alias", TEXT, on_duplicate="link")
        one.insert("alias", OTHER)
        with pytest.raises(DataError, match="the id 'alias' already exists"):
            one.merge(two)
        assert list(one.ids()) == ["alias"]
