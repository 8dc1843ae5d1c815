"""Components on shelves: none is split, large ones are in keep order, and the result equals that in memory."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from neardup import schema
from neardup.config import Config
from neardup.engines.base import ComponentSteps
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.limits import Memory
from neardup.engines.local.shelves import Verifier, map_shelved, plan_shelves
from neardup.engines.local.tables import InMemoryTable
from neardup.engines.local.verified import VerifiedTable
from neardup.events import Tally
from neardup.io.documents.in_memory import InMemoryDocuments
from neardup.io.storage.spill import Shelves
from neardup.io.storage.workspace import Workspace
from neardup.stages.verify import verify
from neardup.stages.verify_blocks import verify_blocks
from neardup.theory.plan import plan_for
from support.grids import turning_grid

COLUMNS = ("row", "component", "priority", "text_bytes", "verify_bytes")
MEMBERS = pa.schema([(name, pa.int64()) for name in COLUMNS])


def ignore(steps):
    del steps


def random_members(seed, num_rows=120, num_components=20):
    """Members of components of very different sizes; rows have gaps."""
    rng = random.Random(seed)
    rows = sorted(rng.sample(range(10 * num_rows), k=num_rows))
    shares = [rng.random() ** 4 for _ in range(num_components)]
    labels = rng.choices(rng.sample(rows, k=num_components), shares, k=num_rows)
    text_bytes = [rng.choice([0, 1, 10, 100]) for _ in rows]
    cost = [2 * size + rng.choice([10, 50]) for size in text_bytes]
    priority = [rng.choice([schema.REFERENCE_PRIORITY, 0, 1, 5, -(2**40)]) for _ in rows]
    return pa.table([rows, labels, priority, text_bytes, cost], schema=MEMBERS)


def of_component(members, shelves):
    """(priority, row, text_bytes, verify_bytes, shelf, is_large) of the members of each component."""
    found = defaultdict(list)
    for member, place in zip(members.to_pylist(), shelves.to_pylist(), strict=True):
        values = [member[name] for name in ("priority", "row", "text_bytes", "verify_bytes")]
        found[member["component"]].append((*values, place["shelf"], place["is_large"]))
    return {label: sorted(own) for label, own in found.items()}


LIMITS = [1, 60, 300, 1000, 5000, 10**9]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("seed", range(4))
def test_every_member_is_on_one_shelf_and_shelves_are_numbered_without_gaps(seed, limit):
    members = random_members(seed)
    shelves = plan_shelves(members, limit, limit)
    for name in ("row", "component", "priority"):
        assert shelves.column(name).equals(members.column(name))
    numbers = shelves.column("shelf").to_pylist()
    assert set(numbers) == set(range(max(numbers) + 1))


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("seed", range(4))
def test_a_component_within_the_limit_is_whole_on_one_shelf(seed, limit):
    members = random_members(seed)
    components = of_component(members, plan_shelves(members, limit, limit))
    large_shelves = Counter()
    others = set()
    for own in components.values():
        is_large = sum(cost for _, _, _, cost, _, _ in own) > limit
        assert {large for *_, large in own} == {is_large}
        homes = {shelf for *_, shelf, _ in own}
        if is_large:
            large_shelves.update(homes)
        else:
            assert len(homes) == 1
            others |= homes
    assert set(large_shelves.values()) <= {1}
    assert not others & large_shelves.keys()


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("seed", range(4))
def test_a_large_component_fills_its_shelves_in_keep_order(seed, limit):
    members = random_members(seed)
    for own in of_component(members, plan_shelves(members, limit, limit)).values():
        homes = [shelf for *_, shelf, _ in own]
        assert homes == sorted(homes)
        assert set(homes) == set(range(homes[0], homes[-1] + 1))


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("seed", range(4))
def test_shelves_keep_to_their_limit(seed, limit):
    members = random_members(seed)
    components = of_component(members, plan_shelves(members, limit, limit))
    texts = Counter()
    costs = Counter()
    largest = 0
    for own in components.values():
        for _, _, text_bytes, cost, shelf, is_large in own:
            (costs if is_large else texts)[shelf] += cost if is_large else text_bytes
        largest = max(largest, *(cost for _, _, _, cost, _, _ in own))
    # A shelf exceeds its limit by at most its last item: a component within the limit, or one
    # document.
    assert all(size <= 2 * limit for size in texts.values())
    assert all(size <= limit / 4 + largest for size in costs.values())


def test_no_members_need_no_shelf():
    shelves = plan_shelves(random_members(0).slice(0, 0), 100, 100)
    assert shelves.num_rows == 0


@pytest.mark.parametrize("shelf_bytes", [1, 100, 10**9])
def test_without_a_limit_no_component_is_large(shelf_bytes):
    members = random_members(3)
    shelves = plan_shelves(members, shelf_bytes, None)
    assert not pc.any(shelves.column("is_large")).as_py()
    assert all(
        len({shelf for *_, shelf, _ in own}) == 1 for own in of_component(members, shelves).values()
    )
    assert (len(set(shelves.column("shelf").to_pylist())) == 1) == (shelf_bytes == 10**9)


@pytest.mark.parametrize("seed", range(2))
def test_members_of_different_components_are_distinguished(seed):
    members = random_members(seed)
    alone = pa.table(
        [*members.columns[:1], pa.array(np.zeros(members.num_rows, int)), *members.columns[2:]],
        members.schema,
    )
    shelves = plan_shelves(alone, 500, 500)
    assert pc.all(shelves.column("is_large")).as_py()
    assert len(set(shelves.column("shelf").to_pylist())) > 5


# mapping


class PartDocuments(InMemoryDocuments):
    """Documents in memory, in several parts, in batches of a few; counts its readings."""

    def __init__(self, documents, num_parts):
        super().__init__(documents, 0)
        ends = np.linspace(0, documents.num_rows, num_parts + 1).astype(int)
        rows = documents.column("row").to_numpy()
        self.first_rows = np.r_[0, rows[ends[1:-1]], rows[-1] + 1]
        self.num_parts = num_parts
        self._ends = ends
        self.num_read = Counter()

    def read(self, part, advance):
        self.num_read[part] += 1
        start, stop = self._ends[part : part + 2]
        for batch in self._documents.slice(start, stop - start).to_batches(max_chunksize=3):
            advance(batch.num_rows)
            yield batch


def random_documents(seed, num_documents=90):
    """Near-copies of few pages; priorities repeat; every page is a component, of very different sizes."""
    rng = random.Random(seed)
    rows = sorted(rng.sample(range(5 * num_documents), k=num_documents))
    pages = [min(int(rng.expovariate(0.5)), 9) for _ in rows]
    texts = [
        " ".join(f"{page}x{rng.choice([at, at, at, 0])}" for at in range(12)) for page in pages
    ]
    priority = [rng.choice([schema.REFERENCE_PRIORITY, 0, 1, 2]) for _ in rows]
    documents = pa.table([rows, texts, priority, [0] * num_documents], schema=schema.DOCUMENTS)
    smallest = {
        page: min(row for row, other in zip(rows, pages, strict=True) if other == page)
        for page in pages
    }
    text_bytes = [len(text) for text in texts]
    cost = [verify_bytes(size, 0) for size in text_bytes]
    members = [rows, [smallest[page] for page in pages], priority, text_bytes, cost]
    return documents, pa.table(members, schema=MEMBERS)


def verify_bytes(text_bytes, num_shingles):
    del num_shingles
    return 2 * text_bytes + 200


def map_components(engine, parts, members, mode):
    """Call `map_components` of an engine, with members from a table of sketches."""
    sketches = members.select(["row", "priority", "text_bytes"])
    sketches = sketches.append_column("num_shingles", pa.array([0] * members.num_rows, pa.int64()))
    table = InMemoryTable(sketches.to_batches(), sketches.schema)
    steps = ComponentSteps(*steps_of(mode), verify_bytes)
    return engine.map_components(
        parts, members.select(["row", "component"]), table, steps, schema.VERIFIED, ignore
    )


MODES = {
    "leaders": {},
    "pairs": {"pairs": True},
    "closure": {"cluster": "components", "pairs": True},
}


def steps_of(mode):
    config = Config(size=1, threshold=0.6, bands=64, rows=1, signature_filter=False, **MODES[mode])
    plan = plan_for(config)
    return partial(verify, plan=plan, config=config), partial(
        verify_blocks, plan=plan, config=config
    )


def answers(verified):
    """The result for each row; partners in any order."""
    if isinstance(verified, VerifiedTable):
        documents = verified.documents
        pairs = list(verified.pairs())
    else:
        documents = verified
        pairs = [schema.partnered(pa.table(verified))]
    partners = {row: [] for row in documents.column("row").to_pylist()}
    for pair in pa.Table.from_batches(pairs, schema=schema.PARTNERED).to_pylist():
        partners[pair["row"]].append((pair["partner"], pair["similarity"]))
    return {
        row["row"]: (row["kept_row"], row["similarity"], sorted(partners[row["row"]]))
        for row in documents.to_pylist()
    }


def work_engine(tmp_path, threads=2):
    (tmp_path / "work").mkdir(exist_ok=True)
    return LocalEngine(threads, Workspace(tmp_path / "work"), 10**9)


def whole_answers(documents, members, step):
    """The result of the step on all components at once."""
    labels = dict(
        zip(members.column("row").to_pylist(), members.column("component").to_pylist(), strict=True)
    )
    chosen = documents.filter(pc.is_in(documents.column("row"), members.column("row")))
    chosen = chosen.append_column(
        "component", pa.array([labels[row] for row in chosen.column("row").to_pylist()])
    )
    ordered = chosen.sort_by(
        [("component", "ascending"), ("priority", "ascending"), ("row", "ascending")]
    )
    return answers(step(ordered.combine_chunks().to_batches()[0]))


def map_all(parts, shelves, mode, engine, store):
    steps = ComponentSteps(*steps_of(mode), verify_bytes)
    verifier = Verifier(engine, steps, schema.VERIFIED, Tally())
    return map_shelved(parts, shelves, verifier, engine, store)


@pytest.mark.parametrize(
    ("limit", "mode", "held_bytes"), turning_grid([1, 700, 3000, 10**9], MODES, [0, 2000, None])
)
def test_shelves_give_the_same_result_as_all_components_at_once(tmp_path, limit, mode, held_bytes):
    documents, members = random_documents(limit)
    engine = work_engine(tmp_path)
    parts = PartDocuments(documents, 4)
    store = Shelves(tmp_path / "texts", held_bytes)
    shelved = map_all(parts, plan_shelves(members, limit, limit), mode, engine, store)
    assert shelved.schema == schema.VERIFIED
    assert shelved.documents.num_rows == members.num_rows
    assert answers(shelved) == whole_answers(documents, members, steps_of(mode)[0])
    assert set(parts.num_read.values()) == {1}


def test_processed_components_leave_their_shelf(tmp_path):
    documents, members = random_documents(3)
    store = Shelves(tmp_path / "texts", 0)
    shelves = plan_shelves(members, 700, 700)
    assert pc.any(shelves.column("is_large")).as_py()
    map_all(PartDocuments(documents, 4), shelves, "leaders", work_engine(tmp_path), store)
    assert list((tmp_path / "texts").iterdir()) == []


@pytest.mark.parametrize("limit", [1, 10**9])
def test_only_parts_with_members_are_read_again(tmp_path, limit):
    documents, members = random_documents(5)
    parts = PartDocuments(documents, 10)
    few = members.slice(0, 3)
    found = map_all(
        parts, plan_shelves(few, limit, limit), "leaders", work_engine(tmp_path), Shelves()
    )
    assert found.documents.num_rows == 3
    assert parts.num_read == {0: 1}


def test_no_members_give_no_results(tmp_path):
    documents, members = random_documents(5)
    for engine in (work_engine(tmp_path), LocalEngine(2)):
        parts = PartDocuments(documents, 3)
        found = map_components(engine, parts, members.slice(0, 0), "leaders")
        assert (found.schema, found.documents.num_rows) == (schema.VERIFIED, 0)
        assert not parts.num_read


@pytest.mark.parametrize("room", [8, 8_000, 10**9])
def test_an_engine_with_a_memory_limit_gives_the_same_result(tmp_path, monkeypatch, room):
    monkeypatch.setattr(Memory, "room", lambda _: room)
    documents, members = random_documents(6)
    engines = LocalEngine(2), work_engine(tmp_path)
    free, bounded = (
        map_components(engine, PartDocuments(documents, 3), members, "pairs") for engine in engines
    )
    assert (
        answers(bounded) == answers(free) == whole_answers(documents, members, steps_of("pairs")[0])
    )


def test_a_resumed_run_verifies_only_what_is_missing(tmp_path):
    documents, members = random_documents(7)
    step, block_step = steps_of("pairs")
    shelves = plan_shelves(members, 1500, 1500)
    begun = []

    def run(fail_at):
        engine = work_engine(tmp_path, threads=1)

        class Counting(Verifier):
            def verify_whole(self, batches, put):
                self.begin()
                return super().verify_whole(batches, put)

            def verify_blocks(self, blocks, put):
                self.begin()
                return super().verify_blocks(blocks, put)

            def begin(self):
                begun.append(1)
                if len(begun) == fail_at:
                    raise KeyboardInterrupt

        steps = ComponentSteps(step, block_step, verify_bytes)
        verifier = Counting(engine, steps, schema.VERIFIED, Tally())
        parts = PartDocuments(documents, 3)
        store = Shelves(tmp_path / "texts", 1000)
        return map_shelved(parts, shelves, verifier, engine, store)

    with pytest.raises(KeyboardInterrupt):
        run(fail_at=4)
    begun.clear()
    resumed = run(fail_at=None)
    small, large = (
        shelves.filter(pc.equal(shelves.column("is_large"), is_large)) for is_large in (False, True)
    )
    num_units = len(set(small.column("shelf").to_pylist())) + len(
        set(large.column("component").to_pylist())
    )
    assert len(begun) == num_units - 3
    assert answers(resumed) == whole_answers(documents, members, step)


def test_results_of_another_shelf_layout_are_not_reused(tmp_path):
    documents, members = random_documents(8)
    expected = whole_answers(documents, members, steps_of("pairs")[0])
    for limit in (3000, 700, 1500):
        shelves = plan_shelves(members, limit, limit)
        found = map_all(
            PartDocuments(documents, 3), shelves, "pairs", work_engine(tmp_path), Shelves()
        )
        assert found.documents.num_rows == members.num_rows
        assert answers(found) == expected
