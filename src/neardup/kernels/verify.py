"""Verification: compare the documents of a component, in keep order, with earlier ones that share a bucket.

Each bucket is a posting list of earlier documents. A document scans the lists of its buckets;
candidates are compared by size, then by signature, then exactly. A component where too many
comparisons fail is hot and starts again with
posting lists of prefix shingles: two sets of similarity >= t share one of their rarest n - ceil(t
n) + 1 shingles, so scanning those lists, and then checking for a shared bucket, finds the same
pairs. An entry of such a list has a position: that of the shingle in the prefix of its
document. Entries of about the same position form a group, so that a document skips groups whose
position rules out a pair, or a better match than it has.

Results of earlier calls can be passed in as the initial state: roles, best matches and unions so
far. A walk that has found enough pairs ends after a document, and the next call goes on behind it.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels.bands import shares_bucket
from neardup.kernels.bounds import is_in_reach
from neardup.kernels.compilation import inner, kernel, uncounted
from neardup.kernels.similarity import NOBODY, Items, passes, scratch_for, similarity_of, size_of
from neardup.kernels.union_find import find_root, join

Array = npt.NDArray[Any]
LEADERS = 0
PAIRS = 1
CLOSURE = 2
# The best match is still the one of the initial state.
UNCHANGED = -2
# The roles of a document, as bits: it is compared with earlier documents, and it is entered into
# the lists.
COMPARED = 1
ENTERED = 2
# A component is hot after this many failed comparisons, plus this many per document processed.
FAILED_BASE = 2000
FAILED_PER_DOC = 64
# Candidates of a bucket list are compared; most of a prefix list are ruled out by their position,
# much faster.
COMPARISON_COST = 4
LARGEST = np.int64(2**62)


class ComparedDocuments(NamedTuple):
    """The documents of whole components, in comparable form.

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
    by_prefix  bool                 the lists are prefixes, rarest shingle first, not buckets
    is_last    bool                 no other lists are tried, so the walk continues in a hot component
    """

    numbers: Array
    ends: Array
    count: int
    by_prefix: bool
    is_last: bool


class Rule(NamedTuple):
    """When two documents are a found pair, and what to do with it.

    threshold      float64  the least similarity
    min_agreement  int64    the signature filter; 0 turns it off
    mode           int64    LEADERS: keep a list of kept documents only; PAIRS: also list every found pair;
                            CLOSURE: join what is connected by found pairs, comparing no two
                            documents already joined
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


class MatchOutcome(NamedTuple):
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


@uncounted
def _compare(documents, scratch, doc, other, rule, least):
    """Return the similarity of a found pair of at least `least`, else -1."""
    items = documents.items
    if not passes(items, documents.signatures, doc, other, rule.threshold, rule.min_agreement):
        return -1.0
    value = similarity_of(items, scratch, doc, other, least)
    return value if value >= least else -1.0


class Groups(NamedTuple):
    """The groups of the posting lists: entries of about the same position.

    heads      int64[]  the newest entry
    nexts      int64[]  the next group of the same list
    positions  int64[]  the smallest position
    smallest   int64[]  the size of the smallest set
    """

    heads: Array
    nexts: Array
    positions: Array
    smallest: Array


@inner
def _make_groups(count):
    """Allocate groups; the system provides the memory only for those that come into use."""
    return Groups(
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
    )


@uncounted
def _is_group_in_reach(size, position, group, groups, least):
    """Whether the sets of a group may reach the minimum similarity if this is their first shared shingle.

    At most the rest of this set is shared. The other set has at least its shingles before the
    shared one, and everything beyond that rest, in addition.
    """
    rest = size - position
    return rest / (size + max(groups.positions[group], groups.smallest[group] - rest)) >= least


@uncounted
def _level(position):
    """Return the group of a position: one each below 8, then four per power of two, so that they are few."""
    level = np.int64(0)
    while position >= 8:
        position >>= 1
        level += 4
    return level + position


@uncounted
def _group_for(number, position, heads, groups, count):
    """Return the group of a list for entries at a position, and how many there are now.

    The groups of a list are in the order of their levels.
    """
    level = _level(position)
    before = NOBODY
    group = heads[number]
    while group >= 0 and _level(groups.positions[group]) < level:
        before = group
        group = groups.nexts[group]
    if group >= 0 and _level(groups.positions[group]) == level:
        return group, count
    groups.heads[count] = NOBODY
    groups.nexts[count] = group
    groups.positions[count] = position
    groups.smallest[count] = LARGEST
    if before < 0:
        heads[number] = count
    else:
        groups.nexts[before] = count
    return count, count + 1


@inner
def _grow(pairs):
    left, right, values = pairs
    more_left, more_right = np.empty(2 * left.size, np.int64), np.empty(2 * left.size, np.int64)
    more_values = np.empty(2 * left.size, np.float64)
    for at in range(left.size):
        more_left[at] = left[at]
        more_right[at] = right[at]
        more_values[at] = values[at]
    return more_left, more_right, more_values


