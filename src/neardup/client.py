"""A client of the service: the names and results of `Index`, over HTTP.

Each method is a plan, a generator that yields requests and pauses and is sent responses. `Client` and
`AsyncClient` only carry them out.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
import uuid
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self, TypedDict, TypeVar, Unpack
from urllib.parse import quote

import msgspec
import pyarrow as pa

from neardup.config.checks import VECTOR_MEASURES
from neardup.errors import (
    ConfigError,
    DataError,
    DuplicateError,
    FullDiskError,
    IdExistsError,
    MissingExtraError,
    NearDupError,
    UnknownIdError,
    UnsyncedError,
)
from neardup.index.facts import as_time
from neardup.index.result_types import (
    CONTAINED,
    MATCHES,
    NEW_ROWS,
    PUT_ROWS,
    Inserted,
    InsertNewResult,
    InsertResult,
    Match,
    PutResult,
    StoredDocument,
)
from neardup.index.settings import check_id

try:
    import httpx
except ImportError as missing:
    raise MissingExtraError(
        "the client needs httpx, which is not installed", hint='pip install "neardup[client]"'
    ) from missing

Value = TypeVar("Value")
# Batches stay below the limits of the service.
_MAX_BATCH: Final = 1_000
_MAX_BATCH_BYTES: Final = 3_000_000
_PAGE: Final = 1_000
_UNIX: Final = "unix://"
_FIRST_PAUSE: Final = 0.1
# Errors that may be over soon; everything else is final.
_RETRIED: Final = ("busy", "rate", "too_slow", "unavailable")
_ERRORS: Final[dict[str, type[NearDupError]]] = {
    "duplicate": DuplicateError,
    "exists": IdExistsError,
    "unknown": UnknownIdError,
    "full": FullDiskError,
    "unsynced": UnsyncedError,
    "setting": ConfigError,
    "refused": DataError,
    "invalid": DataError,
    "too_large": DataError,
    "too_many_matches": DataError,
}


class QuerySettings(TypedDict, total=False):
    """The options of a query, as those of `Index.query`."""

    k: int
    threshold: float | None
    where: Any
    since: Any
    containment: float | None


class DocumentFacts(TypedDict, total=False):
    """The payload of a document, and when it disappears."""

    payload: Any
    expires: Any


class BatchFacts(TypedDict, total=False):
    """The ids, payloads and times of expiry of a batch, one per document."""

    ids: Sequence[str] | None
    payload: Sequence[Any] | None
    expires: Sequence[Any] | None


@dataclasses.dataclass(frozen=True)
class _Request:
    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class _Response:
    """An answer; `failure`: why there is none."""

    status: int
    body: bytes
    pause: float = 0.0
    failure: str | None = None


Plan = Generator[_Request | float, _Response | None, Value]


class _Core:
    """The plans of all methods."""

    def __init__(
        self, url: str, token: str | None, collection: str | None, timeout: float, retries: int
    ) -> None:
        if not url.startswith(("http://", "https://", _UNIX)):
            raise ConfigError(
                f"`url` must be the address of a service, got {url!r}",
                hint="http://127.0.0.1:8321, or unix:///run/neardup.sock",
            )
        self.url = url
        self._retries = retries
        self._collection = collection
        self._kind: str | None = None
        self._options: dict[str, Any] = {"timeout": timeout, "trust_env": False}
        if token is not None:
            self._options["headers"] = {"Authorization": f"Bearer {token}"}
        if url.startswith(_UNIX):
            self._options["base_url"] = "http://localhost"
        else:
            self._options["base_url"] = url.rstrip("/")

    @property
    def _socket(self) -> str | None:
        return self.url.removeprefix(_UNIX) if self.url.startswith(_UNIX) else None

    # --- plans of requests ---

    def _exchange(self, request: _Request) -> Plan[Any]:
        """Send a request, again while the service is busy; return its answer, or raise its error."""
        pause = _FIRST_PAUSE
        attempt = 0
        while True:
            response = yield request
            if response is None:
                raise TypeError("a request is answered by a response")
            if response.failure is None and response.status < 400:
                return msgspec.json.decode(response.body)
            if attempt == self._retries or not _may_pass(response):
                raise _error_of(response, self.url)
            yield max(pause, response.pause)
            pause *= 2
            attempt += 1

    def _ask(self, operation: str, body: Any = None, *, writes: bool = False) -> Plan[Any]:
        """Ask a route of the collection; a change has a key, so that it can be repeated."""
        name = yield from self._name()
        headers = {}
        encoded = None
        if body is not None:
            try:
                encoded = msgspec.json.encode(body)
            except (TypeError, ValueError, RecursionError) as error:
                raise DataError(f"the request cannot be written as JSON: {error}") from error
            headers["Content-Type"] = "application/json"
        if writes:
            headers["Idempotency-Key"] = str(uuid.uuid4())
        method = "GET" if body is None else "POST"
        path = f"/v1/collections/{quote(name, safe='')}/{operation}"
        return (yield from self._exchange(_Request(method, path, encoded, headers)))

    def _name(self) -> Plan[str]:
        """Return the name of the collection; that of the only one, unless it was given."""
        if self._collection is None:
            listed = yield from self._exchange(_Request("GET", "/v1/collections"))
            names = [one["name"] for one in listed["collections"]]
            if len(names) != 1:
                raise ConfigError(
                    f"{self.url} has {len(names)} collections: {', '.join(names)}",
                    hint="name one: collection='...'",
                )
            self._collection = names[0]
        return self._collection

    def _named(self, content: Any) -> Plan[dict[str, Any]]:
        """Return a content under the name of what it is: a text, items or a vector."""
        if isinstance(content, str):
            return {"text": content}
        if self._kind is None:
            settings = (yield from self._ask("info"))["settings"]
            is_set = settings["items_column"] is not None
            if settings["measure"] in VECTOR_MEASURES:
                self._kind = "vector"
            else:
                self._kind = "items" if is_set else "text"
        if hasattr(content, "tolist"):
            content = content.tolist()
        elif isinstance(content, (set, frozenset, tuple)):
            content = list(content)
        return {self._kind: content}

    # --- plans of methods ---

    def _write_one(
        self, operation: str, doc_id: str, content: Any, facts: Mapping[str, Any], **others: Any
    ) -> Plan[Any]:
        named = yield from self._named(content)
        body = {"id": check_id(doc_id), **named, **_facts(facts), **others}
        return (yield from self._ask(operation, body, writes=True))

    def _write_many(
        self, operation: str, source: Any, facts: BatchFacts, **others: Any
    ) -> Plan[list[Any]]:
        answers = []
        batch: list[dict[str, Any]] = []
        num_bytes = 0
        for doc_id, content, own in _rows(source, facts):
            named = yield from self._named(content)
            document = {"id": check_id(doc_id), **named, **_facts(own)}
            size = len(msgspec.json.encode(document))
            if batch and (len(batch) == _MAX_BATCH or num_bytes + size > _MAX_BATCH_BYTES):
                body = {"documents": batch, **others}
                answers.append((yield from self._ask(operation, body, writes=True)))
                batch = []
                num_bytes = 0
            batch.append(document)
            num_bytes += size
        if batch:
            body = {"documents": batch, **others}
            answers.append((yield from self._ask(operation, body, writes=True)))
        return answers

    def _insert(self, doc_id: str, text: Any, facts: DocumentFacts) -> Plan[None]:
        yield from self._write_one("insert", doc_id, text, facts)

    def _insert_many(self, source: Any, facts: BatchFacts) -> Plan[InsertResult]:
        answers = yield from self._write_many("insert", source, facts)
        return InsertResult(sum(answer["documents"] for answer in answers))

    def _insert_new(
        self, doc_id: str, text: Any, on_duplicate: str, facts: DocumentFacts
    ) -> Plan[Inserted]:
        answer = yield from self._write_one(
            "documents", doc_id, text, facts, on_duplicate=on_duplicate
        )
        return Inserted(answer["is_new"], _match(answer["match"]))

    def _insert_new_many(
        self, source: Any, on_duplicate: str, facts: BatchFacts
    ) -> Plan[InsertNewResult]:
        answers = yield from self._write_many("documents", source, facts, on_duplicate=on_duplicate)
        results = [one for answer in answers for one in answer["results"]]
        matches = tuple(_match(one["match"]) for one in results)
        rows = pa.table(
            [
                [one["id"] for one in results],
                [one["is_new"] for one in results],
                [None if match is None else match.doc_id for match in matches],
                [None if match is None else match.similarity for match in matches],
            ],
            schema=NEW_ROWS,
        )
        return InsertNewResult(rows, (), matches)

    def _put(self, doc_id: str, text: Any, facts: DocumentFacts) -> Plan[str]:
        answer = yield from self._write_one("put", doc_id, text, facts)
        return str(answer["outcome"])

    def _put_many(self, source: Any, facts: BatchFacts) -> Plan[PutResult]:
        answers = yield from self._write_many("put", source, facts)
        results = [one for answer in answers for one in answer["results"]]
        columns = [[one["id"] for one in results], [one["outcome"] for one in results]]
        return PutResult(pa.table(columns, schema=PUT_ROWS))

    def _replace(self, doc_id: str, text: Any, facts: DocumentFacts) -> Plan[None]:
        yield from self._write_one("replace", doc_id, text, facts)

    def _remove(self, ids: str | Iterable[str] | None, where: Any) -> Plan[int]:
        if ids is not None and where is not None:
            raise ConfigError("`remove` takes `ids` or `where`, not both")
        if where is not None:
            return int((yield from self._ask("delete", {"where": where}, writes=True))["removed"])
        wanted = _ids_of(ids)
        count = 0
        for first in range(0, len(wanted), _MAX_BATCH):
            body = {"ids": wanted[first : first + _MAX_BATCH]}
            count += (yield from self._ask("delete", body, writes=True))["removed"]
        return count

    def _query(self, text: Any, options: QuerySettings) -> Plan[list[Match]]:
        named = yield from self._named(text)
        answer = yield from self._ask("query", named | _query_options(options))
        return [_match_of(one) for one in answer["matches"]]

    def _query_many(
        self, source: Any, ids: Sequence[str] | None, options: QuerySettings
    ) -> Plan[pa.Table]:
        asked = _query_options(options)
        is_containment = asked.get("containment") is not None
        rows: list[tuple[Any, ...]] = []
        contents = list(_queries(source, ids))
        for first in range(0, len(contents), _MAX_BATCH // 4):
            part = contents[first : first + _MAX_BATCH // 4]
            queries = []
            for _, content in part:
                queries.append((yield from self._named(content)))
            answer = yield from self._ask("query", {"queries": queries, **asked})
            for (query_id, _), result in zip(part, answer["results"], strict=True):
                for rank, one in enumerate(result["matches"], 1):
                    match = _match_of(one)
                    shares = (match.containment_query, match.containment_doc)
                    row = (query_id, match.doc_id, match.similarity, rank)
                    rows.append((*row, *shares) if is_containment else row)
        schema = CONTAINED if is_containment else MATCHES
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
        return pa.table(
            [pa.array(own, kind) for own, kind in zip(columns, schema.types, strict=True)],
            schema=schema,
        )

    def _get(self, doc_id: str) -> Plan[StoredDocument]:
        found = yield from self._get_many([doc_id])
        if doc_id not in found:
            raise UnknownIdError(f"the collection has no document {doc_id!r}")
        return found[doc_id]

    def _get_many(self, ids: str | Iterable[str]) -> Plan[dict[str, StoredDocument]]:
        wanted = _ids_of(ids)
        found = {}
        for first in range(0, len(wanted), _MAX_BATCH):
            body = {"ids": wanted[first : first + _MAX_BATCH]}
            answer = yield from self._ask("get", body)
            for doc_id, one in answer["documents"].items():
                found[doc_id] = _stored(one)
        return found

    def _count(self, where: Any) -> Plan[int]:
        return int((yield from self._ask("count", {"where": where}))["documents"])

    def _documents(self) -> Plan[list[StoredDocument]]:
        found = []
        cursor = ""
        while cursor is not None:
            page = yield from self._ask(f"documents?limit={_PAGE}&cursor={cursor}")
            found += [_stored(one) for one in page["documents"]]
            cursor = page["next"]
        return found

    def _ids(self) -> Plan[Iterator[str]]:
        documents = yield from self._documents()
        return iter([document.doc_id for document in documents])

    def _aliases(self) -> Plan[dict[str, str]]:
        documents = yield from self._documents()
        return {alias: one.doc_id for one in documents for alias in one.aliases}

    def _check(self) -> Plan[list[str]]:
        return list((yield from self._ask("check", {}))["damage"])

    def _compact(self) -> Plan[None]:
        yield from self._ask("compact", {})

    def _snapshot(self) -> Plan[str]:
        return str((yield from self._ask("snapshot", {}))["snapshot"])


class Client(_Core):
    """A collection of a service, with the names and results of `Index`.

    Changes are sent with idempotency keys, and repeated while the service is busy or cannot be
    reached. A batch of more than 1,000 documents or 3 MB is sent in parts, each stored all or none.

    Args:
        url: the address of the service, or unix:///path of its socket.
        token: a token, if the service needs one.
        collection: its name; by default the only one of the service.
        timeout: seconds to wait for an answer.
        retries: how often a request is repeated.
    """

    def __init__(
        self,
        url: str,
        token: str | None = None,
        collection: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 4,
    ) -> None:
        super().__init__(url, token, collection, timeout, retries)
        transport = httpx.HTTPTransport(uds=self._socket)
        self._http = httpx.Client(transport=transport, **self._options)

    def _run(self, plan: Plan[Value]) -> Value:
        response: _Response | None = None
        while True:
            try:
                step = plan.send(response)
            except StopIteration as done:
                value: Value = done.value
                return value
            if isinstance(step, float):
                time.sleep(step)
                response = None
                continue
            try:
                answer = self._http.request(
                    step.method, step.path, content=step.body, headers=dict(step.headers)
                )
                response = _response_of(answer)
            except httpx.HTTPError as error:
                response = _failure_of(error)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def insert(self, doc_id: str, text: Any, **facts: Unpack[DocumentFacts]) -> None:
        """Store a document; an id that already exists is an error."""
        self._run(self._insert(doc_id, text, facts))

    def insert_many(self, source: Any, **facts: Unpack[BatchFacts]) -> InsertResult:
        """Store documents: a dict of id to text, contents with `ids`, or rows with id, text and payload."""
        return self._run(self._insert_many(source, facts))

    def insert_new(
        self, doc_id: str, text: Any, *, on_duplicate: str = "skip", **facts: Unpack[DocumentFacts]
    ) -> Inserted:
        """Store a document unless a similar one exists."""
        return self._run(self._insert_new(doc_id, text, on_duplicate, facts))

    def insert_new_many(
        self, source: Any, *, on_duplicate: str = "skip", **facts: Unpack[BatchFacts]
    ) -> InsertNewResult:
        """Call `insert_new` for every document in turn."""
        return self._run(self._insert_new_many(source, on_duplicate, facts))

    def put(self, doc_id: str, text: Any, **facts: Unpack[DocumentFacts]) -> str:
        """Insert a document, or replace the one that has its id."""
        return self._run(self._put(doc_id, text, facts))

    def put_many(self, source: Any, **facts: Unpack[BatchFacts]) -> PutResult:
        """Call `put` for every document in turn."""
        return self._run(self._put_many(source, facts))

    def replace(self, doc_id: str, text: Any, **facts: Unpack[DocumentFacts]) -> None:
        """Replace an existing document."""
        self._run(self._replace(doc_id, text, facts))

    def remove(self, ids: str | Iterable[str] | None = None, *, where: Any = None) -> int:
        """Remove documents or aliases by their ids, or documents by their payloads; return how many there were."""
        return self._run(self._remove(ids, where))

    def query(self, text: Any, **options: Unpack[QuerySettings]) -> list[Match]:
        """Return the most similar documents, best first."""
        return self._run(self._query(text, options))

    def query_many(
        self, source: Any, *, ids: Sequence[str] | None = None, **options: Unpack[QuerySettings]
    ) -> pa.Table:
        """Return the documents most similar to each: query_id, doc_id, similarity, rank."""
        return self._run(self._query_many(source, ids, options))

    def get(self, doc_id: str) -> StoredDocument:
        """Return a document by its id or alias; raise if it does not exist."""
        return self._run(self._get(doc_id))

    def get_many(self, ids: str | Iterable[str]) -> dict[str, StoredDocument]:
        """Return the documents that exist, by id or alias."""
        return self._run(self._get_many(ids))

    def count(self, *, where: Any = None) -> int:
        """Return the number of documents, or of those whose payloads meet conditions."""
        return self._run(self._count(where))

    def ids(self) -> Iterator[str]:
        """Iterate over the ids of all documents, in insertion order."""
        return self._run(self._ids())

    def aliases(self) -> dict[str, str]:
        """Return every alias with the id of its document."""
        return self._run(self._aliases())

    def info(self) -> dict[str, Any]:
        """Return counts and settings."""
        return dict(self._run(self._ask("info")))

    def check(self) -> list[str]:
        """Have the whole index read; return a description of every damage."""
        return self._run(self._check())

    def compact(self) -> None:
        """Free the space of removed documents, and merge all segments."""
        self._run(self._compact())

    def snapshot(self) -> str:
        """Copy the index beside itself, on the server; return the name of the copy."""
        return self._run(self._snapshot())

    def __len__(self) -> int:
        return self.count()

    def __contains__(self, doc_id: object) -> bool:
        return isinstance(doc_id, str) and bool(self.get_many([doc_id]))


class AsyncClient(_Core):
    """`Client` for asyncio: every method is awaited; `count()` and `contains(doc_id)` stand for len and in."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        collection: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 4,
    ) -> None:
        super().__init__(url, token, collection, timeout, retries)
        transport = httpx.AsyncHTTPTransport(uds=self._socket)
        self._http = httpx.AsyncClient(transport=transport, **self._options)

    async def _run(self, plan: Plan[Value]) -> Value:
        response: _Response | None = None
        while True:
            try:
                step = plan.send(response)
            except StopIteration as done:
                value: Value = done.value
                return value
            if isinstance(step, float):
                await asyncio.sleep(step)
                response = None
                continue
            try:
                answer = await self._http.request(
                    step.method, step.path, content=step.body, headers=dict(step.headers)
                )
                response = _response_of(answer)
            except httpx.HTTPError as error:
                response = _failure_of(error)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def insert(self, doc_id: str, text: Any, **facts: Unpack[DocumentFacts]) -> None:
        """Store a document; an id that already exists is an error."""
        await self._run(self._insert(doc_id, text, facts))

    async def insert_many(self, source: Any, **facts: Unpack[BatchFacts]) -> InsertResult:
        """Store documents, as `Client.insert_many`."""
        return await self._run(self._insert_many(source, facts))

    async def insert_new(
        self, doc_id: str, text: Any, *, on_duplicate: str = "skip", **facts: Unpack[DocumentFacts]
    ) -> Inserted:
        """Store a document unless a similar one exists."""
        return await self._run(self._insert_new(doc_id, text, on_duplicate, facts))

    async def insert_new_many(
        self, source: Any, *, on_duplicate: str = "skip", **facts: Unpack[BatchFacts]
    ) -> InsertNewResult:
        """Call `insert_new` for every document in turn."""
        return await self._run(self._insert_new_many(source, on_duplicate, facts))

    async def put(self, doc_id: str, text: Any, **facts: Unpack[DocumentFacts]) -> str:
        """Insert a document, or replace the one that has its id."""
        return await self._run(self._put(doc_id, text, facts))

    async def put_many(self, source: Any, **facts: Unpack[BatchFacts]) -> PutResult:
        """Call `put` for every document in turn."""
        return await self._run(self._put_many(source, facts))

    async def replace(self, doc_id: str, text: Any, **facts: Unpack[DocumentFacts]) -> None:
        """Replace an existing document."""
        await self._run(self._replace(doc_id, text, facts))

    async def remove(self, ids: str | Iterable[str] | None = None, *, where: Any = None) -> int:
        """Remove documents or aliases by their ids, or documents by their payloads."""
        return await self._run(self._remove(ids, where))

    async def query(self, text: Any, **options: Unpack[QuerySettings]) -> list[Match]:
        """Return the most similar documents, best first."""
        return await self._run(self._query(text, options))

    async def query_many(
        self, source: Any, *, ids: Sequence[str] | None = None, **options: Unpack[QuerySettings]
    ) -> pa.Table:
        """Return the documents most similar to each: query_id, doc_id, similarity, rank."""
        return await self._run(self._query_many(source, ids, options))

    async def get(self, doc_id: str) -> StoredDocument:
        """Return a document by its id or alias; raise if it does not exist."""
        return await self._run(self._get(doc_id))

    async def get_many(self, ids: str | Iterable[str]) -> dict[str, StoredDocument]:
        """Return the documents that exist, by id or alias."""
        return await self._run(self._get_many(ids))

    async def count(self, *, where: Any = None) -> int:
        """Return the number of documents, or of those whose payloads meet conditions."""
        return await self._run(self._count(where))

    async def contains(self, doc_id: str) -> bool:
        """Whether an id is that of a document or an alias."""
        return bool(await self.get_many([doc_id]))

    async def ids(self) -> Iterator[str]:
        """Iterate over the ids of all documents, in insertion order."""
        return await self._run(self._ids())

    async def aliases(self) -> dict[str, str]:
        """Return every alias with the id of its document."""
        return await self._run(self._aliases())

    async def info(self) -> dict[str, Any]:
        """Return counts and settings."""
        return dict(await self._run(self._ask("info")))

    async def check(self) -> list[str]:
        """Have the whole index read; return a description of every damage."""
        return await self._run(self._check())

    async def compact(self) -> None:
        """Free the space of removed documents, and merge all segments."""
        await self._run(self._compact())

    async def snapshot(self) -> str:
        """Copy the index beside itself, on the server; return the name of the copy."""
        return await self._run(self._snapshot())


