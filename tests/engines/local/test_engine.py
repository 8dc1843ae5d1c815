"""The local engine: order, errors, and how it cuts documents and components into batches."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict, deque

import pyarrow as pa
import pytest

from neardup import schema
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.groups import in_range
from neardup.engines.local.shelves import cut_components
from neardup.io import records
from neardup.io.documents import in_memory as memory
from neardup.io.documents.in_memory import InMemoryDocuments

ONE_COLUMN = pa.schema([("row", pa.int64())])


def batches_of(*columns):
    return [pa.record_batch({"row": pa.array(column, pa.int64())}) for column in columns]


def documents_of(texts, priority=None, chunk_rows=None):
    """A table of documents; its rows have gaps, as after rejected rows."""
    rows = [3 * number + 1 for number in range(len(texts))]
    columns = [rows, texts, priority or list(range(len(texts))), [0] * len(texts)]
    table = pa.table(
        [
            pa.array(column, field.type)
            for column, field in zip(columns, schema.DOCUMENTS, strict=True)
        ],
        schema=schema.DOCUMENTS,
    )
    return pa.Table.from_batches(table.to_batches(max_chunksize=chunk_rows), schema.DOCUMENTS)


def random_texts(seed, num_texts):
    rng = random.Random(seed)
    return ["é" * rng.choice([0, 0, 1, 3, 10, 100]) for _ in range(num_texts)]


def ignore(steps):
    del steps


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_reader_hands_over_batches_only_while_other_threads_are_idle(threads):
    places = set()

    def note(batch):
        places.add(threading.get_ident())
        return batch

    LocalEngine(threads).map_batches(batches_of([1], [2], [3]), note, ONE_COLUMN, ignore)
    assert (threading.get_ident() in places) == (threads == 1)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_results_stay_in_the_order_of_the_batches(threads):
    def slow_first(batch):
        time.sleep(0.02 if batch.column("row")[0].as_py() % 5 == 0 else 0)
        return batch

    done = []
    table = LocalEngine(threads).map_batches(
        batches_of(*([n, -n] for n in range(1, 41))), slow_first, ONE_COLUMN, done.append
    )
    assert table.column("row").to_pylist() == [value for n in range(1, 41) for value in (n, -n)]
    assert done == [2] * 40


@pytest.mark.parametrize("threads", [1, 4])
def test_no_batches_give_an_empty_table_of_the_schema(threads):
    table = LocalEngine(threads).map_batches([], lambda batch: batch, schema.LINKS, ignore)
    assert table.schema == schema.LINKS
    assert table.num_rows == 0


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("bad", [0, 7, 29])
def test_an_error_in_a_step_is_raised_and_stops_the_work(threads, bad):
    begun = []

    def step(batch):
        number = batch.column("row")[0].as_py()
        begun.append(number)
        if number == bad:
            raise ZeroDivisionError("the step failed")
        return batch

    with pytest.raises(ZeroDivisionError, match="the step failed"):
        LocalEngine(threads).map_batches(
            batches_of(*([n] for n in range(1000))), step, ONE_COLUMN, ignore
        )
    assert bad in begun
    assert len(begun) <= bad + 4 * threads + 2


@pytest.mark.parametrize("threads", [1, 4])
def test_an_error_in_the_batches_is_raised(threads):
    def batches():
        yield from batches_of([1], [2])
        raise OSError("the source failed")

    with pytest.raises(OSError, match="the source failed"):
        LocalEngine(threads).map_batches(batches(), lambda batch: batch, ONE_COLUMN, ignore)


@pytest.mark.parametrize("threads", [1, 4])
def test_only_a_few_batches_are_read_ahead_of_the_results(threads):
    taken = []
    finished = []

    def batches():
        for batch in batches_of(*([n] for n in range(200))):
            taken.append(len(taken) - len(finished))
            yield batch

    LocalEngine(threads).map_batches(batches(), lambda batch: batch, ONE_COLUMN, finished.append)
    assert len(taken) == len(finished) == 200
    assert max(taken) <= 3 * threads


def test_steps_run_on_the_requested_number_of_threads():
    names = set()
    all_here = threading.Barrier(3, timeout=120)

    def step(batch):
        all_here.wait()
        names.add(threading.get_ident())
        return batch

    LocalEngine(3).map_batches(batches_of([1], [2], [3]), step, ONE_COLUMN, ignore)
    assert len(names) == 3


def test_the_default_is_one_thread_per_core(monkeypatch):
    assert LocalEngine(7).threads == 7
    assert LocalEngine().threads >= 1
    # On systems that do not report the available cores, such as macOS.
    monkeypatch.delattr("os.sched_getaffinity", raising=False)
    assert LocalEngine(7).threads == 7
    assert LocalEngine().threads >= 1


def cut(documents):
    return list(InMemoryDocuments(documents, 10**6).read(0, ignore))


@pytest.mark.parametrize("batch_bytes", [0, 1, 7, 150, 4 << 20])
@pytest.mark.parametrize("chunk_rows", [1, 3, None])
def test_held_documents_give_every_row_once_in_order(batch_bytes, chunk_rows, monkeypatch):
    monkeypatch.setattr(records, "BATCH_BYTES", batch_bytes)
    documents = documents_of(random_texts(1, 200), chunk_rows=chunk_rows)
    batches = cut(documents)
    assert pa.Table.from_batches(batches, schema.DOCUMENTS).equals(documents)
    assert all(batch.num_rows for batch in batches)
    assert all(num_bytes(batch) <= batch_bytes or batch.num_rows == 1 for batch in batches)


def num_bytes(batch):
    return sum(len(text.encode()) for text in batch.column("text").to_pylist())


def test_batches_of_short_texts_keep_to_a_number_of_rows(monkeypatch):
    monkeypatch.setattr(memory, "BATCH_ROWS", 10)
    assert [batch.num_rows for batch in cut(documents_of([""] * 25))] == [10, 10, 5]


def test_splitting_no_documents_gives_no_batches():
    assert cut(documents_of([])) == []
    nothing = pa.table([[], []], schema=schema.COMPONENTS)
    assert list(cut_components(documents_of([]), nothing)) == []
    assert list(cut_components(documents_of(["a", "b"]), nothing)) == []


@pytest.mark.parametrize("batch_bytes", [0, 1, 150, 1000, 4 << 20])
@pytest.mark.parametrize("chunk_rows", [1, 7, None])
def test_batches_hold_whole_components_in_priority_order(batch_bytes, chunk_rows, monkeypatch):
    monkeypatch.setattr(records, "BATCH_BYTES", batch_bytes)
    rng = random.Random(2)
    texts = random_texts(2, 120)
    documents = documents_of(
        texts, priority=[rng.randrange(40) for _ in range(120)], chunk_rows=chunk_rows
    )
    by_row = {row["row"]: row for row in documents.to_pylist()}
    members = rng.sample(list(by_row), k=90)
    components = {row: rng.choice(members[:15]) for row in members}
    groups = pa.table([list(components), list(components.values())], schema=schema.COMPONENTS)
    batches = list(cut_components(documents, groups))
    taken = [row for batch in batches for row in batch.to_pylist()]
    assert Counter(row["row"] for row in taken) == Counter(members)
    assert all(row == by_row[row["row"]] | {"component": components[row["row"]]} for row in taken)
    homes = defaultdict(set)
    for number, batch in enumerate(batches):
        labels = batch.column("component").to_pylist()
        # The documents of a component are contiguous, best first, ties by row.
        assert len(
            [1 for at, label in enumerate(labels) if at == 0 or label != labels[at - 1]]
        ) == len(set(labels))
        for label in labels:
            homes[label].add(number)
        places = [(row["component"], row["priority"], row["row"]) for row in batch.to_pylist()]
        assert places == sorted(places)
        assert num_bytes(batch) <= batch_bytes or len(set(labels)) == 1
    assert all(len(numbers) == 1 for numbers in homes.values())


def connected_by_search(links):
    """The smallest row that each linked row is connected with, by breadth-first search."""
    neighbours = defaultdict(set)
    for a, b in links:
        neighbours[a].add(b)
        neighbours[b].add(a)
    smallest = {}
    for start in sorted(neighbours):
        waiting = deque([start] if start not in smallest else [])
        while waiting:
            row = waiting.popleft()
            if row not in smallest:
                smallest[row] = start
                waiting.extend(neighbours[row])
    return smallest


def components_of(links):
    table = pa.table([[a for a, _ in links], [b for _, b in links]], schema=schema.LINKS)
    batches = iter(table.to_batches(max_chunksize=20))
    found = LocalEngine().connected_components(batches, 200_000)
    assert found.schema == schema.COMPONENTS
    assert found.column("row").to_pylist() == sorted(set(found.column("row").to_pylist()))
    return dict(
        zip(found.column("row").to_pylist(), found.column("component").to_pylist(), strict=True)
    )


@pytest.mark.parametrize("seed", range(20))
def test_components_agree_with_a_breadth_first_search(seed):
    rng = random.Random(seed)
    rows = rng.sample(range(200_000), k=60)
    links = [tuple(rng.sample(rows, k=2)) for _ in range(rng.choice([1, 5, 30, 45, 200]))]
    assert components_of(links) == connected_by_search(links)
    rng.shuffle(links)
    assert components_of([(b, a) for a, b in links]) == connected_by_search(links)


def test_no_links_give_no_components():
    assert components_of([]) == {}


@pytest.mark.parametrize("order", [1, -1])
def test_a_long_chain_is_one_component(order):
    chain = [(number, number + 1) for number in range(100_000)][::order]
    assert set(components_of(chain).values()) == {0}


def test_keys_that_share_their_top_bits_spread_over_all_ranges():
    # A posting's key is the count of its shingle, here always 2, and the top 56 bits of its hash.
    keys = [(2 << 56) | random.Random(number).getrandbits(56) for number in range(16_000)]
    table = [pa.record_batch({"row": pa.array(range(16_000)), "key": pa.array(keys)})]

    rows = [
        next(in_range(table, "key", number, 16)).column("row").to_pylist() for number in range(16)
    ]

    assert sorted(row for ranged in rows for row in ranged) == list(range(16_000))
    assert max(map(len, rows)) < 1.2 * 1000  # 6.5 standard deviations


@pytest.mark.parametrize("threads", [1, 2])
def test_batches_read_ahead_come_in_order_and_raise_what_the_reader_raises(threads):
    def read():
        yield from batches_of([1], [2], [3])
        raise ValueError("the reader failed")

    batches = LocalEngine(threads).read_ahead(read())
    assert [next(batches).column("row").to_pylist() for _ in range(3)] == [[1], [2], [3]]
    with pytest.raises(ValueError, match="the reader failed"):
        next(batches)
