"""The exact join from files to files agrees with the oracle for any memory, threads, old files and kills."""

from __future__ import annotations

import itertools
import json
import signal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup import api
from neardup.engines.local import engine as local
from neardup.io.storage import spill
from support import corpora
from support.corpora import Truth
from support.grids import turning_grid
from support.programs import contents, kill_at_events, sweep

DOCUMENTS = corpora.rows(31, 50)
TEXTS = corpora.texts_of(DOCUMENTS)
EXACT = {"method": "exact", "threshold": 0.5, "size": 2}
# Everything in memory; ranges of postings; external sorts and blocks of components.
ROOMS = (1 << 40, 100_000, 5_000)
COMMAND = ("--method", "exact", "--threads", "1", "--pairs", "--quiet", "--threshold", "0.7")


@pytest.fixture
def give_room(monkeypatch):
    return lambda num_bytes: corpora.shrink(monkeypatch, num_bytes)


@pytest.fixture
def inputs(tmp_path):
    half = len(DOCUMENTS) // 2
    parts = {"a.jsonl": DOCUMENTS[:half], "b.jsonl": DOCUMENTS[half:]}
    return [corpora.write_json_lines(tmp_path / "in" / name, rows) for name, rows in parts.items()]


FIRSTS = {"a.jsonl": 0, "b.jsonl": len(DOCUMENTS) // 2}
RUNS = (
    {},
    {"cluster": "components", "keep": "last"},
    {"keep": "longest", "collapse_empty": True},
    {"group_column": "site"},
    {"unit": "char", "size": 4, "threshold": 0.7},
    {"multiset": True, "threshold": 0.8},
)


@pytest.mark.parametrize(("run", "room"), turning_grid(RUNS, ROOMS))
def test_the_oracle_agrees_with_any_memory(run, room, inputs, give_room, tmp_path):
    give_room(room)
    report = corpora.deduplicate(inputs, tmp_path / "out", pairs=True, **EXACT | run)
    chosen = dict(run)
    groups = [row["site"] for row in DOCUMENTS] if chosen.pop("group_column", None) else None
    truth = Truth(TEXTS, groups=groups, **chosen)
    assert corpora.pair_rows(report.pairs, FIRSTS) == truth.pairs
    assert corpora.removed_rows(report, FIRSTS) == truth.removed
    assert len(truth.pairs) > 10


def test_threads_memory_and_batches_give_the_same_bytes(inputs, give_room, monkeypatch, tmp_path):
    outputs = {}
    for room, threads, batch_bytes in itertools.product(ROOMS, (1, 2), (200, 4 << 20)):
        give_room(room)
        corpora.cut(monkeypatch, batch_bytes=batch_bytes)
        out = tmp_path / f"{room}-{threads}-{batch_bytes}"
        corpora.deduplicate(inputs, out, pairs=True, threads=threads, **EXACT)
        outputs[room, threads, batch_bytes] = corpora.contents(out)
    expected = outputs.pop((ROOMS[0], 1, 200))
    assert [name for name, found in outputs.items() if found != expected] == []


def test_little_memory_uses_ranges_and_less_sorts_on_disk(inputs, give_room, monkeypatch, tmp_path):
    taken = set()
    sorted_keys = []
    in_range = local.in_range
    sort_on_disk = local.sort_on_disk

    def watched_range(batches, column, number, ranges):
        taken.add((column, ranges))
        return in_range(batches, column, number, ranges)

    def watched_sort(batches, schema, by, *others):
        sorted_keys.append(by[0][0])
        return sort_on_disk(batches, schema, by, *others)

    monkeypatch.setattr(local, "in_range", watched_range)
    monkeypatch.setattr(local, "sort_on_disk", watched_sort)
    monkeypatch.setattr(spill, "_SORTED_ROWS", 5)
    give_room(100_000)
    some = corpora.deduplicate(inputs, tmp_path / "some", **EXACT)
    assert max(ranges for column, ranges in taken if column == "key") > 1
    assert "key" not in sorted_keys
    give_room(5_000)
    least = corpora.deduplicate(inputs, tmp_path / "least", **EXACT)
    assert "key" in sorted_keys
    assert least.removed.equals(some.removed)


@pytest.mark.parametrize(("room", "cluster"), turning_grid(ROOMS, ("leader", "components")))
def test_reference_documents_precede_all_others(room, cluster, give_room, tmp_path):
    give_room(room)
    num_old = 25
    old = corpora.write_json_lines(tmp_path / "old.jsonl", DOCUMENTS[:num_old])
    new = corpora.write_json_lines(tmp_path / "new.jsonl", DOCUMENTS[num_old:])
    report = corpora.deduplicate(
        [new], tmp_path / "out", against=str(old), pairs=True, cluster=cluster, **EXACT
    )
    truth = Truth(TEXTS, num_references=num_old, cluster=cluster)
    firsts = {"old.jsonl": 0, "new.jsonl": num_old}
    assert corpora.pair_rows(report.pairs, firsts) == truth.pairs
    assert corpora.removed_rows(report, firsts) == truth.removed


def test_lists_of_items_are_compared(tmp_path):
    baskets = [
        ["milk", "bread", "tea"],
        ["bread", "milk"],
        ["nails"],
        ["tea", "milk", "bread", "jam"],
        [],
        ["nails"],
    ]
    pq.write_table(pa.table({"basket": baskets}), tmp_path / "shop.parquet")
    report = corpora.find_pairs(
        [tmp_path / "shop.parquet"],
        tmp_path / "pairs.parquet",
        items_column="basket",
        method="exact",
        threshold=0.6,
    )
    assert corpora.pair_rows(report.pairs) == {(0, 1): 2 / 3, (0, 3): 0.75, (2, 5): 1.0}


def test_the_report_has_the_method_and_a_finished_run_can_be_loaded(inputs, tmp_path):
    corpora.deduplicate(inputs, tmp_path / "out", pairs=True, **EXACT)
    written = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    plan = {
        name: written["plan"][name] for name in ("method", "bands", "rows", "recall_at_threshold")
    }
    assert plan == {"method": "exact", "bands": 0, "rows": 0, "recall_at_threshold": 1.0}
    removed = pq.read_table(tmp_path / "out" / "removed.parquet").to_pylist()
    explained = api.explain(tmp_path / "out", removed[0]["doc_id"])
    assert explained.comparison.chance == 1.0
    again = corpora.find_pairs([tmp_path / "out"], tmp_path / "again.parquet", threshold=0.8)
    assert corpora.pair_rows(again.pairs, FIRSTS) == Truth(TEXTS, threshold=0.8).pairs
    assert again.plan.is_exact


def test_a_recall_of_1_runs_the_exact_join(inputs, tmp_path):
    report = corpora.deduplicate(inputs, tmp_path / "out", recall=1, threshold=0.5, size=2)
    assert report.plan.method == "exact"
    assert corpora.removed_rows(report, FIRSTS) == Truth(TEXTS).removed


@pytest.fixture(scope="module")
def whole(programs, corpus, tmp_path_factory):
    """The output of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    assert programs.run("dedup", corpus, "-o", "out", *COMMAND, cwd=folder).code == 0
    return contents(folder / "out")


@pytest.mark.slow("a run and another for every point of its work")
@pytest.mark.parametrize(
    ("room", "begin", "step"), sweep("pass", 2, 4) + sweep("give_room(60_000)", 1, 23)
)
def test_a_run_killed_at_any_point_resumes_to_the_same_bytes(
    room, begin, step, programs, corpus, whole, tmp_path
):
    command = ("dedup", corpus, "-o", "out", *COMMAND)
    assert (
        kill_at_events(programs, command, range(begin, 1000, step), room, whole, tmp_path / "run")
        > 50
    )


def test_a_run_killed_after_its_postings_does_not_recompute_them(programs, corpus, whole, tmp_path):
    given = ("dedup", corpus, "-o", "out", *COMMAND)
    die = "from neardup.engines.local.engine import LocalEngine as Engine; die = lambda *_: os.kill(os.getpid(), 9)"
    killed = programs.run(*given, cwd=tmp_path, before=f"{die}; Engine.connected_components = die")
    assert killed.code == -signal.SIGKILL
    postings = tmp_path / ".out.neardup" / "postings.arrow"
    before = postings.stat().st_mtime_ns
    halted = programs.run(*given, cwd=tmp_path, before="kill_at_part('shelves.arrow')")
    assert halted.code == -signal.SIGKILL
    assert postings.stat().st_mtime_ns == before
    assert programs.run(*given, cwd=tmp_path).code == 0
    assert contents(tmp_path / "out") == whole
