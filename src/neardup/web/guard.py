"""Checks every request to the server: host, origin, size, time and concurrency; adds security headers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MOST_BODY: Final = 4_000_000
MOST_AT_ONCE: Final = 16
MOST_SECONDS: Final = 20.0
# DNS rebinding: a foreign page whose name resolves to this machine still sends its own name as the host.
_HOSTS: Final = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")
HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


def problem(code: str, message: str, hint: str | None = None) -> dict[str, str | None]:
    """Return the body of an error response, the same for every route."""
    return {"code": code, "message": message, "hint": hint}


TOO_LARGE: Final = problem("too_large", f"a request must not exceed {MOST_BODY:,} bytes", "send a shorter text")


class TooLargeError(Exception):
    """A request body exceeds MOST_BODY; raised inside the application, which answers 413."""


class Guard:
    """ASGI middleware that refuses what a local page never sends."""

    def __init__(
        self, app: App, policy: str, *, most_at_once: int = MOST_AT_ONCE, seconds: float = MOST_SECONDS
    ) -> None:
        self._app, self._policy, self._most, self._seconds = app, policy.encode(), most_at_once, seconds
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return  # no WebSocket is accepted
        refused = self._refuse(scope)
        if refused is not None:
            await self._respond(send, *refused)
            return
        self._running += 1
        try:
            await self._answer(scope, receive, send)
        finally:
            self._running -= 1

    def _refuse(self, scope: Scope) -> tuple[int, dict[str, str | None]] | None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if not _HOSTS.fullmatch(headers.get(b"host", "")):
            return 403, problem(
                "host",
                "this server answers only requests to localhost",
                "open the address that `neardup serve` printed",
            )
        origin = headers.get(b"origin")
        if origin is not None and origin != f"http://{headers[b'host']}":
            return 403, problem(
                "origin",
                "this server answers only requests from its own page",
                "open the address that `neardup serve` printed",
            )
        length = headers.get(b"content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY:
            return 413, TOO_LARGE
        if self._running >= self._most:
            return 429, problem("busy", f"{self._most} requests are already in progress", "try again in a second")
        return None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun, num_bytes = False, 0

        async def take() -> MutableMapping[str, Any]:
            nonlocal num_bytes
            message = await receive()
            num_bytes += len(message.get("body", b""))
            if num_bytes > MOST_BODY:
                raise TooLargeError
            return message

        async def give(message: MutableMapping[str, Any]) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                message["headers"] = [*message.get("headers", ()), *self._headers()]
            await send(message)

        try:
            await asyncio.wait_for(self._app(scope, take, give), self._seconds)
        except TimeoutError:
            if not has_begun:
                hint = "request less, or wait until all texts are indexed"
                await self._respond(
                    send, 503, problem("too_slow", f"the request took longer than {self._seconds:g} s", hint)
                )

    def _headers(self) -> list[tuple[bytes, bytes]]:
        return [*HEADERS, (b"content-security-policy", self._policy)]

    async def _respond(self, send: Send, status: int, answer: dict[str, str | None]) -> None:
        body = json.dumps(answer).encode()
        kind = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        wait = [(b"retry-after", b"1")] if status in (429, 503) else []
        headers = [*kind, *wait, *self._headers()]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
