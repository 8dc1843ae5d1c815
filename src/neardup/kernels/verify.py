"""Verification: the documents of a component, in keep order, against those before them that share a bucket.

What documents are, sets or vectors, is the type of `items`: the compiler chooses how two of them are compared, so there
is one walk for all measures, and no function is handed in, which would keep kernels out of Numba's cache.

Each bucket is a list of documents already passed. A document walks the lists of its buckets; whom it meets is
compared by size, then by signature, then exactly. A component where too many comparisons fail is hot and starts again
with lists by prefix shingle: two sets of similarity >= t share one of their rarest n - ceil(t n) + 1 shingles, so
walking those lists, and asking afterwards for a shared bucket, meets the same pairs.

Two sets are compared exactly by a hash table of the first and a look at it for every shingle of the second, so sets
need no order. The place of a shingle is its hash scaled to the table, so the table holds its keys almost in order.
Where the hashes of a set, or of one that is looked for in it, were made to collide, the set is sorted instead of put
into a table, and looked for by bisection.

What was learned in an earlier call can be given: who is only met, who only meets, matches so far, and joins so far.
"""

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba.extending import overload

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
    """Bit vectors of one length, with zeros behind the last bit.

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


# A cosine above this is 1: sums of products of parallel vectors may be off by so much.
NEARLY_ONE = 1.0 - 2.0**-48
Items = Sets | Weights | Bits | Vectors | Points
LEADERS, PAIRS, CLOSURE = 0, 1, 2
NOBODY = -1
# The match that was given stays the best.
GIVEN = -2
# What a document does, as bits: it walks the lists, and it is entered into them.
COMPARED, ENTERED = 1, 2
# A component is hot after this many failed comparisons, and this many more per document passed.
FAILED_BASE, FAILED_PER_DOC = 2000, 64
# Whom a bucket list brings is compared; most of whom a prefix list brings is dismissed by its place, much faster.
COMPARISON_COST = 4
LARGEST = np.int64(2**62)
# Shingle hashes are finalised and never zero, so zero marks a free place.
ZERO = np.uint64(0)
HALF = np.uint64(32)
MAX_SPARSE = 1 << 14
# Steps of probing for each set that is put into a table or looked for in one: random hashes take 1 a shingle or less.
STEPS_BASE, STEPS_PER_SHINGLE = 1 << 10, 8
# How the set in the scratch table is held.
AS_TABLE, IN_ORDER = 0, 1
# Called by kernels only: without the wrappers for Python it compiles in half the time.
_inner = numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@numba.njit(cache=True, nogil=True)
def least_overlap(size_a, size_b, threshold):
    """The least intersection with intersection / union >= threshold in doubles."""
    total = size_a + size_b
    overlap = np.int64(np.ceil(threshold / (1.0 + threshold) * total))
    while overlap > 0 and (overlap - 1) / (total - overlap + 1) >= threshold:
        overlap -= 1
    while overlap / (total - overlap) < threshold:
        overlap += 1
    return overlap


@_inner
def _capacity(size):
    """Load of a quarter, where most shingles find their place at once; two thirds where that would leave the cache."""
    return 4 * size + 8 if size <= MAX_SPARSE else size + (size >> 1) + 8


@_inner
def _table_for(ends):
    """Allocate a table for any of the sets; those that are placed past the capacity have room behind it."""
    largest = np.int64(0)
    for doc in range(ends.size - 1):
        largest = max(largest, ends[doc + 1] - ends[doc])
    return np.zeros(max(_capacity(largest), _capacity(min(largest, MAX_SPARSE))) + largest + 1, np.uint64)


@_inner
def _home(shingle, capacity):
    """Return the place that a shingle wants."""
    return np.int64(((shingle >> HALF) * np.uint64(capacity)) >> HALF)


@_inner
def _probe(table, shingle, place):
    """Return the place of the shingle, or the free one where it belongs, from the place that it wants on."""
    while table[place] != ZERO and table[place] != shingle:
        place += 1
    return place


@_inner
def _fill(table, shingles, start, stop):
    """Put a set into an empty table; return (last place taken, steps of probing left), the latter < 0 if too many."""
    capacity, last, at = _capacity(stop - start), np.int64(0), start
    steps = np.int64(STEPS_BASE + STEPS_PER_SHINGLE * (stop - start))
    while at < stop and steps >= 0:
        home = _home(shingles[at], capacity)
        place = _probe(table, shingles[at], home)
        table[place] = shingles[at]
        steps -= place - home
        last = max(last, place)
        at += 1
    return last, steps


@_inner
def _overlap(table, capacity, shingles, start, stop, needed):
    """Count the shingles of a set that are in the table; return (count, steps of probing left).

    The count is -1 as soon as it cannot reach `needed`; it is of no use where the steps are below zero.
    """
    spare, steps = stop - start - needed, np.int64(STEPS_BASE + STEPS_PER_SHINGLE * (stop - start))
    for at in range(start, stop):
        home = _home(shingles[at], capacity)
        place = _probe(table, shingles[at], home)
        steps -= place - home
        spare -= table[place] == ZERO
        if (spare | steps) < 0:
            return np.int64(-1), steps
    return needed + spare, steps


@_inner
def _order(table, shingles, start, stop):
    """Write a set in ascending order to the front of the scratch table."""
    order = np.argsort(shingles[start:stop], kind="mergesort")
    for at in range(order.size):
        table[at] = shingles[start + order[at]]


@_inner
def _ordered_overlap(ordered, size, shingles, start, stop, needed):
    """As `_overlap`, by bisection of a set in ascending order."""
    spare = stop - start - needed
    for at in range(start, stop):
        place = np.searchsorted(ordered[:size], shingles[at])
        spare -= place == size or ordered[place] != shingles[at]
        if spare < 0:
            return np.int64(-1)
    return needed + spare


@_inner
def _load(scratch, shingles, start, stop, doc):
    """Hold a set in the scratch table, which another one may be in."""
    table, state = scratch
    table[: state[1] + 1] = ZERO
    last, steps = _fill(table, shingles, start, stop)
    state[0], state[1], state[2] = doc, last, AS_TABLE
    if steps < 0:
        _order_held(scratch, shingles, start, stop)


@_inner
def _order_held(scratch, shingles, start, stop):
    """Hold the set of the scratch table in order from now on."""
    table, state = scratch
    _order(table, shingles, start, stop)
    state[1], state[2] = max(state[1], stop - start), IN_ORDER


@_inner
def _agreement(signatures, doc, other):
    agreement = 0
    for slot in range(signatures.shape[1]):
        agreement += signatures[doc, slot] == signatures[other, slot]
    return agreement


@_inner
def _jaccard(sets, scratch, doc, other, least):
    """Shared shingles by all shingles, 0 for two empty sets; `doc` is loaded into the table for that."""
    shingles, ends = sets
    table, state = scratch
    size_a, size_b = ends[doc + 1] - ends[doc], ends[other + 1] - ends[other]
    if size_a + size_b == 0:
        return 0.0
    needed = least_overlap(size_a, size_b, least)
    if state[0] != doc:
        _load(scratch, shingles, ends[doc], ends[doc + 1], doc)
    overlap = np.int64(-1)
    if state[2] == AS_TABLE:
        overlap, steps = _overlap(table, _capacity(size_a), shingles, ends[other], ends[other + 1], needed)
        if steps < 0:
            _order_held(scratch, shingles, ends[doc], ends[doc + 1])
    if state[2] == IN_ORDER:
        overlap = _ordered_overlap(table, size_a, shingles, ends[other], ends[other + 1], needed)
    return overlap / (size_a + size_b - overlap) if overlap >= 0 else -1.0


@_inner
def _weighted_jaccard(sets, scratch, doc, other, least):
    """Sum of the smaller weights by sum of the larger ones, added in the order of the hashes."""
    hashes, weights, ends = sets
    at_a, end_a, at_b, end_b = ends[doc], ends[doc + 1], ends[other], ends[other + 1]
    smaller, larger = 0.0, 0.0
    while at_a < end_a or at_b < end_b:
        if at_b == end_b or (at_a < end_a and hashes[at_a] < hashes[at_b]):
            larger += weights[at_a]
            at_a += 1
        elif at_a == end_a or hashes[at_b] < hashes[at_a]:
            larger += weights[at_b]
            at_b += 1
        else:
            smaller += min(weights[at_a], weights[at_b])
            larger += max(weights[at_a], weights[at_b])
            at_a += 1
            at_b += 1
    return smaller / larger if larger > 0.0 else 0.0


@_inner
def _count_ones(word):
    """Add neighbours of 1, 2 and 4 bits, then all bytes at once by a product; LLVM makes one instruction of it."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@_inner
