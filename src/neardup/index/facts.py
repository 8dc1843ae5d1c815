"""Facts about documents besides their contents: payloads, and the times at which they expire."""

from __future__ import annotations

import datetime as dt
import json
import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.config import Config
from neardup.errors import ConfigError, DataError, NearDupError
from neardup.index.sketches import damaged
from neardup.index.store import Document, is_expired
from neardup.io.columns.column_values import values_of

# The arguments that name them, which are also the columns where they are looked for.
PAYLOAD: Final = "payload"
EXPIRES: Final = "expires"
_EMPTY: Final = ""
_DIGITS_OF_A_DAY: Final = 8
MAX_PAYLOAD: Final = 1 << 16
# Python parses JSON recursively, so a payload that could just be written might not be readable from
# a deeper call.
MAX_LEVELS: Final = 100


class Facts(NamedTuple):
    """The payload, as JSON, and the time of expiry of each document of a batch; None if none has one."""

    payloads: Sequence[str | None] | None = None
    expires: Sequence[float | None] | None = None

    def of(self, document: Document, at: int) -> Document:
        """Return a document with the facts at an index of the batch."""
        payload = None if self.payloads is None else self.payloads[at]
        expires = None if self.expires is None else self.expires[at]
        return document._replace(payload=payload, expires=expires)

    def is_expired(self, at: int, now: float) -> bool:
        """Whether the document at an index of the batch has expired."""
        expires = None if self.expires is None else self.expires[at]
        return is_expired(expires, now)

    def slice(self, first: int, stop: int) -> Facts:
        """Return the facts of some consecutive documents."""
        payloads = None if self.payloads is None else self.payloads[first:stop]
        expires = None if self.expires is None else self.expires[first:stop]
        return Facts(payloads, expires)

    def take(self, indexes: Sequence[int]) -> Facts:
        """Return the facts at some indexes."""
        if self.payloads is None:
            payloads = None
        else:
            payloads = [self.payloads[at] for at in indexes]
        if self.expires is None:
            expires = None
        else:
            expires = [self.expires[at] for at in indexes]
        return Facts(payloads, expires)


class FactSource:
    """Where the facts of a source are: in columns, keys of dicts, or sequences with one value per document.

    columns: the column of each fact that may have one; given: the values of each fact that is a
    sequence.
    """

    def __init__(self, payload: Any, expires: Any, config: Config) -> None:
        self.columns: dict[str, str] = {}
        self.given: dict[str, list[Any]] = {}
        self._named: set[str] = set()
        for fact, source in ((PAYLOAD, payload), (EXPIRES, expires)):
            if source is None:
                if fact not in _columns_used(config):
                    self.columns[fact] = fact
            elif not isinstance(source, str):
                self.given[fact] = _values(fact, source)
            elif source != _EMPTY:
                self.columns[fact] = source
                self._named.add(fact)

    def check_found(self, found: Iterable[str]) -> None:
        """Raise if no row of the source has a column that an argument names."""
        known = set(found)
        for fact in sorted(self._named):
            if self.columns[fact] not in known:
                raise DataError(
                    f"`{fact}` names {self.columns[fact]!r}, a column that no row of the source has",
                    hint="name a column of the source, or leave this out",
                )

    def check_files(self) -> None:
        """Raise if values are given for files, whose rows have no order that a caller could know."""
        for fact in self.given:
            raise ConfigError(
                f"`{fact}` must be the name of a column for files",
                hint=f"{fact}='meta', for example",
            )

    def check_length(self, num_rows: int) -> None:
        """Raise unless there is one value per document."""
        for fact, values in self.given.items():
            if len(values) != num_rows:
                raise DataError(
                    f"`{fact}` must have one value per document, got {len(values)} for {num_rows} documents",
                    hint="list them in the order of the documents, None for one without",
                )


def read_facts(values: Mapping[str, Sequence[Any]]) -> tuple[Facts, dict[int, str]]:
    """Return the facts that rows have, and the reason for each row that has a wrong one; `values` by fact."""
    reasons: dict[int, str] = {}
    payloads = _each(PAYLOAD, values, reasons)
    expires = _each(EXPIRES, values, reasons)
    return Facts(payloads, expires), reasons


def _each(
    fact: str, values: Mapping[str, Sequence[Any]], reasons: dict[int, str]
) -> list[Any] | None:
    found: list[Any] = []
    for row, value in enumerate(values.get(fact, ())):
        try:
            found.append(None if _is_missing(value) else _READERS[fact](value))
        except NearDupError as error:
            reasons.setdefault(row, error.message)
            found.append(None)
    return found if any(value is not None for value in found) else None


def _read_payload(value: Any) -> str | None:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise DataError(f"the payload is not a JSON object: {error}") from error
        if value is None:
            return None
    if not isinstance(value, Mapping):
        raise DataError(f"the payload is not a JSON object: {_shown(value)}")
    return write_payload(value)


