"""Part of stage 5 of 6: choose the posting lists that generate the candidate pairs of a component.

Buckets come first. A component where too many comparisons fail is hot: it starts again with posting lists of prefix
shingles, if those promise fewer candidates.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from neardup.kernels import lists as list_kernel
from neardup.kernels import verify as kernel
from neardup.kernels.similarity import NOBODY, Sets

Array = npt.NDArray[Any]
# The fields of an outcome that have an entry per document.
_OF_DOCUMENTS: Final = ("matches", "values", "parents", "compared")


class Found(NamedTuple):
    """The result of comparing documents, which are identified by position.

    outcome                    of each document
    left, right, similarities  of the pairs found, ordered by left, the later document of the two
    """

    outcome: kernel.Outcome
    left: Array
    right: Array
    similarities: Array


def initial_state(roles: Array) -> kernel.InitialState:
    """Return the state of documents that have not been compared with any other yet."""
    num_docs = roles.size
    return kernel.InitialState(roles, np.zeros(num_docs), np.zeros(num_docs, np.int64), np.arange(num_docs))


def match_components(
    documents: kernel.Documents,
    component_ends: Array,
    rule: kernel.Rule,
    initial: kernel.InitialState,
    walked: Array,
) -> Found:
    """Compare the documents of whole components; arguments as for the kernel `walk_components`.

    walked: counts the documents that are done, as in `kernel.Outcome`.
    """
    num_docs = documents.rows.size
    matches, parents, compared = (np.empty(num_docs, np.int64) for _ in range(3))
    outcome = kernel.Outcome(matches, np.empty(num_docs), parents, compared, walked)
    stops = np.empty(component_ends.size - 1, np.int64)
    # Only sets have prefixes.
    lists = _bucket_lists(documents.keys, is_last=not isinstance(documents.items, Sets))
    found = [kernel.walk_components(documents, component_ends, lists, rule, initial, outcome, stops)]
    for component in np.flatnonzero(stops < component_ends[1:]):
        part = slice(component_ends[component], component_ends[component + 1])
        found.append(_match_hot(documents, part, rule, initial, outcome, stops[component] - part.start))
    left, right, similarities = (np.concatenate(columns) for columns in zip(*found, strict=True))
    order = np.argsort(left, kind="stable")
    return Found(outcome, left[order], right[order], similarities[order])


def _match_hot(
    documents: kernel.Documents,
    part: slice,
    rule: kernel.Rule,
    initial: kernel.InitialState,
    outcome: kernel.Outcome,
    num_walked: int,
) -> tuple[Array, Array, Array]:
    """Compare the documents of one hot component; return the pairs found. Its first `num_walked` were compared."""
    first, ends = part.start, np.array([0, part.stop - part.start])
    shingles, set_ends = cast(Sets, documents.items)
    sets = Sets(shingles, set_ends[first : part.stop + 1])
    signatures, keys, rows = (column[part] for column in documents[1:])
    initial = kernel.InitialState(*(column[part] for column in initial))
    initial = initial._replace(parents=initial.parents - first)
    lists = _bucket_lists(keys, is_last=True)
    prefixes = _prefix_lists(sets, rule.threshold)
    outcome = outcome._replace(**{name: getattr(outcome, name)[part] for name in _OF_DOCUMENTS})
    is_entered = initial.roles & kernel.ENTERED > 0
    if rule.mode == kernel.LEADERS:  # only the kept ones among those already compared matter
        is_entered[:num_walked] &= outcome.matches[:num_walked] == NOBODY
        is_entered[num_walked:] = False
    is_walking = initial.roles & kernel.COMPARED > 0
    by_prefix, by_bucket = (_meetings(each, is_walking, is_entered) for each in (prefixes, lists))
    if by_prefix <= kernel.COMPARISON_COST * by_bucket:
        lists = prefixes
    compared_before = outcome.compared.copy()
    left, right, similarities = kernel.walk_components(
        kernel.Documents(sets, signatures, keys, rows), ends, lists, rule, initial, outcome, np.empty(1, np.int64)
    )
    outcome.compared[:] += compared_before
    outcome.parents[:] += first
    outcome.matches[:] += np.where(outcome.matches < 0, 0, first)
    return left + first, right + first, similarities


def _bucket_lists(keys: Array, *, is_last: bool) -> kernel.Lists:
    """Return one posting list per bucket."""
    num_docs, num_bands = keys.shape
    buckets = np.empty(keys.size, np.int64)
    num_buckets = list_kernel.number_lists(keys.ravel(), buckets)
    return kernel.Lists(buckets, np.arange(num_docs + 1) * num_bands, num_buckets, by_prefix=False, is_last=is_last)


def _prefix_lists(sets: Sets, threshold: float) -> kernel.Lists:
    """Return one posting list per prefix shingle."""
    ranked, ends = np.empty(sets.ends[-1] - sets.ends[0], np.uint64), np.empty(sets.ends.size, np.int64)
    list_kernel.rank_prefixes(sets.shingles, sets.ends, threshold, ranked, ends)
    prefixes = np.empty(ends[-1], np.int64)
    num_prefixes = list_kernel.number_lists(ranked[: ends[-1]], prefixes)
    return kernel.Lists(prefixes, ends, num_prefixes, by_prefix=True, is_last=True)


def _meetings(lists: kernel.Lists, is_walking: Array, is_entered: Array) -> int:
    """Return an upper bound on candidate pairs; twice the true number if every document is compared and entered."""
    lengths = np.diff(lists.ends)
    walking = np.bincount(lists.numbers[np.repeat(is_walking, lengths)], minlength=lists.count)
    entered = np.bincount(lists.numbers[np.repeat(is_entered, lengths)], minlength=lists.count)
    return int(walking @ entered)