@kernel
def walk_components(
    documents, component_ends, lists, rule, initial, outcome, stops, start, most_pairs
):
    """Compare the documents of whole components by posting lists.

    Return (left, right, similarity) of the pairs found, and the document at which to go on: the
    number of documents when all are done.

    documents       ComparedDocuments
    component_ends  int64[num_components + 1]  component c is documents [component_ends[c], component_ends[c + 1]),
                                               best keep priority first
    lists           Lists
    rule            Rule
    initial         InitialState
    outcome         MatchOutcome                    written
    stops           int64[num_components]      written; the document at which a hot component was left, else its end
    start           int64                      documents before it are done; those of its component are only entered
    most_pairs      int64                      from this many pairs on, the walk ends after the document
    """
    items = documents.items
    keys = documents.keys
    rows = documents.rows
    numbers = lists.numbers
    list_ends = lists.ends
    roles, given_values, given_rows, given_parents = initial
    threshold = rule.threshold
    mode = rule.mode
    matches, values, parents, compared, walked = outcome
    num_docs = rows.size
    heads = np.empty(lists.count, np.int64)
    for number in range(lists.count):
        heads[number] = NOBODY
    groups = _make_groups(numbers.size if lists.by_prefix else lists.count)
    num_groups = 0
    group_heads, group_nexts, positions, smallest = groups
    # An entry of a list is a position in `numbers`; `skips` points past the documents already
    # joined with its own.
    nexts = np.empty(numbers.size, np.int64)
    skips = np.empty(numbers.size if mode == CLOSURE else 0, np.int64)
    docs = np.empty(numbers.size, np.int64)
    pairs = (np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.float64))
    num_pairs = 0
    seen = np.empty(num_docs, np.int64)
    scratch = scratch_for(items)
    for doc in range(num_docs):
        seen[doc] = NOBODY
        if doc >= start:
            parents[doc] = given_parents[doc]
            compared[doc] = 0
    reached = start
    for component in range(component_ends.size - 1):
        first, stop = component_ends[component], component_ends[component + 1]
        if stop <= start or num_pairs >= most_pairs:
            continue
        failed = 0
        pairs_before = num_pairs
        walked_before = walked[0]
        stops[component] = stop
        for doc in range(first, stop):
            if num_pairs >= most_pairs:
                break
            is_done = doc < start
            if not lists.is_last and failed > FAILED_BASE + FAILED_PER_DOC * (doc - first):
                stops[component] = doc
                num_pairs = pairs_before
                walked[0] = walked_before
                reached = stop
                break
            size = size_of(items, doc)
            is_walking = not is_done and roles[doc] & COMPARED > 0
            best = NOBODY
            best_row = given_rows[doc]
            least = threshold
            if not is_done and given_values[doc] > 0.0:
                best = UNCHANGED
                values[doc] = given_values[doc]
                if mode == LEADERS:
                    least = max(least, given_values[doc])
            for at in range(list_ends[doc], list_ends[doc + 1] if is_walking else list_ends[doc]):
                number = numbers[at]
                position = at - list_ends[doc]
                if lists.by_prefix and (size - position) / size < least:
                    break
                group = heads[number]
                entry = NOBODY
                while entry >= 0 or group >= 0:
                    if entry < 0:
                        if not lists.by_prefix or _is_group_in_reach(
                            size, position, group, groups, least
                        ):
                            entry = group_heads[group]
                        group = group_nexts[group]
                        continue
                    other = docs[entry]
                    if mode == CLOSURE and find_root(parents, other) == find_root(parents, doc):
                        entry = skips[entry]
                        continue
                    other_position = entry - list_ends[other]
                    entry = nexts[entry]
                    if seen[other] == doc:
                        continue
                    seen[other] = doc
                    value = -1.0
                    if not lists.by_prefix or (
                        is_in_reach(size, position, size_of(items, other), other_position, least)
                        and shares_bucket(keys, doc, keys, other)
                    ):
                        compared[doc] += 1
                        value = _compare(documents, scratch, doc, other, rule, least)
                    if value < 0:
                        failed += 1
                        continue
                    if (
                        mode != CLOSURE
                        and matches[other] == NOBODY
                        and (
                            best == NOBODY
                            or value > values[doc]
                            or (value == values[doc] and rows[other] < best_row)
                        )
                    ):
                        best = other
                        best_row = rows[other]
                        values[doc] = value
                        if mode == LEADERS:  # from now on, only a better match counts
                            least = value
                    if mode != LEADERS:
                        join(parents, doc, other)
                    if mode == PAIRS:
                        if num_pairs == pairs[0].size:
                            pairs = _grow(pairs)
                        pairs[0][num_pairs] = doc
                        pairs[1][num_pairs] = other
                        pairs[2][num_pairs] = value
                        num_pairs += 1
            if not is_done:
                matches[doc] = best
                reached = doc + 1
            if is_walking:
                walked[0] += 1
            if roles[doc] & ENTERED and (mode != LEADERS or matches[doc] == NOBODY):
                for at in range(list_ends[doc], list_ends[doc + 1]):
                    position = at - list_ends[doc] if lists.by_prefix else 0
                    group, num_groups = _group_for(numbers[at], position, heads, groups, num_groups)
                    follower = group_heads[group]
                    # A list that occurs twice: the first position counts.
                    if follower >= 0 and docs[follower] == doc:
                        continue
                    group_heads[group] = at
                    nexts[at] = follower
                    docs[at] = doc
                    positions[group] = min(positions[group], position)
                    smallest[group] = min(smallest[group], size)
                    if mode == CLOSURE:
                        joined = follower >= 0 and find_root(parents, docs[follower]) == find_root(
                            parents, doc
                        )
                        skips[at] = skips[follower] if joined else follower
    for doc in range(num_docs):
        parents[doc] = find_root(parents, doc)
    return pairs[0][:num_pairs], pairs[1][:num_pairs], pairs[2][:num_pairs], reached
