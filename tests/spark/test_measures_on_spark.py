"""Vectors, bits, weights and items on Spark agree with the local engine, from frames and from files."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from support.corpora import rows, write_rows
from support.spark_corpora import agree, contents, vectors

pytestmark = pytest.mark.slow("jobs of Spark")

NUM = 160


def bits(rng):
    values = rng.integers(0, 2, (NUM, 32))
    values[-60:] = values[:60]
    values[-60:, 3] ^= 1
    return [None, *values.tolist(), [2] * 32]


def baskets(rng):
    values = [
        [f"item {item}" for item in rng.choice(400, 8, replace=False)] for _ in range(NUM - 60)
    ]
    return [None, *values, *[[*basket[:-1], "other"] for basket in values[:60]]]


def weights(rng):
    return [
        None if basket is None else [(item, float(rng.integers(1, 3))) for item in basket]
        for basket in baskets(rng)
    ]


CASES = {
    "cosine": (
        "vector",
        lambda _: vectors(NUM),
        pa.list_(pa.float64()),
        {"measure": "cosine", "threshold": 0.9},
    ),
    "euclidean": (
        "embedding",
        lambda _: vectors(NUM),
        pa.list_(pa.float64()),
        {"measure": "euclidean", "distance": 1.0},
    ),
    "hamming": ("vector", bits, pa.list_(pa.int8()), {"measure": "hamming", "distance": 2}),
    "weighted": (
        "basket",
        weights,
        pa.map_(pa.string(), pa.float64()),
        {"measure": "weighted", "items_column": "basket", "threshold": 0.5},
    ),
    "items": (
        "basket",
        baskets,
        pa.list_(pa.string()),
        {"items_column": "basket", "threshold": 0.5},
    ),
}


def table_of(name):
    column, make, kind, settings = CASES[name]
    values = make(np.random.default_rng(5))
    return pa.table({"id": range(len(values)), column: pa.array(values, kind)}), settings | {
        "pairs": True
    }


# Vectors on a frame are in test_contract.py, items from files below.
@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_spark_reports_on_a_frame_what_the_local_engine_reports(spark, name):
    table, settings = table_of(name)
    expected = neardup.deduplicate(table, **settings)
    frame = spark.createDataFrame(table).repartition(3)
    found = neardup.deduplicate(
        frame, engine=neardup.SparkEngine(spark, component_bytes=2000), **settings
    )
    agree(found, expected, pairs=True)
    assert found.columns == {"id": "id"} | expected.columns


@pytest.mark.parametrize("name", ["weighted", pytest.param("hamming", marks=pytest.mark.long)])
def test_a_run_on_files_writes_the_pairs_of_a_local_run(spark, tmp_path, name):
    table, settings = table_of(name)
    for part in range(2):
        pq.write_table(table.slice(part * 80, 80 + 100 * part), tmp_path / f"{part}.parquet")
    sources = sorted(tmp_path.glob("*.parquet"))
    del settings["pairs"]
    neardup.find_pairs(sources, out=tmp_path / "local.csv", **settings)
    neardup.find_pairs(
        sources, out=tmp_path / "spark.csv", engine=neardup.SparkEngine(spark), **settings
    )
    assert (tmp_path / "spark.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()
    assert len((tmp_path / "spark.csv").read_text().splitlines()) > 20


@pytest.mark.long
def test_containment_of_reference_documents_is_that_of_a_local_run(spark, tmp_path, monkeypatch):
    documents = rows(3, 60)
    new = tmp_path / "new.jsonl"
    old = tmp_path / "old.jsonl"
    quoting = [
        row | {"id": f"q{row['id']}", "text": f"{row['text']} {row['text'].upper()} and more"}
        for row in documents
    ]
    write_rows(new, [*documents, *quoting])
    write_rows(old, [row | {"id": f"o{row['id']}"} for row in documents[::3]])
    settings = {
        "measure": "containment",
        "against": str(old),
        "size": 2,
        "threshold": 0.7,
        "pairs": True,
    }
    expected = neardup.deduplicate(new, out=tmp_path / "local", **settings)
    engine = neardup.SparkEngine(spark)
    found = neardup.deduplicate(new, out=tmp_path / "spark", engine=engine, **settings)
    assert contents(tmp_path / "spark") == contents(tmp_path / "local")
    assert expected.num_removed > 20
    assert found.pairs_verified >= found.num_removed
    monkeypatch.setattr("neardup.jobs.containment_on_spark.MAX_BYTES", 1000)
    with pytest.raises(
        neardup.NearDupError,
        match=r"the index of the documents of `against`, which is sent to every .* more than the",
    ):
        neardup.deduplicate(new, out=tmp_path / "other", engine=engine, **settings)


def quoting(tmp_path):
    """Write documents, texts that quote them, and copies of a few to a second file."""
    documents = rows(3, 60)
    quotes = [
        row | {"id": f"q{row['id']}", "text": f"{row['text']} {row['text'].upper()} more"}
        for row in documents
    ]
    for part in range(2):
        write_rows(tmp_path / f"new-{part}.jsonl", [*documents, *quotes][part::2])
    write_rows(
        tmp_path / "old.jsonl",
        [row | {"id": f"o{row['id']}"} for row in [*documents, *quotes][::5]],
    )
    return sorted(tmp_path.glob("new-*.jsonl")), tmp_path / "old.jsonl"


@pytest.mark.parametrize("only_against", [True, pytest.param(False, marks=pytest.mark.long)])
def test_pairs_by_containment_are_those_of_a_local_run(spark, tmp_path, monkeypatch, only_against):
    sources, old = quoting(tmp_path)
    settings = {"measure": "containment", "size": 2, "threshold": 0.7}
    settings |= {"against": str(old), "only_against": True} if only_against else {}
    neardup.find_pairs(sources, out=tmp_path / "local.csv", **settings)
    engine = neardup.SparkEngine(spark)
    neardup.find_pairs(sources, out=tmp_path / "spark.csv", engine=engine, **settings)
    assert (tmp_path / "spark.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()
    assert len((tmp_path / "spark.csv").read_text().splitlines()) > 20
    monkeypatch.setattr("neardup.jobs.containment_on_spark.MAX_BYTES", 1000)
    side = "the documents of `against`" if only_against else "all documents"
    with pytest.raises(
        neardup.NearDupError, match=rf"the index of {side}, which is sent to every .* more than the"
    ):
        neardup.find_pairs(sources, out=tmp_path / "other.csv", engine=engine, **settings)


@pytest.mark.parametrize(
    ("has_queries", "settings"),
    [
        (True, {"k": 3, "size": 2}),
        pytest.param(True, {"k": None, "threshold": 0.4, "size": 2}, marks=pytest.mark.long),
        pytest.param(
            True,
            {"k": 2, "measure": "containment", "contained": "query", "size": 2},
            marks=pytest.mark.long,
        ),
        (False, {"k": 2, "measure": "containment", "size": 2}),
    ],
)
def test_neighbours_on_spark_are_those_of_a_local_run(
    spark, tmp_path, monkeypatch, has_queries, settings
):
    monkeypatch.setattr("neardup.io.documents.layout.JOINED_BYTES", 0)
    sources, old = quoting(tmp_path)
    settings |= {"queries": old} if has_queries else {}
    expected = neardup.neighbours(sources, **settings)
    assert neardup.neighbours(sources, engine=neardup.SparkEngine(spark), **settings).equals(
        expected
    )
    assert expected.num_rows > 40
    monkeypatch.setattr("neardup.jobs.neighbours_on_spark.MAX_BYTES", 1000)
    with pytest.raises(
        neardup.NearDupError, match=r"sent to every Spark worker takes at least .* limit of 1"
    ):
        neardup.neighbours(sources, engine=neardup.SparkEngine(spark), **settings)


def test_neighbours_of_documents_in_memory_are_not_supported_on_spark():
    with pytest.raises(neardup.NearDupError, match="needs files as the source"):
        neardup.neighbours(["a", "b"], engine="spark")


def test_audits_and_a_frame_without_vectors_are_refused(spark):
    frame = spark.createDataFrame(pa.table({"id": [1], "text": ["a"]}))
    with pytest.raises(
        neardup.NearDupError, match="`audit` is not supported for a Spark DataFrame"
    ):
        neardup.deduplicate(frame, audit=True)
    with pytest.raises(neardup.NearDupError, match="no column named vector, embedding"):
        neardup.find_pairs(frame, measure="cosine")


@pytest.mark.long
@pytest.mark.parametrize("num_partitions", [1, 4])
def test_the_dimension_does_not_depend_on_partitions(spark, num_partitions):
    vectors = [[0.0, 0.0, 0.0], [1.0, 2.0], [1.0, 2.0], [3.0, 2.0, 1.0]]
    table = pa.table({"id": range(4), "vector": pa.array(vectors, pa.list_(pa.float64()))})
    frame = spark.createDataFrame(table).repartition(num_partitions)
    found = neardup.deduplicate(frame, measure="cosine")
    assert [row.doc_id for row in found.removed.collect()] == [2]
    assert sorted((row.doc_id, row.reason) for row in found.rejected.collect()) == [
        (0, "vector is zero, so it has no direction"),
        (3, "vector has 3 numbers, not 2"),
    ]
