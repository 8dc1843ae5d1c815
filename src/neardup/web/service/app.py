"""The service as an ASGI application: finds the route, checks the token, reads, computes, and answers."""

from __future__ import annotations

import asyncio
import dataclasses
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import msgspec

from neardup.errors import NearDupError
from neardup.web.guard import (
    Answer,
    App,
    DisconnectedError,
    Guard,
    Limits,
    Message,
    Receive,
    RefusedError,
    Scope,
    Send,
    Senders,
    check_length,
    headers_of,
)
from neardup.web.problems import headers_with
from neardup.web.service import bodies, metrics, ndjson, openapi
from neardup.web.service.access import READ, WRITE, Access
from neardup.web.service.collection import MAX_PAGE, PAGE, Answered, Collection
from neardup.web.service.failures import as_line, refusal_of
from neardup.web.service.routes import PREFIX, Address, Route, find

JSON: Final = "application/json"
TOOLS_PREFIX: Final = "/mcp/"
# The application with the tools of every scope that has some.
Tools = Mapping[str, App]
SERVICE_LIMITS: Final = Limits(most_at_once=256, most_bodies=256, body_seconds=10.0)
MAX_WRITES: Final = 64
MAX_STREAMS: Final = 8
# Answers of a stream wait for the end of its request up to this many bytes: many clients read only
# then.
_BUFFERED_BYTES: Final = 4_000_000
_READERS: Final = 4
# Each waits for the disk while others commit; they share syncs.
_WRITERS: Final = 8
_MAX_KEY: Final = 200
_POLICY: Final = "default-src 'none'; frame-ancestors 'none'"
_NAMES_OF_DOCS: Final = ("/docs", "/openapi.json", "/v1/openapi.json")


@dataclasses.dataclass
class _Seen:
    """What the access log and the metrics say of a request."""

    route: str = "other"
    collection: str | None = None
    token_id: str = "-"  # noqa: S105 - a name
    status: int = 0
    sent: int = 0
    code: str | None = None


