"""The real server in a thread, with limits of its own, and clients that send bytes instead of requests."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from typing import NamedTuple

import uvicorn

from neardup.web.connection import Connection
from neardup.web.guard import DEFAULT_LIMITS, Guard
from neardup.web.server import configure

HOST = b"Host: 127.0.0.1\r\n"
# As long as a busy machine may need.
PATIENCE = 60


class Answered(NamedTuple):
    """A response as a client reads it."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self):
        """The code of an error; fails if it has another shape than all errors."""
        assert self.headers["content-type"] == "application/problem+json"
        problem = json.loads(self.body)
        assert set(problem) >= {"type", "title", "status", "code", "message", "hint"}
        assert problem["status"] == self.status
        assert problem["message"]
        assert problem["hint"]
        return problem["code"]


def answered(content):
    """Parse the bytes of one whole response."""
    head, _, body = content.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return Answered(int(first.split()[1]), headers, body)


class RawServer:
    """A running server."""

    def __init__(self, server, port):
        self.server = server
        self.port = port
        self._clients = contextlib.ExitStack()

    def connect(self, *, receive_bytes=None):
        """Return a connection; it closes with the server."""
        client = self._clients.enter_context(socket.socket())
        client.settimeout(PATIENCE)
        if receive_bytes is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        client.connect(("127.0.0.1", self.port))
        return client

    def send(self, content):
        """Send bytes on a new connection, and return it."""
        client = self.connect()
        client.sendall(content)
        return client

    def exchange(self, content):
        """Send bytes on a new connection; return the response, once the server has closed the connection."""
        return answered(read_to_end(self.send(content)))

    def get(self, path="/healthz"):
        """Ask with GET."""
        return self.exchange(
            b"GET " + path.encode() + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
        )

    def post(self, content, path="/v1/query"):
        """Ask with POST."""
        return self.exchange(body_head(len(content), path) + content)

    @property
    def connections(self):
        """The connections that the server has."""
        return self.server.server_state.connections

    def close(self):
        """Close all clients."""
        self._clients.close()


def body_head(num_bytes, path="/v1/query"):
    """The beginning of a request that announces a body."""
    length = str(num_bytes).encode()
    return (
        b"POST " + path.encode() + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n"
        b"Content-Length: " + length + b"\r\n\r\n"
    )


def read_to_end(client):
    """Everything that the server sends before it closes the connection."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := client.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def wait_for(condition):
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "the condition never held"
        time.sleep(0.01)


@contextlib.contextmanager
def running(app, *, header_seconds=PATIENCE):
    """Run a guarded application in a thread."""
    protocol = type("Impatient", (Connection,), {"seconds": header_seconds})
    config = configure(app, host="127.0.0.1", port=0, protocol=protocol)
    bound = config.bind_socket()
    bound.listen(128)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    started = RawServer(server, bound.getsockname()[1])
    try:
        yield started
    finally:
        started.close()
        server.should_exit = True
        thread.join(PATIENCE)
        bound.close()


def answering(body=b"{}", limits=DEFAULT_LIMITS, before=None):
    """Return a guarded application that answers everything with a body, after it awaited `before`."""

    async def app(scope, _receive, send):
        if scope["type"] != "http":
            return
        if before is not None:
            await before()
        length = str(len(body)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", length)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return Guard(app, "default-src 'none'", limits)
