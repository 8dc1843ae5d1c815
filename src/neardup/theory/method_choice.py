"""What the two methods cost, and which of them `method="auto"` takes.

The model knows contents and settings alone: not the machine, its memory or its threads, so that the choice is the same
everywhere. Its seconds are those of one core; only their ratio decides.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from neardup.theory.plan import Plan, as_exact

# Beyond so many shingles of different sets, half a GB of them, the exact join is not tried.
MAX_SHINGLES: Final = 1 << 26
# So many times the work of LSH is a fair price for every pair.
FAIR_PRICE: Final = 2.0

# Seconds of one core; measured as docs/decisions/0013-auto-decides-after-the-first-pass.md tells.
_RUN: Final = 0.05
_SKETCH_SHINGLE: Final = 40e-9
_COLLECT_SHINGLE: Final = 25e-9
_BAND_KEY: Final = 50e-9
_COUNT_SHINGLE: Final = 34e-9
_POSTING: Final = 300e-9
_VERIFY_SHINGLE: Final = 35e-9
# The exact join links documents that share a rare shingle and no more: short ones, all of them in one component.
_MEET_DOCUMENT: Final = 3e-6


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """What the choice depends on, of documents with different sets.

    Attributes:
        documents: documents with shingles.
        shingles: distinct shingles of each, in all.
        postings: shingles that the exact join sorts, about.
        linked_documents: documents that it cannot rule out, about.
        linked_shingles: the shingles of these.
    """

    documents: int
    shingles: int
    postings: int = 0
    linked_documents: int = 0
    linked_shingles: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """The method that was taken, and why."""

    method: str
    reason: str


def lsh_seconds(contents: Contents, plan: Plan) -> float:
    """Return what LSH takes: the first pass, a star per bucket of every band, and the comparisons."""
    links = contents.documents * plan.bands * _BAND_KEY
    return _first_pass(contents) + links + contents.linked_shingles * _VERIFY_SHINGLE


def exact_seconds(contents: Contents, *, is_held: bool) -> float:
    """Return what the exact join takes after the first pass of LSH.

    Args:
        contents: what there is to compare.
        is_held: whether such sets are held from the first pass on, or made a second time.
    """
    sets = 0.0 if is_held else contents.shingles * _COLLECT_SHINGLE
    joined = contents.shingles * _COUNT_SHINGLE + contents.postings * _POSTING
    verified = contents.linked_documents * _MEET_DOCUMENT + contents.linked_shingles * _VERIFY_SHINGLE
    return _first_pass(contents) + sets + joined + verified


def _first_pass(contents: Contents) -> float:
    return _RUN + contents.shingles * _SKETCH_SHINGLE


def choose(contents: Contents, plan: Plan, *, is_held: bool) -> Choice:
    """Take the exact join where it is a fair price for every pair.

    Args:
        contents: what there is to compare; beyond MAX_SHINGLES its postings are not looked at.
        plan: bands and rows of LSH.
        is_held: as for `exact_seconds`.
    """
    if contents.shingles > MAX_SHINGLES:
        limit = f"{MAX_SHINGLES / 1e6:.0f} M"
        return Choice(method="lsh", reason=f"LSH: {_millions(contents)} are more than the {limit} of the exact join")
    price = exact_seconds(contents, is_held=is_held) / lsh_seconds(contents, plan)
    work = f"{price:.1f} times the work of LSH for {_millions(contents)}"
    if price <= FAIR_PRICE:
        return Choice(method="exact", reason=f"exact join: {work}, finds every pair")
    return Choice(method="lsh", reason=f"LSH: the exact join would be {work}")


def decide(contents: Contents, plan: Plan, *, is_held: bool) -> Plan:
    """Return the plan of the method that is chosen, with the reason; arguments as for `choose`."""
    choice = choose(contents, plan, is_held=is_held)
    return dataclasses.replace(as_exact(plan) if choice.method == "exact" else plan, reason=choice.reason)


def _millions(contents: Contents) -> str:
    if contents.shingles < 10**6:
        return f"{contents.shingles:,} shingles"
    return f"{contents.shingles / 1e6:.1f} M shingles"
