"""The answers of an index, and filters on payloads and times."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final

import numpy as np

from neardup.errors import ConfigError, DataError
from neardup.index.store import Document

MOST_PAYLOAD: Final = 1 << 16
# Python parses JSON recursively, so a payload that could just be written might not be readable from a deeper call.
MOST_LEVELS: Final = 100
_RANGES: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "gt": lambda value, bound: value > bound,
    "gte": lambda value, bound: value >= bound,
    "lt": lambda value, bound: value < bound,
    "lte": lambda value, bound: value <= bound,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Match:
    """A document of the index that is similar to a query; `is_estimate`: the index stores signatures only.

    For a query with `containment`, `containment_query` is the share of the query's shingles that the document contains,
    `containment_doc` the share of the document's that the query contains, and `similarity` the larger of the two.
    """

    doc_id: str
    similarity: float
    is_estimate: bool = False
    payload: dict[str, Any] | None = None
    inserted: float = 0.0
    expires: float | None = None
    containment_query: float | None = None
    containment_doc: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Inserted:
    """Whether a document was new, and otherwise the match that was already stored."""

    is_new: bool
    match: Match | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Stored:
    """A document of the index; met, first_met, last_met: how often, and when, insert_new found it as a match.

    Times are seconds since 1970; text: None unless the index stores texts; aliases: the other ids that it is known by.
    """

    doc_id: str
    payload: dict[str, Any] | None
    inserted: float
    expires: float | None
    met: int
    first_met: float | None
    last_met: float | None
    text: str | None = None
    aliases: tuple[str, ...] = ()


def match_of(document: Document, similarity: float, *shares: float | None, is_estimate: bool) -> Match:
    """Return a document as a match."""
    payload = read_payload(document.payload)
    return Match(document.doc_id, similarity, is_estimate, payload, document.inserted, document.expires, *shares)


def stored_of(document: Document, text: str | None, aliases: Iterable[str]) -> Stored:
    """Return a document with everything that is stored about it."""
    return Stored(
        doc_id=document.doc_id,
        payload=read_payload(document.payload),
        inserted=document.inserted,
        expires=document.expires,
        met=document.met,
        first_met=document.first_met,
        last_met=document.last_met,
        text=text,
        aliases=tuple(aliases),
    )


def write_payload(payload: Any) -> str | None:
    """Return a payload as JSON; raise if it is not a small JSON object."""
    if payload is None:
        return None
    if not isinstance(payload, Mapping):
        raise ConfigError(f"`payload` must be a dict, got {payload!r}", hint="payload={'lang': 'de'}")
    _check_nesting(payload)
    try:
        text = json.dumps(dict(payload), ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"the payload is not a JSON object: {error}", hint="use strings, numbers, lists, dicts"
        ) from error
    if size > MOST_PAYLOAD:
        raise DataError(
            f"the payload has {size:,} bytes, more than the {MOST_PAYLOAD:,} allowed",
            hint="store it elsewhere, and keep a reference to it in the payload",
        )
    return text


def _check_nesting(payload: Any) -> None:
    """Raise if a payload is nested too deeply, or has a key that JSON would turn into another one."""
    level = [payload]
    for _ in range(MOST_LEVELS):
        keys = [key for value in level if isinstance(value, Mapping) for key in value]
        if wrong := [key for key in keys if not isinstance(key, str)]:
            raise DataError(
                f"the payload is not a JSON object: it has the key {wrong[0]!r}", hint="keys must be strings"
            )
        # One more than fit in the largest payload: a list may hold another one many times.
        level = list(islice((inner for value in level for inner in _inner(value)), MOST_PAYLOAD))
        if not level:
            return
    raise DataError(f"the payload is nested more than {MOST_LEVELS} levels deep", hint="store a flatter object")


def _inner(value: Any) -> Iterable[Any]:
    values: Iterable[Any] = value.values() if isinstance(value, Mapping) else value
    return (inner for inner in values if isinstance(inner, (Mapping, list, tuple)))


def read_payload(text: str | None) -> dict[str, Any] | None:
    """Return a payload."""
    payload: dict[str, Any] | None = None if text is None else json.loads(text)
    return payload


def as_time(name: str, value: Any) -> float | None:
    """Convert a number, a datetime or a text such as 2026-01-31T12:00 to seconds since 1970."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError as error:
            raise ConfigError(f"`{name}` must be a time, got {value!r}", hint="write 2026-01-31T12:00") from error
    try:
        seconds = value.timestamp() if isinstance(value, dt.datetime) else value
        if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and math.isfinite(seconds):
            return float(seconds)
    except (OverflowError, ValueError) as error:  # beyond what the platform, or a float, can represent
        raise ConfigError(f"`{name}` is outside the supported range of times", hint="write 2026-01-31T12:00") from error
    raise ConfigError(f"`{name}` must be a datetime, or seconds since 1970, got {value!r}")


def filter_of(where: Any, since: Any) -> Callable[[Document], bool] | None:
    """Return a predicate for the requested documents; None if there is no filter."""
    after, conditions = as_time("since", since), _conditions(where)
    if after is None and not conditions:
        return None

    def is_requested(document: Document) -> bool:
        if after is not None and document.inserted <= after:
            return False
        payload = read_payload(document.payload) or {} if conditions else {}
        return all(name in payload and condition(payload[name]) for name, condition in conditions.items())

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
            found = f"the unknown operator {unknown[0]!r}" if unknown else "an empty range"
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
