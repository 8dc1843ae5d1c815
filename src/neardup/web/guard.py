"""Checks every request to the server: host, origin, site, size, time and concurrency; adds security headers."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final

from neardup.web.problems import encode_problem, headers_with, problem

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY: Final = 4_000_000
# A larger answer is sent in pieces: the next one when the client has taken the last one.
PIECE: Final = 1 << 16
# DNS rebinding: a foreign page whose name resolves to this machine still sends its own name as the
# host.
_HOSTS: Final = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?")
# Requests of the server's own page, and addresses that the user opened. The image or script of a
# foreign page has no `Origin`, but browsers say that it is cross-site.
_OWN_SITES: Final = ("same-origin", "none")
_TIMED_OUT: Final = 408


@dataclasses.dataclass(frozen=True)
class Limits:
    """What all clients together may use.

    A request takes one of `most_at_once` slots only while its answer is computed. While its body is
    read, and while its answer is sent, it waits for the client: it takes none, and its bytes count
    towards `max_pending_bytes`.
    """

    most_at_once: int = 16
    seconds: float = 20.0
    most_bodies: int = 64
    body_seconds: float = 10.0
    sending_seconds: float = 30.0
    max_pending_bytes: int = 128_000_000


DEFAULT_LIMITS: Final = Limits()


class Senders:
    """Who may ask: by the names of the server, and by the sites of pages.

    hosts: names besides those of loopback, with or without a port; origins: sites of foreign pages
    that may read answers; scheme: "http", or "https" if the server speaks TLS.
    """

    def __init__(
        self, hosts: Sequence[str] = (), origins: Sequence[str] = (), scheme: str = "http"
    ) -> None:
        self._hosts = frozenset(hosts)
        self.origins = frozenset(origins)
        self._scheme = scheme

    def check(self, headers: dict[str, str]) -> None:
        """Raise unless a request comes from an own or a named page, from an address that was opened, or a program."""
        hint = "open the address that `neardup serve` printed"
        host = headers.get("host", "")
        if not _HOSTS.fullmatch(host) and not self._knows(host):
            raise RefusedError(403, "host", "this server answers only requests to localhost", hint)
        origin = headers.get("origin")
        if origin is not None and origin in self.origins:
            return
        if origin is not None and origin != f"{self._scheme}://{host}":
            raise RefusedError(
                403, "origin", "this server answers only requests from its own page", hint
            )
        site = headers.get("sec-fetch-site")
        if site is not None and site not in _OWN_SITES:
            message = f"this server answers only requests from its own page, not from a page that is {site!r}"
            raise RefusedError(
                403, "site", message, f"{hint}, by typing or pasting it into the browser"
            )

    def _knows(self, host: str) -> bool:
        return host in self._hosts or host.rpartition(":")[0] in self._hosts


LOOPBACK: Final = Senders()


class RefusedError(Exception):
    """A request that gets an error instead of its answer."""

    def __init__(self, status: int, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.status = status
        self.answer = problem(status, code, message, hint)
        self.headers: list[tuple[bytes, bytes]] = []


class DisconnectedError(Exception):
    """The client left before it had sent its request."""


@dataclasses.dataclass
class Answer:
    """What the application answers."""

    status: int = 500
    headers: list[tuple[bytes, bytes]] = dataclasses.field(default_factory=list)
    body: bytes = b""

    async def take(self, message: Message) -> None:
        """Take a message of the application."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = list(message.get("headers", ()))
        else:
            self.body += message.get("body", b"")


