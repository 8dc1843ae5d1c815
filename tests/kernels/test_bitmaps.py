"""Bitmaps of sets: an upper bound of what two sets share."""

from __future__ import annotations

import numpy as np
import pytest

from neardup.kernels import bitmaps
from neardup.kernels.similarity import Sets
from support.plain_kernels import plain

KERNELS = [bitmaps, plain(bitmaps)]
# Plain Python warns of wrapping products, by which bits are counted.
pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered")
RANDOM = np.random.default_rng(2)


def end_to_end(sets):
    """Sets as a kernel takes them."""
    return Sets(np.concatenate(sets), np.cumsum([0, *map(len, sets)], dtype=np.int64))


def bitmaps_of(kernel, sets, before=0):
    """The bitmaps of sets that follow others with `before` shingles."""
    end = bitmaps.first_word(before + sets.shingles.size, sets.ends.size - 1)
    words = np.zeros(end - bitmaps.first_word(before, 0), np.uint64)
    kernel.write_bitmaps(sets, before, words)
    return words


def pages(num_own, num_shared, count):
    """Sets that share some shingles, and have some of their own."""
    shared = RANDOM.integers(0, 2**64, num_shared, dtype=np.uint64)
    own = RANDOM.integers(0, 2**64, (count, num_own), dtype=np.uint64)
    return [np.r_[shared, row] for row in own]


def possible(kernel, asked, held, threshold, words=None):
    """Which of the sets can be similar to the first according to their bitmaps."""
    sets = end_to_end(held)
    is_possible = np.empty(len(held), np.bool_)
    words = bitmaps_of(kernel, sets) if words is None else words
    kernel.mark_possible(asked, sets.ends, words, np.arange(len(held)), threshold, is_possible)
    return is_possible


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.8, 1.0])
def test_similar_sets_are_always_possible(kernel, threshold):
    draw = np.random.default_rng(4)
    asked = draw.integers(0, 2**64, 90, dtype=np.uint64)
    held = []
    for _ in range(150):
        shared = asked[draw.random(90) < draw.random() ** 0.2]
        held.append(np.r_[shared, draw.integers(0, 2**64, draw.integers(0, 40), dtype=np.uint64)])
    held = [one for one in held if one.size] + [asked]
    overlaps = np.array([np.isin(one, asked).sum() for one in held])
    sizes = np.array([one.size for one in held])
    is_similar = overlaps / (sizes + 90 - overlaps) >= threshold
    assert is_similar.any()
    assert possible(kernel, asked, held, threshold)[is_similar].all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_sets_with_more_differing_bits_than_allowed_shingles_are_impossible(kernel):
    # Of 200 + 200 shingles, the threshold .8 allows 44 that only one of the sets has.
    for num_own, is_expected in ((20, True), (22, True), (50, False)):
        asked, other = pages(num_own, 200 - num_own, 2)
        assert possible(kernel, asked, [other], 0.8).tolist() == [is_expected]


@pytest.mark.parametrize("size", [100, 146, 300, 1_000, 5_000])
@pytest.mark.parametrize("similarity", [0.56, 0.63, 0.69])
def test_nearly_all_pages_of_a_template_are_recognised_whatever_their_size(size, similarity):
    num_shared = round(2 * similarity / (1 + similarity) * size)
    asked, *held = pages(size - num_shared, num_shared, 400)
    assert possible(bitmaps, asked, held, 0.8).mean() < 0.02


@pytest.mark.parametrize("before", [0, 5, 31, 32, 1_000])
def test_bitmaps_written_in_parts_are_those_written_at_once(before):
    sets = [RANDOM.integers(0, 2**64, size, dtype=np.uint64) for size in (5, 0, 1, 64, 700, 31, 32)]
    whole = bitmaps_of(bitmaps, end_to_end(sets), before)
    for cut in range(1, 7):
        first = end_to_end(sets[:cut])
        second = end_to_end(sets[cut:])
        parts = [bitmaps_of(bitmaps, first, before)]
        # The second part follows `cut` documents more, so that its words begin where the first part
        # ends.
        parts.append(bitmaps_of(bitmaps, second, before + first.shingles.size))
        assert np.concatenate(parts).tolist() == whole.tolist()
        assert bitmaps_of(KERNELS[1], first, before).tolist() == parts[0].tolist()


def test_compiled_and_plain_kernels_mark_the_same_documents():
    for size in (1, 30, 300):
        held = [one for own in range(0, size, 7) for one in pages(own, size - own, 3)]
        marks = [possible(kernel, held[0], held, 0.8).tolist() for kernel in KERNELS]
        assert marks[0] == marks[1]


@pytest.mark.parametrize("kernel", KERNELS)
def test_documents_whose_place_is_damaged_are_possible(kernel):
    asked, *held = pages(90, 10, 6)
    sets = end_to_end(held)
    words = bitmaps_of(kernel, sets)
    for value in (-1, 2**62, -(2**63), 2**63 - 1):
        ends = sets.ends.copy()
        ends[3] = value
        is_possible = np.zeros(5, np.bool_)
        kernel.mark_possible(asked, ends, words, np.array([2, 3, 0, 4, 1]), 0.8, is_possible)
        assert is_possible[:2].any()
        assert not is_possible[2:].any()
