"""The local engine gives the same result with and without a workspace, in memory and on disk."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup import schema
from neardup.config import Config
from neardup.engines.base import TableView
from neardup.engines.local import engine as local
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.limits import Memory
from neardup.engines.local.tables import InMemoryTable
from neardup.io.documents.in_memory import InMemoryDocuments
from neardup.io.storage import spill
from neardup.io.storage.workspace import Workspace
from neardup.stages.collapse import collapse
from neardup.stages.link import link
from neardup.stages.prefix import collect
from neardup.stages.sketch import sketch
from neardup.theory.plan import plan_for
from support.grids import turning_grid

COLUMNS = pa.schema(
    [("row", pa.int64()), ("low", pa.int64()), ("high", pa.int64()), ("priority", pa.int64())]
)
TINY = 1
AMPLE = 10**9


def ignore(steps):
    del steps


@pytest.fixture
def give_room(monkeypatch):
    return lambda num_bytes: monkeypatch.setattr(Memory, "room", lambda _: num_bytes)


@pytest.fixture
def no_disk(monkeypatch):
    """Make sorting on disk an error."""

    def refuse(*_):
        raise AssertionError("sorted on disk")

    monkeypatch.setattr(local, "sort_on_disk", refuse)


def stored_engine(tmp_path, threads=2):
    (tmp_path / "work").mkdir(exist_ok=True)
    return LocalEngine(threads, Workspace(tmp_path / "work"), 10**9)


def random_table(seed, num_rows=500, num_keys=40):
    rng = random.Random(seed)
    keys = [rng.randint(-(2**63), 2**63 - 1) for _ in range(num_keys)]
    columns = [range(num_rows)] + [[rng.choice(keys) for _ in range(num_rows)] for _ in range(3)]
    table = pa.table([list(column) for column in columns], schema=COLUMNS)
    return InMemoryTable(table.to_batches(max_chunksize=37), COLUMNS)


VIEWS = [
    TableView(("row", "low"), ("low",), ("row",)),
    TableView(("row", "high"), ("high",), ("row",)),
    TableView(("row", "priority", "low", "high"), ("low", "high"), ("priority", "row")),
]


def whole_groups(batches, view):
    """The rows of each group of a view, without the first row that is repeated when a group is split."""
    found = defaultdict(dict)
    for batch in batches:
        for row in batch.to_pylist():
            found[tuple(row[name] for name in view.by)][row["row"]] = row
    return {key: sorted(rows) for key, rows in found.items()}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("sorted_rows", [1, 7, 1 << 20])
def test_groups_sorted_on_disk_equal_those_in_memory(
    tmp_path, monkeypatch, give_room, view, sorted_rows
):
    monkeypatch.setattr(spill, "_SORTED_ROWS", sorted_rows)
    table = random_table(1)
    where = np.random.default_rng(1).random(500) < 0.8
    held = list(LocalEngine(2).map_groups(table, [view], lambda batch: batch, where, ignore))
    give_room(TINY)
    on_disk = list(
        stored_engine(tmp_path).map_groups(table, [view], lambda batch: batch, where, ignore)
    )
    assert whole_groups(on_disk, view) == whole_groups(held, view)
    assert (
        sorted(row for rows in whole_groups(held, view).values() for row in rows)
        == np.flatnonzero(where).tolist()
    )


@pytest.mark.parametrize("sorted_rows", [1, 7])
def test_a_split_group_repeats_its_first_row_in_both_parts(
    tmp_path, monkeypatch, give_room, sorted_rows
):
    monkeypatch.setattr(local, "sort_on_disk", partial(cut_sort, sorted_rows))
    give_room(TINY)
    view = VIEWS[2]
    table = random_table(2, num_keys=3)
    batches = stored_engine(tmp_path).map_groups(
        table, [view], lambda batch: batch, np.ones(500, bool), ignore
    )
    first_of = {}
    num_cut = 0
    for batch in batches:
        rows = batch.to_pylist()
        keys = [tuple(row[name] for name in view.by) for row in rows]
        assert keys == sorted(keys)
        for at, (key, row) in enumerate(zip(keys, rows, strict=True)):
            if at == 0 or key != keys[at - 1]:
                num_cut += key in first_of
                assert first_of.setdefault(key, row) == row
                assert row == min(
                    (other for other, its in zip(rows, keys, strict=True) if its == key),
                    key=lambda other: (other["priority"], other["row"]),
                )
    assert num_cut > 10


@pytest.mark.parametrize("sorted_rows", [1, 7, 100, 1000])
def test_a_view_of_whole_groups_is_never_split(tmp_path, monkeypatch, give_room, sorted_rows):
    monkeypatch.setattr(local, "sort_on_disk", partial(cut_sort, sorted_rows))
    give_room(TINY)
    view = VIEWS[2]._replace(is_whole=True)
    table = random_table(2, num_keys=3)
    seen = set()
    rows = []
    for batch in stored_engine(tmp_path).map_groups(
        table, [view], lambda batch: batch, None, ignore
    ):
        keys = {tuple(row[name] for name in view.by) for row in batch.to_pylist()}
        assert keys.isdisjoint(seen)
        seen |= keys
        rows += batch.column("row").to_pylist()
    assert sorted(rows) == list(range(500))
    assert len(seen) == 9


@pytest.mark.parametrize("room", [TINY, 4_000, 30_000, AMPLE])
def test_without_a_selection_all_rows_of_a_table_are_grouped(tmp_path, give_room, room):
    """A table may have many rows for a document."""
    table = pa.table([[0] * 900 + [1] * 100, *([list(range(1000))] * 3)], schema=COLUMNS)
    give_room(room)
    held = InMemoryTable(table.to_batches(max_chunksize=90), COLUMNS)
    batches = list(
        stored_engine(tmp_path).map_groups(held, VIEWS[:1], lambda batch: batch, None, ignore)
    )
    assert sorted(low for batch in batches for low in batch.column("low").to_pylist()) == list(
        range(1000)
    )
    if room == 30_000:
        assert len(batches) > 1


def test_a_mapped_table_is_made_once_with_a_workspace(tmp_path):
    table = random_table(8)
    where = np.arange(500) % 3 > 0
    made = []

    def make_step():
        made.append(1)
        return lambda batch: batch.select(["row"]).filter(
            pa.array(batch.column("low").to_numpy() > 0)
        )

    columns = pa.schema([COLUMNS.field("row")])
    lows = pa.Table.from_batches(list(table.batches(COLUMNS.names))).column("low").to_numpy()
    for make_engine in (
        LocalEngine,
        partial(stored_engine, tmp_path),
        partial(stored_engine, tmp_path, threads=1),
    ):
        mapped = make_engine().map_table(
            "positive", table, ["row", "low"], where, make_step, columns
        )
        assert mapped.schema == columns
        found = [
            row for batch in mapped.batches(["row"]) for row in batch.column("row").to_pylist()
        ]
        assert found == np.flatnonzero(where & (lows > 0)).tolist()
    assert len(made) == 2


def test_only_selected_rows_are_counted():
    def step(batch, counts):
        counts += np.bincount(batch.column("row").to_numpy() % 4, minlength=4).astype(np.uint8)

    counts = LocalEngine(2).count(random_table(8, 60), ["row"], np.arange(60) < 50, step, 4)
    assert counts.tolist() == [13, 13, 12, 12]


def cut_sort(size, batches, columns, by, *_):
    """Sort in memory, in batches of `size`, an empty one among them."""
    table = pa.Table.from_batches(batches, schema=columns).sort_by(list(by))
    for start in range(0, table.num_rows, size):
        yield pa.RecordBatch.from_pylist([], schema=columns)
        yield from table.slice(start, size).combine_chunks().to_batches()


@pytest.mark.parametrize("sorted_rows", [1, 5, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_stages_give_the_same_result_for_split_and_whole_groups(
    tmp_path, monkeypatch, give_room, seed, sorted_rows
):
    monkeypatch.setattr(local, "sort_on_disk", partial(cut_sort, sorted_rows))
    give_room(TINY)
    rng = random.Random(seed)
    texts = [" ".join(rng.choices("abcd", k=rng.randint(0, 3))) for _ in range(150)]
    documents = pa.table(
        [list(range(150)), texts, [rng.randint(0, 3) for _ in texts], [0] * 150],
        schema=schema.DOCUMENTS,
    )
    config = Config(size=1, bands=8, rows=2)
    plan = plan_for(config)
    free = LocalEngine(2)
    bounded = stored_engine(tmp_path)
    results = []
    for engine in (free, bounded):
        source = InMemoryDocuments(documents, 150)
        table = engine.map_documents(
            source, lambda batch, _: sketch(batch, plan, config), schema.sketches(8), ignore
        )
        where = np.ones(150, bool)
        by_class = TableView(
            ("row", "priority", "digest_low", "digest_high"),
            ("digest_low", "digest_high"),
            ("priority", "row"),
        )
        copies = pa.Table.from_batches(
            engine.map_groups(table, [by_class], collapse, where, ignore), schema.CLASSES
        )
        bands = [TableView(("row", f"key_{band}"), (f"key_{band}",), ("row",)) for band in range(8)]
        links = engine.map_groups(table, bands, link, where, ignore)
        components = engine.connected_components(links, 150)
        results.append((copies.sort_by("row").to_pylist(), components.to_pylist()))
    assert results[0][0] == results[1][0]
    assert results[0][1] == results[1][1]
    assert results[0][0]


@pytest.mark.usefixtures("no_disk")
def test_views_that_fit_are_grouped_in_memory(tmp_path, give_room):
    give_room(AMPLE)
    advanced = []
    batches = stored_engine(tmp_path).map_groups(
        random_table(3), VIEWS, lambda batch: batch, np.ones(500, bool), advanced.append
    )
    assert [batch.num_rows for batch in batches] == [500] * 3
    assert advanced == [1] * 3


@pytest.mark.parametrize("room", [TINY, AMPLE])
def test_every_view_is_counted_once(tmp_path, give_room, room):
    give_room(room)
    advanced = []
    list(
        stored_engine(tmp_path).map_groups(
            random_table(3), VIEWS, lambda batch: batch, np.ones(500, bool), advanced.append
        )
    )
    assert advanced == [1] * 3


@pytest.mark.parametrize("room", [TINY, AMPLE])
@pytest.mark.parametrize(
    "by",
    [[("low", "ascending"), ("row", "ascending")], [("low", "descending"), ("row", "descending")]],
)
def test_a_sort_is_the_same_in_memory_and_on_disk(tmp_path, give_room, room, by):
    give_room(room)
    table = random_table(4)
    expected = LocalEngine(1).sort(table.batches(COLUMNS.names), COLUMNS, by)
    found = stored_engine(tmp_path).sort(table.batches(COLUMNS.names), COLUMNS, by)
    assert pa.Table.from_batches(found, COLUMNS).equals(
        pa.Table.from_batches(expected, COLUMNS).combine_chunks()
    )


@pytest.mark.usefixtures("no_disk")
def test_a_sort_that_fits_stays_in_memory(tmp_path, give_room):
    give_room(AMPLE)
    batches = list(
        stored_engine(tmp_path).sort(
            random_table(4).batches(COLUMNS.names), COLUMNS, [("row", "descending")]
        )
    )
    assert [row for batch in batches for row in batch.column("row").to_pylist()] == list(
        range(499, -1, -1)
    )


def test_rows_are_found_in_every_batch():
    table = random_table(5)
    for rows in ([], [0], [499], [3, 36, 37, 38, 400], list(range(500))):
        found = LocalEngine(1).find_rows(table, np.array(rows, np.int64), ["row", "high"])
        assert found.schema.names == ["row", "high"]
        assert found.column("row").to_pylist() == rows
        whole = pa.Table.from_batches(list(table.batches(["row", "high"])))
        assert found.to_pylist() == whole.take(pa.array(rows, pa.int64())).to_pylist()


def test_a_table_is_made_once_with_a_workspace(tmp_path):
    made = []

    def make():
        made.append(1)
        return pa.table({"row": [len(made)]}, schema=pa.schema([("row", pa.int64())]))

    for _ in range(2):
        assert stored_engine(tmp_path).checkpoint("numbers", make).to_pylist() == [{"row": 1}]
    assert LocalEngine(1).checkpoint("numbers", make).to_pylist() == [{"row": 2}]


PAIRS = pa.record_batch([[1, 2], [0, 1], [0.9, 0.8]], schema=schema.PARTNERED)


def verified_rows(num_rows):
    return pa.Table.from_pylist(
        [{"row": row, "compared": 0, "found": 0} for row in range(num_rows)], schema.VERIFIED
    )


def test_verified_documents_and_their_pairs_are_made_once_with_a_workspace(tmp_path):
    made = []

    def verify(put):
        made.append(1)
        put(PAIRS)
        put(PAIRS)
        return verified_rows(3)

    for _ in range(2):
        engine = stored_engine(tmp_path)
        verified = engine.verified_checkpoint("verified", verify)
        assert engine.has_verified("verified")
        assert verified.documents.column("row").to_pylist() == [0, 1, 2]
        assert [pairs.to_pylist() for pairs in verified.pairs()] == [PAIRS.to_pylist()] * 2
    assert made == [1]


def test_pairs_without_their_documents_are_made_again(tmp_path):
    """A run was killed between the two files; this time there are no pairs, so none must be left."""
    engine = stored_engine(tmp_path)

    def verify(put):
        put(PAIRS)
        return verified_rows(3)

    engine.verified_checkpoint("verified", verify)
    (tmp_path / "work" / "verified.arrow").unlink()
    engine = stored_engine(tmp_path)
    assert not engine.has_verified("verified")
    verified = engine.verified_checkpoint("verified", lambda _: verified_rows(2))
    assert verified.documents.num_rows == 2
    assert list(verified.pairs()) == []


def test_an_empty_table_made_once_keeps_its_schema(tmp_path):
    for _ in range(2):
        found = stored_engine(tmp_path).checkpoint("links", lambda: schema.LINKS.empty_table())
        assert (found.schema, found.num_rows) == (schema.LINKS, 0)


def test_stored_sketches_equal_those_in_memory_and_are_computed_once(tmp_path):
    documents = pa.table(
        [[0, 2, 5], ["a b", "c", "d e f"], [2, 1, 0], [0, 0, 0]], schema=schema.DOCUMENTS
    )
    config = Config(size=1)
    plan = plan_for(config)
    begun = []

    def step(batch, _):
        begun.append(batch.num_rows)
        return sketch(batch, plan, config)

    columns = schema.sketches(plan.bands)
    source = InMemoryDocuments(documents, 6)
    source.has_read = lambda _: True
    tables = [
        make_engine().map_documents(source, step, columns, ignore)
        for make_engine in (
            LocalEngine,
            partial(stored_engine, tmp_path),
            partial(stored_engine, tmp_path),
        )
    ]
    assert len(begun) == 2
    expected = pa.Table.from_batches(list(tables[0].batches(columns.names)))
    for table in tables[1:]:
        assert table.schema == columns
        assert pa.Table.from_batches(list(table.batches(columns.names))).equals(expected)
        [batch] = table.batches(["num_shingles", "row"])
        assert batch.to_pydict() == {"num_shingles": [2, 1, 3], "row": [0, 2, 5]}


def test_a_step_receives_a_hold_to_keep_sets_in_memory():
    documents = pa.table([[0, 1], ["a b", "c"], [0, 1], [0, 0]], schema=schema.DOCUMENTS)
    config = Config(size=1)
    plan = plan_for(config)
    read = []

    def step(batch, hold):
        return sketch(batch, plan, config, hold)

    class Counted(InMemoryDocuments):
        def read(self, part, advance):
            read.append(part)
            return super().read(part, advance)

    engine = LocalEngine(1)
    source = Counted(documents, 2)
    table = engine.map_documents(source, step, schema.sketches(plan.bands), ignore)
    where = engine.choose_rows(table, None, 2)
    sets = engine.map_read(
        "sets", source, table, where, partial(collect, config=config), schema.SETS
    )
    [batch] = sets.batches(["row", "shingles"])
    found = [
        np.sort(np.array(own, np.int64).view(np.uint64))
        for own in batch.column("shingles").to_pylist()
    ]
    assert [own.tolist() for own in found] == [
        neardup.shingles(text, size=1).tolist() for text in ("a b", "c")
    ]
    assert read == [0]


def test_rows_are_selected_by_a_column_except_those_of_a_table():
    columns = pa.schema([("row", pa.int64()), ("size", pa.int64())])
    held = pa.table([[0, 1, 3, 4], [2, 0, 1, 5]], schema=columns)
    table = InMemoryTable(held.to_batches(max_chunksize=3), columns)
    engine = LocalEngine(1)
    assert engine.choose_rows(table, None, 6).tolist() == [True, True, False, True, True, False]
    assert engine.choose_rows(table, "size", 6).tolist() == [True, False, False, True, True, False]
    copies = pa.table({"row": [3, 1]})
    assert engine.choose_rows(table, "size", 6, without=copies).tolist() == [
        True,
        False,
        False,
        False,
        True,
        False,
    ]


def test_totals_cover_all_rows_selected_rows_or_rows_from_an_offset():
    columns = pa.schema([("row", pa.int64()), ("size", pa.int64())])
    held = pa.table([[0, 1, 3, 4], [2, 0, 1, None]], schema=columns)
    engine = LocalEngine(1)
    where = np.array([True, False, False, True, True])
    for table in (held, InMemoryTable(held.to_batches(max_chunksize=3), columns)):
        assert engine.total(table) == 4
        assert engine.total(table, "size") == 3
        assert engine.total(table, where=where) == 3
        assert engine.total(table, first_row=1) == 3
        assert engine.total(table, "size", where, first_row=1) == 1
    assert engine.total(held.slice(0, 0), "size") == 0


def test_stored_tables_are_in_row_order(tmp_path):
    copies = pa.table([[5, 2, 3], [0, 1, 0]], schema=schema.CLASSES)
    for engine in (LocalEngine(1), stored_engine(tmp_path)):
        assert engine.checkpoint("classes", lambda: copies, schema.CLASSES).column(
            "row"
        ).to_pylist() == [2, 3, 5]


def test_the_first_error_stops_the_others():
    def step(number):
        if number == 3:
            raise ZeroDivisionError("the step failed")
        return number

    with pytest.raises(ZeroDivisionError, match="the step failed"):
        LocalEngine(2).side_by_side(step, range(1000))
    assert LocalEngine(2).side_by_side(lambda number: -number, range(20)) == [
        -number for number in range(20)
    ]


def test_ctrl_c_while_steps_are_handed_out_stops_those_that_have_started():
    engine = LocalEngine(1)
    has_started = threading.Event()
    checks = []

    def numbers():
        yield 0
        has_started.wait(60)
        raise KeyboardInterrupt

    def step(_):
        has_started.set()
        for _ in range(2000):
            engine.check_going()
            checks.append(time.sleep(0.005))

    with pytest.raises(KeyboardInterrupt):
        engine.side_by_side(step, numbers())
    assert len(checks) < 2000


@pytest.mark.parametrize(
    ("settings", "plan"),
    turning_grid(
        [{"pairs": True}, {"cluster": "components"}, {"keep": "longest", "pairs": True}],
        [{"bands": 8, "rows": 1}, {"method": "exact"}],
    ),
)
def test_a_run_with_hardly_any_memory_gives_the_same_result(tmp_path, give_room, settings, plan):
    rng = random.Random(9)
    texts = [
        " ".join(f"{rng.randrange(4)}w{at}" for at in range(rng.randint(3, 8))) for _ in range(120)
    ]
    pq.write_table(
        pa.table({"id": [f"d{at}" for at in range(120)], "text": texts}), tmp_path / "a.parquet"
    )
    settings = {"size": 1, "threshold": 0.5} | plan | settings
    expected = neardup.deduplicate(
        dict(zip([f"d{at}" for at in range(120)], texts, strict=True)), **settings
    )
    give_room(30_000)
    found = neardup.deduplicate(tmp_path / "a.parquet", out=tmp_path / "out", **settings)
    names = ["doc_id", "kept_id", "similarity"]
    assert found.removed.select(names).to_pylist() == expected.removed.to_pylist()
    assert found.clusters.to_pylist() == expected.clusters.to_pylist()
    assert expected.num_removed > 20
    if settings.get("pairs"):
        assert (
            found.pairs.select(["doc_a", "doc_b", "similarity"]).to_pylist()
            == expected.pairs.to_pylist()
        )