def _response_of(answer: httpx.Response) -> _Response:
    after = answer.headers.get("retry-after", "")
    pause = float(after) if after.isdigit() else 0.0
    return _Response(answer.status_code, answer.content, pause)


def _failure_of(error: httpx.HTTPError) -> _Response:
    return _Response(0, b"", failure=f"{type(error).__name__}: {error}")


def _may_pass(response: _Response) -> bool:
    return response.failure is not None or _problem(response).get("code") in _RETRIED


def _problem(response: _Response) -> dict[str, Any]:
    try:
        told = msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return told if isinstance(told, dict) else {}


def _error_of(response: _Response, url: str) -> NearDupError:
    """Return the error that an index would have raised."""
    if response.failure is not None:
        return NearDupError(
            f"cannot reach {url}: {response.failure}", hint="check the address, and that it runs"
        )
    told = _problem(response)
    kind = _ERRORS.get(str(told.get("code")), NearDupError)
    message = str(told.get("message") or f"{url} answered with status {response.status}")
    hint = told.get("hint")
    error = kind(message, hint=None if hint is None else str(hint))
    if isinstance(error, DuplicateError) and "match" in told:
        error.match = _match(told["match"])
    return error


def _match(found: dict[str, Any] | None) -> Match | None:
    return None if found is None else _match_of(found)


