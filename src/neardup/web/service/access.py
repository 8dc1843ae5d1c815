"""Who may do what: the token of a request, its scope and collection, and how often it may ask."""

from __future__ import annotations

import dataclasses
import hmac
import time
from collections.abc import Sequence
from typing import Final

from neardup.web.guard import RefusedError
from neardup.web.tokens import EVERY, SCOPES, TokenFile, digest_of

READ: Final = "read"
WRITE: Final = "write"
ADMIN: Final = "admin"
# What a request without a token needs nothing for.
NOTHING: Final = "nothing"
_BEARER: Final = "bearer "
_SALT: Final = bytes(16)
# Tokens whose rates are remembered; the one that asked longest ago is forgotten.
_MAX_RATES: Final = 10_000


@dataclasses.dataclass(frozen=True)
class Grant:
    """What the sender of a request may do; token_id: how the access log names it."""

    token_id: str
    scope: str
    collection: str = EVERY

    def allows(self, scope: str, collection: str | None) -> bool:
        """Whether the sender may do what needs a scope in a collection or, if it is None, in the service."""
        is_wide = SCOPES.index(self.scope) >= SCOPES.index(scope)
        return is_wide and (collection is None or self.collection in (EVERY, collection))


ANYBODY: Final = Grant("-", READ)


class Access:
    """The tokens of a service.

    given: tokens that were given at the start, with every right; without: what a request without a
    token may do, None for nothing; rate: requests per second of one token.
    """

    def __init__(
        self,
        *,
        given: Sequence[str] = (),
        stored: TokenFile | None = None,
        without: Grant | None = ANYBODY,
        rate: float = 10_000.0,
    ) -> None:
        self._given = [digest_of(token, _SALT) for token in given]
        self._stored = stored
        self._without = without
        self._rate = rate
        self._buckets: dict[str, tuple[float, float]] = {}

    def check(self, headers: dict[str, str], scope: str, collection: str | None) -> Grant:
        """Return what the sender of a request may do; raise unless that covers what it asks for."""
        if scope == NOTHING:
            return ANYBODY
        grant = self._grant_of(headers)
        if grant is None or (grant is self._without and not grant.allows(scope, collection)):
            raise unauthorized("this request needs a token", f"send a token with the scope {scope}")
        self._count(grant.token_id)
        if not grant.allows(scope, collection):
            raise RefusedError(
                403,
                "scope",
                f"this token may not {scope} here",
                f"use a token of this collection with the scope {scope}",
            )
        return grant

    def _grant_of(self, headers: dict[str, str]) -> Grant | None:
        header = headers.get("authorization")
        if header is None:
            return self._without
        if not header.lower().startswith(_BEARER):
            raise unauthorized("`Authorization` is not of the form Bearer TOKEN", "send a token")
        given = header[len(_BEARER) :].strip()
        own = digest_of(given, _SALT)
        # Every one is compared, so that the time does not tell which is equal.
        equal = [hmac.compare_digest(own, digest) for digest in self._given]
        if any(equal):
            return Grant(f"given-{equal.index(True) + 1}", ADMIN)
        token = None if self._stored is None else self._stored.find(given)
        if token is None:
            raise unauthorized(
                "this token is unknown, expired or revoked", "`neardup token new` makes another"
            )
        return Grant(token.token_id, token.scope, token.collection)

    def _count(self, token_id: str) -> None:
        """Take one request from the bucket of a token, which holds one second of its rate."""
        now = time.monotonic()
        left, before = self._buckets.pop(token_id, (self._rate, now))
        left = min(self._rate, left + (now - before) * self._rate)
        self._buckets[token_id] = (max(left - 1, 0.0), now)
        if len(self._buckets) > _MAX_RATES:
            self._buckets.pop(next(iter(self._buckets)))
        if left < 1:
            raise RefusedError(
                429,
                "rate",
                f"this token has made more than {self._rate:g} requests in a second",
                "wait a second, or send batches",
            )


def unauthorized(message: str, hint: str) -> RefusedError:
    """Return the error for a request without a valid token."""
    refused = RefusedError(401, "token", message, f"{hint}: Authorization: Bearer TOKEN")
    refused.headers.append((b"www-authenticate", b'Bearer realm="neardup"'))
    return refused
