"""Filters of queries, counts and removals: conditions on payloads, and a time of insertion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from neardup.errors import ConfigError
from neardup.index.facts import as_time, read_payload
from neardup.index.store import Document

_RANGES: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "gt": lambda value, bound: value > bound,
    "gte": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "lte": lambda value, bound: value <= bound,
}


def filter_of(where: Any, since: Any) -> Callable[[Document], bool] | None:
    """Return a predicate for the requested documents; None if there is no filter."""
    after = as_time("since", since)
    conditions = _conditions(where)
    if after is None and not conditions:
        return None

    def is_requested(document: Document) -> bool:
        if after is not None and document.inserted <= after:
            return False
        payload = read_payload(document) or {} if conditions else {}
        return all(
            name in payload and condition(payload[name]) for name, condition in conditions.items()
        )

    return is_requested


def _conditions(where: Any) -> dict[str, Callable[[Any], bool]]:
    if where is None:
        return {}
    if not isinstance(where, Mapping) or not all(isinstance(name, str) for name in where):
        raise ConfigError(
            f"`where` must be a dict of payload keys, got {where!r}",
            hint="where={'lang': 'de', 'day': {'gte': '2026-01-01'}, 'site': ['a', 'b']}",
        )
    return {name: _condition(name, asked) for name, asked in where.items()}


def _condition(name: str, asked: Any) -> Callable[[Any], bool]:
    """Return what a value of the payload must satisfy: equal, one of a list, or within a range."""
    if isinstance(asked, Mapping):
        unknown = [bound for bound in asked if bound not in _RANGES]
        if unknown or not asked:
            if unknown:
                found = f"the unknown operator {unknown[0]!r}"
            else:
                found = "an empty range"
            raise ConfigError(
                f"`where` has {found} for {name!r}",
                hint=f"a range takes {', '.join(_RANGES)}",
            )
        limits = {bound: _scalar(name, limit) for bound, limit in asked.items()}
        return lambda value: all(_is_within(bound, value, limit) for bound, limit in limits.items())
    if isinstance(asked, (list, tuple, set, frozenset)):
        choices = [_scalar(name, choice) for choice in asked]
        return lambda value: any(_is_equal(value, choice) for choice in choices)
    single = _scalar(name, asked)
    return lambda value: _is_equal(value, single)


def _scalar(name: str, value: Any) -> Any:
    """Return a value that payloads can be compared with; raise if no payload could have it."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is not None and not isinstance(value, (str, int, float, list, dict)):
        raise ConfigError(
            f"`where` compares {name!r} with {value!r}, which is not a JSON value",
            hint="write a date as in the payload: {'day': {'gte': '2026-01-01'}}",
        )
    return value


def _is_equal(value: Any, other: Any) -> bool:
    """Whether two values are equal in JSON, where true is not 1 as in Python."""
    return bool(value == other) and isinstance(value, bool) == isinstance(other, bool)


def _is_within(bound: str, value: Any, limit: Any) -> bool:
    """Whether a value is on the right side of a limit; False if the two cannot be compared."""
    try:
        return _RANGES[bound](value, limit) and isinstance(value, bool) == isinstance(limit, bool)
    except TypeError:
        return False
