"""The automatic choice does not depend on how a run is executed, and gives the result of the chosen method."""

from __future__ import annotations

import itertools
import json

import pytest

from neardup import api
from neardup.io.finished import finished_run
from neardup.theory import method_choice as costs
from support import corpora
from support.corpora import Truth
from support.grids import pairwise_grid
from support.programs import contents, kill_at_events, sweep

DOCUMENTS = corpora.rows(31, 50)
TEXTS = corpora.texts_of(DOCUMENTS)
HALF = len(DOCUMENTS) // 2
FIRSTS = {"a.jsonl": 0, "b.jsonl": HALF}
AUTO = {"method": "auto", "threshold": 0.5, "size": 2, "pairs": True}
# Sets are kept in memory; or not, and recomputed in a second pass.
ROOMS = (1 << 40, 5_000)
PRICES = {"exact": float("inf"), "lsh": 0.0}
COMMAND = ("--threads", "1", "--pairs", "--quiet", "--threshold", "0.7")


@pytest.fixture
def give_room(monkeypatch):
    return lambda num_bytes: corpora.shrink(monkeypatch, num_bytes)


@pytest.fixture
def inputs(tmp_path):
    parts = {"a.jsonl": DOCUMENTS[:HALF], "b.jsonl": DOCUMENTS[HALF:]}
    return [corpora.write_json_lines(tmp_path / "in" / name, rows) for name, rows in parts.items()]


def tables(report):
    return {
        name: getattr(report, name).to_pylist() for name in ("kept", "removed", "pairs", "clusters")
    }


RUNS = (
    {},
    {"cluster": "components", "keep": "last"},
    {"group_column": "site"},
    {"unit": "char", "size": 4, "threshold": 0.7},
    {"multiset": True, "threshold": 0.8},
)


@pytest.mark.parametrize(("run", "method", "room"), pairwise_grid(RUNS, PRICES, ROOMS))
def test_auto_gives_the_result_of_the_method_it_chooses(
    method, run, room, inputs, give_room, monkeypatch, tmp_path
):
    give_room(room)
    monkeypatch.setattr(costs, "FAIR_PRICE", PRICES[method])
    monkeypatch.setattr(costs, "SMALL_COST", 0.0)
    auto = corpora.deduplicate(inputs, tmp_path / "auto", **AUTO | run)
    asked = corpora.deduplicate(inputs, tmp_path / "asked", **AUTO | run | {"method": method})
    assert auto.plan.method == method
    assert tables(auto) == tables(asked)
    assert auto.pairs_verified == asked.pairs_verified
    assert auto.comparisons == asked.comparisons
    assert auto.plan.recall_at_threshold == asked.plan.recall_at_threshold


@pytest.mark.parametrize("method", PRICES)
def test_auto_changes_a_result_only_by_what_lsh_may_miss(method, inputs, monkeypatch, tmp_path):
    monkeypatch.setattr(costs, "FAIR_PRICE", PRICES[method])
    monkeypatch.setattr(costs, "SMALL_COST", 0.0)
    found = corpora.pair_rows(corpora.deduplicate(inputs, tmp_path / "auto", **AUTO).pairs, FIRSTS)
    lsh = corpora.pair_rows(
        corpora.deduplicate(inputs, tmp_path / "lsh", **AUTO | {"method": "lsh"}).pairs, FIRSTS
    )
    every = Truth(TEXTS).pairs
    assert lsh.items() <= found.items() <= every.items()
    assert found == (every if method == "exact" else lsh)


def test_reference_documents_precede_all_others(give_room, tmp_path):
    old = corpora.write_json_lines(tmp_path / "old.jsonl", DOCUMENTS[:25])
    new = corpora.write_json_lines(tmp_path / "new.jsonl", DOCUMENTS[25:])
    for room in ROOMS:
        give_room(room)
        report = corpora.deduplicate([new], tmp_path / f"out-{room}", against=str(old), **AUTO)
        assert report.plan.is_exact
        assert (
            corpora.removed_rows(report, {"old.jsonl": 0, "new.jsonl": 25})
            == Truth(TEXTS, num_references=25).removed
        )


def test_threads_memory_and_batches_give_the_same_bytes(inputs, give_room, monkeypatch, tmp_path):
    outputs = {}
    for room, threads, batch_bytes in itertools.product(ROOMS, (1, 2), (200, 4 << 20)):
        give_room(room)
        corpora.cut(monkeypatch, batch_bytes=batch_bytes)
        out = tmp_path / f"{room}-{threads}-{batch_bytes}"
        corpora.deduplicate(inputs, out, threads=threads, **AUTO)
        outputs[room, threads, batch_bytes] = corpora.contents(out)
    expected = outputs.pop((ROOMS[0], 1, 200))
    assert [name for name, found in outputs.items() if found != expected] == []


def test_neither_files_nor_order_change_the_choice(inputs, tmp_path):
    whole = corpora.write_json_lines(tmp_path / "whole.jsonl", DOCUMENTS)
    turned = corpora.write_json_lines(tmp_path / "turned.jsonl", DOCUMENTS[::-1])
    given = {"parts": inputs, "whole": [whole], "turned": [turned]}
    plans = {
        name: corpora.deduplicate(paths, tmp_path / name, **AUTO).plan
        for name, paths in given.items()
    }
    in_memory = api.deduplicate(TEXTS, **AUTO).plan
    assert {(plan.method, plan.reason) for plan in plans.values()} == {
        (in_memory.method, in_memory.reason)
    }


def test_the_report_has_the_method_and_the_reason(inputs, tmp_path):
    report = corpora.deduplicate(inputs, tmp_path / "out", **AUTO)
    plan = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))["plan"]
    assert (plan["method"], plan["bands"], plan["recall_at_threshold"]) == ("exact", 0, 1.0)
    assert plan["reason"].startswith("exact join: ")
    assert plan["reason"].endswith("shingles)")
    assert finished_run.restore(tmp_path / "out").plan == report.plan
    assert report.at_threshold(0.8).plan.is_exact


@pytest.fixture(scope="module")
def whole(programs, corpus, tmp_path_factory):
    """The output of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    assert programs.run("dedup", corpus, "-o", "out", *COMMAND, cwd=folder).code == 0
    return contents(folder / "out")


@pytest.mark.slow("a run and another for every point of its work")
@pytest.mark.parametrize(
    ("room", "begin", "step"), sweep("pass", 3, 9) + sweep("give_room(60_000)", 1, 37)
)
def test_a_run_killed_at_any_point_resumes_to_the_same_bytes(
    room, begin, step, programs, corpus, whole, tmp_path
):
    command = ("dedup", corpus, "-o", "out", *COMMAND)
    assert (
        kill_at_events(programs, command, range(begin, 1000, step), room, whole, tmp_path / "run")
        > 50
    )
