"""Counts, prefixes and links of the exact join: equal to plain Python, and no true pair is lost."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import prefix
from neardup.kernels.lists import number_lists
from support.plain_kernels import plain

TOP = 2**64 - 1
PLAIN = plain(prefix)
# Hashes that collide in every small table, extremes, and random ones.
HASHES = st.one_of(
    st.integers(0, TOP), st.integers(TOP - 20, TOP), st.integers(0, 40).map(lambda at: at << 58)
)
SETS = st.lists(st.sets(HASHES, min_size=1, max_size=14), min_size=1, max_size=9)
THRESHOLDS = st.one_of(
    st.sampled_from([0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 1.0]), st.floats(0.2, 1.0)
)
BITS = st.sampled_from([1, 2, 5, 12])


def arrays_of(sets):
    shingles = np.concatenate(
        [np.empty(0, np.uint64), *(np.array(list(one), np.uint64) for one in sets)]
    )
    return shingles, np.cumsum([0, *map(len, sets)])


def count(sets, bits, module=prefix):
    counts = np.zeros(1 << bits, np.uint8)
    module.count_shingles(arrays_of(sets)[0], counts)
    return counts


def take(sets, counts, threshold, module=prefix):
    shingles, ends = arrays_of(sets)
    docs = np.full(shingles.size, -9)
    places = np.full(shingles.size, -9)
    keys = np.zeros(shingles.size, np.uint64)
    taken = module.take_prefixes(shingles, ends, counts, threshold, docs, keys, places)
    return docs[:taken], keys[:taken], places[:taken]


def join(sets, postings, threshold, module=prefix, rows=None):
    """Join the documents of postings; return the smallest document that each is joined with."""
    docs, keys, places = postings
    lists = np.empty(keys.size, np.int64)
    parents = np.arange(len(sets))
    number_lists(keys, lists)
    sizes = np.array(list(map(len, sets)), np.int64)[docs]
    rows = docs if rows is None else np.asarray(rows, np.int64)[docs]
    module.join_lists(lists, docs, rows, sizes, places, threshold, parents)
    return parents


def similarity(one, other):
    return len(one & other) / len(one | other)


def least_shared(size, threshold):
    """The minimum number of shingles that a set of this size shares with a similar one, by trial."""
    return next(shared for shared in range(1, size + 1) if shared / size >= threshold)


def expected_prefixes(sets, bits, threshold):
    """What `take_prefixes` takes, by its definition."""
    counts = Counter(shingle >> (64 - bits) for one in sets for shingle in one)
    for doc, one in enumerate(sets):
        ranked = sorted((min(counts[shingle >> (64 - bits)], 255), shingle >> 8) for shingle in one)
        for place, (number, key) in enumerate(
            ranked[: len(one) - least_shared(len(one), threshold) + 1]
        ):
            if number > 1:
                yield doc, key << 8, place


def assert_every_pair_is_joined(sets, parents, threshold):
    for one, other in itertools.combinations(range(len(sets)), 2):
        if similarity(sets[one], sets[other]) >= threshold:
            assert parents[one] == parents[other]


@given(sets=SETS, bits=BITS)
def test_counts_are_those_of_plain_python(sets, bits):
    expected = Counter(shingle >> (64 - bits) for one in sets for shingle in one)
    counts = count(sets, bits)
    assert counts.tolist() == [expected[place] for place in range(1 << bits)]
    assert counts.tolist() == count(sets, bits, PLAIN).tolist()


def test_counts_saturate_at_255():
    counts = count([{at} for at in range(300)] + [{TOP}], bits=3)
    assert counts.tolist() == [255, 0, 0, 0, 0, 0, 0, 1]


@given(sets=SETS, bits=BITS, threshold=THRESHOLDS)
def test_prefixes_are_those_of_plain_python(sets, bits, threshold):
    postings = take(sets, count(sets, bits), threshold)
    expected = list(expected_prefixes(sets, bits, threshold))
    assert list(zip(*(column.tolist() for column in postings), strict=True)) == expected
    by_plain = take(sets, count(sets, bits), threshold, PLAIN)
    assert [column.tolist() for column in by_plain] == [column.tolist() for column in postings]


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.55, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 1.0])
def test_the_prefix_length_follows_from_the_minimum_overlap(threshold):
    for size in range(1, 130):
        own = set(range(1, size + 1))
        docs, _, places = take([own, own], np.full(2, 9, np.uint8), threshold)
        assert places[docs == 0].tolist() == list(range(size - least_shared(size, threshold) + 1))


def test_a_document_without_a_shared_prefix_shingle_has_no_postings():
    one = {number << 40 for number in range(1, 11)}
    few, enough = (
        set(list(one)[:shared]) | {number << 50 for number in range(3, 13 - shared)}
        for shared in (7, 8)
    )
    for other, is_taken in ((few, False), (enough, True)):
        counts = count([one, other], bits=26)
        assert (take([one, other], counts, 0.8)[0].size > 0) == is_taken


@given(sets=SETS, bits=BITS, threshold=THRESHOLDS)
def test_no_pair_is_lost_however_small_the_table_of_counts(sets, bits, threshold):
    postings = take(sets, count(sets, bits), threshold)
    parents = join(sets, postings, threshold)
    assert_every_pair_is_joined(sets, parents, threshold)
    assert parents.tolist() == join(sets, postings, threshold, PLAIN).tolist()


def family(rng, num_sets, *, universe=60, size=20):
    """Sets that share much: edited copies of a few, of many sizes."""
    sets = []
    for _ in range(num_sets):
        own = (
            set(rng.choice(sets))
            if sets and rng.random() < 0.8
            else set(rng.sample(range(universe), size))
        )
        for _ in range(rng.randrange(4)):
            own ^= {rng.randrange(universe)}
        sets.append(own or {0})
    scatter = [rng.getrandbits(64) for _ in range(universe)]
    return [{scatter[item] for item in own} for own in sets]


@pytest.mark.parametrize("window", [1, 2, 5])
@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.9])
def test_no_pair_is_lost_in_a_list_longer_than_the_window(threshold, window):
    module = plain(prefix)
    module.WINDOW = window
    for seed in range(12):
        sets = family(random.Random(seed), 30)
        postings = take(sets, count(sets, 10), threshold)
        assert_every_pair_is_joined(sets, join(sets, postings, threshold, module), threshold)


@pytest.mark.parametrize("threshold", [0.5, 0.8, 0.95])
def test_no_pair_is_lost_in_long_lists(threshold):
    sets = family(random.Random(5), 400, universe=120, size=40)
    postings = take(
        sets, count(sets, 1), threshold
    )  # one count for all: the order is that of the hashes
    assert max(Counter(postings[1].tolist()).values()) > 2 * prefix.WINDOW
    parents = join(sets, postings, threshold)
    assert_every_pair_is_joined(sets, parents, threshold)
    assert parents.tolist() == join(sets, postings, threshold, PLAIN).tolist()


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("window", [1, 2, 3])
def test_similar_documents_are_linked_for_any_window(window, threshold):
    module = plain(prefix)
    module.WINDOW = window
    for seed in range(40):
        rng = random.Random(seed)
        num_docs = rng.randrange(2, 14)
        sizes = [rng.randrange(20, 60) for _ in range(num_docs)]
        places = [rng.randrange(int((1 - threshold) * size) + 1) for size in sizes]
        docs = np.arange(num_docs)
        parents = np.arange(num_docs)
        lists = np.zeros(num_docs, np.int64)
        module.join_lists(lists, docs, docs, np.array(sizes), np.array(places), threshold, parents)
        for one, other in itertools.combinations(range(num_docs), 2):
            most = min(sizes[one] - places[one], sizes[other] - places[other])
            if most / (sizes[one] + sizes[other] - most) >= threshold:
                assert parents[one] == parents[other], (seed, sizes, places)


def test_the_order_of_entries_does_not_matter():
    rng = random.Random(9)
    sets = family(rng, 200, universe=100, size=30)
    docs, keys, places = take(sets, count(sets, 6), 0.8)
    expected = join(sets, (docs, keys, places), 0.8)
    for _ in range(3):
        order = np.array(rng.sample(range(docs.size), docs.size))
        assert (
            join(sets, (docs[order], keys[order], places[order]), 0.8).tolist() == expected.tolist()
        )


def test_documents_shown_dissimilar_by_one_list_are_not_linked():
    keys = np.array([7, 7], np.uint64)
    docs = np.array([0, 1])
    for sizes, places, is_joined in [
        ((10, 10), (0, 0), True),
        ((10, 8), (0, 0), True),
        ((10, 7), (0, 0), False),  # by sizes alone
        ((10, 10), (1, 0), True),  # 9 of 11
        ((10, 10), (2, 0), False),  # 8 of 12
        ((10, 8), (2, 0), True),  # 8 of 10
        ((10, 8), (2, 1), False),
        ((10, 8), (3, 0), False),
    ]:
        sets = [set(range(size)) for size in sizes]
        parents = join(sets, (docs, keys, np.array(places)), 0.8)
        assert (parents[0] == parents[1]) == is_joined, (sizes, places)


def test_the_cost_of_a_list_is_linear_in_its_length():
    """The worst case for a list: all sizes fit, and no position rules out a pair."""
    num_docs = 200_000
    lists = np.zeros(num_docs, np.int64)
    docs = np.arange(num_docs)
    sizes = np.full(num_docs, 100)
    places = np.zeros(num_docs, np.int64)
    parents = np.arange(num_docs)
    prefix.join_lists(
        lists, docs, docs, sizes, places, 0.8, parents
    )  # 20 billion steps would not finish
    assert not parents.any()


def test_thresholds_next_to_a_quotient_are_distinguished():
    for shared, union in [(4, 5), (28, 35), (29, 36), (57, 95), (63, 90), (99, 100)]:
        numbers = [number << 40 for number in range(1, union + 1)]
        sets = [set(numbers[:union]), set(numbers[:shared])]
        for threshold, is_joined in [
            (shared / union, True),
            (math.nextafter(shared / union, 1), False),
        ]:
            parents = join(sets, take(sets, count(sets, 12), threshold), threshold)
            assert (parents[0] == parents[1]) == is_joined
