"""Sorting on disk equals sorting in memory; shelves return the documents that were added."""

from __future__ import annotations

import random
import threading

import numpy as np
import pyarrow as pa
import pytest

from neardup.errors import StaleError
from neardup.io.storage import spill
from neardup.io.storage.spill import Shelves, sort_on_disk

COLUMNS = pa.schema(
    [("key", pa.int64()), ("text", pa.string()), ("number", pa.float64()), ("row", pa.int64())]
)


def random_rows(seed, num_rows):
    rng = random.Random(seed)
    keys = [
        rng.choice([rng.randint(-(2**63), 2**63 - 1), rng.randint(-2, 2)]) for _ in range(num_rows)
    ]
    texts = [
        rng.choice([None, "", "a", "B", "é", "b" * rng.randint(0, 9)]) for _ in range(num_rows)
    ]
    numbers = [rng.choice([None, -0.5, 0.0, 1e300, float("inf")]) for _ in range(num_rows)]
    return [
        dict(zip(COLUMNS.names, values, strict=True))
        for values in zip(keys, texts, numbers, range(num_rows), strict=True)
    ]


def batches_of(rows, size):
    for start in range(0, len(rows), size):
        yield pa.RecordBatch.from_pylist(rows[start : start + size], schema=COLUMNS)


