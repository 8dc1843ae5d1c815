"""Counting shingles and removing the common ones: compiled and plain kernels agree with sets and counters."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from neardup.kernels import common_shingles, members
from support.plain_kernels import plain

# Plain kernels warn where 64-bit numbers wrap around.
WRAPS = pytest.mark.filterwarnings("ignore:overflow encountered")
KERNELS = pytest.mark.parametrize("kernel", [common_shingles, plain(common_shingles)])


@KERNELS
def test_digest_is_new_the_first_time_only_also_where_digests_collide(kernel):
    rng = np.random.default_rng(1)
    digests = rng.integers(0, 3, (60, 2), np.uint64) * np.uint64(64) + np.uint64(5)
    digests[-1] = 2**64 - 1
    table = np.zeros((128, 2), np.uint64)
    seen = set()
    expected = []
    for digest in map(tuple, digests.tolist()):
        expected.append(digest not in seen)
        seen.add(digest)
    is_new = np.empty(60, np.bool_)
    assert kernel.claim(digests, 128, table, is_new) == len(seen)
    assert is_new.tolist() == expected
    kernel.claim(digests, 128, table, is_new)
    assert not is_new.any()


@KERNELS
def test_no_shingle_that_is_in_enough_documents_is_left_out(kernel):
    rng = np.random.default_rng(2)
    sets = [np.unique(rng.integers(1, 40, 12, np.uint64)) for _ in range(50)]
    keys = np.concatenate(sets)
    ends = np.cumsum([0, *(one.size for one in sets)])
    is_counted = rng.random(50) < 0.8
    counters = np.zeros(16, np.uint32)
    kernel.add_to_counters(keys, ends, is_counted, counters)
    counts = Counter(
        key
        for one, counted in zip(sets, is_counted, strict=True)
        if counted
        for key in one.tolist()
    )
    assert all(counters[key % 16] >= count for key, count in counts.items())
    needs = np.where(is_counted, 14, 0)
    chosen = np.empty(keys.size, np.uint64)
    chosen_needs = np.empty(keys.size, np.int64)
    number = kernel.choose_candidates(keys, ends, needs, counters, chosen, chosen_needs)
    found = Counter(chosen[:number].tolist())
    enough = {key: count for key, count in counts.items() if count >= 14}
    assert enough
    assert {key: found[key] for key in enough} == enough
    assert (chosen_needs[:number] == 14).all()


@WRAPS
@pytest.mark.parametrize("num_common", [0, 1, 200])
@KERNELS
def test_common_shingles_of_a_group_are_dropped_from_its_documents_alone(kernel, num_common):
    rng = np.random.default_rng(num_common)
    salts = np.array([0, 7, 7, 0x8000000000000001, 0, 7], np.uint64)
    sizes = [5, 0, 80, 60, 40, 1]
    ends = np.cumsum([0, *sizes])
    shingles = rng.integers(1, 2**64, sum(sizes), np.uint64)
    common = np.unique(rng.choice(shingles, num_common) if num_common else shingles[:0])
    keys = common ^ salts[1]
    secret = np.uint64(12345)
    hidden = np.empty(keys.size, np.uint64)
    kernel.hide(keys, secret, hidden)
    capacity = 2 * keys.size + 8
    table = np.zeros(capacity + keys.size + 1, np.uint64)
    members.fill_table(hidden, capacity, table)
    expected = [
        [one for one in shingles[start:stop].tolist() if salt != 7 or one not in common]
        for salt, (start, stop) in zip(salts.tolist(), pairwise(ends), strict=True)
    ]
    kernel.drop_common(shingles, ends, salts, secret, capacity, table)
    assert [shingles[start:stop].tolist() for start, stop in pairwise(ends)] == expected


@WRAPS
def test_compiled_and_plain_kernels_hide_alike():
    keys = np.array([1, 2**64 - 1, 77, 12345], np.uint64)
    found = []
    for kernel in (common_shingles, plain(common_shingles)):
        hidden = np.empty(keys.size, np.uint64)
        kernel.hide(keys, np.uint64(12345), hidden)
        found.append(hidden.tolist())
    assert found[0] == found[1]
    assert len(set(found[0])) == keys.size
    assert 0 not in found[0]
