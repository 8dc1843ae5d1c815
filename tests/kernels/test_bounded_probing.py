"""Keys constructed to collide by someone who knows every constant: the same answer, in O(n log n)."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from neardup.kernels import bands, lists, sorting
from neardup.kernels import similarity as kernel

TOP = 2**64 - 1
# The inverse of the multiplier that spreads keys over a table: it maps small numbers to keys of one
# slot.
BACK = np.uint64(pow(0x9E3779B97F4A7C15, -1, 2**64))
SIZE = 200_000


def colliding_keys(size):
    with np.errstate(over="ignore"):
        keys = np.arange(1, size + 1, dtype=np.uint64) * BACK
    return np.random.default_rng(1).permutation(np.concatenate([keys, keys[::3]]))


def seconds(work, small, large):
    """CPU seconds of a call, once it is compiled."""
    work(small)
    began = time.process_time()
    answer = work(large)
    assert time.process_time() - began < 5, "these keys took 20 billion steps"
    return answer


def numbered(keys):
    numbers = np.empty(keys.size, np.int64)
    return lists.number_lists(keys, numbers), numbers


def test_colliding_keys_are_numbered_in_order_of_appearance():
    keys = colliding_keys(SIZE)
    count, numbers = seconds(numbered, keys[:10], keys)
    assert count == SIZE
    by_key = {}
    assert numbers.tolist() == [by_key.setdefault(key, len(by_key)) for key in keys.tolist()]


def linked(keys):
    rows = np.arange(keys.size)[::-1].copy()
    left = np.empty(keys.size, np.int64)
    right = np.empty(keys.size, np.int64)
    count = bands.star_links(keys, rows, left, right)
    return set(zip(left[:count].tolist(), right[:count].tolist(), strict=True))


def test_colliding_keys_are_linked_with_the_smallest_row_of_their_bucket():
    keys = colliding_keys(SIZE)
    found = seconds(linked, keys[:10], keys)
    rows = np.arange(keys.size)[::-1]
    smallest = {}
    for key, row in zip(keys.tolist(), rows.tolist(), strict=True):
        smallest[key] = min(row, smallest.get(key, row))
    pairs = {(row, smallest[key]) for key, row in zip(keys.tolist(), rows.tolist(), strict=True)}
    assert found == {(row, low) for row, low in pairs if row != low}


def sets_of(*documents):
    ends = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    return kernel.Sets(np.concatenate(documents).astype(np.uint64), ends)


def similarity(documents):
    values = np.empty(5)
    pairs = (np.array([0, 0, 1, 0, 2]), np.array([1, 2, 0, 0, 1]))
    kernel.similarities(sets_of(*documents), *pairs, values)
    return values.tolist()


def exact(documents):
    sets = [set(document.tolist()) for document in documents]
    return [
        len(sets[a] & sets[b]) / len(sets[a] | sets[b])
        for a, b in ((0, 1), (0, 2), (1, 0), (0, 0), (2, 1))
    ]


PLACES = np.arange(SIZE, dtype=np.uint64) << np.uint64(64 - 20)
COLLIDING = {
    "all in one place": lambda size: np.uint64(2**63) + np.arange(size, dtype=np.uint64),
    "all past the end": lambda size: np.uint64(TOP) - np.arange(size, dtype=np.uint64),
    # A set that fills without probing, but a lookup in it probes to its end.
    "side by side": lambda size: PLACES[:size] + np.uint64(1),
}


@pytest.mark.parametrize("attack", COLLIDING)
def test_colliding_sets_are_compared_exactly(attack):
    whole = np.random.default_rng(2).permutation(COLLIDING[attack](SIZE))
    others = np.r_[whole[: SIZE // 2], np.arange(2, SIZE // 2, dtype=np.uint64)]
    documents = [whole, whole[SIZE // 4 :], others]
    found = seconds(similarity, [document[:10] for document in documents], documents)
    assert found == exact(documents)


def test_scratch_table_is_clean_after_a_set_that_was_sorted():
    rng = np.random.default_rng(3)
    documents = [
        COLLIDING["all in one place"](3000),
        *(rng.integers(1, TOP, 500, dtype=np.uint64) for _ in range(2)),
    ]
    documents[2][:300] = documents[1][:300]
    assert similarity(documents) == exact(documents)


def ranked(documents):
    shingles, ends = sets_of(*documents)
    out = np.empty(shingles.size, np.uint64)
    out_ends = np.empty(ends.size, np.int64)
    lists.rank_prefixes(shingles, ends, 0.5, out, out_ends)
    return [out[start:end].tolist() for start, end in itertools.pairwise(out_ends)]


@pytest.mark.parametrize("attack", ["all in one place", "all past the end"])
def test_prefixes_of_colliding_sets_are_in_order(attack):
    whole = np.random.default_rng(4).permutation(COLLIDING[attack](SIZE))
    prefixes = seconds(ranked, [whole[:10]], [whole, whole[:50]])
    assert [prefix for prefix in prefixes if prefix != sorted(prefix)] == []
    assert [len(prefix) for prefix in prefixes] == [SIZE // 2 + 1, 26]


@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 17, 31, 32, 33, 100, 1000, 4097])
def test_values_are_sorted_by_merging(size):
    rng = np.random.default_rng(size)
    for values in (
        rng.integers(0, TOP, size, dtype=np.uint64),
        rng.integers(0, 9, size).astype(np.uint64),
    ):
        for given in (values, np.sort(values), np.sort(values)[::-1].copy()):
            found = given.copy()
            sorting.sort_values.py_func(found, np.empty(size, np.uint64), size)
            assert found.tolist() == sorted(given.tolist())
            assert (
                sorting.order_of.py_func(given).tolist()
                == np.argsort(given, kind="stable").tolist()
            )
