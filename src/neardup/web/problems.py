"""The one shape of an error, and the headers of every response."""

from __future__ import annotations

import json
from typing import Final

Headers = list[tuple[bytes, bytes]]
HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
# The status of errors that may be over in a second.
_RETRIED: Final = (429, 503)


def problem(code: str, message: str, hint: str | None = None) -> dict[str, str | None]:
    """Return the body of an error response, the same for every route."""
    return {"code": code, "message": message, "hint": hint}


def headers_with(policy: str) -> Headers:
    """Return the headers that every response carries."""
    return [*HEADERS, (b"content-security-policy", policy.encode())]


def encode_problem(
    status: int, answer: dict[str, str | None], policy: str, *, is_last: bool = False
) -> tuple[Headers, bytes]:
    """Return headers and body of an error response; `is_last` ends the connection."""
    body = json.dumps(answer).encode()
    headers = headers_with(policy)
    headers.append((b"content-type", b"application/json"))
    headers.append((b"content-length", str(len(body)).encode()))
    if status in _RETRIED:
        headers.append((b"retry-after", b"1"))
    if is_last:
        headers.append((b"connection", b"close"))
    return headers, body
