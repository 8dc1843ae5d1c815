"""A sample against documents: no partner is lost, similarities are exact, compiled equals plain Python."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels import audit, prefix_index
from neardup.measures.jaccard import Sets
from neardup.search.prefix_index import PrefixIndex
from support import oracles
from support.plain_kernels import plain

THRESHOLDS = st.sampled_from([0.1, 0.5, 0.7, 0.8, 0.9, 1.0])
PLAIN = plain(audit)
PLAIN_INDEX = plain(prefix_index)
# Hashes of all sizes: zero is not a valid shingle, the largest number is.
ITEMS = [1, 2, 3, 2**16, 2**31, 2**48, 2**60, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]
set_of_items = st.frozensets(st.sampled_from(ITEMS), min_size=1)
many_sets = st.lists(set_of_items, min_size=1, max_size=8)


def end_to_end(sets):
    ends = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    return np.array([item for members in sets for item in sorted(members)], np.uint64), ends


def least_sizes(sets, threshold, kernel=prefix_index):
    least = np.empty(len(sets), np.int64)
    kernel.least_sizes(np.array([len(members) for members in sets]), threshold, least)
    return least


def candidates(
    documents,
    sets,
    threshold,
    *,
    groups=None,
    set_groups=None,
    needed=1,
    kernel=prefix_index,
    room=200,
):
    least = least_sizes(sets, threshold)
    needed = np.minimum(needed, least)
    set_groups = np.array([0] * len(sets) if set_groups is None else set_groups)
    index = PrefixIndex(Sets(*end_to_end(sets)), least, needed, set_groups).arrays
    seen = tuple(np.full(size, -1) for size in (index.list_ends.size, len(sets), len(sets)))
    shingles, ends = end_to_end(documents)
    found = np.empty((room, 2), np.int64)
    groups = np.array([0] * len(documents) if groups is None else groups)
    count = kernel.find_candidates(shingles, ends, groups, index, 5, seen, found)
    return count, list(map(tuple, found[:count].tolist()))


def true_partners(documents, sets, threshold):
    return {
        (doc, number)
        for doc, a in enumerate(documents)
        for number, b in enumerate(sets)
        if oracles.jaccard(a, b) >= threshold
    }


@given(documents=many_sets, sets=many_sets, threshold=THRESHOLDS, needed=st.integers(1, 4))
def test_every_partner_is_a_candidate_once(documents, sets, threshold, needed):
    count, found = candidates(documents, sets, threshold, needed=needed)
    assert count == len(set(found)) == len(found)
    assert true_partners(documents, sets, threshold) <= set(found)


@given(documents=many_sets, sets=many_sets, threshold=THRESHOLDS, needed=st.integers(1, 4))
def test_compiled_candidates_are_those_of_plain_python(documents, sets, threshold, needed):
    with np.errstate(over="ignore"):
        expected = candidates(documents, sets, threshold, needed=needed, kernel=PLAIN_INDEX)
    assert candidates(documents, sets, threshold, needed=needed) == expected


def test_candidates_belong_to_one_group():
    sets = [frozenset(ITEMS[:4])] * 2
    _, found = candidates([sets[0]] * 2, sets, 0.8, groups=[7, -8], set_groups=[-8, 9])
    assert found == [(1, 0)]


def test_repeated_shingles_count_once():
    members = frozenset(range(1, 21))
    shingles = np.array([20] * 50, np.uint64)
    zeros = np.zeros(1, np.int64)
    index = PrefixIndex(Sets(*end_to_end([members])), np.array([2]), np.array([2]), zeros).arrays
    seen = tuple(np.full(size, -1) for size in (index.list_ends.size, 1, 1))
    found = np.empty((9, 2), np.int64)
    assert (
        prefix_index.find_candidates(shingles, np.array([0, 50]), zeros, index, 0, seen, found) == 0
    )


def test_candidates_beyond_the_buffer_are_counted():
    members = frozenset(ITEMS)
    assert candidates([members] * 4, [members] * 3, 0.8, room=12)[0] == 12
    shingles, ends = end_to_end([members] * 4)
    assert candidates([members] * 4, [members] * 3, 0.8, room=0)[0] == 12
    assert ends[-1] == shingles.size


@given(documents=many_sets, sets=many_sets, threshold=THRESHOLDS)
def test_similarities_match_the_oracle(documents, sets, threshold):
    pairs = np.array(
        [(doc, number) for doc in range(len(documents)) for number in range(len(sets))]
    )
    values = {}
    for kernel in (audit, PLAIN):
        found = values[kernel] = np.empty(len(pairs))
        kernel.partner_similarities(
            *end_to_end(documents), *end_to_end(sets), pairs, threshold, found
        )
    exact = [oracles.jaccard(documents[doc], sets[number]) for doc, number in pairs]
    assert values[audit].tolist() == [value if value >= threshold else 0.0 for value in exact]
    assert values[audit].tolist() == values[PLAIN].tolist()


@pytest.mark.parametrize("threshold", [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0])
def test_the_minimum_size_is_the_smallest_that_reaches_the_threshold(threshold):
    sets = [range(size) for size in range(1, 200)]
    least = least_sizes(sets, threshold)
    assert least.tolist() == least_sizes(sets, threshold, PLAIN_INDEX).tolist()
    for size, smallest in zip(range(1, 200), least.tolist(), strict=True):
        assert smallest / size >= threshold
        assert smallest == 1 or (smallest - 1) / size < threshold
        assert Fraction(smallest, size) <= 1


@given(data=st.data(), min_agreement=st.integers(0, 6))
def test_found_means_a_shared_bucket_and_enough_equal_slots(data, min_agreement):
    def table(rows, columns, most, kind):
        numbers = st.lists(st.integers(0, most), min_size=columns, max_size=columns)
        return np.array(data.draw(st.lists(numbers, min_size=rows, max_size=rows)), kind)

    signatures = table(4, 6, 2, np.uint32)
    others = table(3, 6, 2, np.uint32)
    keys = table(4, 3, 3, np.uint64)
    other_keys = table(3, 3, 3, np.uint64)
    pairs = np.array([(doc, number) for doc in range(4) for number in range(3)])
    answers = []
    for kernel in (audit, PLAIN):
        is_found = np.empty(len(pairs), np.bool_)
        kernel.mark_found(signatures, keys, others, other_keys, pairs, min_agreement, is_found)
        answers.append(is_found.tolist())
    expected = [
        any(keys[doc] == other_keys[number])
        and sum(signatures[doc] == others[number]) >= min_agreement
        for doc, number in pairs
    ]
    assert answers == [expected, expected]
