"""A connection of the server: ends one that waits for its client too long, and answers what is not valid HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import STATUS_PHRASES, H11Protocol

from neardup.web.problems import encode_problem, problem

MAX_HEADERS: Final = 1 << 14
# A client may take this long to send the headers of a request, after it connected or after the last
# answer.
HEADER_SECONDS: Final = 10.0
# Nothing on an error that comes from here is a page.
_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
# Long enough for every reason that h11 gives; some of them quote the request.
_MAX_REASON: Final = 200
# The same numbers on every platform; the module `socket` is for those who fetch something.
_IPPROTO_TCP: Final = 6
_TCP_NODELAY: Final = 1


class Connection(H11Protocol):
    """HTTP/1.1 of uvicorn, which limits neither how long headers take nor how long an answer stays unread."""

    seconds = HEADER_SECONDS
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        # asyncio does this only for sockets with a protocol number, which uvicorn's lack. Without
        # it, the body of an answer waits until the client acknowledges the headers: 40 ms for a
        # client that delays that.
        with contextlib.suppress(OSError):  # the client is gone
            transport.get_extra_info("socket").setsockopt(_IPPROTO_TCP, _TCP_NODELAY, 1)
        self._start_timer()

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._start_timer()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is not valid HTTP; uvicorn calls this while it handles the error of its parser."""
        cause = sys.exc_info()[1]
        status = 400
        if isinstance(cause, h11.RemoteProtocolError):
            status = cause.error_status_hint
            msg = f"this is not a valid HTTP request: {str(cause)[:_MAX_REASON]}"
        self._end_with(status, "malformed", msg, "send HTTP/1.1; /docs lists all routes")

    def _start_timer(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(self.seconds, self._check)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        """End a connection that still waits for its client."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if self.transport.is_closing():
            self.transport.abort()  # the client does not read the end of its answer
        elif is_answering:
            self._start_timer()  # the guard limits how long that takes
        else:
            message = f"the headers of the request did not arrive within {self.seconds:g} s"
            self._end_with(408, "incomplete", message, "end the headers with an empty line")

    def _end_with(self, status: int, code: str, message: str, hint: str) -> None:
        """Close the connection, with an error if the client waits for an answer."""
        has_sent_some = self.conn.their_state is h11.ERROR or bool(self.conn.trailing_data[0])
        if has_sent_some and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(self._encode(status, problem(status, code, message, hint)))
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()
        self._start_timer()

    def _encode(self, status: int, answer: dict[str, Any]) -> bytes:
        headers, body = encode_problem(answer, _POLICY, is_last=True)
        start = h11.Response(status_code=status, headers=headers, reason=STATUS_PHRASES[status])
        parts = [
            self.conn.send(event) for event in (start, h11.Data(data=body), h11.EndOfMessage())
        ]
        return b"".join(part for part in parts if part is not None)
