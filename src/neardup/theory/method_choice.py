"""The cost model by which `method="auto"` chooses between LSH and the exact method.

The model depends on contents and settings alone, not on the machine, its memory or its threads, so
the choice is the same everywhere. Its seconds are those of one core of one machine, which stand for
counts of operations: no clock is read.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

from neardup.theory.plan import Plan, as_exact

# With more shingles than this (half a GB of them) the exact join is not considered.
MAX_SHINGLES: Final = 1 << 26
# The exact join may cost up to this many times as much as LSH.
FAIR_PRICE: Final = 2.0
# Up to this cost in the worst case, in the seconds of the model, the exact join is worth its price
# whatever LSH costs (docs/decisions/0041).
SMALL_COST: Final = 2.0
# The most operations for comparing every two documents; the multiplications of a product of two
# vectors are the unit (docs/decisions/0041).
MAX_OPERATIONS: Final = 8e9
# Operations of a number of a vector, a word of 64 bits, an item with its weight; and of any pair.
_OPERATIONS: Final = {"cosine": 1.0, "euclidean": 2.0, "hamming": 16.0, "weighted": 32.0}
_PAIR_OPERATIONS: Final = 32.0

# Seconds of one core, measured in docs/decisions/0013-auto-decides-after-the-first-pass.md.
_RUN: Final = 0.05
_SKETCH_SHINGLE: Final = 40e-9
_COLLECT_SHINGLE: Final = 25e-9
_BAND_KEY: Final = 50e-9
_COUNT_SHINGLE: Final = 34e-9
_POSTING: Final = 300e-9
_VERIFY_SHINGLE: Final = 35e-9
# The exact join may link short documents that share only one rare shingle, all of them in one
# component.
_MEET_DOCUMENT: Final = 3e-6
# In the worst case all linked documents are one component, and every two of them are compared.
_COMPARE_SHINGLE: Final = 1.2e-9


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """The figures that decide the choice; exact copies count once.

    Attributes:
        documents: documents with shingles.
        shingles: the distinct shingles of every document, added up.
        postings: shingles that the exact join sorts (estimate).
        linked_documents: documents that it cannot rule out (estimate).
        linked_shingles: the shingles of these.
    """

    documents: int
    shingles: int
    postings: int = 0
    linked_documents: int = 0
    linked_shingles: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """The method that was chosen, and why."""

    method: str
    reason: str


def lsh_seconds(contents: Contents, plan: Plan) -> float:
    """Return the time of LSH: the first pass, one star per bucket of every band, and the comparisons."""
    links = contents.documents * plan.bands * _BAND_KEY
    return _first_pass(contents) + links + contents.linked_shingles * _VERIFY_SHINGLE


def exact_seconds(contents: Contents, *, is_cached: bool) -> float:
    """Return the time of the exact join, including the first pass of LSH.

    Args:
        contents: what there is to compare.
        is_cached: whether the sets are kept in memory from the first pass on, or computed a second
            time.
    """
    sets = 0.0 if is_cached else contents.shingles * _COLLECT_SHINGLE
    joined = contents.shingles * _COUNT_SHINGLE + contents.postings * _POSTING
    verified = (
        contents.linked_documents * _MEET_DOCUMENT + contents.linked_shingles * _VERIFY_SHINGLE
    )
    return _first_pass(contents) + sets + joined + verified


def worst_seconds(contents: Contents, *, is_cached: bool) -> float:
    """Return the time of the exact join if it has to compare every two of the documents that it links."""
    compared = contents.linked_documents * contents.linked_shingles / 2
    return exact_seconds(contents, is_cached=is_cached) + compared * _COMPARE_SHINGLE


def _first_pass(contents: Contents) -> float:
    return _RUN + contents.shingles * _SKETCH_SHINGLE


def choose(contents: Contents, plan: Plan, *, is_cached: bool) -> Choice:
    """Choose the exact join if it costs at most FAIR_PRICE times as much as LSH, or at most SMALL_COST.

    Args:
        contents: what there is to compare; beyond MAX_SHINGLES its postings do not matter.
        plan: bands and rows of LSH.
        is_cached: as for `exact_seconds`.
    """
    if contents.shingles > MAX_SHINGLES:
        limit = f"{MAX_SHINGLES / 1e6:.0f} M"
        reason = f"LSH: {_millions(contents)} exceed the {limit} that the exact join can handle"
        return Choice(method="lsh", reason=reason)
    price = exact_seconds(contents, is_cached=is_cached) / lsh_seconds(contents, plan)
    if price <= FAIR_PRICE:
        reason = f"exact join: it finds every pair at {price:.1f} times the cost of LSH ({_millions(contents)})"
        return Choice(method="exact", reason=reason)
    if worst_seconds(contents, is_cached=is_cached) <= SMALL_COST:
        reason = (
            f"exact join: it finds every pair, and the documents are few ({_millions(contents)})"
        )
        return Choice(method="exact", reason=reason)
    reason = f"LSH: the exact join would cost {price:.1f} times as much ({_millions(contents)})"
    return Choice(method="lsh", reason=reason)


def all_pairs_operations(contents: Contents, plan: Plan) -> float:
    """Return how many operations it takes to compare every two documents.

    Args:
        contents: the number of documents, and for weights the number of all their items.
        plan: measure and dimension.
    """
    if plan.measure == "weighted":
        width = 2 * contents.shingles / max(contents.documents, 1)
    elif plan.measure == "hamming":
        width = math.ceil((plan.dimension or 1) / 64)
    else:
        width = plan.dimension or 1
    pairs = contents.documents * (contents.documents - 1) / 2
    return pairs * (_PAIR_OPERATIONS + width * _OPERATIONS[plan.measure])


def choose_all_pairs(contents: Contents, plan: Plan) -> Choice:
    """Choose the comparison of every two documents if it takes at most MAX_OPERATIONS; arguments as above."""
    operations = all_pairs_operations(contents, plan)
    compared = f"all {contents.documents:,} documents"
    if operations <= MAX_OPERATIONS:
        reason = f"exact comparison of {compared}: it finds every pair, and they are few"
        return Choice(method="exact", reason=reason)
    reason = f"LSH: comparing {compared} with each other would take {operations / 1e9:.0f} billion operations"
    return Choice(method="lsh", reason=reason)


def decide(contents: Contents, plan: Plan, *, is_cached: bool) -> Plan:
    """Return the plan of the chosen method, with the reason; arguments as for `choose`."""
    if plan.measure in _OPERATIONS:
        choice = choose_all_pairs(contents, plan)
    else:
        choice = choose(contents, plan, is_cached=is_cached)
    return dataclasses.replace(
        as_exact(plan) if choice.method == "exact" else plan, reason=choice.reason
    )


def _millions(contents: Contents) -> str:
    if contents.shingles < 10**6:
        return f"{contents.shingles:,} shingles"
    return f"{contents.shingles / 1e6:.1f} M shingles"
