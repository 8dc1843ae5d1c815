"""Rows that pass an exchange in blocks: none is lost, equal keys meet, and every bucket is in order."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from neardup.engines.spark.arrow_steps import as_plain, large, plain
from neardup.engines.spark.packed import Exchange

NUMBERS = pa.schema([("key", pa.int64()), ("row", pa.int64())])
TEXTS = pa.schema([*NUMBERS, ("text", pa.large_string())])


def rows(columns, num_rows, seed=1):
    random = np.random.default_rng(seed)
    found = {
        "key": random.integers(-20, 20, num_rows),
        "row": random.permutation(num_rows) - num_rows // 2,
    }
    texts = [None if row % 7 == 0 else "é" * (row % 11) for row in found["row"].tolist()]
    return pa.record_batch(
        found | ({"text": pa.array(texts, pa.large_string())} if "text" in columns.names else {})
    )


def exchanged(batches, exchange):
    """The rows of every bucket, as workers get them."""
    blocks = list(exchange.pack(batches))
    buckets = {bucket for batch in blocks for bucket in batch.column("bucket").to_pylist()}
    sent = {
        bucket: [batch.filter(pa.compute.field("bucket") == bucket) for batch in blocks]
        for bucket in buckets
    }
    return {
        bucket: [row for batch in exchange.unpack(found) for row in batch.to_pylist()]
        for bucket, found in sent.items()
    }


@pytest.mark.parametrize("limit", [1, 1 << 30], ids=["on disk", "in memory"])
@pytest.mark.parametrize("columns", [NUMBERS, TEXTS], ids=["numbers", "texts"])
@pytest.mark.parametrize("num_buckets", [1, 7])
def test_rows_with_equal_keys_meet_in_order(monkeypatch, limit, columns, num_buckets):
    monkeypatch.setattr("neardup.engines.spark.packed._PACKED_BYTES", 3000)
    batches = [rows(columns, 200, seed).cast(columns) for seed in range(3)]
    exchange = Exchange(
        columns=columns, by=("key",), order=("key", "row"), num_buckets=num_buckets, limit=limit
    )
    found = exchanged(batches, exchange)
    assert len(found) == num_buckets
    for bucket in found.values():
        order = [(row["key"], row["row"]) for row in bucket]
        assert order == sorted(order)
    keys = [{row["key"] for row in bucket} for bucket in found.values()]
    assert sum(map(len, keys)) == len(set().union(*keys))
    expected = [row for batch in batches for row in batch.to_pylist()]
    assert sorted(map(repr, (row for bucket in found.values() for row in bucket))) == sorted(
        map(repr, expected)
    )


def test_more_buckets_than_16_bits_can_number_stay_in_order():
    bounds = tuple(range(1, 70_000))
    exchange = Exchange(
        columns=NUMBERS, order=("row",), num_buckets=70_000, limit=1 << 20, bounds=bounds
    )
    (blocks,) = exchange.pack([pa.record_batch([[0, 0, 0], [69_000, 1, 65_541]], schema=NUMBERS)])
    assert blocks.column("bucket").to_pylist() == [1, 65_541, 69_000]


def test_an_exchange_of_nothing_is_empty():
    exchange = Exchange(columns=NUMBERS, by=("key",), order=("row",), num_buckets=3, limit=1)
    assert exchanged([], exchange) == {}


@pytest.mark.parametrize("lists", [[[1, -2], [], [2**62]], [[], []], []])
def test_lists_of_numbers_travel_as_bytes(lists):
    table = pa.schema([("row", pa.int64()), ("shingles", pa.large_list(pa.int64()))])
    batch = pa.record_batch([range(len(lists)), lists], schema=table)
    assert plain(table).field("shingles").type == pa.binary()
    for sent in (batch, batch.slice(1)):
        found = as_plain(sent, plain(table))
        assert large(found).column("shingles").to_pylist() == sent.column("shingles").to_pylist()
        assert (
            large(found.slice(1)).column("shingles").to_pylist()
            == sent.column("shingles").to_pylist()[1:]
        )


def test_a_missing_list_is_read_as_an_empty_one():
    table = pa.schema([("row", pa.int64()), ("shingles", pa.large_list(pa.int64()))])
    sent = pa.record_batch([[1, 2, 3], [[5], None, [6, 7]]], schema=table)
    found = as_plain(sent, plain(table))
    assert found.column("shingles").null_count == 1
    assert large(found).column("shingles").to_pylist() == [[5], [], [6, 7]]