def _differing(words, doc, other):
    differing = 0
    for at in range(words.shape[1]):
        differing += _count_ones(words[doc, at] ^ words[other, at])
    return differing


@_inner
def _equal_bits(bits, scratch, doc, other, least):
    return (bits.num_bits - _differing(bits.words, doc, other)) / bits.num_bits


@_inner
def _dot(values, doc, other):
    """Sum of the products; four sums side by side, always the same ones, are faster and no less exact."""
    one, two = values[doc], values[other]
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for at in range(0, one.size - 3, 4):
        first += one[at] * two[at]
        second += one[at + 1] * two[at + 1]
        third += one[at + 2] * two[at + 2]
        fourth += one[at + 3] * two[at + 3]
    for at in range(one.size - one.size % 4, one.size):
        first += one[at] * two[at]
    return (first + second) + (third + fourth)


@_inner
def _cosine(vectors, scratch, doc, other, least):
    """The cosine of the angle, from 0 to 1: what points away is not similar at all, and what rounding hides is 1."""
    value = _dot(vectors.values, doc, other) / (vectors.norms[doc] * vectors.norms[other])
    return 1.0 if value > NEARLY_ONE else max(0.0, value)


@_inner
def _nearness(points, scratch, doc, other, least):
    one, two = points.values[doc], points.values[other]
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for at in range(0, one.size - 3, 4):
        first += (one[at] - two[at]) ** 2
        second += (one[at + 1] - two[at + 1]) ** 2
        third += (one[at + 2] - two[at + 2]) ** 2
        fourth += (one[at + 3] - two[at + 3]) ** 2
    for at in range(one.size - one.size % 4, one.size):
        first += (one[at] - two[at]) ** 2
    return 1.0 / (1.0 + np.sqrt((first + second) + (third + fourth)))


