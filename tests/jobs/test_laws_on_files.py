"""Threads, batches, parts, files, memory and format do not change the result, which agrees with the oracle."""

from __future__ import annotations

import decimal
import functools
import itertools
import json
import math
import tempfile
import time
from datetime import date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from support import corpora
from support.corpora import EVERY_PAIR, PAGE, Truth, cut, shrink
from support.grids import turning_grid

NUM_DOCUMENTS = 80
DOCUMENTS = corpora.rows(11, NUM_DOCUMENTS)
TEXTS = corpora.texts_of(DOCUMENTS)
SCORES = [document["score"] for document in DOCUMENTS]
SITES = [document["site"] for document in DOCUMENTS]
LARGE = 1 << 40
FORMS = ("jsonl", "csv", "parquet", "arrow")
RUNS = {
    "first": {},
    "last, closed": {"keep": "last", "cluster": "components"},
    "longest, by site": {"keep": "longest", "group_column": "site"},
    "best, empties too": {"keep": "max:score", "collapse_empty": True},
}


def truth_of(run_settings):
    chosen = dict(run_settings)
    groups = SITES if chosen.pop("group_column", None) else None
    return Truth(TEXTS, scores=SCORES, groups=groups, **chosen)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Return the output of a default run in a format, computed once."""
    folder = tmp_path_factory.mktemp("laws")

    @functools.cache
    def output(form, run):
        path = corpora.write_rows(folder / run / f"corpus.{form}", DOCUMENTS)
        corpora.deduplicate([path], folder / f"{form}-{run}", pairs=True, **EVERY_PAIR, **RUNS[run])
        return path, corpora.contents(folder / f"{form}-{run}")

    return output


@pytest.mark.parametrize(("form", "run"), turning_grid(FORMS, RUNS))
def test_every_run_agrees_with_the_oracle_and_with_memory(form, run, tmp_path):
    path = corpora.write_rows(tmp_path / f"corpus.{form}", DOCUMENTS)
    report = corpora.deduplicate([path], tmp_path / "out", pairs=True, **EVERY_PAIR, **RUNS[run])
    truth = truth_of(RUNS[run])
    assert corpora.removed_rows(report) == truth.removed
    assert corpora.pair_rows(report.pairs) == truth.pairs
    table = pa.Table.from_pylist(
        [document | {"id": str(at)} for at, document in enumerate(DOCUMENTS)]
    )
    held = neardup.deduplicate(table, **EVERY_PAIR, **RUNS[run])
    assert {int(row["doc_id"]): int(row["kept_id"]) for row in held.removed.to_pylist()} == {
        row: kept for row, (kept, _) in truth.removed.items()
    }
    assert report.exact_duplicates == held.exact_duplicates


@pytest.mark.parametrize(("form", "run"), turning_grid(FORMS, RUNS))
def test_results_do_not_depend_on_threads(form, run, outputs, tmp_path, monkeypatch):
    path, expected = outputs(form, run)
    cut(monkeypatch, batch_bytes=900, part_bytes=2000)
    for threads in (1, 2):
        out = tmp_path / str(threads)
        corpora.deduplicate([path], out, pairs=True, threads=threads, **EVERY_PAIR, **RUNS[run])
        assert corpora.contents(out) == expected


@pytest.mark.parametrize(("form", "batch_bytes"), turning_grid(FORMS, (1, 300, 5000, LARGE)))
def test_results_do_not_depend_on_the_batch_size(form, batch_bytes, outputs, tmp_path, monkeypatch):
    cut(monkeypatch, batch_bytes=batch_bytes)
    for run in ("last, closed", "best, empties too"):
        path, expected = outputs(form, run)
        corpora.deduplicate([path], tmp_path / run, pairs=True, **EVERY_PAIR, **RUNS[run])
        assert corpora.contents(tmp_path / run) == expected, run


@pytest.mark.parametrize(("form", "part_bytes"), turning_grid(FORMS, (500, 6000, LARGE)))
def test_results_do_not_depend_on_parts(form, part_bytes, outputs, tmp_path, monkeypatch):
    cut(monkeypatch, part_bytes=part_bytes)
    for run in ("first", "best, empties too"):
        path, expected = outputs(form, run)
        corpora.deduplicate([path], tmp_path / run, pairs=True, **EVERY_PAIR, **RUNS[run])
        found = corpora.contents(tmp_path / run)
        name = f"kept/{path.name}"
        if form == "arrow":  # record batches may end elsewhere
            documents = [DOCUMENTS[row] for row in truth_of(RUNS[run]).kept]
            assert corpora.read_rows(tmp_path / run / name) == documents
            found[name] = expected[name]
        assert found == expected, run


@pytest.mark.parametrize(("run", "room"), turning_grid(RUNS, (50_000, 1 << 20, LARGE)))
def test_results_do_not_depend_on_memory(run, room, outputs, tmp_path, monkeypatch):
    shrink(monkeypatch, room)
    for form in (
        "jsonl",
        "parquet",
    ):  # rows of Parquet stay in memory until they are written, where there is room
        path, expected = outputs(form, run)
        corpora.deduplicate([path], tmp_path / form, pairs=True, **EVERY_PAIR, **RUNS[run])
        assert corpora.contents(tmp_path / form) == expected, form


@pytest.mark.parametrize(("run", "room"), turning_grid(RUNS, (50_000, LARGE)))
def test_results_do_not_depend_on_the_number_of_files(run, room, tmp_path, monkeypatch):
    shrink(monkeypatch, room)
    bounds = [0, 1, 1, 30, 31, 57, NUM_DOCUMENTS]
    firsts = {}
    paths = []
    for number, (first, stop) in enumerate(itertools.pairwise(bounds)):
        path = tmp_path / "in" / f"{number}.jsonl"
        corpora.write_json_lines(path, DOCUMENTS[first:stop])
        firsts[path.name] = first
        paths.append(path)
    report = corpora.deduplicate(paths, tmp_path / "out", pairs=True, **EVERY_PAIR, **RUNS[run])
    truth = truth_of(RUNS[run])
    assert corpora.removed_rows(report, firsts) == truth.removed
    assert corpora.pair_rows(report.pairs, firsts) == truth.pairs
    kept = [
        json.loads(line)["id"]
        for path in paths
        for line in _lines(tmp_path / "out/kept" / path.name)
    ]
    assert kept == [DOCUMENTS[row]["id"] for row in truth.kept]
    assert {path.name for path in (tmp_path / "out/kept").iterdir()} == set(firsts)


def _lines(path):
    return [line for line in path.read_bytes().split(b"\n") if line]


def test_blank_and_bad_rows_between_documents_change_nothing(tmp_path, monkeypatch):
    lines = []
    places = []
    for number, document in enumerate(DOCUMENTS):
        lines += [*["", "{bad", " "][: number % 4], json.dumps(document)]
        places.append(len(lines))
    path = corpora.write_json_lines(tmp_path / "gaps.jsonl", lines)
    cut(monkeypatch, batch_bytes=777, part_bytes=3001)
    shrink(monkeypatch, 50_000)
    report = corpora.deduplicate([path], tmp_path / "out", keep="max:score", **EVERY_PAIR)
    expected = Truth(TEXTS, keep="max:score", scores=SCORES).removed
    found = {
        places.index(row + 1): places.index(kept + 1)
        for row, (kept, _) in corpora.removed_rows(report).items()
    }
    assert found == {row: kept for row, (kept, _) in expected.items()}
    assert report.num_rejected == lines.count("{bad")


# Two copies with their scores, and which one must be kept; files are read in this order.
ODD_SCORES = {
    "whole number and fraction": ([5, 5.5, 5], "max:s", 1),
    "ties of int and float, least": ([5, 5.0, 5], "min:s", 0),
    "ties of float and int, most": ([5.0, 5, 5.0], "max:s", 0),
    "negative ties": ([-5.0, -5, -5.0], "min:s", 0),
    "beyond doubles": ([2**53, 2**53 + 1, 2**53], "max:s", 1),
    "beyond doubles, beside a float": ([2**60, 0.5, 2**60 + 1], "max:s", 2),
    "beyond 64 bits": ([2**62, 2**70, 1], "max:s", 1),
    "below 64 bits": ([-(2**70), 0, 1], "min:s", 0),
    "null is last": ([None, -(10**9), None], "max:s", 1),
    "null is last, least": ([None, 10**9, None], "min:s", 1),
    "all null": ([None, None, None], "max:s", 0),
    "texts": (["b", "c", "a"], "max:s", 1),
    "texts, least": (["b", "c", "a"], "min:s", 2),
    "texts beyond ASCII": (["z", "é", "\U0001f600"], "max:s", 2),
    "an empty text": (["", "a", ""], "min:s", 0),
    "dates as text": (["2024-01-31", "2023-12-31", "2024-02-01"], "max:s", 2),
    "truths": ([False, True, False], "max:s", 1),
    "zeros": ([0.0, -0.0, 0], "min:s", 0),
}


@pytest.mark.parametrize(
    ("kind", "how"), turning_grid(ODD_SCORES, [(1, 50_000), (3, LARGE), (1, LARGE), (3, 50_000)])
)
def test_scores_of_json_lines_have_the_same_order_in_one_file_and_many(
    kind, how, tmp_path, monkeypatch
):
    num_files, room = how
    shrink(monkeypatch, room)
    scores, keep, best = ODD_SCORES[kind]
    documents = [{"id": str(at), "text": PAGE, "s": score} for at, score in enumerate(scores)]
    groups = [documents] if num_files == 1 else [[document] for document in documents]
    paths = [
        corpora.write_json_lines(tmp_path / f"{at}.jsonl", group) for at, group in enumerate(groups)
    ]
    report = corpora.deduplicate(paths, tmp_path / "out", keep=keep)
    assert set(report.removed.column("kept_id").to_pylist()) == {str(best)}


DAY = datetime(2024, 5, 1)
# One Parquet file per column type, with one copy each; which one must be kept with max:s.
TYPED_SCORES = {
    "timestamps of several units": (
        [pa.array([DAY], pa.timestamp("ms")), pa.array([DAY - timedelta(1)], pa.timestamp("us"))],
        0,
    ),
    "timestamps in nanoseconds": (
        [pa.array([DAY], pa.timestamp("ns")), pa.array([DAY + timedelta(1)], pa.timestamp("ms"))],
        1,
    ),
    "a date and a timestamp": (
        [pa.array([date(2024, 5, 2)], pa.date32()), pa.array([DAY], pa.timestamp("us"))],
        0,
    ),
    "dates of both kinds": (
        [pa.array([date(2024, 5, 2)], pa.date32()), pa.array([date(2024, 5, 3)], pa.date64())],
        1,
    ),
    "durations": (
        [
            pa.array([timedelta(1)], pa.duration("ms")),
            pa.array([timedelta(0.5)], pa.duration("us")),
        ],
        0,
    ),
    "integers of several widths": (
        [pa.array([3], pa.int8()), pa.array([2**63 + 5], pa.uint64())],
        1,
    ),
    "decimals": (
        [
            pa.array([decimal.Decimal("5.5")], pa.decimal128(9, 2)),
            pa.array([decimal.Decimal("5.25")], pa.decimal128(9, 2)),
        ],
        0,
    ),
    "floats of several widths": (
        [pa.array([0.5], pa.float32()), pa.array([0.75], pa.float64())],
        1,
    ),
    "half floats": ([pa.array([1.5], pa.float16()), pa.array([1.0], pa.float64())], 0),
    "NaN is last": ([pa.array([math.nan]), pa.array([-math.inf])], 1),
    "dictionaries": ([pa.array(["b"]).dictionary_encode(), pa.array(["a"])], 0),
    "large strings": ([pa.array(["b"], pa.large_string()), pa.array(["c"])], 1),
    "truth and number": ([pa.array([True]), pa.array([0])], 0),
    "a null column": ([pa.nulls(1), pa.array([-1])], 1),
}


@pytest.mark.parametrize(("kind", "room"), turning_grid(TYPED_SCORES, (50_000, LARGE)))
def test_scores_of_every_type_order_across_files(kind, room, tmp_path, monkeypatch):
    shrink(monkeypatch, room)
    columns, best = TYPED_SCORES[kind]
    paths = []
    for number, column in enumerate(columns):
        paths.append(tmp_path / f"{number}.parquet")
        pq.write_table(pa.table({"id": [str(number)], "text": [PAGE], "s": column}), paths[-1])
    report = corpora.deduplicate(paths, tmp_path / "out", keep="max:s")
    assert report.removed.column("kept_id").to_pylist() == [str(best)]


@pytest.mark.parametrize("kind", [pa.string_view(), pa.large_string()], ids=str)
def test_scores_of_arrow_only_types_order(kind, tmp_path):
    table = pa.table({"id": ["0", "1"], "text": [PAGE, PAGE], "s": pa.array(["a", "b"]).cast(kind)})
    with pa.ipc.new_file(str(tmp_path / "a.arrow"), table.schema) as writer:
        writer.write_table(table)
    report = corpora.deduplicate([tmp_path / "a.arrow"], tmp_path / "out", keep="max:s")
    assert report.removed.column("kept_id").to_pylist() == ["1"]


@pytest.mark.parametrize("batch_bytes", [1, LARGE])
def test_whole_decimals_tie_with_others_by_row(batch_bytes, tmp_path, monkeypatch):
    cut(monkeypatch, batch_bytes=batch_bytes)
    scores = pa.array(
        [decimal.Decimal(value) for value in ("6.5", "5.0", "5.0", "7.5")], pa.decimal128(9, 1)
    )
    table = pa.table({"id": list("abcd"), "text": [PAGE] * 4, "s": scores})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    report = corpora.deduplicate([tmp_path / "a.parquet"], tmp_path / "out", keep="min:s")
    assert set(report.removed.column("kept_id").to_pylist()) == {"b"}


def test_csv_scores_are_numbers_where_they_look_like_them(tmp_path):
    (tmp_path / "a.csv").write_text(
        f"id,text,s\n0,{PAGE},9\n1,{PAGE},10\n2,{PAGE},\n3,{PAGE},nan\n4,{PAGE},1e1\n"
    )
    report = corpora.deduplicate([tmp_path / "a.csv"], tmp_path / "out", keep="max:s")
    assert set(report.removed.column("kept_id").to_pylist()) == {"1"}


def test_duplicate_ids_are_distinguished_by_file_and_row(tmp_path):
    documents = [
        {"id": "same", "text": PAGE},
        {"id": "same", "text": "else"},
        {"id": "same", "text": PAGE},
    ]
    path = corpora.write_json_lines(tmp_path / "a.jsonl", documents)
    report = corpora.deduplicate([path], tmp_path / "out", pairs=True)
    assert report.removed.to_pylist() == [
        {"doc_id": "same", "kept_id": "same", "similarity": 1.0}
        | {"file": "a.jsonl", "row": 3, "kept_file": "a.jsonl", "kept_row": 1}
    ]
    assert corpora.pair_rows(report.pairs) == {(0, 2): 1.0}
    assert report.clusters.num_rows == 3


def test_only_equal_groups_are_compared_nulls_among_themselves(tmp_path):
    groups = ["x", "y", "x", None, None, "null", 1, "1", ""]
    documents = [{"text": PAGE, "g": group} for group in groups]
    path = corpora.write_json_lines(tmp_path / "a.jsonl", documents)
    report = corpora.deduplicate([path], tmp_path / "out", group_column="g", pairs=True)
    assert set(corpora.pair_rows(report.pairs)) == {(0, 2), (3, 4), (6, 7)}
    assert report.columns["group"] == "g"


@pytest.mark.slow("200 runs on files in `make test-all`")
@given(st.data())
def test_any_small_corpus_agrees_with_the_oracle_for_any_split(data):
    words = st.lists(st.sampled_from("a b c d e f".split()), max_size=8).map(" ".join)
    texts = data.draw(st.lists(words, min_size=1, max_size=14))
    scores = data.draw(
        st.lists(st.sampled_from([None, 1, 2, 2.0, 2.5]), min_size=len(texts), max_size=len(texts))
    )
    run_settings = {
        "keep": data.draw(st.sampled_from(["first", "last", "longest", "max:score", "min:score"])),
        "cluster": data.draw(st.sampled_from(["leader", "components"])),
        "collapse_empty": data.draw(st.booleans()),
    }
    num_files = data.draw(st.integers(1, 3))
    truth = Truth(texts, scores=scores, **run_settings)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as monkeypatch:
        cut(
            monkeypatch,
            batch_bytes=data.draw(st.sampled_from([1, 60, LARGE])),
            part_bytes=data.draw(st.sampled_from([200, LARGE])),
        )
        shrink(monkeypatch, data.draw(st.sampled_from([50_000, LARGE])))
        firsts = {}
        paths = []
        for number in range(num_files):
            first, stop = (len(texts) * place // num_files for place in (number, number + 1))
            chosen = [{"text": texts[row], "score": scores[row]} for row in range(first, stop)]
            paths.append(corpora.write_json_lines(Path(name) / f"{number}.jsonl", chosen))
            firsts[f"{number}.jsonl"] = first
        report = corpora.deduplicate(
            paths, Path(name) / "out", pairs=True, **EVERY_PAIR, **run_settings
        )
        assert corpora.removed_rows(report, firsts) == truth.removed
        assert corpora.pair_rows(report.pairs, firsts) == truth.pairs


def test_time_is_linear_in_the_number_of_files(tmp_path):
    """Four times the files take less than nine times the CPU time; quadratic work would take sixteen times."""

    def seconds(number):
        folder = tmp_path / str(number)
        folder.mkdir()
        for at in range(number):
            (folder / f"{at}.txt").write_text(f"document number {at} of {number}")
        began = time.process_time()
        corpora.deduplicate([folder], tmp_path / f"out{number}")
        return time.process_time() - began

    seconds(10)
    assert seconds(320) < 9 * max(seconds(80), 0.3)
