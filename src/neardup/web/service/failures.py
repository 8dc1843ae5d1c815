"""Errors of an index as answers of the service: their status and code, without paths of the server."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import msgspec

from neardup.errors import (
    ConfigError,
    DamageError,
    DataError,
    DuplicateError,
    FullDiskError,
    IdExistsError,
    NearDupError,
    UnknownIdError,
    UnsyncedError,
)
from neardup.web.guard import RefusedError
from neardup.web.served_index import TooManyMatchesError
from neardup.web.service.bodies import MalformedError, TooLargeError, found_of

# The first class that fits decides.
_STATUS: Final[tuple[tuple[type[NearDupError], int, str], ...]] = (
    (TooManyMatchesError, 400, "too_many_matches"),
    (TooLargeError, 413, "too_large"),
    (DuplicateError, 409, "duplicate"),
    (IdExistsError, 422, "exists"),
    (UnknownIdError, 404, "unknown"),
    (FullDiskError, 507, "full"),
    (UnsyncedError, 503, "unsynced"),
    (DamageError, 500, "damaged"),
    (ConfigError, 422, "setting"),
    (DataError, 422, "refused"),
    (NearDupError, 503, "unavailable"),
)


def refusal_of(error: NearDupError, path: object, name: str) -> RefusedError:
    """Return the answer to a request that an index refuses; `path` is written as `name`."""
    if isinstance(error, MalformedError):
        status, code = error.status, error.code
    else:
        status, code = next(
            (status, code) for kind, status, code in _STATUS if isinstance(error, kind)
        )
    message = error.message.replace(str(path), name)
    hint = (error.hint or "/docs describes the body of every route").replace(str(path), name)
    refused = RefusedError(status, code, message, hint)
    if isinstance(error, DuplicateError):
        refused.answer["match"] = msgspec.to_builtins(found_of(error.match))
    return refused


@dataclasses.dataclass(frozen=True)
class Known:
    """What the description of the service says of an error."""

    status: int
    code: str


def described() -> list[Known]:
    """Return every error that an index causes."""
    return [Known(status, code) for _, status, code in _STATUS]


def as_line(refused: RefusedError) -> dict[str, Any]:
    """Return an error as a line of a stream."""
    return {"error": refused.answer}
