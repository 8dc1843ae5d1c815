"""Whole components out of a stream of batches: nothing is cut, nothing is lost, and only large ones go by blocks."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from neardup.engines.spark.whole_components import map_whole

ANSWER = pa.schema([("row", pa.int64()), ("component", pa.int64()), ("kind", pa.string())])


def documents(seed):
    """Rows of contiguous components, some of one document and some of many."""
    rng = random.Random(seed)
    rows = []
    for component in range(40):
        for _ in range(rng.choice([1, 1, 2, 3, 30])):
            row = {"component": component, "row": len(rows), "text": "é" * rng.choice([0, 3, 40])}
            rows.append(row | {"priority": 0, "group": 0})
    return rows


def answer(batch, kind):
    rows = [
        {"row": row["row"], "component": row["component"], "kind": kind}
        for row in batch.to_pylist()
    ]
    return pa.RecordBatch.from_pylist(rows, schema=ANSWER)


def by_blocks(seen, blocks):
    """Read the blocks twice, as verify_blocks does, and what was put aside."""
    first = list(blocks)
    second = list(blocks)
    assert first == second
    for block in first:
        blocks.put(block.slice(0, 1))
    assert [batch.to_pylist() for batch in blocks.stored()] == [
        block.slice(0, 1).to_pylist() for block in first
    ]
    seen.append(len(first))
    return pa.Table.from_batches([answer(block, "blocks") for block in first], schema=ANSWER)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
@pytest.mark.parametrize("limit", [1, 700, 10**9])
def test_every_component_is_delivered_complete_and_once(seed, batch_rows, limit):
    rows = documents(seed)
    seen = []
    calls = []
    table = pa.Table.from_pylist(rows)

    def step(batch):
        calls.append(set(batch.column("component").to_pylist()))
        return answer(batch, "whole")

    found = [
        row
        for batch in map_whole(
            table.to_batches(max_chunksize=batch_rows),
            step,
            lambda blocks: by_blocks(seen, blocks),
            limit,
        )
        for row in batch.to_pylist()
    ]
    assert [(row["row"], row["component"]) for row in found] == [
        (row["row"], row["component"]) for row in rows
    ]
    assert sum(map(len, calls)) == len(set().union(*calls)) if calls else True
    kinds = {}
    for row in found:
        kinds.setdefault(row["component"], set()).add(row["kind"])
    assert all(len(kind) == 1 for kind in kinds.values())
    if limit == 10**9:
        assert not seen
    if limit == 700 and batch_rows < 1000:  # in one batch, components go in runs of batch size
        assert any(number > 1 for number in seen)
        assert calls