@_inner
def _sets_pass(sets, signatures, doc, other, threshold, min_agreement):
    size_a, size_b = _set_size(sets, doc), _set_size(sets, other)
    if min(size_a, size_b) / max(size_a, size_b) < threshold:
        return False
    return _agreement(signatures, doc, other) >= min_agreement


@_inner
def _weights_pass(sets, signatures, doc, other, threshold, min_agreement):
    return _agreement(signatures, doc, other) >= min_agreement


@_inner
def _vectors_pass(vectors, signatures, doc, other, threshold, min_agreement):
    return vectors.num_slots - _differing(signatures, doc, other) >= min_agreement


@_inner
def _all_pass(items, signatures, doc, other, threshold, min_agreement):
    return True


@_inner
def _set_size(sets, doc):
    return sets.ends[doc + 1] - sets.ends[doc]


@_inner
def _no_size(items, doc):
    return np.int64(0)


@_inner
def _set_scratch(sets):
    return _table_for(sets.ends), np.array([NOBODY, NOBODY, AS_TABLE])


@_inner
def _no_scratch(items):
    return np.empty(0, np.uint64), np.empty(0, np.int64)


# What is done with items of each type.
_SIMILARITIES = {
    Sets: _jaccard,
    Weights: _weighted_jaccard,
    Bits: _equal_bits,
    Vectors: _cosine,
    Points: _nearness,
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


def _similarity(items, scratch, doc, other, least):
    """Return the exact similarity of two documents, or -1 where it is known to be below `least`."""
    return _SIMILARITIES[type(items)](items, scratch, doc, other, least)


@overload(_similarity)
def _similarity_of_type(items, scratch, doc, other, least):
    similarity = _SIMILARITIES[items.instance_class]
    return lambda items, scratch, doc, other, least: similarity(items, scratch, doc, other, least)


def _passes(items, signatures, doc, other, threshold, min_agreement):
    """Whether sizes and signatures leave it open that two documents are a pair."""
    return _FILTERS[type(items)](items, signatures, doc, other, threshold, min_agreement)


@overload(_passes)
def _passes_of_type(items, signatures, doc, other, threshold, min_agreement):
    passes = _FILTERS[items.instance_class]
    return lambda items, signatures, doc, other, threshold, min_agreement: passes(
        items, signatures, doc, other, threshold, min_agreement
    )


def _size(items, doc):
    """Return the size of a set; vectors have none, and what asks for it is not done with them."""
    return _SIZES[type(items)](items, doc)


@overload(_size)
def _size_of_type(items, doc):
    size = _SIZES[items.instance_class]
    return lambda items, doc: size(items, doc)


def _scratch(items):
    """Allocate what comparing needs beside the items."""
    return _SCRATCHES[type(items)](items)


@overload(_scratch)
def _scratch_of_type(items):
    scratch = _SCRATCHES[items.instance_class]
    return lambda items: scratch(items)


@_inner
def _compare(items, scratch, signatures, doc, other, threshold, min_agreement, bar):
    """Return the similarity of a found pair of at least `bar`, else -1."""
    if not _passes(items, signatures, doc, other, threshold, min_agreement):
        return -1.0
    value = _similarity(items, scratch, doc, other, max(threshold, bar))
    return value if value >= max(threshold, bar) else -1.0


@numba.njit(cache=True, nogil=True)
def norms(values, lengths):
    """Write the length of every vector.

    values   float64[num_docs, dimension]
    lengths  float64[num_docs]             written
    """
    for doc in range(values.shape[0]):
        lengths[doc] = np.sqrt(_dot(values, doc, doc))


@numba.njit(cache=True, nogil=True)
def similarities(items, left, right, values):
    """Write the exact similarity of pairs of documents.

    items        Items
    left, right  int64 [num_pairs]     documents
    values       float64[num_pairs]    written; 0 where both sets are empty
    """
    scratch = _scratch(items)
    for at in range(left.size):
        values[at] = _similarity(items, scratch, left[at], right[at], 0.0)


@_inner
def _shares_bucket(keys, doc, other):
    for band in range(keys.shape[1]):
        if keys[doc, band] == keys[other, band]:
            return True
    return False


@_inner
def _find_root(parents, node):
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@_inner
def _is_out_of_reach(size, at, other_size, other_at, threshold):
    """Whether two sets whose first shared shingle stands at these places of their order cannot be similar any more."""
    most = min(size - at, other_size - other_at)
    return most / (size + other_size - most) < threshold


@_inner
def _is_list_out_of_reach(size, at, smallest, threshold):
    """Whether this holds for every set of a list; a larger set than what remains of this one is only less similar."""
    return smallest >= size - at and _is_out_of_reach(size, at, smallest, np.int64(0), threshold)


@_inner
def _grow(pairs):
    left, right, values = pairs
    more_left, more_right = np.empty(2 * left.size, np.int64), np.empty(2 * left.size, np.int64)
    more_values = np.empty(2 * left.size, np.float64)
    for at in range(left.size):
        more_left[at], more_right[at], more_values[at] = left[at], right[at], values[at]
    return more_left, more_right, more_values


@numba.njit(cache=True, nogil=True)
def walk_components(
    items,
    signatures,
    keys,
    rows,
    component_ends,
    lists,
    num_lists,
    by_prefix,
    is_patient,
    limits,
    mode,
    given,
    matches,
    values,
    parents,
    compared,
    is_hot,
):
    """Compare the documents of whole components along given lists; see `match_components` for what is not here.

    items       Items
    lists       (numbers, ends)         document d stands in the lists numbers[ends[d]:ends[d + 1]]
    by_prefix   bool                    the lists are prefixes in rank order, not buckets
    is_patient  bool                    go on where a component is hot
    limits      (threshold, min_agreement)
    given       (roles, given_values, given_rows, given_parents)
    is_hot      bool[num_components]    written; the component was left unfinished
    """
    numbers, list_ends = lists
    threshold, min_agreement = limits
    roles, given_values, given_rows, given_parents = given
    num_docs = rows.size
    heads, smallest = np.empty(num_lists, np.int64), np.empty(num_lists, np.int64)
    for number in range(num_lists):
        heads[number], smallest[number] = NOBODY, LARGEST
    # An entry of a list is a place in `numbers`; `skips` leads past the run of documents already joined with its own.
    nexts, skips, docs = (
        np.empty(numbers.size, np.int64),
        np.empty(numbers.size, np.int64),
        np.empty(numbers.size, np.int64),
    )
    pairs = (np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.float64))
    num_pairs = 0
    seen, scratch = np.empty(num_docs, np.int64), _scratch(items)
    for doc in range(num_docs):
        parents[doc], compared[doc], seen[doc] = given_parents[doc], 0, NOBODY
    for component in range(component_ends.size - 1):
        first, stop = component_ends[component], component_ends[component + 1]
        failed, pairs_before = 0, num_pairs
        is_hot[component] = False
        for doc in range(first, stop):
            if not is_patient and failed > FAILED_BASE + FAILED_PER_DOC * (doc - first):
                is_hot[component] = True
                num_pairs = pairs_before
                break
            size = _size(items, doc)
            best, best_row, bar = NOBODY, given_rows[doc], 0.0
            if given_values[doc] > 0.0:
                best, values[doc] = GIVEN, given_values[doc]
                if mode == LEADERS:
                    bar = given_values[doc]
            for at in range(list_ends[doc], list_ends[doc + 1] if roles[doc] & COMPARED else list_ends[doc]):
                number, place = numbers[at], at - list_ends[doc]
                if by_prefix and _is_list_out_of_reach(size, place, smallest[number], threshold):
                    continue
                entry = heads[number]
                while entry >= 0:
                    other = docs[entry]
                    if mode == CLOSURE and _find_root(parents, other) == _find_root(parents, doc):
                        entry = skips[entry]
                        continue
                    other_place, entry = entry - list_ends[other], nexts[entry]
                    if seen[other] == doc:
                        continue
                    seen[other] = doc
                    value = -1.0
                    if not by_prefix or (
                        not _is_out_of_reach(size, place, _size(items, other), other_place, threshold)
                        and _shares_bucket(keys, doc, other)
                    ):
                        compared[doc] += 1
                        value = _compare(items, scratch, signatures, doc, other, threshold, min_agreement, bar)
                    if value < 0:
                        failed += 1
                        continue
                    if (
                        mode != CLOSURE
                        and matches[other] == NOBODY
                        and (best == NOBODY or value > values[doc] or (value == values[doc] and rows[other] < best_row))
                    ):
                        best, best_row, values[doc] = other, rows[other], value
                        if mode == LEADERS:  # from now on only a better one counts
                            bar = value
                    if mode != LEADERS:
                        one, two = _find_root(parents, doc), _find_root(parents, other)
                        parents[max(one, two)] = min(one, two)
                    if mode == PAIRS:
                        if num_pairs == pairs[0].size:
                            pairs = _grow(pairs)
                        pairs[0][num_pairs], pairs[1][num_pairs], pairs[2][num_pairs] = doc, other, value
                        num_pairs += 1
            matches[doc] = best
            if roles[doc] & ENTERED and (mode != LEADERS or best == NOBODY):
                for at in range(list_ends[doc], list_ends[doc + 1]):
                    number = numbers[at]
                    follower = heads[number]
                    if follower >= 0 and docs[follower] == doc:  # one list twice: the first place counts
                        continue
                    joined = follower >= 0 and _find_root(parents, docs[follower]) == _find_root(parents, doc)
                    heads[number], nexts[at], docs[at] = at, follower, doc
                    skips[at] = skips[follower] if joined else follower
                    smallest[number] = min(smallest[number], size)
    for doc in range(num_docs):
        parents[doc] = _find_root(parents, doc)
    return pairs[0][:num_pairs], pairs[1][:num_pairs], pairs[2][:num_pairs]
