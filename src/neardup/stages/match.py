"""Part of stage 5 of 6: choose the posting lists that generate the candidate pairs of a component.

Buckets come first. A component where too many comparisons fail is hot: it starts again with posting
lists of prefix shingles, if those promise fewer candidates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from neardup.kernels import lists as list_kernel
from neardup.kernels import verify as kernel
from neardup.kernels.similarity import NOBODY, Sets

Array = npt.NDArray[Any]
# Takes the later document, the earlier one and the similarity of pairs.
Put = Callable[[Array, Array, Array], None]
# Pairs found at once, of 24 bytes; twice as many while their arrays grow.
MAX_PAIRS: Final = 1 << 18
# The fields of an outcome that have an entry per document.
_OF_DOCUMENTS: Final = ("matches", "values", "parents", "compared")


class _Work(NamedTuple):
    """How documents are compared: the rule, their states before and after, and what takes the pairs."""

    rule: kernel.Rule
    initial: kernel.InitialState
    outcome: kernel.MatchOutcome
    put: Put


class _Hot(NamedTuple):
    """A hot component that was left: its number, and the documents where its walk started and where it was left."""

    component: int
    start: int
    stop: int


def initial_state(roles: Array) -> kernel.InitialState:
    """Return the state of documents that have not been compared with any other yet."""
    num_docs = roles.size
    return kernel.InitialState(
        roles=roles,
        values=np.zeros(num_docs),
        rows=np.zeros(num_docs, np.int64),
        parents=np.arange(num_docs),
    )


def match_components(
    documents: kernel.ComparedDocuments,
    component_ends: Array,
    rule: kernel.Rule,
    initial: kernel.InitialState,
    walked: Array,
    put: Put,
) -> kernel.MatchOutcome:
    """Compare the documents of whole components; arguments as for the kernel `walk_components`.

    walked: counts the documents that are done, as in `kernel.MatchOutcome`; put: takes the pairs found,
    in pieces and in any order, as positions of the later and the earlier document, and
    similarities.
    """
    num_docs = documents.rows.size
    outcome = kernel.MatchOutcome(
        matches=np.empty(num_docs, np.int64),
        values=np.empty(num_docs),
        parents=np.empty(num_docs, np.int64),
        compared=np.empty(num_docs, np.int64),
        walked=walked,
    )
    # Only sets have prefixes.
    lists = _bucket_lists(documents.keys, is_last=not isinstance(documents.items, Sets))
    work = _Work(rule, initial, outcome, put)
    for hot in _walk(documents, component_ends, lists, work, 0):
        part = slice(component_ends[hot.component], component_ends[hot.component + 1])
        _match_hot(documents, part, work, hot)
    return outcome


def _walk(
    documents: kernel.ComparedDocuments,
    component_ends: Array,
    lists: kernel.Lists,
    work: _Work,
    start: int,
) -> list[_Hot]:
    """Walk from a document to the end, in steps of about MAX_PAIRS pairs; return the hot components left on the way.

    Every step enters the earlier documents of its component into the lists again, which takes less
    time than finding the pairs of a step.
    """
    hot: list[_Hot] = []
    num_docs = documents.rows.size
    stops = component_ends[1:].copy()
    while start < num_docs:
        left, right, similarities, reached = kernel.walk_components(
            documents,
            component_ends,
            lists,
            work.rule,
            work.initial,
            work.outcome,
            stops,
            start,
            MAX_PAIRS,
        )
        if left.size:
            work.put(left, right, similarities)
        for component in np.flatnonzero(stops < component_ends[1:]).tolist():
            first = int(component_ends[component])
            hot.append(_Hot(component, max(start, first), int(stops[component])))
            stops[component] = component_ends[component + 1]
        start = reached
    return hot


def _match_hot(documents: kernel.ComparedDocuments, part: slice, work: _Work, hot: _Hot) -> None:
    """Compare the documents of one hot component from where its pairs were not put yet."""
    first = part.start
    ends = np.array([0, part.stop - part.start])
    shingles, set_ends = cast(Sets, documents.items)
    sets = Sets(shingles, set_ends[first : part.stop + 1])
    signatures, keys, rows = (column[part] for column in documents[1:])
    rule = work.rule
    initial = kernel.InitialState(*(column[part] for column in work.initial))
    initial = initial._replace(parents=initial.parents - first)
    lists = _bucket_lists(keys, is_last=True)
    prefixes = _prefix_lists(sets, rule.threshold)
    outcome = work.outcome._replace(
        **{name: getattr(work.outcome, name)[part] for name in _OF_DOCUMENTS}
    )
    num_walked = hot.stop - first
    is_entered = initial.roles & kernel.ENTERED > 0
    if rule.mode == kernel.LEADERS:  # only the kept ones among those already compared matter
        is_entered[:num_walked] &= outcome.matches[:num_walked] == NOBODY
        is_entered[num_walked:] = False
    is_walking = initial.roles & kernel.COMPARED > 0
    by_prefix = _meetings(prefixes, is_walking, is_entered)
    by_bucket = _meetings(lists, is_walking, is_entered)
    if by_prefix <= kernel.COMPARISON_COST * by_bucket:
        lists = prefixes
    compared_before = outcome.compared.copy()
    compared_before[: hot.start - first] = 0  # which are not compared again
    outcome.parents[:] -= first

    def put_moved(left: Array, right: Array, similarities: Array) -> None:
        work.put(left + first, right + first, similarities)

    own = kernel.ComparedDocuments(sets, signatures, keys, rows)
    _walk(own, ends, lists, _Work(rule, initial, outcome, put_moved), hot.start - first)
    outcome.compared[:] += compared_before
    outcome.parents[:] += first
    matches = outcome.matches[hot.start - first :]
    matches[matches >= 0] += first


def _bucket_lists(keys: Array, *, is_last: bool) -> kernel.Lists:
    """Return one posting list per bucket."""
    num_docs, num_bands = keys.shape
    buckets = np.empty(keys.size, np.int64)
    num_buckets = list_kernel.number_lists(keys.ravel(), buckets)
    ends = np.arange(num_docs + 1) * num_bands
    return kernel.Lists(buckets, ends, num_buckets, by_prefix=False, is_last=is_last)


def _prefix_lists(sets: Sets, threshold: float) -> kernel.Lists:
    """Return one posting list per prefix shingle."""
    ranked = np.empty(sets.ends[-1] - sets.ends[0], np.uint64)
    ends = np.empty(sets.ends.size, np.int64)
    list_kernel.rank_prefixes(sets.shingles, sets.ends, threshold, ranked, ends)
    prefixes = np.empty(ends[-1], np.int64)
    used = ranked[: ends[-1]]
    num_prefixes = list_kernel.number_lists(used, prefixes)
    return kernel.Lists(prefixes, ends, num_prefixes, by_prefix=True, is_last=True)


def _meetings(lists: kernel.Lists, is_walking: Array, is_entered: Array) -> int:
    """Return an upper bound on candidate pairs; twice the true number if every document is compared and entered."""
    lengths = np.diff(lists.ends)
    of_walking = lists.numbers[np.repeat(is_walking, lengths)]
    of_entered = lists.numbers[np.repeat(is_entered, lengths)]
    num_walking = np.bincount(of_walking, minlength=lists.count)
    num_entered = np.bincount(of_entered, minlength=lists.count)
    return int(num_walking @ num_entered)
