"""Changes with a key are made once, and their answer is kept in the same commit."""

from __future__ import annotations

import pytest

import neardup
from neardup.errors import DataError
from neardup.index import folder_view, idempotency
from neardup.index.idempotency import AlreadyMadeError, once

DAY = 86_400


@pytest.fixture
def index(tmp_path):
    with neardup.Index.create(tmp_path / "index", size=2, durability="fast") as opened:
        yield opened


def keyed(index, key="k", request=b"request"):
    return once(index, key, request, lambda result: f"the answer {result!r}")


def num_tags(index):
    return index._store.read(
        lambda view: view.tables.connection.execute("SELECT COUNT(*) FROM tags").fetchone()[0]
    )


def test_a_repeated_change_raises_its_first_answer_and_stores_nothing(index):
    assert keyed(index).insert_new("a", "one two three four").is_new
    with pytest.raises(AlreadyMadeError) as raised:
        keyed(index).insert_new("a", "one two three four")
    assert raised.value.answer == "the answer Inserted(is_new=True, match=None)"
    assert list(index.ids()) == ["a"]
    assert keyed(index, "other").put("a", "one two three four") == "replaced"


def test_another_request_with_the_key_is_an_error(index):
    keyed(index).insert("a", "one two three four")
    with pytest.raises(DataError, match="used for another request"):
        keyed(index, request=b"another").insert("b", "one two three four")
    assert list(index.ids()) == ["a"]


def test_a_change_that_fails_leaves_no_key(index):
    index.insert("a", "one two three four")
    with pytest.raises(DataError, match="already exists"):
        keyed(index).insert("a", "one two three four")
    index.remove("a")
    keyed(index).insert("a", "one two three four")
    assert num_tags(index) == 1


def test_keys_are_known_on_their_day_and_the_next_then_forgotten(index, monkeypatch):
    now = 1_000 * DAY + 5.0
    clock = [now]
    monkeypatch.setattr(folder_view.time, "time", lambda: clock[0])
    for number in range(6):
        keyed(index, f"key {number}").insert(f"a{number}", "one two three four")
    clock[0] = 1_001 * DAY + 80_000.0
    with pytest.raises(AlreadyMadeError):
        keyed(index, "key 0").insert("b", "one two three four")
    clock[0] = 1_002 * DAY + 1.0
    keyed(index, "key 0").insert("b", "one two three four")
    assert num_tags(index) == 1  # those of two days ago are gone


def test_a_change_forgets_a_bounded_number_of_keys(index, monkeypatch):
    clock = [1_000.0 * DAY]
    monkeypatch.setattr(folder_view.time, "time", lambda: clock[0])
    for number in range(20):
        keyed(index, f"key {number}").insert(f"a{number}", "one two three four")
    clock[0] += 5 * DAY
    keyed(index, "late").insert("b", "one two three four")
    assert num_tags(index) == 20 + 1 - idempotency._SWEPT_AT_ONCE


def test_other_tags_stay(index):
    index.insert_many({"a": "one two three"}, tag="a tag of a run")
    keyed(index).insert("b", "one two three")
    assert index.insert_many({"c": "one two three"}, tag="a tag of a run").documents == 0


def test_a_damaged_answer_is_an_error(index):
    keyed(index).insert("a", "one two three four")
    index._store._writer.execute("UPDATE tags SET tag = substr(tag, 1, length(tag) - 1)")
    with pytest.raises(DataError, match="is damaged"):
        keyed(index).insert("b", "one two three four")
