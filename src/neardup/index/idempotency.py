"""Changes that are made once: a key and the answer are stored in the commit that makes the change.

A tag holds the day, the key, a fingerprint of the request and the answer, so the format of an index
needs no table of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, Final

from neardup.errors import DataError
from neardup.index.index import Index
from neardup.index.sketches import damaged
from neardup.index.store import Result

# A key is known on the day of its change and on the next one, in UTC.
DAYS_KEPT: Final = 2
_DAY_SECONDS: Final = 86_400
_PREFIX: Final = "idempotency:"
# Old keys that a change with a key forgets: more than it adds.
_SWEPT_AT_ONCE: Final = 8


class AlreadyMadeError(Exception):
    """The change of this key was made before; `answer` is what was returned then."""

    def __init__(self, answer: str) -> None:
        super().__init__("the change of this key was made before")
        self.answer = answer


def once(index: Index, key: str, request: bytes, encode: Callable[[Any], str]) -> Index:
    """Return an index whose changes are made once.

    Args:
        index: an open index.
        key: names the change; a second one with the key raises AlreadyMadeError.
        request: what was requested; another request with the key is an error.
        encode: makes the answer, as text, of what the change returns inside the store.
    """
    return Index(_Once(index._store, key, request, encode), index._settings, index.path)


class _Once:
    """A store whose changes are made once."""

    def __init__(self, store: Any, key: str, request: bytes, encode: Callable[[Any], str]) -> None:
        self._store = store
        self._name = hashlib.blake2b(key.encode(), digest_size=16).hexdigest()
        self._fingerprint = hashlib.blake2b(request, digest_size=16).hexdigest()
        self._encode = encode

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def change(self, make: Callable[[Any], Result]) -> Result:
        """Make a change unless its key is known; then raise AlreadyMadeError."""

        def make_once(change: Any) -> Result:
            today = int(change.now // _DAY_SECONDS)
            for day in range(today, today - DAYS_KEPT, -1):
                stored = change.tag_with(f"{_of_day(day)}{self._name}:")
                if stored is not None:
                    raise AlreadyMadeError(self._answer_in(stored))
            result = make(change)
            own = [self._fingerprint, self._encode(result)]
            change.tag(f"{_of_day(today)}{self._name}:{json.dumps(own)}")
            change.drop_tags(_PREFIX, _of_day(today - DAYS_KEPT + 1), _SWEPT_AT_ONCE)
            return result

        made: Result = self._store.change(make_once)
        return made

    def _answer_in(self, stored: str) -> str:
        try:
            fingerprint, answer = json.loads(stored.partition(f"{self._name}:")[2])
        except (ValueError, TypeError, RecursionError) as error:
            raise damaged(f"the answer of an idempotency key cannot be read: {error}") from error
        if fingerprint != self._fingerprint:
            raise DataError(
                "this idempotency key was used for another request",
                hint="use a new key for every request, and the same one only to repeat it",
            )
        return str(answer)


def _of_day(day: int) -> str:
    """Return how the tags of a day begin; later days are sorted after earlier ones."""
    return f"{_PREFIX}{day:08}:"
