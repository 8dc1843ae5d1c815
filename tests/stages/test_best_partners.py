"""Pairs of two documents that are each other's best partner, beside plain Python."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from neardup import schema
from neardup.stages.best_partners import best_partners


def plain(pairs):
    """The definition: of all partners of a document, the most similar one, and of equal ones the first."""
    best_of_a, best_of_b = {}, {}
    for a, b, similarity in pairs:
        best_of_a[a] = min(best_of_a.get(a, (0, 0)), (-similarity, b))
        best_of_b[b] = min(best_of_b.get(b, (0, 0)), (-similarity, a))
    return [
        (a, b, similarity)
        for a, b, similarity in sorted(pairs)
        if best_of_a[a] == (-similarity, b) and best_of_b[b] == (-similarity, a)
    ]


def chosen(pairs, batch_rows, collected):
    columns = [pa.array(column) for column in zip(*pairs, strict=True)] or [[], [], []]
    table = pa.table(columns, schema=schema.ROW_PAIRS)
    batches = table.to_batches(max_chunksize=batch_rows)
    found = pa.Table.from_batches(best_partners(batches, schema.ROW_PAIRS, collected))
    return [tuple(row.values()) for row in found.to_pylist()]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("batch_rows", [1, 7, 1000])
@pytest.mark.parametrize("collected", [0, 5, 10**6])
def test_plain_python_agrees_for_any_batches_and_order(seed, batch_rows, collected):
    rng = random.Random(seed)
    ends = {(rng.randrange(12), 12 + rng.randrange(12)) for _ in range(40)}
    pairs = [(a, b, rng.choice([0.5, 0.75, 1.0])) for a, b in sorted(ends)]
    expected = plain(pairs)
    assert chosen(pairs, batch_rows, collected) == expected
    rng.shuffle(pairs)
    assert chosen(pairs, batch_rows, collected) == expected
    assert 1 < len(expected) < len(pairs)
    assert len({a for a, _, _ in expected}) == len({b for _, b, _ in expected}) == len(expected)


def test_no_pairs_stay_no_pairs():
    assert chosen([], 1, 1) == []


def test_columns_beside_the_similarity_stay():
    columns = [[0, 0], [2, 3], [0.5, 0.9], [0.5, 0.4], [0.1, 0.9]]
    table = pa.table([pa.array(column) for column in columns], schema=schema.CONTAINMENT_PAIRS)
    (found,) = best_partners(table.to_batches(), schema.CONTAINMENT_PAIRS)
    assert found.to_pylist() == [table.to_pylist()[1]]