class Guard:
    """ASGI middleware that refuses what a local page never sends."""

    def __init__(
        self, app: App, policy: str, limits: Limits = DEFAULT_LIMITS, senders: Senders = LOOPBACK
    ) -> None:
        self._app = app
        self._senders = senders
        self._policy = policy
        self._limits = limits
        self._running = 0
        self._bodies = 0
        self._pending_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        if scope["type"] != "http":
            return  # no WebSocket is accepted
        try:
            headers = headers_of(scope)
            self._senders.check(headers)
            await self._respond(scope, headers, receive, send)
        except RefusedError as refused:
            status = refused.status
            # The rest of a request that took too long must not be read as the next one.
            is_last = status == _TIMED_OUT
            error_headers, body = encode_problem(refused.answer, self._policy, is_last=is_last)
            error_headers += refused.headers
            await send({"type": "http.response.start", "status": status, "headers": error_headers})
            await send({"type": "http.response.body", "body": body})
        except DisconnectedError:
            return

    async def _respond(
        self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send
    ) -> None:
        """Answer a request whose sender may ask."""
        check_length(headers)
        body = await self._read_body(headers, receive)
        answer = await self._answer(scope, body)
        await self._send(answer, send)

    async def _read_body(self, headers: dict[str, str], receive: Receive) -> bytes:
        """Return the whole body of a request."""
        if "transfer-encoding" not in headers and int(headers.get("content-length", "0")) == 0:
            return b""
        if self._bodies >= self._limits.most_bodies:
            raise _busy(f"{self._bodies} requests are already being received")
        body = bytearray()
        self._bodies += 1
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                await self._receive_into(body, receive)
        except TimeoutError as error:
            message = f"the request did not arrive within {self._limits.body_seconds:g} s"
            raise RefusedError(
                _TIMED_OUT, "incomplete", message, "send all bytes that its headers announce"
            ) from error
        finally:
            self._bodies -= 1
            self._pending_bytes -= len(body)
        return bytes(body)

    async def _receive_into(self, body: bytearray, receive: Receive) -> None:
        has_more = True
        while has_more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise DisconnectedError
            part = message.get("body", b"")
            if len(body) + len(part) > MAX_BODY:
                raise _too_large()
            self._check_pending(len(body) + len(part), added=len(part))
            body += part
            self._pending_bytes += len(part)
            has_more = message.get("more_body", False)

    def _check_pending(self, size: int, *, added: int) -> None:
        """Raise if clients hold too many bytes; one of few bytes is always served, as their number is limited."""
        if size > PIECE and self._pending_bytes + added > self._limits.max_pending_bytes:
            raise _busy(
                f"requests and answers of {self._pending_bytes:,} bytes are already on their way"
            )

    async def _answer(self, scope: Scope, body: bytes) -> Answer:
        """Return what the application answers, in one of the slots."""
        if self._running >= self._limits.most_at_once:
            raise _busy(f"{self._limits.most_at_once} requests are already in progress")
        answer = Answer()
        is_head = scope["method"] == "HEAD"
        asked = {**scope, "method": "GET"} if is_head else scope
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def take_body() -> Message:
            return next(messages, {"type": "http.disconnect"})

        self._running += 1
        try:
            app = scope.get("neardup.app", self._app)
            await asyncio.wait_for(app(asked, take_body, answer.take), self._limits.seconds)
        except TimeoutError as error:
            message = f"the request took longer than {self._limits.seconds:g} s"
            hint = "request less, or wait until all texts are indexed"
            raise RefusedError(503, "too_slow", message, hint) from error
        except RefusedError:
            raise
        except Exception as error:
            message = f"the server failed: {type(error).__name__}: {error}"
            raise RefusedError(
                500, "failed", message, "check the run or the index, or report a bug"
            ) from error
        finally:
            self._running -= 1
        if is_head:
            answer.body = b""
        return answer

    async def _send(self, answer: Answer, send: Send, policy: str | None = None) -> None:
        """Send an answer, as fast as the client takes it; policy: what a page in it may load."""
        size = len(answer.body)
        self._check_pending(size, added=size)
        headers = [*answer.headers, *headers_with(policy or self._policy)]
        self._pending_bytes += size
        try:
            async with asyncio.timeout(self._limits.sending_seconds):
                await send(
                    {"type": "http.response.start", "status": answer.status, "headers": headers}
                )
                for first in range(0, max(size, 1), PIECE):
                    stop = first + PIECE
                    piece = answer.body[first:stop]
                    await send(
                        {"type": "http.response.body", "body": piece, "more_body": stop < size}
                    )
        except TimeoutError:
            return  # an unfinished answer ends the connection
        finally:
            self._pending_bytes -= size


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers of a request; values of a repeated one are joined, as HTTP defines it."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1").lower()
        value = raw_value.decode("latin-1")
        if name in headers:
            headers[name] = f"{headers[name]}, {value}"
        else:
            headers[name] = value
    return headers


def check_length(headers: dict[str, str]) -> None:
    """Raise if a request announces too many bytes."""
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > MAX_BODY:
        raise _too_large()


def _too_large() -> RefusedError:
    return RefusedError(
        413, "too_large", f"a request must not exceed {MAX_BODY:,} bytes", "send a shorter text"
    )


def _busy(message: str) -> RefusedError:
    return RefusedError(429, "busy", message, "try again in a second")
