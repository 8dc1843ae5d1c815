"""Lookup of band keys in sorted postings, and verification of the pairs that share one."""

from __future__ import annotations

import numpy as np
import pytest

from neardup.index.segment import directory_of, set_postings
from neardup.kernels import lookup
from neardup.kernels.similarity import Sets
from support.plain_kernels import plain

PLAIN = plain(lookup)
KERNELS = [lookup, PLAIN]
# Plain Python warns of wrapping products, by which bits are counted.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")


def postings(keys, sizes):
    """Sorted postings of documents, as a segment holds them."""
    docs = np.flatnonzero(sizes > 0)
    flat = keys[docs].reshape(-1)
    order = np.argsort(flat, kind="stable")
    held = (
        flat[order],
        docs[order // keys.shape[1]].astype(np.uint32),
        directory_of([flat[order]], flat.size),
    )
    for array in held:
        array.flags.writeable = False
    return held


def sharing(query_keys, query_sizes, keys, sizes, threshold):
    """The pairs that share a key, by definition."""
    return [
        (query, doc)
        for query in range(len(query_keys))
        for doc in range(len(keys))
        if set(query_keys[query]) & set(keys[doc])
        and query_sizes[query] > 0
        and sizes[doc] > 0
        and min(sizes[doc], query_sizes[query]) / max(sizes[doc], query_sizes[query]) >= threshold
    ]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("seed", range(6))
def test_documents_that_share_a_key_are_found_once(kernel, seed):
    draw = np.random.default_rng(seed)
    values = np.r_[
        draw.integers(0, 2**64, 30, dtype=np.uint64), np.array([0, 2**64 - 1], np.uint64)
    ]
    keys = values[draw.integers(32, size=(60, 4))]
    asked = values[draw.integers(32, size=(15, 4))]
    sizes = draw.integers(0, 9, 60)
    asked_sizes = draw.integers(0, 9, 15)
    for threshold in (0.0, 0.5):
        expected = sharing(asked, asked_sizes, keys, sizes, threshold)
        queries, docs, end, is_sound = kernel.look_up(
            asked, asked_sizes, *postings(keys, sizes), sizes, threshold, 0, 10**6
        )
        assert is_sound
        assert end == 15
        assert list(zip(queries.tolist(), docs.tolist(), strict=True)) == expected
        queries, docs = kernel.scan(asked, asked_sizes, keys, sizes, threshold)
        # A scan compares band by band: the band number is part of a key, so no two bands share one.
        by_band = [pair for pair in expected if (asked[pair[0]] == keys[pair[1]]).any()]
        assert list(zip(queries.tolist(), docs.tolist(), strict=True)) == by_band


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_postings_of_a_key_are_found_and_a_damaged_directory_leads_nowhere(kernel):
    draw = np.random.default_rng(8)
    values = np.r_[
        draw.integers(0, 2**64, 40, dtype=np.uint64), np.array([0, 2**64 - 1], np.uint64)
    ]
    keys, _, directory = postings(values[draw.integers(42, size=(90, 2))], np.ones(90, np.int64))
    firsts = np.empty(42, np.int64)
    lasts = np.empty(42, np.int64)
    kernel.find_postings(values, keys, directory, firsts, lasts)
    for key, first, last in zip(values, firsts, lasts, strict=True):
        assert np.flatnonzero(keys == key).tolist() == list(range(first, last))
    for broken in (directory - 200, directory + 2**62):
        kernel.find_postings(values, keys, broken, firsts, lasts)
        assert (lasts < firsts).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_an_empty_segment_answers_nothing(kernel):
    keys = np.empty((0, 3), np.uint64)
    sizes = np.empty(0, np.int64)
    asked = np.ones((2, 3), np.uint64)
    queries, docs, end, is_sound = kernel.look_up(
        asked, np.ones(2, np.int64), *postings(keys, sizes), sizes, 0.5, 0, 1
    )
    assert (queries.size, docs.size, end, is_sound) == (0, 0, 2, True)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("num_docs", [63, 64, 65, 300])
def test_documents_of_hot_buckets_are_found_once_and_in_order(kernel, num_docs):
    draw = np.random.default_rng(num_docs)
    keys = draw.integers(0, 2, (num_docs, 3), dtype=np.uint64)
    sizes = draw.integers(0, 9, num_docs)
    asked = draw.integers(0, 2, (7, 3), dtype=np.uint64)
    asked_sizes = draw.integers(0, 9, 7)
    queries, docs, _, is_sound = kernel.look_up(
        asked, asked_sizes, *postings(keys, sizes), sizes, 0.5, 0, 10**6
    )
    expected = sharing(asked, asked_sizes, keys, sizes, 0.5)
    assert is_sound
    assert len(expected) > num_docs
    assert list(zip(queries.tolist(), docs.tolist(), strict=True)) == expected


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_batch_of_queries_is_looked_up_in_parts_with_enough_pairs_each(kernel):
    draw = np.random.default_rng(3)
    keys = draw.integers(0, 9, (80, 2), dtype=np.uint64)
    sizes = draw.integers(1, 9, 80)
    asked = draw.integers(0, 9, (30, 2), dtype=np.uint64)
    asked_sizes = draw.integers(0, 9, 30)
    found = []
    begin = 0
    counts = []
    while begin < 30:
        queries, docs, begin, _ = kernel.look_up(
            asked, asked_sizes, *postings(keys, sizes), sizes, 0.0, begin, 40
        )
        found += zip(queries.tolist(), docs.tolist(), strict=True)
        counts.append(queries.size)
    assert found == sharing(asked, asked_sizes, keys, sizes, 0.0)
    assert len(counts) > 5
    assert max(counts) < 40 + 80


@pytest.mark.parametrize("kernel", KERNELS)
def test_damaged_positions_are_detected_before_use(kernel):
    draw = np.random.default_rng(1)
    keys = draw.integers(0, 2**64, (40, 2), dtype=np.uint64)
    sizes = np.full(40, 5)
    held = [array.copy() for array in postings(keys, sizes)]
    for at, value in ((1, 2**32 - 1), (2, -1), (2, 2**62)):
        broken = [array.copy() for array in held]
        broken[at][:] = value
        for array in broken:
            array.flags.writeable = False
        *_, is_sound = kernel.look_up(keys, sizes, *broken, sizes, 0.0, 0, 10**6)
        assert not is_sound


@pytest.mark.parametrize("kernel", KERNELS)
def test_pairs_are_verified_by_size_signature_and_similarity(kernel):
    sets = [[1, 2, 3, 4, 5], [1, 2, 3, 4, 6], [1, 2, 3, 4, 5], [1], []]
    items = Sets(
        np.concatenate([np.array(one, np.uint64) for one in sets]), np.cumsum([0, *map(len, sets)])
    )
    signatures = np.array([[1, 1], [1, 1], [1, 2], [1, 1], [9, 9]], np.uint32)
    left = np.array([0, 0, 0, 2])
    right = np.array([1, 2, 3, 1])
    values = np.empty(4)
    kernel.verify_pairs(items, signatures, left, right, 0.6, 0, values)
    assert values.tolist() == [4 / 6, 1.0, -1.0, 4 / 6]
    kernel.verify_pairs(items, signatures, left, right, 0.6, 2, values)
    assert values.tolist() == [4 / 6, -1.0, -1.0, -1.0]


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("threshold", [0.2, 0.5, 1.0])
def test_shared_shingles_are_counted_where_they_are_enough_of_the_smaller_set(kernels, threshold):
    draw = np.random.default_rng(5)
    asked, held = (
        [draw.permutation(30)[:size] for size in draw.integers(0, 9, 12)] for _ in range(2)
    )
    spread = draw.integers(0, 2**64 - 1, 30, dtype=np.uint64)
    sets, docs = (
        Sets(spread[np.concatenate(group)], np.cumsum([0, *map(len, group)], dtype=np.int64))
        for group in (asked, held)
    )
    keys, owners = set_postings(docs)
    *found, is_sound = kernels.count_shared(
        sets, keys, owners, directory_of([keys], keys.size), np.diff(docs.ends), threshold
    )
    shared = {
        (one, two): len({*asked[one]} & {*held[two]}) for one in range(12) for two in range(12)
    }
    expected = {
        pair: count
        for pair, count in shared.items()
        if count and count / min(map(len, (asked[pair[0]], held[pair[1]]))) >= threshold
    }
    assert is_sound
    assert {
        (one, two): count for one, two, count in zip(*map(np.ndarray.tolist, found), strict=True)
    } == expected


def test_damaged_postings_of_shingles_are_noticed():
    sets = Sets(np.arange(1, 4, dtype=np.uint64), np.array([0, 3]))
    sizes = np.array([3])
    owners = np.zeros(3, np.uint32)
    for docs, directory in ((owners + 7, [0, 3]), (owners, [0, 9]), (owners, [-1, 3])):
        *_, is_sound = lookup.count_shared(
            sets, sets.shingles, docs.astype(np.uint32), np.array(directory), sizes, 0.5
        )
        assert not is_sound


@pytest.mark.parametrize("kernels", KERNELS)
def test_pairs_whose_signatures_agree_enough_are_marked(kernels):
    draw = np.random.default_rng(6)
    asked, held = (draw.integers(0, 3, (count, 16)).astype(np.uint32) for count in (4, 9))
    queries, docs = (numbers.reshape(-1) for numbers in np.mgrid[0:4, 0:9])
    is_agreeing = np.empty(queries.size, np.bool_)
    kernels.mark_agreeing(asked, held, queries, docs, 6, is_agreeing)
    expected = [
        sum(one == two for one, two in zip(asked[q], held[d], strict=True)) >= 6
        for q, d in zip(queries, docs, strict=True)
    ]
    assert is_agreeing.tolist() == expected
    assert 0 < sum(expected) < len(expected)
