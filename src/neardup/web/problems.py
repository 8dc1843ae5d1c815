"""The one shape of an error, and the headers of every response."""

from __future__ import annotations

import json
from typing import Any, Final

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


_TITLES: Final = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    422: "Unprocessable Content",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    507: "Insufficient Storage",
}
MEDIA_TYPE: Final = "application/problem+json"


def problem(status: int, code: str, message: str, hint: str | None = None) -> dict[str, Any]:
    """Return the body of an error response, the same for every route: that of RFC 9457, and our own fields."""
    return {
        "type": "about:blank",
        "title": _TITLES.get(status, "Error"),
        "status": status,
        "code": code,
        "message": message,
        "hint": hint,
    }


def headers_with(policy: str) -> Headers:
    """Return the headers that every response carries."""
    return [*HEADERS, (b"content-security-policy", policy.encode())]


def encode_problem(
    answer: dict[str, Any], policy: str, *, is_last: bool = False
) -> tuple[Headers, bytes]:
    """Return headers and body of an error response; `is_last` ends the connection."""
    body = json.dumps(answer).encode()
    headers = headers_with(policy)
    headers.append((b"content-type", MEDIA_TYPE.encode()))
    headers.append((b"content-length", str(len(body)).encode()))
    if answer["status"] in _RETRIED:
        headers.append((b"retry-after", b"1"))
    if is_last:
        headers.append((b"connection", b"close"))
    return headers, body