class Service(Guard):
    """Collections behind routes, tokens and limits."""

    def __init__(  # noqa: PLR0913 - what a service is made of
        self,
        beside: App,
        policy: str,
        collections: Mapping[str, Collection],
        access: Access,
        *,
        senders: Senders,
        limits: Limits = SERVICE_LIMITS,
        log: Callable[[bytes], object] | None = None,
        description: dict[str, Any] | None = None,
        tools: Tools | None = None,
    ) -> None:
        """Make a service.

        Args:
            beside: answers every other path, as the page of an index does.
            policy: what its pages may load.
            collections: by name.
            access: the tokens.
            senders: who may ask.
            limits: what all clients together may use.
            log: called with a line for every request.
            description: that of the routes of `beside`.
            tools: those for agents.
        """
        super().__init__(beside, policy, limits, senders)
        self._collections = collections
        self._access = access
        self._log = log
        self._tools = tools or {}
        self._described = openapi.described(description or {})
        self._docs = openapi.page(self._described)
        self._metrics = metrics.Metrics()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="read")
        self._writers = ThreadPoolExecutor(_WRITERS, thread_name_prefix="write")
        self._reads = self._writes = self._streams = 0
        self.is_closing = False

    def close(self) -> None:
        """Wait for the changes that are being made."""
        self.is_closing = True
        self._readers.shutdown(cancel_futures=True)
        self._writers.shutdown(cancel_futures=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it; count and log it."""
        if scope["type"] == "lifespan" and self._tools:
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        began = time.perf_counter()
        seen = _Seen()
        scope["neardup.seen"] = seen
        extra = self._cors_of(headers_of(scope))

        async def watch(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
                if extra:
                    message["headers"] = [*message["headers"], *extra]
            else:
                seen.sent += len(message.get("body", b""))
            await send(message)

        try:
            await super().__call__(scope, receive, watch)
        finally:
            self._note(scope, seen, time.perf_counter() - began)

    def _note(self, scope: Scope, seen: _Seen, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._metrics.add(method=method, route=seen.route, status=seen.status, seconds=seconds)
        if self._log is None:
            return
        client = scope.get("client")
        entry = {
            "time": time.time(),
            "client": client[0] if client else None,
            "method": method,
            "route": seen.route,
            "collection": seen.collection,
            "token": seen.token_id,
            "status": seen.status,
            "code": seen.code,
            "seconds": round(seconds, 6),
            "bytes": seen.sent,
        }
        self._log(msgspec.json.encode(entry) + b"\n")

    def _cors_of(self, headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
        """Return the headers that let a page of a named site read the answer."""
        origin = headers.get("origin")
        if origin not in self._senders.origins:
            return []
        return [(b"access-control-allow-origin", origin.encode()), (b"vary", b"origin")]

    async def _respond(
        self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send
    ) -> None:
        seen: _Seen = scope["neardup.seen"]
        try:
            if scope["method"] == "OPTIONS" and headers.get("origin") in self._senders.origins:
                await self._send(_preflight(), send)
                return
            address = find(scope["method"], scope["path"])
            if address is None:
                await self._respond_beside(scope, headers, receive, send)
                return
            seen.route = address.route.path
            await self._respond_at(address, scope, headers, receive, send)
        except RefusedError as refused:
            seen.code = refused.answer["code"]
            self._metrics.reject(refused.answer["code"])
            raise

    async def _respond_beside(
        self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send
    ) -> None:
        """Answer the docs, which everybody may read, and what is beside the service."""
        path = scope["path"]
        if path in _NAMES_OF_DOCS and scope["method"] in ("GET", "HEAD"):
            is_page = path == "/docs"
            body = self._docs if is_page else msgspec.json.encode(self._described)
            kind = "text/html; charset=utf-8" if is_page else JSON
            await self._send_body(scope, send, body, kind=kind, policy=openapi.PAGE_POLICY)
            return
        if path.startswith(TOOLS_PREFIX):
            await self._use_tools(scope, headers, receive, send)
            return
        scope["neardup.seen"].route = path if path in ("/", "/v1/query", "/v1/info") else "other"
        if path != "/":
            self._access.check(headers, READ, self._only_name())
        await super()._respond(scope, headers, receive, send)

    async def _use_tools(
        self, scope: Scope, headers: dict[str, str], receive: Receive, send: Send
    ) -> None:
        """Let an agent use the tools of a collection that its token allows."""
        seen: _Seen = scope["neardup.seen"]
        seen.route = f"{TOOLS_PREFIX}{{name}}"
        name = scope["path"][len(TOOLS_PREFIX) :]
        grant = self._access.check(headers, READ, name)
        seen.token_id = grant.token_id
        if name not in self._collections or not self._tools:
            raise RefusedError(404, "unknown", "there are no such tools", "neardup serve --mcp")
        may_write = grant.allows(WRITE, name) and WRITE in self._tools
        scope["neardup.app"] = self._tools[WRITE if may_write else READ]
        body = await self._given(headers, receive)
        answer = await self._answer(scope, body)
        await self._send(answer, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start what the tools need, and end it when the server stops."""
        stops = [asyncio.Event() for _ in self._tools]
        starts = [asyncio.Event() for _ in self._tools]

        async def live(app: App, started: asyncio.Event, stop: asyncio.Event) -> None:
            messages = iter(["lifespan.startup"])

            async def take() -> Message:
                kind = next(messages, None)
                if kind is None:
                    await stop.wait()
                return {"type": kind or "lifespan.shutdown"}

            async def note(_: Message) -> None:
                started.set()

            await app({"type": "lifespan"}, take, note)

        async with asyncio.TaskGroup() as group:
            await receive()
            for app, started, stop in zip(self._tools.values(), starts, stops, strict=True):
                group.create_task(live(app, started, stop))
                await started.wait()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            for stop in stops:
                stop.set()
        await send({"type": "lifespan.shutdown.complete"})

    def _only_name(self) -> str | None:
        """The collection of /v1/query and /v1/info."""
        return next(iter(self._collections)) if len(self._collections) == 1 else None

    async def _respond_at(
        self,
        address: Address,
        scope: Scope,
        headers: dict[str, str],
        receive: Receive,
        send: Send,
    ) -> None:
        seen: _Seen = scope["neardup.seen"]
        route = address.route
        grant = self._access.check(headers, route.scope, address.collection)
        seen.token_id = grant.token_id
        if not route.is_of_collection:
            own = await self._of_service(route, headers)
            await self._send_body(scope, send, own.body, status=own.status, kind=_kind_of(route))
            return
        collection = self._collection_of(address)
        seen.collection = collection.name
        is_lines = _media_of(headers) == ndjson.MEDIA_TYPE
        if route.has_lines and route.method == "POST" and is_lines:
            await self._stream_in(route, collection, scope, headers, receive, send)
        elif route.call == "page" and headers.get("accept", "").startswith(ndjson.MEDIA_TYPE):
            await self._stream_out(collection, send)
        elif route.method == "POST":
            given = await self._given(headers, receive)
            key = _key_of(headers, route)
            own = await self._run(route, collection, lambda: _answer(route, collection, given, key))
            await self._send_body(scope, send, own.body, status=own.status, is_replay=own.is_replay)
        else:
            options = _query_of(scope)
            own = await self._run(
                route, collection, lambda: _answer_get(route, collection, address.doc_id, options)
            )
            await self._send_body(scope, send, own.body, status=own.status)

    def _collection_of(self, address: Address) -> Collection:
        collection = self._collections.get(address.collection or "")
        if collection is None:
            raise RefusedError(
                404, "unknown", "there is no such collection", f"GET {PREFIX} lists them"
            )
        needs_writing = address.route.writes or address.route.call == "compact"
        if needs_writing and not collection.is_writable:
            raise RefusedError(403, "read_only", "this server only reads", "start it with --write")
        if needs_writing and collection.failure is not None:
            raise RefusedError(
                503, "unsynced", f"{collection.name} cannot be written", "restart the server"
            )
        return collection

    async def _given(self, headers: dict[str, str], receive: Receive) -> bytes:
        """Return the body of a request, decompressed."""
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        if has_body and _media_of(headers) != JSON:
            raise RefusedError(
                415, "media_type", "the body must be JSON", f"send Content-Type: {JSON}"
            )
        check_length(headers)
        body = await self._read_body(headers, receive)
        return ndjson.unpacked(body) if _is_gzip(headers) and body else body

    # --- computing, in threads ---

    async def _run(
        self, route: Route, collection: Collection, make: Callable[[], Answered]
    ) -> Answered:
        """Compute an answer in a thread; refuse it if too many wait."""
        if route.writes:
            if self._writes >= MAX_WRITES:
                raise _busy(f"{self._writes} changes are already waiting")
            self._writes += 1
            future = self._submit(self._writers, make, self._end_write)
        else:
            if self._reads >= self._limits.most_at_once:
                raise _busy(f"{self._reads} requests are already in progress")
            self._reads += 1
            future = self._submit(self._readers, make, self._end_read)
        waiting: asyncio.Future[Answered] = asyncio.wrap_future(future)
        try:
            seconds = None if route.is_slow else self._limits.seconds
            return await asyncio.wait_for(waiting, seconds)
        except TimeoutError as error:
            raise RefusedError(
                503,
                "too_slow",
                f"the request took longer than {self._limits.seconds:g} s",
                "request less; a change may still be made: repeat it with its Idempotency-Key",
            ) from error
        except NearDupError as error:
            raise refusal_of(error, collection.index.path, collection.name) from error
        except RefusedError:
            raise
        except Exception as error:
            raise RefusedError(
                500, "failed", f"the server failed: {type(error).__name__}", "report a bug"
            ) from error

    def _submit(
        self, pool: ThreadPoolExecutor, make: Callable[[], Any], end: Callable[[], None]
    ) -> Future[Any]:
        """Run something in a thread; `end` is called here once it has ended, even if nobody waits for it any more."""
        loop = asyncio.get_running_loop()
        future = pool.submit(make)

        def is_done(_: Future[Any]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(end)

        future.add_done_callback(is_done)
        return future

    def _end_read(self) -> None:
        self._reads -= 1

    def _end_write(self) -> None:
        self._writes -= 1

    async def _of_service(self, route: Route, headers: dict[str, str]) -> Answered:
        """Answer a route of no collection."""
        if route.operation == "/healthz":
            return Answered(200, b'{"status":"ok"}')
        if route.operation == "/readyz":
            failed = [one.name for one in self._collections.values() if one.failure is not None]
            is_ready = not failed and not self.is_closing
            status = "ready" if is_ready else "not ready"
            body = msgspec.json.encode({"status": status, "num_failed": len(failed)})
            return Answered(200 if is_ready else 503, body)
        if route.operation == "/metrics":
            loop = asyncio.get_running_loop()
            gauges = await loop.run_in_executor(self._readers, self._gauges)
            own = "\n".join(self._metrics.lines(gauges)) + "\n"
            return Answered(200, own.encode())
        readable = []
        for collection in self._collections.values():
            try:
                self._access.check(headers, READ, collection.name)
            except RefusedError:
                continue
            readable.append({"name": collection.name, "is_writable": collection.is_writable})
        return Answered(200, msgspec.json.encode({"collections": readable}))

    def _gauges(self) -> list[tuple[str, str, metrics.Labels, float]]:
        found: list[tuple[str, str, metrics.Labels, float]] = [
            ("neardup_queue", "Requests that wait or run.", (("kind", "read"),), self._reads),
            ("neardup_queue", "", (("kind", "write"),), self._writes),
            ("neardup_queue", "", (("kind", "stream"),), self._streams),
        ]
        counted = {one.name: one.index.counts() for one in self._collections.values()}
        for name in ("documents", "aliases", "segments", "unflushed", "merges"):
            for collection, counts in counted.items():
                labels = (("collection", collection),)
                about = f"Number of {name} of a collection."
                found.append((f"neardup_{name}", about, labels, counts[name]))
        return found

    # --- streams ---

    async def _stream_in(
        self,
        route: Route,
        collection: Collection,
        scope: Scope,
        headers: dict[str, str],
        receive: Receive,
        send: Send,
    ) -> None:
        """Answer every line of a request by a line."""
        options = _query_of(scope)
        if route.writes:
            on_duplicate = options.get("on_duplicate", "skip")
            try:
                msgspec.convert(on_duplicate, bodies.OnDuplicate)
            except msgspec.ValidationError as error:
                message = f"`on_duplicate`: {error}"
                raise RefusedError(
                    422, "invalid", message, "skip, replace, link or insert"
                ) from error

            def make(batch: list[bytes]) -> bytes:
                return ndjson.write_lines(collection, route.operation, batch, on_duplicate)
        else:
            asked = _stream_options(options)

            def make(batch: list[bytes]) -> bytes:
                return ndjson.query_lines(collection, batch, asked)

        if self._streams >= MAX_STREAMS:
            raise _busy(f"{self._streams} streams are already open")
        self._streams += 1
        stream = _LineAnswer(send, self._policy_headers(), self._limits.sending_seconds)
        try:
            await self._answer_lines(route, collection, headers, receive, stream, make)
        except RefusedError as refused:
            if not stream.has_answers:
                raise
            await stream.end_with(refused)
        except TimeoutError:
            return  # the client does not read: an unfinished answer ends the connection
        finally:
            self._streams -= 1

    async def _answer_lines(
        self,
        route: Route,
        collection: Collection,
        headers: dict[str, str],
        receive: Receive,
        stream: _LineAnswer,
        make: Callable[[list[bytes]], bytes],
    ) -> None:
        pool = self._writers if route.writes else self._readers

        async def answer_all(batches: Iterator[list[bytes]]) -> None:
            def answer_next() -> bytes | None:
                batch = next(batches, None)
                return None if batch is None else make(batch)

            answers: bytes | None = b""
            while answers is not None:
                future = self._submit(pool, answer_next, lambda: None)
                try:
                    answers = await asyncio.wrap_future(future)
                except NearDupError as error:
                    raise refusal_of(error, collection.index.path, collection.name) from error
                await stream.add(answers or b"")

        splitter = ndjson.Splitter(is_gzip=_is_gzip(headers))
        has_more = True
        while has_more:
            message = await self._piece(receive)
            await answer_all(splitter.feed(message.get("body", b"")))
            has_more = message.get("more_body", False)
        await answer_all(iter([splitter.finish()]))
        await stream.finish()

    async def _piece(self, receive: Receive) -> Message:
        """Return the next bytes of a stream."""
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                message = await receive()
        except TimeoutError as error:
            raise RefusedError(
                408,
                "incomplete",
                f"no more of the stream arrived within {self._limits.body_seconds:g} s",
                "end the stream, and begin another when there is more",
            ) from error
        if message["type"] == "http.disconnect":
            raise DisconnectedError
        return message

    async def _stream_out(self, collection: Collection, send: Send) -> None:
        """Answer with all documents, a line each; each page of them is of one commit."""
        if self._streams >= MAX_STREAMS:
            raise _busy(f"{self._streams} streams are already open")
        self._streams += 1
        stream = _LineAnswer(send, self._policy_headers(), self._limits.sending_seconds, buffered=0)
        try:
            cursor: str | None = ""
            while cursor is not None:
                page = await asyncio.wrap_future(
                    self._submit(
                        self._readers,
                        partial(collection.page, cursor, PAGE),
                        lambda: None,
                    )
                )
                await stream.add(
                    b"".join(msgspec.json.encode(one) + b"\n" for one in page.documents)
                )
                cursor = page.next
            await stream.finish()
        except NearDupError as error:
            refused = refusal_of(error, collection.index.path, collection.name)
            if not stream.has_answers:
                raise refused from error
            await stream.end_with(refused)
        except TimeoutError:
            return  # as above
        finally:
            self._streams -= 1

    # --- answers ---

    def _policy_headers(self) -> list[tuple[bytes, bytes]]:
        return headers_with(_POLICY)

    async def _send_body(
        self,
        scope: Scope,
        send: Send,
        body: bytes,
        *,
        status: int = 200,
        kind: str = JSON,
        policy: str = _POLICY,
        is_replay: bool = False,
    ) -> None:
        headers = [
            (b"content-type", kind.encode()),
            (b"content-length", str(len(body)).encode()),
        ]
        if is_replay:
            headers.append((b"idempotency-replayed", b"true"))
        shown = b"" if scope["method"] == "HEAD" else body
        await self._send(Answer(status, headers, shown), send, policy)


class _LineAnswer:
    """The answer to a stream: lines, which wait until there are many of them, or the request has ended."""

    def __init__(
        self,
        send: Send,
        headers: list[tuple[bytes, bytes]],
        seconds: float,
        buffered: int = _BUFFERED_BYTES,
    ) -> None:
        self._send = send
        self._headers = [*headers, (b"content-type", ndjson.MEDIA_TYPE.encode())]
        self._seconds = seconds
        self._buffered = buffered
        self._waiting = bytearray()
        self.is_started = False

    @property
    def has_answers(self) -> bool:
        """Whether lines were answered: an error is one more line then."""
        return self.is_started or bool(self._waiting)

    async def end_with(self, refused: RefusedError) -> None:
        """End the answer with an error, after which no line was read."""
        refused.answer["is_last"] = True
        await self.add(msgspec.json.encode(as_line(refused)) + b"\n")
        await self.finish()

    async def add(self, content: bytes) -> None:
        """Answer with some lines."""
        self._waiting += content
        if len(self._waiting) > self._buffered:
            await self._flush(has_more=True)

    async def finish(self) -> None:
        """End the answer."""
        await self._flush(has_more=False)

    async def _flush(self, *, has_more: bool) -> None:
        body = bytes(self._waiting)
        self._waiting.clear()
        async with asyncio.timeout(self._seconds):
            if not self.is_started:
                self.is_started = True
                await self._send(
                    {"type": "http.response.start", "status": 200, "headers": self._headers}
                )
            await self._send({"type": "http.response.body", "body": body, "more_body": has_more})


_METHODS: Final = ("GET", "HEAD", "POST", "OPTIONS")
_STREAM_NUMBERS: Final = {"k": int, "threshold": float, "containment": float}


def _answer(route: Route, collection: Collection, given: bytes, key: str | None) -> Answered:
    """Answer a POST, in a thread."""
    asked = bodies.decode(given, route.takes)
    call: Callable[..., Answered] = getattr(collection, route.call)
    return call(asked, key) if route.writes else call(asked)


def _answer_get(
    route: Route, collection: Collection, doc_id: str, options: dict[str, str]
) -> Answered:
    """Answer a GET, in a thread."""
    if route.call == "info":
        return collection.info()
    if route.call == "get_one":
        return collection.get_one(doc_id)
    limit = options.get("limit", str(PAGE))
    if (
        not limit.isascii()
        or not limit.isdigit()
        or not 1 <= int(limit[:9]) <= MAX_PAGE
        or len(limit) > 4
    ):
        raise bodies.MalformedError(
            422, "invalid", f"`limit` must be from 1 to {MAX_PAGE}, got {limit[:40]!r}", "limit=100"
        )
    page = collection.page(options.get("cursor", ""), int(limit))
    return Answered(200, msgspec.json.encode(page))


def _query_of(scope: Scope) -> dict[str, str]:
    text = scope.get("query_string", b"").decode("latin-1")
    return dict(urllib.parse.parse_qsl(text, keep_blank_values=True, max_num_fields=100))


def _stream_options(options: dict[str, str]) -> dict[str, Any]:
    """Return the options of a stream of queries."""
    asked: dict[str, Any] = {"k": 10}
    for name, kind in _STREAM_NUMBERS.items():
        if name in options:
            try:
                asked[name] = kind(options[name])
            except ValueError:
                message = f"`{name}` must be a number, got {options[name][:40]!r}"
                raise RefusedError(422, "invalid", message, "?k=10&threshold=0.9") from None
    if not 1 <= asked["k"] <= bodies.MAX_K:
        raise RefusedError(422, "invalid", f"`k` must be from 1 to {bodies.MAX_K}", "?k=10")
    return asked


def _media_of(headers: dict[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_gzip(headers: dict[str, str]) -> bool:
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("gzip", "identity"):
        raise RefusedError(
            415, "encoding", f"Content-Encoding {coding[:40]!r} is not supported", "gzip, or none"
        )
    return coding == "gzip"


def _kind_of(route: Route) -> str:
    return metrics.MEDIA_TYPE if route.operation == "/metrics" else JSON


def _key_of(headers: dict[str, str], route: Route) -> str | None:
    key = headers.get("idempotency-key")
    if key is None or not route.writes:
        return None
    if not 0 < len(key) <= _MAX_KEY or not key.isascii() or not key.isprintable():
        raise RefusedError(
            422,
            "invalid",
            f"`Idempotency-Key` must have 1 to {_MAX_KEY} printable ASCII characters",
            "send a random UUID",
        )
    return key


def _preflight() -> Answer:
    headers = [
        (b"access-control-allow-methods", b"GET, HEAD, POST"),
        (
            b"access-control-allow-headers",
            b"authorization, content-type, content-encoding, idempotency-key",
        ),
        (b"access-control-max-age", b"600"),
        (b"content-length", b"0"),
    ]
    return Answer(204, headers, b"")


def _busy(message: str) -> RefusedError:
    return RefusedError(429, "busy", message, "try again in a second")


async def nothing_beside(scope: Scope, _receive: Receive, _send: Send) -> None:
    """Answer every path with 404: a service of several collections has no page."""
    if scope["type"] != "http":
        return
    raise RefusedError(404, "unknown", "there is no such route", "/docs lists all routes")
