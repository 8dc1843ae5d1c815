"""Verification: the documents of a component, in keep order, against those before them that share a bucket.

Each bucket is a list of documents already passed. A document walks the lists of its buckets; whom it meets is
compared by size, then by signature, then exactly. A component where too many comparisons fail is hot and starts again
with lists by prefix shingle: two sets of similarity >= t share one of their rarest n - ceil(t n) + 1 shingles, so
walking those lists, and asking afterwards for a shared bucket, meets the same pairs.

Two sets are compared exactly by a hash table of the first and a look at it for every shingle of the second, so sets
need no order. The place of a shingle is its hash scaled to the table, so the table holds its keys almost in order.

What was learned in an earlier call can be given: who is only met, who only meets, matches so far, and joins so far.
"""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
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
MAX_COUNT_BITS = 26
# Shingle hashes are finalised and never zero, so zero marks a free place.
ZERO = np.uint64(0)
HALF = np.uint64(32)
MAX_SPARSE = 1 << 14
KEY_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
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
def _prefix_size(size, threshold):
    """How many of its rarest shingles a set must show so that every partner shares one."""
    overlap = np.int64(np.ceil(threshold * size))
    while overlap > 1 and (overlap - 1) / size >= threshold:
        overlap -= 1
    while overlap / size < threshold:
        overlap += 1
    return size - overlap + 1


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
def _place(table, shingle, capacity):
    """Return the place of the shingle, or the free one where it belongs."""
    place = np.int64(((shingle >> HALF) * np.uint64(capacity)) >> HALF)
    while table[place] != ZERO and table[place] != shingle:
        place += 1
    return place


@_inner
def _fill(table, shingles, start, stop):
    """Put a set into an empty table; return the last place taken."""
    capacity, last = _capacity(stop - start), np.int64(0)
    for at in range(start, stop):
        place = _place(table, shingles[at], capacity)
        table[place] = shingles[at]
        last = max(last, place)
    return last


@_inner
def _overlap(table, capacity, shingles, start, stop, needed):
    """How many shingles of a set are in the table, or -1 as soon as they cannot be as many as `needed`."""
    spare = stop - start - needed
    for at in range(start, stop):
        spare -= table[_place(table, shingles[at], capacity)] == ZERO
        if spare < 0:
            return np.int64(-1)
    return needed + spare


@numba.njit(cache=True, nogil=True)
def similarities(shingles, ends, left, right, values):
    """Write the exact Jaccard similarity of pairs of documents.

    shingles     uint64[num_shingles]  distinct in each document
    ends         int64 [num_docs + 1]
    left, right  int64 [num_pairs]     documents
    values       float64[num_pairs]    written; 0 where both sets are empty
    """
    table = _table_for(ends)
    for at in range(left.size):
        start_a, end_a = ends[left[at]], ends[left[at] + 1]
        start_b, end_b = ends[right[at]], ends[right[at] + 1]
        last = _fill(table, shingles, start_a, end_a)
        overlap = _overlap(table, _capacity(end_a - start_a), shingles, start_b, end_b, 0)
        table[: last + 1] = ZERO
        union = end_a - start_a + end_b - start_b - overlap
        values[at] = overlap / union if union else 0.0


@_inner
def _compare(sets, loaded, signatures, doc, other, threshold, min_agreement, bar):
    """Return the similarity of a found pair of at least `bar`, else -1; `doc` is loaded into the table for that."""
    shingles, ends = sets
    table, state = loaded
    size_a, size_b = ends[doc + 1] - ends[doc], ends[other + 1] - ends[other]
    if min(size_a, size_b) / max(size_a, size_b) < threshold:
        return -1.0
    agreement = 0
    for slot in range(signatures.shape[1]):
        agreement += signatures[doc, slot] == signatures[other, slot]
    if agreement < min_agreement:
        return -1.0
    needed = least_overlap(size_a, size_b, max(threshold, bar))
    if state[0] != doc:
        table[: state[1] + 1] = ZERO
        state[0], state[1] = doc, _fill(table, shingles, ends[doc], ends[doc + 1])
    overlap = _overlap(table, _capacity(size_a), shingles, ends[other], ends[other + 1], needed)
    return overlap / (size_a + size_b - overlap) if overlap >= 0 else -1.0


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


@numba.njit(cache=True, nogil=True)
def number_lists(keys, numbers):
    """Number equal keys alike, from 0 in order of appearance; return how many numbers there are.

    keys     uint64[num_keys]
    numbers  int64 [num_keys]  written
    """
    bits = 1
    while (1 << bits) < 2 * keys.size:
        bits += 1
    shift, last = np.uint64(64 - bits), (1 << bits) - 1
    owners = np.empty(1 << bits, np.int64)
    for place in range(owners.size):
        owners[place] = NOBODY
    count = 0
    for at in range(keys.size):
        place = np.int64((keys[at] * KEY_MULTIPLIER) >> shift)
        while owners[place] >= 0 and keys[owners[place]] != keys[at]:
            place = (place + 1) & last
        if owners[place] < 0:
            owners[place] = at
            numbers[at] = count
            count += 1
        else:
            numbers[at] = numbers[owners[place]]
    return count


