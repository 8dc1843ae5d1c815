"""Exact similarities of documents, by the type of their items.

The type of `items` determines at compile time how two documents, sets or vectors, are compared. So
all measures share one verification kernel, and no function is passed to it, which would keep it out
of Numba's cache.

Two sets are compared by a hash table of the first, which is probed with every shingle of the
second, so sets need not be sorted. If the hashes of either set were constructed to collide, the
first is sorted instead, and searched by bisection.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels.bounds import least_overlap
from neardup.kernels.compilation import inner, kernel, overload, uncounted, uncounted_overload
from neardup.kernels.hash_sets import (
    ZERO,
    capacity_for,
    fill,
    home_of,
    largest_set,
    max_steps,
    probe,
    table_for,
)
from neardup.kernels.sorted_sets import weight_sums
from neardup.kernels.sorting import clear, sort_values

Array = npt.NDArray[Any]


class Sets(NamedTuple):
    """Distinct shingles of many documents end to end; document d owns shingles[ends[d]:ends[d + 1]].

    shingles  uint64[num_shingles]
    ends      int64 [num_docs + 1]
    """

    shingles: Array
    ends: Array


class Weights(NamedTuple):
    """Items of many documents end to end, in the order of their hashes, each with its weight.

    hashes   uint64 [num_items]
    weights  float64[num_items]     above 0
    ends     int64  [num_docs + 1]
    """

    hashes: Array
    weights: Array
    ends: Array


class Bits(NamedTuple):
    """Bit vectors of one length, padded with zeros.

    words     uint64[num_docs, num_words]
    num_bits  int64
    """

    words: Array
    num_bits: int


class Vectors(NamedTuple):
    """Vectors to be compared by their angle; 64 slots of a signature are one word.

    values     float64[num_docs, dimension]
    norms      float64[num_docs]             above 0
    num_slots  int64
    """

    values: Array
    norms: Array
    num_slots: int


class Points(NamedTuple):
    """Vectors to be compared by their distance.

    values  float64[num_docs, dimension]
    """

    values: Array


Items = Sets | Weights | Bits | Vectors | Points
# Instead of a position: no document.
NOBODY = -1
# A cosine above this counts as 1, because of rounding in the dot product of parallel vectors.
NEARLY_ONE = 1.0 - 2.0**-48
# How the set in the scratch table is stored.
AS_TABLE = 0
IN_ORDER = 1


@uncounted
def _overlap(table, capacity, shingles, start, stop, needed):
    """Count the shingles of a set that are in the table; return (count, steps of probing left).

    The count is -1 as soon as it cannot reach `needed`; it is invalid if the steps are negative.
    """
    spare = stop - start - needed
    steps = max_steps(stop - start)
    for at in range(start, stop):
        home = home_of(shingles[at], capacity)
        index = probe(table, shingles[at], home)
        steps -= index - home
        spare -= table[index] == ZERO
        if (spare | steps) < 0:
            return np.int64(-1), steps
    return needed + spare, steps


@uncounted
def _order(table, spare, shingles, start, stop):
    """Write a set in ascending order to the front of the scratch table."""
    for at in range(stop - start):
        table[at] = shingles[start + at]
    sort_values(table, spare, stop - start)


@uncounted
def _index_of(ordered, size, shingle):
    """Return how many of the first `size` values, which are sorted, are smaller."""
    low, high = np.int64(0), np.int64(size)
    while low < high:
        middle = (low + high) >> 1
        if ordered[middle] < shingle:
            low = middle + 1
        else:
            high = middle
    return low


@uncounted
def _ordered_overlap(ordered, size, shingles, start, stop, needed):
    """Like `_overlap`, by bisection of a sorted set."""
    spare = stop - start - needed
    for at in range(start, stop):
        index = _index_of(ordered, size, shingles[at])
        spare -= index == size or ordered[index] != shingles[at]
        if spare < 0:
            return np.int64(-1)
    return needed + spare


@uncounted
def _load(scratch, shingles, start, stop, doc):
    """Load a set into the scratch table, replacing any other."""
    table, _, state = scratch
    clear(table, state[1] + 1)
    last, steps = fill(table, shingles, start, stop)
    state[0] = doc
    state[1] = last
    state[2] = AS_TABLE
    if steps < 0:
        _order_scratch(scratch, shingles, start, stop)


@uncounted
def _order_scratch(scratch, shingles, start, stop):
    """Convert the set in the scratch table to a sorted one."""
    table, spare, state = scratch
    _order(table, spare, shingles, start, stop)
    state[1] = max(state[1], stop - start)
    state[2] = IN_ORDER


@uncounted
def _jaccard(sets, scratch, doc, other, least):
    """Intersection over union, 0 for two empty sets; loads `doc` into the table."""
    shingles, ends = sets
    table, _, state = scratch
    size_a, size_b = ends[doc + 1] - ends[doc], ends[other + 1] - ends[other]
    if size_a + size_b == 0:
        return 0.0
    needed = least_overlap(size_a, size_b, least)
    if state[0] != doc:
        _load(scratch, shingles, ends[doc], ends[doc + 1], doc)
    overlap = np.int64(-1)
    if state[2] == AS_TABLE:
        overlap, steps = _overlap(
            table, capacity_for(size_a), shingles, ends[other], ends[other + 1], needed
        )
        if steps < 0:
            _order_scratch(scratch, shingles, ends[doc], ends[doc + 1])
    if state[2] == IN_ORDER:
        overlap = _ordered_overlap(table, size_a, shingles, ends[other], ends[other + 1], needed)
    return overlap / (size_a + size_b - overlap) if overlap >= 0 else -1.0


@uncounted
def _weighted_jaccard(sets, scratch, doc, other, least):
    """The sum of the smaller weights divided by the sum of the larger ones."""
    smaller, larger = weight_sums(sets, doc, sets, other)
    return smaller / larger if larger > 0.0 else 0.0


@uncounted
def count_ones(word):
    """Return how many bits are 1."""
    # Adjacent groups of 1, 2 and 4 bits are added, then all bytes by a product; LLVM compiles it to
    # one instruction.
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@uncounted
def _differing(words, other_words):
    differing = 0
    for at in range(words.size):
        differing += count_ones(words[at] ^ other_words[at])
    return differing


@uncounted
def _equal_bits(bits, scratch, doc, other, least):
    return (bits.num_bits - _differing(bits.words[doc], bits.words[other])) / bits.num_bits


@uncounted
def _dot(one, two):
    """The dot product; four partial sums, always in the same order, are faster and just as exact."""
    first = 0.0
    second = 0.0
    third = 0.0
    fourth = 0.0
    for at in range(0, one.size - 3, 4):
        first += one[at] * two[at]
        second += one[at + 1] * two[at + 1]
        third += one[at + 2] * two[at + 2]
        fourth += one[at + 3] * two[at + 3]
    for at in range(one.size - one.size % 4, one.size):
        first += one[at] * two[at]
    return (first + second) + (third + fourth)


@uncounted
def _squared_distance(one, two):
    """Sum of the squared differences, added as in `_dot`."""
    first = 0.0
    second = 0.0
    third = 0.0
    fourth = 0.0
    for at in range(0, one.size - 3, 4):
        first += (one[at] - two[at]) * (one[at] - two[at])
        second += (one[at + 1] - two[at + 1]) * (one[at + 1] - two[at + 1])
        third += (one[at + 2] - two[at + 2]) * (one[at + 2] - two[at + 2])
        fourth += (one[at + 3] - two[at + 3]) * (one[at + 3] - two[at + 3])
    for at in range(one.size - one.size % 4, one.size):
        first += (one[at] - two[at]) * (one[at] - two[at])
    return (first + second) + (third + fourth)


@uncounted
def cosine(one, two, lengths):
    """The cosine of the angle, clamped to [0, 1]: negative ones count as 0, and those within rounding of 1 as 1.

    one, two  float64[dimension]
    lengths   float64             the product of both
    """
    value = _dot(one, two) / lengths
    return 1.0 if value > NEARLY_ONE else max(0.0, value)


@uncounted
def nearness(one, two):
    """1 / (1 + the distance of two vectors)."""
    return 1.0 / (1.0 + np.sqrt(_squared_distance(one, two)))


@uncounted
def _vector_cosine(vectors, scratch, doc, other, least):
    return cosine(
        vectors.values[doc], vectors.values[other], vectors.norms[doc] * vectors.norms[other]
    )


@uncounted
def _point_nearness(points, scratch, doc, other, least):
    return nearness(points.values[doc], points.values[other])


@uncounted
def agreement(slots, other_slots):
    """Return how many slots of two signatures are equal."""
    equal = 0
    for slot in range(slots.size):
        equal += slots[slot] == other_slots[slot]
    return equal


@uncounted
def _sets_pass(sets, signatures, doc, other, threshold, min_agreement):
    size_a, size_b = _set_size(sets, doc), _set_size(sets, other)
    if min(size_a, size_b) / max(size_a, size_b) < threshold:
        return False
    return agreement(signatures[doc], signatures[other]) >= min_agreement


@uncounted
def _weights_pass(sets, signatures, doc, other, threshold, min_agreement):
    return agreement(signatures[doc], signatures[other]) >= min_agreement


@uncounted
def _vectors_pass(vectors, signatures, doc, other, threshold, min_agreement):
    return vectors.num_slots - _differing(signatures[doc], signatures[other]) >= min_agreement


@uncounted
def _all_pass(items, signatures, doc, other, threshold, min_agreement):
    return True


@uncounted
def _set_size(sets, doc):
    return sets.ends[doc + 1] - sets.ends[doc]


@uncounted
def _no_size(items, doc):
    return np.int64(0)


@inner
def _set_scratch(sets):
    state = np.empty(3, np.int64)
    state[0] = NOBODY
    state[1] = NOBODY
    state[2] = AS_TABLE
    return table_for(sets.ends), np.empty(largest_set(sets.ends), np.uint64), state


@inner
def _no_scratch(items):
    return np.empty(0, np.uint64), np.empty(0, np.int64)


# The functions for items of each type.
_SIMILARITIES = {
    Sets: _jaccard,
    Weights: _weighted_jaccard,
    Bits: _equal_bits,
    Vectors: _vector_cosine,
    Points: _point_nearness,
}
_FILTERS = {
    Sets: _sets_pass,
    Weights: _weights_pass,
    Bits: _all_pass,
    Vectors: _vectors_pass,
    Points: _all_pass,
}
_SIZES = dict.fromkeys(_SIMILARITIES, _no_size) | {Sets: _set_size}
_SCRATCHES = dict.fromkeys(_SIMILARITIES, _no_scratch) | {Sets: _set_scratch}


def similarity_of(items, scratch, doc, other, least):
    """Return the exact similarity of two documents, or -1 where it is known to be below `least`."""
    return _SIMILARITIES[type(items)](items, scratch, doc, other, least)


@uncounted_overload(similarity_of)
def _similarity_of_type(items, scratch, doc, other, least):
    similarity = _SIMILARITIES[items.instance_class]
    return lambda items, scratch, doc, other, least: similarity(items, scratch, doc, other, least)


def passes(items, signatures, doc, other, threshold, min_agreement):
    """Whether two documents pass the size filter and the signature filter."""
    return _FILTERS[type(items)](items, signatures, doc, other, threshold, min_agreement)


@uncounted_overload(passes)
def _passes_of_type(items, signatures, doc, other, threshold, min_agreement):
    chosen = _FILTERS[items.instance_class]
    return lambda items, signatures, doc, other, threshold, min_agreement: chosen(
        items, signatures, doc, other, threshold, min_agreement
    )


def size_of(items, doc):
    """Return the size of a set; for vectors it is never used."""
    return _SIZES[type(items)](items, doc)


@uncounted_overload(size_of)
def _size_of_type(items, doc):
    size = _SIZES[items.instance_class]
    return lambda items, doc: size(items, doc)


def scratch_for(items):
    """Allocate scratch memory for comparisons."""
    return _SCRATCHES[type(items)](items)


@overload(scratch_for)
def _scratch_of_type(items):
    scratch = _SCRATCHES[items.instance_class]
    return lambda items: scratch(items)


@kernel
def norms(values, lengths):
    """Write the length of every vector.

    values   float64[num_docs, dimension]
    lengths  float64[num_docs]             written
    """
    for doc in range(values.shape[0]):
        lengths[doc] = np.sqrt(_dot(values[doc], values[doc]))


@kernel
def similarities(items, left, right, values):
    """Write the exact similarity of pairs of documents.

    items        Items
    left, right  int64 [num_pairs]     documents
    values       float64[num_pairs]    written; 0 where both sets are empty
    """
    scratch = scratch_for(items)
    for at in range(left.size):
        values[at] = similarity_of(items, scratch, left[at], right[at], 0.0)
