"""Exact confidence intervals of a share, alone and of a whole that was sampled in strata."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

# Halvings of [0, 1]: more than the bits of a double.
_HALVINGS = 60


class Share(NamedTuple):
    """What was counted of one stratum: `right` of `judged` drawn ones, of `size` in all."""

    right: int
    judged: int
    size: int


class Interval(NamedTuple):
    """An estimate with the bounds of its interval; None without anything counted."""

    value: float | None
    low: float
    high: float


def clopper_pearson(right: int, judged: int, confidence: float) -> tuple[float, float]:
    """Return the exact interval of a share of which `right` of `judged` were seen.

    >>> [round(bound, 4) for bound in clopper_pearson(11, 12, 0.95)]
    [0.6152, 0.9979]
    >>> clopper_pearson(0, 0, 0.95)
    (0.0, 1.0)
    """
    tail = (1 - confidence) / 2
    low = 0.0
    high = 1.0
    if right > 0:
        low = _solve(lambda share: _at_least(right, judged, share) < tail)
    if right < judged:
        high = _solve(lambda share: _at_least(right + 1, judged, share) < 1 - tail)
    return low, high


def _at_least(least: int, judged: int, share: float) -> float:
    """The chance of at least `least` right ones."""
    terms = (
        math.comb(judged, right) * share**right * (1 - share) ** (judged - right)
        for right in range(least, judged + 1)
    )
    return math.fsum(terms)


def _solve(is_below: Callable[[float], bool]) -> float:
    """The share below which a condition holds."""
    low = 0.0
    high = 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if is_below(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def stratified(strata: Sequence[Share], confidence: float = 0.95) -> Interval:
    """Return the share of right ones in all strata together, weighted by their sizes.

    The bounds are the weighted sums of those of each stratum, whose intervals miss with a share of what the whole may
    miss with (of two strata, 97.5 % each for 95 %): then all hold at the same time.

    >>> found = stratified([Share(9, 10, 100), Share(20, 20, 900)])
    >>> round(found.value, 4), round(found.low, 4), round(found.high, 4)
    (0.99, 0.7739, 0.9999)
    """
    own = [stratum for stratum in strata if stratum.size]
    total = sum(stratum.size for stratum in own)
    if not total:
        return Interval(None, 0.0, 1.0)
    each = 1 - (1 - confidence) / len(own)
    value: float | None = 0.0
    low = high = 0.0
    for stratum in own:
        weight = stratum.size / total
        bounds = clopper_pearson(stratum.right, stratum.judged, each)
        low += weight * bounds[0]
        high += weight * bounds[1]
        if value is not None and stratum.judged:
            value += weight * stratum.right / stratum.judged
        else:
            value = None
    return Interval(value, low, min(high, 1.0))
