"""Combinations of several settings: a few in `make test`, all of them in `make test-all`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import pytest


def pairwise_grid(*axes: Iterable[Any]) -> list[Any]:
    """Return every combination of one value per axis; `make test` takes enough to cover every pair of values."""
    return _marked([list(axis) for axis in axes], _pairwise)


def turning_grid(*axes: Iterable[Any]) -> list[Any]:
    """Return every combination of one value per axis; `make test` takes enough to cover every value."""
    return _marked([list(axis) for axis in axes], _turning)


def _marked(axes: list[list[Any]], choose: Any) -> list[Any]:
    chosen = choose([len(axis) for axis in axes])
    cases = []
    for places in itertools.product(*(range(len(axis)) for axis in axes)):
        values = [axis[place] for axis, place in zip(axes, places, strict=True)]
        marks = () if places in chosen else (pytest.mark.long,)
        cases.append(pytest.param(*values, marks=marks, id="-".join(map(str, values))))
    return cases


def _turning(sizes: list[int]) -> set[tuple[int, ...]]:
    return {tuple(number % size for size in sizes) for number in range(max(sizes))}


def _pairwise(sizes: list[int]) -> set[tuple[int, ...]]:
    """Greedily choose the combination that covers the most new pairs of values, until all are covered."""
    whole = list(itertools.product(*map(range, sizes)))
    missing = {pair for places in whole for pair in _pairs(places)}
    chosen = set()
    while missing:
        best = max(whole, key=lambda places: len(missing & _pairs(places)))
        chosen.add(best)
        missing -= _pairs(best)
    return chosen


def _pairs(places: tuple[int, ...]) -> set[Any]:
    return set(itertools.combinations(enumerate(places), 2))
