"""Verification: compare the documents of a component, in keep order, with earlier ones that share a bucket.

Each bucket is a posting list of earlier documents. A document scans the lists of its buckets; candidates are compared
by size, then by signature, then exactly. A component where too many comparisons fail is hot and starts again with
posting lists of prefix shingles: two sets of similarity >= t share one of their rarest n - ceil(t n) + 1 shingles, so
scanning those lists, and then checking for a shared bucket, finds the same pairs.

Results of earlier calls can be passed in as the initial state: roles, best matches and unions so far.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels.bands import shares_bucket
from neardup.kernels.bounds import is_in_reach
from neardup.kernels.compilation import inner, kernel
from neardup.kernels.similarity import NOBODY, Items, passes, scratch_for, similarity_of, size_of
from neardup.kernels.union_find import find_root, join

Array = npt.NDArray[Any]
LEADERS, PAIRS, CLOSURE = 0, 1, 2
# The best match is still the one of the initial state.
UNCHANGED = -2
# The roles of a document, as bits: it is compared with earlier documents, and it is entered into the lists.
COMPARED, ENTERED = 1, 2
# A component is hot after this many failed comparisons, and this many more per document passed.
FAILED_BASE, FAILED_PER_DOC = 2000, 64
# Candidates of a bucket list are compared; most of a prefix list are ruled out by their position, much faster.
COMPARISON_COST = 4
LARGEST = np.int64(2**62)


class Documents(NamedTuple):
    """The documents of whole components as they are compared.

    items       Items                        what is compared; no set is empty
    signatures  uint32 [num_docs, num_perm]  of vectors uint64[num_docs, words]; not read for bits and points
    keys        uint64 [num_docs, bands]     band keys
    rows        int64  [num_docs]            breaks ties between equally similar kept documents
    """

    items: Items
    signatures: Array
    keys: Array
    rows: Array


class Lists(NamedTuple):
    """The posting lists of documents; document d has the lists numbers[ends[d]:ends[d + 1]].

    numbers    int64[]
    ends       int64[num_docs + 1]
    count      int64                numbers are below it
    by_prefix  bool                 the lists are prefixes in rank order, not buckets
    is_last    bool                 no other lists are tried, so the walk goes on where a component is hot
    """

    numbers: Array
    ends: Array
    count: int
    by_prefix: bool
    is_last: bool


class Rule(NamedTuple):
    """When two documents are a found pair, and what is done with it.

    threshold      float64  the least similarity
    min_agreement  int64    the signature filter; 0 turns it off
    mode           int64    LEADERS: keep a list of kept documents only; PAIRS: also list every found pair;
                            CLOSURE: join what is connected by found pairs, comparing no two documents already joined
    """

    threshold: float
    min_agreement: int
    mode: int


class InitialState(NamedTuple):
    """The state of documents before the comparison.

    roles    uint8  [num_docs]  COMPARED: with earlier ones; ENTERED: later ones are compared with it
    values   float64[num_docs]  similarity to the best match so far, which is not among `documents`; 0 for none
    rows     int64  [num_docs]  the row of that match
    parents  int64  [num_docs]  an earlier document of the same closure, or itself
    """

    roles: Array
    values: Array
    rows: Array
    parents: Array


class Outcome(NamedTuple):
    """The results for documents.

    matches   int64  [num_docs]  the most similar earlier kept document, NOBODY for a kept one, UNCHANGED if none is
                                 better than the match of the initial state (not in CLOSURE)
    values    float64[num_docs]  the similarity to it
    parents   int64  [num_docs]  in PAIRS and CLOSURE; first document of the closure
    compared  int64  [num_docs]  comparisons of this document with earlier ones
    walked    int64  [1]         counts the documents with the role COMPARED that are done, for others to read meanwhile
    """

    matches: Array
    values: Array
    parents: Array
    compared: Array
    walked: Array


@inner
def _compare(documents, scratch, doc, other, rule, bar):
    """Return the similarity of a found pair of at least `bar`, else -1."""
    items, least = documents.items, max(rule.threshold, bar)
    if not passes(items, documents.signatures, doc, other, rule.threshold, rule.min_agreement):
        return -1.0
    value = similarity_of(items, scratch, doc, other, least)
    return value if value >= least else -1.0


@inner
def _is_list_out_of_reach(size, at, smallest, threshold):
    """Whether a set is out of reach of a whole list; one larger than what remains of it is only less similar."""
    return smallest >= size - at and not is_in_reach(size, at, smallest, np.int64(0), threshold)


@inner
def _grow(pairs):
    left, right, values = pairs
    more_left, more_right = np.empty(2 * left.size, np.int64), np.empty(2 * left.size, np.int64)
    more_values = np.empty(2 * left.size, np.float64)
    for at in range(left.size):
        more_left[at], more_right[at], more_values[at] = left[at], right[at], values[at]
    return more_left, more_right, more_values


@kernel
def walk_components(documents, component_ends, lists, rule, initial, outcome, is_hot):
    """Compare the documents of whole components by posting lists; return (left, right, similarity) of the pairs found.

    documents       Documents
    component_ends  int64[num_components + 1]  component c is documents [component_ends[c], component_ends[c + 1]),
                                               best keep priority first
    lists           Lists
    rule            Rule
    initial           InitialState
    outcome         Outcome                    written
    is_hot          bool [num_components]      written; the component was left unfinished
    """
    items, keys, rows = documents.items, documents.keys, documents.rows
    numbers, list_ends, roles = lists.numbers, lists.ends, initial.roles
    threshold, mode = rule.threshold, rule.mode
    matches, values, parents, compared, walked = outcome
    num_docs = rows.size
    heads, smallest = np.empty(lists.count, np.int64), np.empty(lists.count, np.int64)
    for number in range(lists.count):
        heads[number], smallest[number] = NOBODY, LARGEST
    # An entry of a list is a place in `numbers`; `skips` leads past the run of documents already joined with its own.
    nexts, skips, docs = (
        np.empty(numbers.size, np.int64),
        np.empty(numbers.size, np.int64),
        np.empty(numbers.size, np.int64),
    )
    pairs = (np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.float64))
    num_pairs = 0
    seen, scratch = np.empty(num_docs, np.int64), scratch_for(items)
    for doc in range(num_docs):
        parents[doc], compared[doc], seen[doc] = initial.parents[doc], 0, NOBODY
    for component in range(component_ends.size - 1):
        first, stop = component_ends[component], component_ends[component + 1]
        failed, pairs_before, walked_before = 0, num_pairs, walked[0]
        is_hot[component] = False
        for doc in range(first, stop):
            if not lists.is_last and failed > FAILED_BASE + FAILED_PER_DOC * (doc - first):
                is_hot[component] = True
                num_pairs, walked[0] = pairs_before, walked_before
                break
            size = size_of(items, doc)
            best, best_row, bar = NOBODY, initial.rows[doc], 0.0
            if initial.values[doc] > 0.0:
                best, values[doc] = UNCHANGED, initial.values[doc]
                if mode == LEADERS:
                    bar = initial.values[doc]
            for at in range(list_ends[doc], list_ends[doc + 1] if roles[doc] & COMPARED else list_ends[doc]):
                number, place = numbers[at], at - list_ends[doc]
                if lists.by_prefix and _is_list_out_of_reach(size, place, smallest[number], threshold):
                    continue
                entry = heads[number]
                while entry >= 0:
                    other = docs[entry]
                    if mode == CLOSURE and find_root(parents, other) == find_root(parents, doc):
                        entry = skips[entry]
                        continue
                    other_place, entry = entry - list_ends[other], nexts[entry]
                    if seen[other] == doc:
                        continue
                    seen[other] = doc
                    value = -1.0
                    if not lists.by_prefix or (
                        is_in_reach(size, place, size_of(items, other), other_place, threshold)
                        and shares_bucket(keys[doc], keys[other])
                    ):
                        compared[doc] += 1
                        value = _compare(documents, scratch, doc, other, rule, bar)
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
                        join(parents, doc, other)
                    if mode == PAIRS:
                        if num_pairs == pairs[0].size:
                            pairs = _grow(pairs)
                        pairs[0][num_pairs], pairs[1][num_pairs], pairs[2][num_pairs] = doc, other, value
                        num_pairs += 1
            matches[doc] = best
            if roles[doc] & COMPARED:
                walked[0] += 1
            if roles[doc] & ENTERED and (mode != LEADERS or best == NOBODY):
                for at in range(list_ends[doc], list_ends[doc + 1]):
                    number = numbers[at]
                    follower = heads[number]
                    if follower >= 0 and docs[follower] == doc:  # one list twice: the first place counts
                        continue
                    joined = follower >= 0 and find_root(parents, docs[follower]) == find_root(parents, doc)
                    heads[number], nexts[at], docs[at] = at, follower, doc
                    skips[at] = skips[follower] if joined else follower
                    smallest[number] = min(smallest[number], size)
    for doc in range(num_docs):
        parents[doc] = find_root(parents, doc)
    return pairs[0][:num_pairs], pairs[1][:num_pairs], pairs[2][:num_pairs]