def _read_time(value: Any) -> float | None:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]")  # of nanoseconds, `item` returns a number
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        value = _number_or_text(value)
    elif isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    try:
        return as_time(EXPIRES, value)
    except ConfigError as error:
        raise DataError(f"expires is not a time: {_shown(value)}") from error


def _number_or_text(text: str) -> float | str:
    """Return the seconds in a text; another text, and eight digits, which are a day as in 20261231, stay a text."""
    if text.isdigit() and len(text) == _DIGITS_OF_A_DAY:
        return text
    try:
        return float(text)
    except ValueError:
        return text


_READERS: Final = {PAYLOAD: _read_payload, EXPIRES: _read_time}


def _is_missing(value: Any) -> bool:
    """Whether a value stands for no value: None, and what frames write instead, which is unequal to itself."""
    return value is None or (isinstance(value, (float, dt.datetime)) and value != value)


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, Exception) else reprlib.repr(value)


def _columns_used(config: Config) -> set[str]:
    texts: tuple[str | None, ...]
    if isinstance(config.text_column, tuple):
        texts = config.text_column
    else:
        texts = (config.text_column,)
    others = (config.id_column, config.items_column, config.vector_column)
    return {name for name in (*texts, *others) if name is not None}


def _values(fact: str, source: Any) -> list[Any]:
    """Return a sequence of values as a list; raise for anything else."""
    if isinstance(source, pa.ChunkedArray):
        source = source.combine_chunks()
    if isinstance(source, np.ndarray) and source.dtype != object:
        source = pa.array(source)
    if isinstance(source, pa.Array):
        return values_of(source, np.arange(len(source)))
    if isinstance(source, (bytes, Mapping, set, frozenset)) or not isinstance(source, Iterable):
        raise ConfigError(
            f"`{fact}` must be the name of a column, or a list with one value per document, got {_shown(source)}",
            hint=f"{fact}=[...] in the order of the documents",
        )
    return list(source)


def write_payload(payload: Any) -> str | None:
    """Return a payload as JSON; raise if it is not a small JSON object."""
    if payload is None:
        return None
    if not isinstance(payload, Mapping):
        raise ConfigError(
            f"`payload` must be a dict, got {payload!r}", hint="payload={'lang': 'de'}"
        )
    _check_nesting(payload)
    try:
        text = json.dumps(dict(payload), ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"the payload is not a JSON object: {error}", hint="use strings, numbers, lists, dicts"
        ) from error
    if size > MAX_PAYLOAD:
        raise DataError(
            f"the payload has {size:,} bytes, more than the {MAX_PAYLOAD:,} allowed",
            hint="store it elsewhere, and keep a reference to it in the payload",
        )
    return text


def _check_nesting(payload: Any) -> None:
    """Raise if a payload is nested too deeply, or has a key that JSON would turn into another one."""
    level = [payload]
    for _ in range(MAX_LEVELS):
        for key in chain.from_iterable(value for value in level if isinstance(value, Mapping)):
            if not isinstance(key, str):
                raise DataError(
                    f"the payload is not a JSON object: it has the key {key!r}",
                    hint="keys must be strings",
                )
        # One more than fit in the largest payload: a list may hold another one many times.
        level = list(islice(chain.from_iterable(map(_inner, level)), MAX_PAYLOAD))
        if not level:
            return
    raise DataError(
        f"the payload is nested more than {MAX_LEVELS} levels deep", hint="store a flatter object"
    )


def _inner(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        values: Iterable[Any] = value.values()
    else:
        values = value
    return (inner for inner in values if isinstance(inner, (Mapping, list, tuple)))


def read_payload(document: Document) -> dict[str, Any] | None:
    """Return the payload of a document; raise if it is not one that `write_payload` makes."""
    if document.payload is None:
        return None
    try:
        payload = json.loads(document.payload)
    except (ValueError, RecursionError) as error:
        raise damaged(
            f"the payload of document number {document.number} cannot be read: {error}"
        ) from error
    if not isinstance(payload, dict):
        raise damaged(f"the payload of document number {document.number} is not a JSON object")
    return payload


def as_time(name: str, value: Any) -> float | None:
    """Convert a number, a datetime or a text such as 2026-01-31T12:00 to seconds since 1970."""
    if value is None:
        return None
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError as error:
            raise ConfigError(
                f"`{name}` must be a time, got {value!r}", hint="write 2026-01-31T12:00"
            ) from error
    try:
        if isinstance(value, dt.datetime):
            seconds = value.timestamp()
        else:
            seconds = value
        if (
            isinstance(seconds, (int, float))
            and not isinstance(seconds, bool)
            and math.isfinite(seconds)
        ):
            return float(seconds)
    except (
        OverflowError,
        ValueError,
    ) as error:
        # Beyond what the platform, or a float, can represent.
        raise ConfigError(
            f"`{name}` is outside the supported range of times", hint="write 2026-01-31T12:00"
        ) from error
    raise ConfigError(f"`{name}` must be a datetime, or seconds since 1970, got {value!r}")
