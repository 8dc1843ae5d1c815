"""The same table in memory, in a Parquet file and on Spark gives the same result."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.errors import DataError

pytestmark = [pytest.mark.long, pytest.mark.slow("jobs of Spark")]

STORY = "the quick brown fox jumps over the lazy dog near the river bank at dawn".split()
SETTINGS = {"threshold": 0.5, "size": 2, "pairs": True}
COUNTED = (
    "documents",
    "num_kept",
    "num_removed",
    "num_rejected",
    "exact_duplicates",
    "bytes_read",
    "num_pairs",
)
# Their order is that of the levels, neither that of the alphabet nor that of the rows.
GRADES = pa.array(["poor", "good", "fair", None, "good", "poor", "fair", "poor"])
LEVELS = ["poor", "fair", "good"]


def documents():
    """Three families, a copy, an empty text, and a row without a text."""
    other = "a long walk along the sea wall ends where the old harbour begins again".split()
    texts = [
        STORY,
        [*STORY[:-1], "noon"],
        [*STORY, "today"],
        other,
        other,
        [],
        [*other[:-1], "anew"],
        None,
    ]
    joined = [None if words is None else " ".join(words) for words in texts]
    codes = pa.array(
        [None if grade is None else LEVELS.index(grade) for grade in GRADES.to_pylist()], pa.int8()
    )
    grades = pa.DictionaryArray.from_arrays(codes, pa.array(LEVELS), ordered=True)
    ids = [f"d{number}" for number in range(len(joined))]
    return pa.table({"id": ids, "text": pa.array(joined, pa.string()), "grade": grades})


def answer(report):
    """The result of a run, without the order of rows, which Spark does not have, and without file names."""
    tables = {
        "removed": ("doc_id", "kept_id", "similarity"),
        "clusters": ("doc_id", "cluster_id", "cluster_size"),
    }
    if report.num_pairs is not None:
        tables["pairs"] = ("doc_a", "doc_b", "similarity")
    found = {name: sorted(rows(getattr(report, name), columns)) for name, columns in tables.items()}
    found["rejected"] = sorted(rows(report.rejected, ("reason",)))
    return found | {name: getattr(report, name) for name in COUNTED}


def rows(table, columns):
    arrow = table if isinstance(table, pa.Table) else table.toArrow()
    return [tuple(row[name] for name in columns) for row in arrow.to_pylist()]


@pytest.fixture
def file(tmp_path):
    pq.write_table(documents(), tmp_path / "in.parquet")
    return tmp_path / "in.parquet"


def test_runs_in_memory_on_files_and_on_spark_agree(spark, file):
    table = documents().drop_columns(["grade"])
    engine = neardup.SparkEngine(spark)
    expected = answer(neardup.deduplicate(table, **SETTINGS))
    assert expected["num_removed"] == 4
    assert expected["rejected"] == [("text is null",)]
    assert answer(neardup.deduplicate(file, **SETTINGS)) == expected
    assert answer(neardup.deduplicate(file, engine=engine, **SETTINGS)) == expected
    assert (
        answer(neardup.deduplicate(spark.createDataFrame(table), engine=engine, **SETTINGS))
        == expected
    )


def test_ordered_categories_rank_alike_on_every_engine(spark, file):
    settings = SETTINGS | {"keep": "max:grade"}
    expected = answer(neardup.deduplicate(documents(), **settings))
    assert [kept for _, kept, _ in expected["removed"]] == ["d1", "d1", "d4", "d4"]
    assert answer(neardup.deduplicate(file, **settings)) == expected
    assert (
        answer(neardup.deduplicate(file, engine=neardup.SparkEngine(spark), **settings)) == expected
    )


def test_an_error_names_the_first_row_where_all_are_rejected(spark, tmp_path):
    table = pa.table({"id": ["b", "a"], "text": pa.array([None, None], pa.string())})
    pq.write_table(table, tmp_path / "in.parquet")
    engine = neardup.SparkEngine(spark)
    runs = [
        ("row 0", table, None),
        ("in.parquet row 1", tmp_path / "in.parquet", None),
        ("in.parquet row 1", tmp_path / "in.parquet", engine),
        ("id a", spark.createDataFrame(table), engine),  # a frame is in the order of ids
    ]
    for first, source, chosen in runs:
        with pytest.raises(
            DataError, match=f"all 2 rows were rejected; the first is {first}: text is null"
        ):
            neardup.deduplicate(source, engine=chosen)