def _match_of(found: dict[str, Any]) -> Match:
    return Match(
        doc_id=found["id"],
        similarity=float(found["score"]),
        is_estimate=found.get("is_estimate", False),
        payload=found.get("payload"),
        inserted=float(found["inserted"]),
        expires=found.get("expires"),
        containment_query=found.get("containment_query"),
        containment_doc=found.get("containment_doc"),
    )


def _stored(found: dict[str, Any]) -> StoredDocument:
    facts = {name: value for name, value in found.items() if name not in ("id", "aliases")}
    return StoredDocument(doc_id=found["id"], aliases=tuple(found["aliases"]), **facts)


def _facts(given: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if given.get("payload") is not None:
        facts["payload"] = given["payload"]
    if given.get("expires") is not None:
        facts["expires"] = as_time("expires", given["expires"])
    return facts


def _query_options(given: QuerySettings) -> dict[str, Any]:
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if "since" in options:
        options["since"] = as_time("since", options["since"])
    return options


def _ids_of(ids: Any) -> list[str]:
    if ids is None or not isinstance(ids, Iterable):
        raise ConfigError(f"`ids` must be an id or several, got {ids!r}")
    wanted = [ids] if isinstance(ids, str) else list(ids)
    return [check_id(doc_id) for doc_id in wanted]


def _rows(source: Any, facts: BatchFacts) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield id, content and facts of every document of a source."""
    payloads = facts.get("payload")
    expires = facts.get("expires")
    for at, (doc_id, content, own) in enumerate(_documents_in(source, facts.get("ids"))):
        if payloads is not None:
            own["payload"] = payloads[at]
        if expires is not None:
            own["expires"] = expires[at]
        yield doc_id, content, own


def _documents_in(
    source: Any, ids: Sequence[str] | None
) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    if isinstance(source, Mapping):
        for doc_id, content in source.items():
            yield doc_id, content, {}
        return
    if hasattr(source, "to_pylist"):
        source = source.to_pylist()
    if isinstance(source, (str, bytes)) or not isinstance(source, Iterable):
        raise ConfigError(
            f"`source` must be documents in memory, got {type(source).__name__}",
            hint="pass a dict of id to text, rows with id and text, or read files by `neardup index insert`",
        )
    if ids is not None:
        for doc_id, content in zip(ids, source, strict=True):
            yield doc_id, content, {}
        return
    for row in source:
        if not isinstance(row, Mapping) or "id" not in row:
            raise DataError(
                "the documents have no ids, but a collection needs them",
                hint="pass a dict of id to text, ids=, or rows with id and text",
            )
        content = next((row[name] for name in ("text", "items", "vector") if name in row), None)
        yield row["id"], content, {name: row.get(name) for name in ("payload", "expires")}


def _queries(source: Any, ids: Sequence[str] | None) -> Iterator[tuple[str, Any]]:
    """Yield every query with its id, by default its position."""
    if isinstance(source, Mapping):
        yield from source.items()
        return
    if isinstance(source, str) or not isinstance(source, Iterable):
        raise ConfigError(
            f"`source` must be several queries, got {type(source).__name__}", hint="query(text)"
        )
    contents = source.to_pylist() if hasattr(source, "to_pylist") else source
    for at, content in enumerate(contents):
        yield (str(at) if ids is None else ids[at]), content
