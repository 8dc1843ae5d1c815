"""All pairs by other measures than sets: every pair is found, however the work is cut."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.config import Config
from neardup.engines.local import block_pairs
from neardup.engines.local import engine as local
from neardup.kernels import link_all as kernel
from neardup.stages.link_all import AllPairs
from support.plain_kernels import plain

MEASURES = ("cosine", "euclidean", "hamming", "weighted")
EVERY_MEASURE = pytest.mark.parametrize("measure", MEASURES)
THRESHOLDS = {"cosine": 0.9, "euclidean": 0.4, "hamming": 0.9, "weighted": 0.7}


def dot(one, two):
    """The dot product with the four sums of the kernel."""
    whole = one.size - one.size % 4
    sums = [0.0] * 4
    for at in range(whole):
        sums[at % 4] += float(one[at]) * float(two[at])
    for at in range(whole, one.size):
        sums[0] += float(one[at]) * float(two[at])
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


def scaled(vector):
    return np.ldexp(vector, -int(np.frexp(np.abs(vector).max())[1]))


def cosine(one, two):
    one, two = scaled(one), scaled(two)
    value = dot(one, two) / (np.sqrt(dot(one, one)) * np.sqrt(dot(two, two)))
    return 1.0 if value > 1 - 2.0**-48 else max(0.0, float(value))


def nearness(one, two):
    difference = one - two
    return float(1 / (1 + np.sqrt(dot(difference, difference))))


def equal_bits(one, two):
    return (one.size - int((one != two).sum())) / one.size


def weighted(one, two):
    items = sorted(one.keys() | two.keys())
    pairs = [(one.get(item, 0.0), two.get(item, 0.0)) for item in items]
    return sum(map(min, pairs)) / sum(map(max, pairs))


SIMILARITIES = {
    "cosine": cosine,
    "euclidean": nearness,
    "hamming": equal_bits,
    "weighted": weighted,
}


def brute_force(measure, source, threshold):
    found = {}
    for a, b in itertools.combinations(range(len(source)), 2):
        value = SIMILARITIES[measure](source[a], source[b])
        if value >= threshold:
            found[a, b] = value
    return found


def pairs_of(report):
    return {(pair["doc_a"], pair["doc_b"]): pair["similarity"] for pair in report.pairs.to_pylist()}


def find(measure, source, **settings):
    given = {"items": source} if measure == "weighted" else {"source": source}
    settings = {"threshold": THRESHOLDS[measure], "method": "exact"} | settings
    return neardup.find_pairs(**given, measure=measure, **settings)


def documents(measure, seed, size=90, width=7):
    """Random documents, copies, near copies, multiples and extremes."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((size, width))
    values[size // 3 : size // 2] = values[: size // 2 - size // 3]
    values[size // 3 : size // 2] += 0.1 * rng.standard_normal((size // 2 - size // 3, width))
    values[size // 2 : size // 2 + 5] = 3 * values[:5]
    values[size // 2 + 5 : size // 2 + 10] = values[:5]
    if measure == "hamming":
        return (values > 0).astype(np.uint8)
    if measure == "weighted":
        return [{f"i{at}": abs(float(v)) for at, v in enumerate(row)} for row in values]
    return values


@EVERY_MEASURE
@pytest.mark.parametrize("seed", range(3))
def test_every_pair_is_found(measure, seed):
    source = documents(measure, seed)
    expected = brute_force(measure, source, THRESHOLDS[measure])
    assert len(expected) > 10
    report = find(measure, source)
    assert report.plan.is_exact
    assert report.plan.recall_at_threshold == 1
    found = pairs_of(report)
    assert found.keys() == expected.keys()
    assert all(found[pair] == pytest.approx(expected[pair], abs=1e-15) for pair in found)


EXTREMES = np.array(
    [0.0, 5e-324, 1e-300, 1e-160, 1e-45, 1e-38, 1e-7, 1.0, 1 + 2.0**-52, 3.4e38, 1e150]
)


@pytest.mark.parametrize("measure", ["cosine", "euclidean"])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_extreme_numbers_and_one_dimension(measure, width):
    rng = np.random.default_rng(width)
    values = rng.choice(EXTREMES, (60, width)) * rng.choice([-1.0, 1.0], (60, width))
    values[30:45] = values[:15] * (1 + 2.0**-50)
    values = values[np.abs(values).max(axis=1) > 0]
    for threshold in (0.05, 0.5, 0.999999, 1.0):
        expected = brute_force(measure, values, threshold)
        assert pairs_of(find(measure, values, threshold=threshold)) == expected


@pytest.mark.parametrize("measure", ["cosine", "euclidean", "hamming"])
def test_similarities_at_the_threshold_and_next_to_it(measure):
    source = documents(measure, 5, size=40)
    values = sorted(set(brute_force(measure, source, 1e-3).values()))
    for value in values[:: max(1, len(values) // 8)]:
        for threshold in (value, float(np.nextafter(value, 2)), float(np.nextafter(value, 0))):
            if threshold <= 1:
                found = find(measure, source, threshold=threshold)
                assert pairs_of(found) == brute_force(measure, source, threshold)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
def test_points_far_from_the_origin(offset):
    values = documents("euclidean", 8) + offset
    expected = brute_force("euclidean", values, 0.4)
    assert len(expected) > 10
    assert pairs_of(find("euclidean", values)) == expected


@EVERY_MEASURE
def test_zero_vectors_and_copies(measure):
    if measure == "weighted":
        source = [{}, {"a": 1.0}, {"a": 1.0}, {}]
        expected = {(1, 2): 1.0}
    elif measure == "cosine":
        source = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
        expected = {(0, 1): 1.0}
    else:
        source = np.zeros((3, 2), np.uint8 if measure == "hamming" else np.float64)
        expected = {(0, 1): 1.0, (0, 2): 1.0, (1, 2): 1.0}
    assert pairs_of(find(measure, source)) == expected


@EVERY_MEASURE
def test_blocks_pieces_and_threads_change_nothing(measure, monkeypatch):
    source = documents(measure, 3)
    whole = find(measure, source)
    for block_bytes, piece_rows, span, threads in (
        (1, 1, 1, 1),
        (2000, 7, 5, 2),
        (900, 64, 512, 1),
    ):
        monkeypatch.setattr(local, "BLOCK_BYTES", block_bytes)
        monkeypatch.setattr(block_pairs, "_PIECE_ROWS", piece_rows)
        monkeypatch.setattr("neardup.stages.link_all._SPAN", span)
        cut = find(measure, source, threads=threads)
        assert cut.pairs.equals(whole.pairs)
        assert (cut.comparisons, cut.pairs_verified) == (whole.comparisons, whole.pairs_verified)


@pytest.mark.parametrize("measure", ["cosine", "euclidean", "hamming"])
@pytest.mark.parametrize(
    "settings", [{}, {"group_column": "site"}, {"only_against": True}], ids=str
)
def test_runs_on_files_with_groups_and_references(measure, settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = documents(measure, 4)
    rows = [
        {"id": str(at), "vector": vector.tolist(), "site": "ab"[at % 2]}
        for at, vector in enumerate(source)
    ]
    for name, part in (("old.jsonl", rows[:20]), ("new.jsonl", rows[20:])):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in part), "utf-8")
    expected = {
        frozenset((str(a), str(b)))
        for a, b in brute_force(measure, source, THRESHOLDS[measure])
        if not (a < 20 and b < 20)
        and not (settings.get("only_against") and min(a, b) >= 20)
        and not ("group_column" in settings and (a - b) % 2)
    }
    assert len(expected) > 5
    for memory in ("500MB", "2GB"):
        report = neardup.find_pairs(
            "new.jsonl",
            out=f"{memory}.parquet",
            against="old.jsonl",
            measure=measure,
            threshold=THRESHOLDS[measure],
            method="exact",
            memory=memory,
            **settings,
        )
        found = {frozenset((row["doc_a"], row["doc_b"])) for row in report.pairs.to_pylist()}
        assert found == expected
    assert (tmp_path / "500MB.parquet").read_bytes() == (tmp_path / "2GB.parquet").read_bytes()


def test_many_near_copies_store_few_links():
    rng = np.random.default_rng(2)
    values = rng.standard_normal(8) + 0.01 * rng.standard_normal((6000, 8))
    config = Config(measure="cosine", threshold=0.9, dimension=8)
    pairs = AllPairs(config=config, num_references=0)
    contents = pa.array([row.tobytes() for row in values], pa.large_binary())
    rows = pa.array(np.arange(6000))
    batch = pa.record_batch(
        [rows, pa.array(np.zeros(6000, np.int64)), contents], ["row", "group", "text"]
    )
    links = pairs.link(pairs.block(batch), batch, 0)
    assert links.num_rows <= 2 * 6000
    assert (
        neardup.deduplicate(values, measure="cosine", threshold=0.9, method="exact").num_kept == 1
    )


def test_auto_compares_few_vectors_exactly_and_many_by_bands():
    few = np.random.default_rng(1).standard_normal((50, 4))
    report = neardup.find_pairs(few, measure="cosine")
    assert report.plan.is_exact
    assert report.plan.reason == (
        "exact comparison of all 50 documents: it finds every pair, and they are few"
    )


def test_a_recall_of_1_is_exact_by_every_measure():
    for measure in MEASURES:
        assert find(measure, documents(measure, 1), method="auto", recall=1).plan.is_exact


@pytest.mark.parametrize("name", ["join_vectors", "join_points", "join_items"])
def test_compiled_kernels_are_plain_python(name, monkeypatch):
    measure = {"join_vectors": "cosine", "join_points": "euclidean", "join_items": "hamming"}[name]
    threshold = THRESHOLDS[measure]
    config = Config(measure=measure, threshold=threshold, dimension=7)
    source = documents(measure, 6, size=40)
    if measure == "hamming":
        contents = [
            np.r_[np.uint64(7), np.packbits(row).astype(np.uint64)].tobytes() for row in source
        ]
    else:
        contents = [row.astype(np.float64).tobytes() for row in source]
    columns = [
        pa.array(np.arange(40)),
        pa.array(np.arange(40) % 2),
        pa.array(contents, pa.large_binary()),
    ]
    batch = pa.record_batch(columns, ["row", "group", "text"])
    pairs = AllPairs(config=config, num_references=9)
    block = pairs.block(batch.slice(0, 25))
    compiled = [pairs.link(block, batch.slice(10, 15), 10), pairs.link(block, batch.slice(25), 25)]
    monkeypatch.setattr(kernel, name, getattr(plain(kernel), name))
    assert compiled == [
        pairs.link(block, batch.slice(10, 15), 10),
        pairs.link(block, batch.slice(25), 25),
    ]
    assert sum(links.num_rows for links in compiled) > 2


@pytest.mark.parametrize("where", ["block", "link", "verify"])
def test_an_interrupted_run_resumes_to_the_same_bytes(where, tmp_path, monkeypatch):
    rows = [{"vector": vector.tolist()} for vector in documents("cosine", 7)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    settings = {"measure": "cosine", "threshold": 0.9, "method": "exact", "pairs": True}

    def run(name):
        neardup.deduplicate(tmp_path / "a.jsonl", out=tmp_path / name, **settings)
        paths = sorted((tmp_path / name).rglob("*.*"))
        return {path.name: path.read_bytes() for path in paths if path.name != "report.json"}

    whole = run("whole")
    with monkeypatch.context() as patch:

        def fail(*_, **__):
            raise KeyboardInterrupt

        if where == "verify":
            patch.setattr("neardup.pipeline.verify", fail)
        else:
            patch.setattr(AllPairs, where, fail)
        with pytest.raises(KeyboardInterrupt):
            run("again")
    assert run("again") == whole
    assert len(whole) > 3