@_inner
def _count_shingles(shingles, start, end):
    """Count the shingles of a component in a saturating table; it only sets an order, so collisions do no harm."""
    bits = 1
    while (1 << bits) < end - start and bits < MAX_COUNT_BITS:
        bits += 1
    shift = np.uint64(64 - bits)
    counts = np.zeros(1 << bits, np.uint8)
    for at in range(start, end):
        place = np.int64(shingles[at] >> shift)
        counts[place] += counts[place] < 255
    return counts, shift


@_inner
def _sort_set(table, shingles, start, stop, ordered):
    """Write a set in ascending order: a scan of the table and an insertion sort for the few out of place."""
    last, count = _fill(table, shingles, start, stop), 0
    for place in range(last + 1):
        if table[place] == ZERO:
            continue
        shingle, at = table[place], count
        table[place] = ZERO
        while at > 0 and ordered[at - 1] > shingle:
            ordered[at] = ordered[at - 1]
            at -= 1
        ordered[at] = shingle
        count += 1


@numba.njit(cache=True, nogil=True)
def rank_prefixes(shingles, ends, threshold, ranked, ranked_ends):
    """Write the rarest shingles of every document in (count, hash) order, the same order in every document.

    shingles     uint64[num_shingles]  distinct in each document
    ends         int64 [num_docs + 1]
    threshold    float64
    ranked       uint64[num_shingles]  written; a count and the top 56 bits of a hash in one number
    ranked_ends  int64 [num_docs + 1]  written; as many of each document as every partner must share one of
    """
    counts, shift = _count_shingles(shingles, ends[0], ends[-1])
    starts, table = np.empty(257, np.int64), _table_for(ends)
    ordered, by_count = np.empty(table.size, np.uint64), np.empty(table.size, np.uint64)
    ranked_ends[0] = to = 0
    for doc in range(ends.size - 1):
        _sort_set(table, shingles, ends[doc], ends[doc + 1], ordered)
        for count in range(257):
            starts[count] = 0
        for at in range(ends[doc + 1] - ends[doc]):
            starts[np.int64(counts[np.int64(ordered[at] >> shift)]) + 1] += 1
        for count in range(256):
            starts[count + 1] += starts[count]
        for at in range(ends[doc + 1] - ends[doc]):  # they are in order, so counting places by count suffices
            count = np.int64(counts[np.int64(ordered[at] >> shift)])
            by_count[starts[count]] = (np.uint64(count) << np.uint64(56)) | (ordered[at] >> np.uint64(8))
            starts[count] += 1
        for at in range(_prefix_size(ends[doc + 1] - ends[doc], threshold)):
            ranked[to] = by_count[at]
            to += 1
        ranked_ends[doc + 1] = to


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
    sets,
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

    sets        (shingles, ends)
    lists       (numbers, ends)         document d stands in the lists numbers[ends[d]:ends[d + 1]]
    by_prefix   bool                    the lists are prefixes in rank order, not buckets
    is_patient  bool                    go on where a component is hot
    limits      (threshold, min_agreement)
    given       (roles, given_values, given_rows, given_parents)
    is_hot      bool[num_components]    written; the component was left unfinished
    """
    shingles, ends = sets
    numbers, list_ends = lists
    threshold, min_agreement = limits
    roles, given_values, given_rows, given_parents = given
    num_docs = rows.size
    heads, smallest = np.empty(num_lists, np.int64), np.empty(num_lists, np.int64)
    for number in range(num_lists):
        heads[number], smallest[number] = NOBODY, shingles.size
    # An entry of a list is a place in `numbers`; `skips` leads past the run of documents already joined with its own.
    nexts, skips, docs = (
        np.empty(numbers.size, np.int64),
        np.empty(numbers.size, np.int64),
        np.empty(numbers.size, np.int64),
    )
    pairs = (np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.float64))
    num_pairs = 0
    seen, loaded = np.empty(num_docs, np.int64), (_table_for(ends), np.array([NOBODY, NOBODY]))
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
            size = ends[doc + 1] - ends[doc]
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
                        not _is_out_of_reach(size, place, ends[other + 1] - ends[other], other_place, threshold)
                        and _shares_bucket(keys, doc, other)
                    ):
                        compared[doc] += 1
                        value = _compare(sets, loaded, signatures, doc, other, threshold, min_agreement, bar)
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


def match_components(
    shingles: Array,
    ends: Array,
    signatures: Array,
    keys: Array,
    rows: Array,
    component_ends: Array,
    threshold: float,
    min_agreement: int,
    mode: int,
    matches: Array,
    values: Array,
    parents: Array,
    compared: Array,
    *,
    roles: Array | None = None,
    given_values: Array | None = None,
    given_rows: Array | None = None,
    given_parents: Array | None = None,
) -> tuple[Array, Array, Array]:
    """Compare the documents of whole components.

    shingles        uint64 [num_shingles]        distinct in each document
    ends            int64  [num_docs + 1]        document d owns shingles[ends[d]:ends[d + 1]]; none is empty
    signatures      uint32 [num_docs, num_perm]
    keys            uint64 [num_docs, bands]     band keys
    rows            int64  [num_docs]            breaks ties between equally similar kept documents
    component_ends  int64  [num_components + 1]  component c is documents [component_ends[c], component_ends[c + 1]),
                                                 best keep priority first
    threshold       float64
    min_agreement   int64                        the signature filter; 0 turns it off
    mode            LEADERS: keep a list of kept documents only; PAIRS: also list every found pair;
                    CLOSURE: join what is connected by found pairs, comparing no two documents already joined
    matches         int64  [num_docs]            written; the most similar kept document, NOBODY for a kept one,
                                                 GIVEN where no other is better than the given (not in CLOSURE)
    values          float64[num_docs]            written; the similarity to it
    parents         int64  [num_docs]            written in PAIRS and CLOSURE; first document of the closure
    compared        int64  [num_docs]            written; comparisons of this document with earlier ones
    roles           uint8  [num_docs]            COMPARED: with those before it; ENTERED: for those behind it to meet;
                                                 both by default
    given_values    float64[num_docs]            similarity to a kept document that is not here; 0, the default, is none
    given_rows      int64  [num_docs]            the row of it
    given_parents   int64  [num_docs]            a document before it of the same closure, or itself, the default

    Returns (left, right, similarity) of the found pairs, ordered by left, the later document of the two.
    """
    num_docs, num_bands = keys.shape
    limits, is_hot = (float(threshold), int(min_agreement)), np.empty(component_ends.size - 1, np.bool_)
    rows = rows.copy()  # Numba compiles a kernel again for an array that cannot be written
    roles = np.full(num_docs, COMPARED | ENTERED, np.uint8) if roles is None else roles
    given_values = np.zeros(num_docs) if given_values is None else given_values
    given_rows = np.zeros(num_docs, np.int64) if given_rows is None else given_rows
    given_parents = np.arange(num_docs) if given_parents is None else given_parents
    buckets = np.empty(keys.size, np.int64)
    num_buckets = number_lists(keys.ravel(), buckets)
    bucket_ends = np.arange(num_docs + 1) * num_bands
    found = [
        walk_components(
            (shingles, ends),
            signatures,
            keys,
            rows,
            component_ends,
            (buckets, bucket_ends),
            num_buckets,
            False,
            False,
            limits,
            mode,
            (roles, given_values, given_rows, given_parents),
            matches,
            values,
            parents,
            compared,
            is_hot,
        )
    ]
    for component in np.flatnonzero(is_hot):
        first, stop = component_ends[component], component_ends[component + 1]
        part, part_ends = slice(first, stop), ends[first : stop + 1]
        ranked, ranked_ends = np.empty(part_ends[-1] - part_ends[0], np.uint64), np.empty(part_ends.size, np.int64)
        rank_prefixes(shingles, part_ends, limits[0], ranked, ranked_ends)
        prefixes = np.empty(ranked_ends[-1], np.int64)
        num_prefixes = number_lists(ranked[: ranked_ends[-1]], prefixes)
        part_buckets = np.empty((stop - first) * num_bands, np.int64)
        num_part_buckets = number_lists(keys[part].ravel(), part_buckets)
        by_prefix = _meetings(prefixes, ranked_ends, roles[part]) < COMPARISON_COST * _meetings(
            part_buckets, bucket_ends[: stop - first + 1], roles[part]
        )
        compared_before = compared[part].copy()
        left, right, similarity = walk_components(
            (shingles, part_ends),
            signatures[part],
            keys[part],
            rows[part],
            np.array([0, stop - first]),
            (prefixes, ranked_ends) if by_prefix else (part_buckets, bucket_ends[: stop - first + 1]),
            num_prefixes if by_prefix else num_part_buckets,
            by_prefix,
            True,
            limits,
            mode,
            (roles[part], given_values[part], given_rows[part], given_parents[part] - first),
            matches[part],
            values[part],
            parents[part],
            compared[part],
            is_hot[:1].copy(),
        )
        compared[part] += compared_before
        parents[part] += first
        matches[part] += np.where(matches[part] < 0, 0, first)
        found.append((left + first, right + first, similarity))
    left, right, similarity = (np.concatenate(columns) for columns in zip(*found, strict=True))
    order = np.argsort(left, kind="stable")
    return left[order], right[order], similarity[order]


def _meetings(numbers: Array, list_ends: Array, roles: Array) -> int:
    """How many times a document meets another one in a list, at most; by half too many where all do both."""
    of_entry = np.repeat(roles, np.diff(list_ends))
    num_lists = int(numbers.max(initial=-1)) + 1
    walking = np.bincount(numbers[of_entry & COMPARED > 0], minlength=num_lists)
    entered = np.bincount(numbers[of_entry & ENTERED > 0], minlength=num_lists)
    return int(walking @ entered)
