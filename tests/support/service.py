"""The service in a thread of this process, and requests to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import zlib
from typing import Any, NamedTuple

from neardup.web.guard import Senders
from neardup.web.service.access import Access
from neardup.web.service.app import SERVICE_LIMITS, Service, nothing_beside
from neardup.web.service.collection import Collection
from support.raw_server import PATIENCE, running

TOKEN = "a token with every right"  # noqa: S105
LINES = "application/x-ndjson"


class Reply(NamedTuple):
    """An answer of the service."""

    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def body(self) -> Any:
        """The answer as JSON."""
        return json.loads(self.content)

    @property
    def lines(self) -> list[Any]:
        """The lines of a stream."""
        return [json.loads(line) for line in self.content.splitlines()]

    @property
    def problem(self) -> tuple[int, str]:
        """The status and the code of an error; fails if it has another shape than all errors."""
        assert self.headers["content-type"] == "application/problem+json"
        expected = {"type", "title", "status", "code", "message", "hint"}
        assert set(self.body) >= expected
        assert self.body["status"] == self.status
        return self.status, self.body["code"]


class Asker:
    """Sends requests to a service."""

    def __init__(self, connect, token=TOKEN, collection="pages"):
        self._connect = connect
        self.token = token
        self.collection = collection

    def send(self, method, path, body=None, **headers):
        """Send a request to a path."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            sent.setdefault("Authorization", f"Bearer {self.token}")
        connection = self._connect()
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, named, answer.read())
        finally:
            connection.close()

    def get(self, operation, **headers):
        """Ask a route of the collection with GET."""
        return self.send("GET", f"/v1/collections/{self.collection}/{operation}", **headers)

    def post(self, operation, given=None, **headers):
        """Send JSON to a route of the collection."""
        headers.setdefault("Content_Type", "application/json")
        body = json.dumps({} if given is None else given)
        return self.send("POST", f"/v1/collections/{self.collection}/{operation}", body, **headers)

    def stream(self, operation, lines, **headers):
        """Send lines to a route of the collection."""
        body = b"".join(
            (one if isinstance(one, bytes) else json.dumps(one).encode()) + b"\n" for one in lines
        )
        path = f"/v1/collections/{self.collection}/{operation}"
        return self.send("POST", path, body, Content_Type=LINES, **headers)


class Served(Asker):
    """A running service: its application, its server, and requests to it."""

    def __init__(self, service, server):
        self.service = service
        self.server = server
        super().__init__(
            lambda: http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        )


@contextlib.contextmanager
def serving(
    *paths,
    write=True,
    limits=SERVICE_LIMITS,
    senders=None,
    log=None,
    header_seconds=PATIENCE,
    **access,
):
    """Serve indexes in a thread."""
    with contextlib.ExitStack() as stack:
        collections = {}
        for path in paths:
            collection = Collection(str(path), is_writable=write)
            stack.callback(collection.close)
            collections[collection.name] = collection
        service = Service(
            nothing_beside,
            "default-src 'none'; frame-ancestors 'none'",
            collections,
            Access(**({"given": [TOKEN]} | access)),
            senders=senders or Senders(),
            limits=limits,
            log=log,
        )
        stack.callback(service.close)
        server = stack.enter_context(running(service, header_seconds=header_seconds))
        yield Served(service, server)


def gzipped(content: bytes) -> bytes:
    """Compress a body."""
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()