def sorted_rows(batches):
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("few", [1, 300, 1 << 20])
def test_rows_sorted_on_disk_are_those_sorted_in_python(tmp_path, monkeypatch, seed, few):
    """Single rows, or a few, are sorted and written at a time, or all at once."""
    monkeypatch.setattr(spill, "_MIN_SORTED_BYTES", few)
    monkeypatch.setattr(spill, "_BLOCK_BYTES", few // 4)
    rows = random_rows(seed, 2000)
    by = [("key", "ascending"), ("row", "descending")]
    found = sorted_rows(sort_on_disk(batches_of(rows, 30), COLUMNS, by, tmp_path / "sort", 1))
    assert found == sorted(rows, key=lambda row: (row["key"], -row["row"]))


@pytest.mark.parametrize("direction", ["ascending", "descending"])
def test_texts_nulls_and_numbers_are_sorted_as_arrow_does(tmp_path, monkeypatch, direction):
    monkeypatch.setattr(spill, "_MIN_SORTED_BYTES", 1000)
    monkeypatch.setattr(spill, "_BLOCK_BYTES", 100)
    rows = random_rows(7, 500)
    by = [("text", direction), ("number", direction), ("row", "ascending")]
    found = sorted_rows(sort_on_disk(batches_of(rows, 50), COLUMNS, by, tmp_path / "sort", 1))
    assert found == pa.Table.from_pylist(rows, schema=COLUMNS).sort_by(by).to_pylist()


def test_a_sort_larger_than_its_memory_uses_the_disk(tmp_path):
    """240 MB are sorted in a fifth of that, and nothing is left on the disk."""
    num_rows = 3_000_000
    step = 500_000
    columns = pa.schema(
        [("key", pa.int64()), *((f"more_{number}", pa.int64()) for number in range(9))]
    )

    def batches():
        for start in range(0, num_rows, step):
            keys = np.arange(start, start + step) * 7_919 % num_rows
            held.append(pa.total_allocated_bytes() - before)
            yield pa.record_batch([keys, *(keys * number for number in range(9))], schema=columns)

    expected = 0
    seen_files = False
    held = []
    before = pa.total_allocated_bytes()
    for batch in sort_on_disk(batches(), columns, [("key", "ascending")], tmp_path, 1):
        seen_files |= any(path.is_file() for path in tmp_path.rglob("*"))
        held.append(pa.total_allocated_bytes() - before)
        keys = np.arange(expected, expected + batch.num_rows)
        assert np.array_equal(batch.column("key").to_numpy(), keys)
        assert np.array_equal(batch.column("more_7").to_numpy(), 7 * keys)
        expected += batch.num_rows
    assert expected == num_rows
    assert seen_files
    assert list(tmp_path.iterdir()) == []
    assert max(held) < 48 << 20


def test_a_sort_that_is_abandoned_leaves_no_file(tmp_path):
    rows = sort_on_disk(
        batches_of(random_rows(1, 50), 9), COLUMNS, [("row", "ascending")], tmp_path, 1
    )
    next(rows)
    assert len(list(tmp_path.iterdir())) == 1
    rows.close()
    assert list(tmp_path.iterdir()) == []


def test_sorted_rows_have_the_schema_of_what_was_sorted(tmp_path):
    columns = pa.schema([pa.field("row", pa.int64(), nullable=False)])
    batches = [pa.record_batch([pa.array([2, 1])], schema=columns)]
    [found] = sort_on_disk(batches, columns, [("row", "ascending")], tmp_path / "sort", 1)
    assert found.schema == columns


def test_an_empty_sort_has_no_result(tmp_path):
    assert sorted_rows(sort_on_disk([], COLUMNS, [("key", "ascending")], tmp_path, 1)) == []


def documents_of(*rows):
    return pa.record_batch(
        {"row": pa.array(rows, pa.int64()), "text": [f"text {row}" for row in rows]}
    )


def rows_on(store, shelf):
    return [row for batch in store.batches(shelf) for row in batch.column("row").to_pylist()]


STORES = {"in memory": None, "on disk": 0, "on both": 200}


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    """Shelves that write at once, when a few documents are held, or never."""
    limit = STORES[request.param]
    return Shelves() if limit is None else Shelves(tmp_path / "texts", limit)


def test_a_shelf_returns_rows_in_the_order_they_were_added(store):
    for row in range(30):
        store.put(row % 3, documents_of(row, row + 100))
    for shelf in range(3):
        assert rows_on(store, shelf) == [
            number for row in range(shelf, 30, 3) for number in (row, row + 100)
        ]
    assert next(store.batches(1)).column("text")[0].as_py() == "text 1"


def test_a_shelf_can_be_read_again_and_extended(store):
    store.put(-1, documents_of(1))
    assert rows_on(store, -1) == rows_on(store, -1) == [1]
    store.put(-1, documents_of(2))
    assert rows_on(store, -1) == [1, 2]


def test_a_shelf_that_was_cleared_or_never_used_is_empty(store):
    store.put(4, documents_of(1))
    store.put(6, documents_of(2))
    store.clear(4)
    store.clear(5)
    assert rows_on(store, 4) == rows_on(store, 5) == []
    assert rows_on(store, 6) == [2]
    store.put(4, documents_of(3))
    assert rows_on(store, 4) == [3]


def test_slices_of_batches_can_be_put_on_a_shelf(store):
    store.put(0, documents_of(*range(10)).slice(3, 4))
    store.put(0, documents_of(*range(10)).slice(8))
    assert rows_on(store, 0) == [3, 4, 5, 6, 8, 9]


def test_shelves_beyond_their_limit_are_written_to_disk(tmp_path):
    store = Shelves(tmp_path / "texts", 1000)
    store.put(0, documents_of(1))
    assert list((tmp_path / "texts").iterdir()) == []
    store.put(1, documents_of(*range(100)))
    assert len(list((tmp_path / "texts").iterdir())) == 2
    assert (rows_on(store, 0), rows_on(store, 1)) == ([1], list(range(100)))


def test_leftovers_of_a_killed_run_are_not_on_the_shelves(tmp_path):
    Shelves(tmp_path / "texts", 0).put(0, documents_of(1))
    assert any((tmp_path / "texts").iterdir())
    (tmp_path / "texts" / "000001.arrows").write_bytes(b"torn")
    store = Shelves(tmp_path / "texts", 0)
    assert rows_on(store, 0) == rows_on(store, 1) == []


def test_many_threads_fill_the_same_shelves(store):
    def fill(first):
        for row in range(first, 400, 8):
            store.put(row % 2, documents_of(row))

    threads = [threading.Thread(target=fill, args=(first,)) for first in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(rows_on(store, 0)) == list(range(0, 400, 2))
    assert sorted(rows_on(store, 1)) == list(range(1, 400, 2))


def test_an_error_of_the_source_is_raised_unchanged_by_a_sort(tmp_path):
    columns = pa.schema([("key", pa.int64())])

    def batches():
        yield pa.record_batch([pa.array(range(1000))], schema=columns)
        raise StaleError("a.jsonl changed", hint="wait")

    with pytest.raises(StaleError, match=r"a\.jsonl changed") as caught:
        list(sort_on_disk(batches(), columns, [("key", "ascending")], tmp_path, 1 << 28))
    assert caught.value.hint == "wait"
