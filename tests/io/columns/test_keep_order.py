"""The same document is kept from memory and from files, for every type of score."""

from __future__ import annotations

import datetime as dt

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import neardup

GRADES = pd.Categorical(
    ["mid", "high", None, "low", "high"], categories=["low", "mid", "high"], ordered=True
)
COLUMNS = {
    "ordered categories": pa.Array.from_pandas(GRADES),
    "categories": pa.array(["mid", "high", None, "low", "high"]).dictionary_encode(),
    "numbers": pa.array([2.0, 3.0, float("nan"), 1.0, 3.0]),
    "large integers": pa.array([2**62, 2**62 + 1, None, 5, 2**62 + 1]),
    "dates": pa.array(
        [None if day is None else dt.date(2026, 1, day) for day in (2, 3, None, 1, 3)]
    ),
}
TEXT = "the ferry to the island leaves at nine"


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("keep", ["max:score", "min:score"])
def test_a_score_ranks_the_same_in_memory_and_in_files(kind, keep, tmp_path):
    table = pa.table({"id": ["a", "b", "c", "d", "e"], "text": [TEXT] * 5, "score": COLUMNS[kind]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    pyarrow.feather.write_feather(table, tmp_path / "a.arrow", chunksize=2)
    winner = {"max:score": "b", "min:score": "d"}[keep]
    if kind == "categories":  # without an order, by value: high < low < mid
        winner = {"max:score": "a", "min:score": "b"}[keep]
    for source in (table, tmp_path / "a.parquet", tmp_path / "a.arrow"):
        assert set(
            neardup.deduplicate(source, keep=keep).removed.column("kept_id").to_pylist()
        ) == {winner}


@pytest.mark.parametrize(("keep", "winner"), [("first", "a"), ("last", "c"), ("longest", "b")])
def test_a_policy_without_a_column_is_the_same_in_memory_and_in_files(keep, winner, tmp_path):
    table = pa.table({"id": ["a", "b", "c"], "text": [TEXT, f"{TEXT} !!", f"{TEXT}."]})
    pq.write_table(table, tmp_path / "a.parquet")
    for source in (table, tmp_path / "a.parquet"):
        assert set(
            neardup.deduplicate(source, keep=keep).removed.column("kept_id").to_pylist()
        ) == {winner}
