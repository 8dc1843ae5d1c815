"""The contract of every store: add a new store to STORES, and it must pass all tests here."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from neardup.config import Config
from neardup.errors import DataError, NearDupError
from neardup.index import sqlite
from neardup.index.folder_store import FolderStore, make_folder
from neardup.index.settings import new_settings
from neardup.index.sketches import Sketches, sketch_contents
from neardup.index.store import Document
from support.index_texts import texts

SETTINGS = new_settings(Config.of(size=2), "text", containment=True)
TEXTS = list(texts(12, seed=5).values())


def folder_store(path, *, read_only=False):
    if not path.exists():
        make_folder(path)
        sqlite.create(path, SETTINGS.as_dict())
    return FolderStore(path, SETTINGS.layout, read_only=read_only, durability="fast", timeout=1)


STORES = {"folder": folder_store}


@pytest.fixture(params=STORES)
def opened(request, tmp_path):
    """A function that opens the store, at a path in an empty folder."""
    return lambda name="store", **how: STORES[request.param](tmp_path / name, **how)


@pytest.fixture
def store(opened):
    made = opened()
    yield made
    made.close()


def sketch(*given) -> Sketches:
    return sketch_contents(pa.array(given, pa.large_string()), SETTINGS.plan, SETTINGS.config)


def put(store, *numbers, **fields):
    """Store the texts at these positions; their ids are d0, d1, ..."""

    def make(change):
        first = change.next_number
        documents = [
            Document(first + at, f"d{number}", 1.0, **fields) for at, number in enumerate(numbers)
        ]
        change.put(
            documents,
            sketch(*(TEXTS[number] for number in numbers)),
            [TEXTS[number] for number in numbers],
        )
        return [document.number for document in documents]

    return store.change(make)


def found(view, text):
    """Numbers of the documents that share a bucket with a text."""
    return {
        int(number)
        for part in view.look_up(sketch(text), 0.0, 0)
        for number in part.numbers[part.docs]
    }


def test_documents_are_found_by_keys_numbers_and_ids(store):
    numbers = put(store, 0, 1, 2)

    def ask(view):
        assert all(number in found(view, TEXTS[doc]) for doc, number in enumerate(numbers))
        assert [view.fetch([number])[number].doc_id for number in numbers] == ["d0", "d1", "d2"]
        assert view.numbers_of(["d1", "absent"]) == {"d1": numbers[1]}
        assert view.text_of(numbers[2]) == TEXTS[2]
        assert [document.doc_id for document in view.documents()] == ["d0", "d1", "d2"]
        assert view.count()["documents"] == 3

    store.read(ask)
    store.compact()
    store.read(ask)


def test_documents_that_share_a_bucket_come_with_items_and_signatures(store):
    (number,) = put(store, 4)
    expected = sketch(TEXTS[4])
    for step in (lambda: None, store.compact):
        step()
        (part,) = store.read(lambda view: list(view.look_up(expected, 0.0, 0)))
        doc = part.docs[0]
        assert part.numbers[doc] == number
        assert (part.sketches.signatures[doc] == expected.signatures[0]).all()
        assert set(part.sketches.items.shingles.tolist()) == set(expected.items.shingles.tolist())


def test_filters_leave_out_only_what_fails_them(store):
    (number,) = put(store, 4)
    store.compact()
    asked = sketch(TEXTS[4])
    most = SETTINGS.config.num_perm
    for agreement in (0, most):  # the signature of the same text agrees in every slot
        (part,) = store.read(
            lambda view, agreement=agreement: list(view.look_up(asked, 1.0, agreement))
        )
        assert part.numbers[part.docs].tolist() == [number]


def test_shared_shingles_are_counted(store):
    numbers = put(store, 0, 1)
    asked = sketch(TEXTS[0])
    for step in (lambda: None, store.compact):
        step()
        parts = store.read(lambda view: list(view.count_shared(asked.items, 1.0)))
        found = {
            int(n): (int(c), int(s)) for part in parts for n, c, s in zip(*part[1:], strict=True)
        }
        assert found[numbers[0]] == (asked.sizes[0], asked.sizes[0])


def test_a_change_that_raises_changes_nothing(store):
    put(store, 0)

    def fail(change):
        change.put([Document(change.next_number, "d1", 1.0)], sketch(TEXTS[1]), [TEXTS[1]])
        change.tag("t")
        assert "d1" in change.numbers_of(["d1"])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.change(fail)
    assert store.read(
        lambda view: (view.count()["documents"], view.numbers_of(["d1"]), view.has_tag("t"))
    ) == (
        1,
        {},
        False,
    )
    with pytest.raises(DataError, match="already exists"):
        put(store, 1, 0)
    assert store.read(lambda view: view.count()["documents"]) == 1


def test_a_change_sees_itself_and_others_see_it_once_it_is_made(store, opened):
    put(store, 0)
    reader = opened(read_only=True)

    def make(change):
        change.put([Document(change.next_number, "d3", 1.0)], sketch(TEXTS[3]), [TEXTS[3]])
        assert found(change, TEXTS[3]) >= {change.next_number - 1}
        assert reader.read(lambda view: view.numbers_of(["d3"])) == {}

    store.change(make)
    assert reader.read(lambda view: len(view.numbers_of(["d3"]))) == 1
    reader.close()


def test_removed_and_expired_documents_are_absent_at_once_and_deleted_by_compaction(store):
    numbers = put(store, 0, 1)
    put(store, 2, expires=2.0)
    store.change(lambda change: change.remove(change.fetch(numbers[:1]).values()))
    for step in (lambda: None, store.compact):
        step()
        assert store.read(lambda view: [document.doc_id for document in view.documents()]) == ["d1"]
        assert store.read(lambda view: view.fetch(range(9)).keys()) == {numbers[1]}
    assert store.read(lambda view: sum(part[0].size for part in view.sketches())) == 1
    put(store, 0, 2)  # their ids are free again


def expire(store, number):
    """Let a document expire."""
    store.change(
        lambda change: change.update([change.fetch([number])[number]._replace(expires=2.0)])
    )


def test_ids_and_aliases_of_an_expired_document_are_free_for_documents_and_aliases(store):
    for name in ("d0", "alias"):
        (number,) = put(store, 0)
        store.change(lambda change, number=number: change.link("alias", number))
        expire(store, number)
        assert store.read(
            lambda view: (view.numbers_of(["d0", "alias"]), view.count()["aliases"])
        ) == ({}, 0)
        (other,) = put(store, 1)
        store.change(lambda change, name=name, other=other: change.link(name, other))
        assert store.read(lambda view: view.numbers_of(["d0", "alias"])) == {name: other}
        assert store.check() == []
        store.change(lambda change, other=other: change.remove(change.fetch([other]).values()))


def test_aliases_are_listed_by_document(store):
    numbers = put(store, 0, 1, 2)
    assert store.read(lambda view: view.aliases_of(numbers)) == {}
    for alias, number in (("b", numbers[0]), ("a", numbers[0]), ("c", numbers[2])):
        store.change(lambda change, alias=alias, number=number: change.link(alias, number))
    assert store.read(lambda view: view.aliases_of(numbers)) == {
        numbers[0]: ["a", "b"],
        numbers[2]: ["c"],
    }
    assert store.read(lambda view: view.aliases_of(numbers[:2])) == {numbers[0]: ["a", "b"]}
    store.change(lambda change: change.unlink("a"))
    store.change(lambda change: change.remove(change.fetch(numbers[2:]).values()))
    assert store.read(lambda view: view.aliases_of(numbers)) == {numbers[0]: ["b"]}


def test_numbers_decide_the_insertion_order_and_are_never_used_again(store):
    def make(change):
        first = change.next_number
        for doc in (2, 0, 1):
            document = Document(first + doc, f"d{doc}", 1.0)
            change.put([document], sketch(TEXTS[doc]), [TEXTS[doc]])
        return first

    first = store.change(make)
    (after,) = put(store, 3)
    assert after == first + 3
    for step in (lambda: None, store.compact):
        step()
        assert store.read(lambda view: [document.doc_id for document in view.documents()]) == [
            "d0",
            "d1",
            "d2",
            "d3",
        ]
        assert store.read(lambda view: view.numbers().tolist()) == [
            first,
            first + 1,
            first + 2,
            after,
        ]
        assert store.read(lambda view: found(view, TEXTS[0])) == {first}
    expire(store, first)
    assert store.read(lambda view: view.numbers().tolist()) == [first + 1, first + 2, after]


def test_links_updates_and_tags_are_kept(store, opened):
    (number,) = put(store, 0)

    def make(change):
        change.link("alias", number)
        change.update([change.fetch([number])[number]._replace(times_matched=3, last_matched=9.0)])
        change.tag("once")

    store.change(make)
    with pytest.raises(DataError, match="already exists"):
        store.change(lambda change: change.link("alias", number))
    store.close()
    again = opened()
    assert again.read(lambda view: (view.numbers_of(["alias"]), view.has_tag("once"))) == (
        {"alias": number},
        True,
    )
    assert again.read(lambda view: view.fetch([number])[number].times_matched) == 3
    again.change(lambda change: change.unlink("alias"))
    assert again.read(lambda view: view.numbers_of(["alias", "d0"])) == {"d0": number}
    again.close()


def test_a_snapshot_is_a_store_of_its_own(store, opened, tmp_path):
    put(store, 0, 1)
    store.compact()
    put(store, 2)
    store.snapshot(tmp_path / "copy")
    put(store, 3)
    copy = opened("copy")
    assert copy.read(lambda view: [document.doc_id for document in view.documents()]) == [
        "d0",
        "d1",
        "d2",
    ]
    put(copy, 4)
    assert (copy.check(), store.check()) == ([], [])
    assert store.read(lambda view: view.numbers_of(["d4"])) == {}
    copy.close()


def test_a_store_that_is_read_only_or_closed_refuses_changes(opened):
    opened().close()
    reader = opened(read_only=True)
    with pytest.raises(NearDupError, match="was opened read-only"):
        put(reader, 0)
    reader.close()
    with pytest.raises(NearDupError, match="is closed"):
        reader.read(lambda view: view.count())


def test_sketches_list_every_document_once(store):
    put(store, *range(6))
    store.compact()
    put(store, *range(6, 9))
    numbers = store.read(lambda view: np.concatenate([part for part, _ in view.sketches()]))
    assert sorted(numbers.tolist()) == sorted(set(numbers.tolist()))
    assert numbers.size == 9
