"""The routes of the service in one table: what each takes, answers and needs, for requests and for the docs alike."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from neardup.web.guard import RefusedError
from neardup.web.service import bodies
from neardup.web.service.access import ADMIN, NOTHING, READ, WRITE

PREFIX: Final = "/v1/collections"
DOCUMENTS: Final = "documents"


@dataclasses.dataclass(frozen=True)
class Route:
    """A route.

    operation: the last part of its path, or its whole path if it is of no collection; call: the
    method of a collection that answers it; takes: the type of its body, None if it has none;
    has_lines: whether it also takes or answers a stream of lines.
    """

    method: str
    operation: str
    scope: str
    summary: str
    call: str = ""
    takes: Any = None
    statuses: tuple[int, ...] = (200,)
    has_lines: bool = False
    parameters: tuple[str, ...] = ()
    example: Any = None
    is_slow: bool = False

    @property
    def path(self) -> str:
        """The path as the docs write it."""
        if self.operation.startswith("/"):
            return self.operation
        return f"{PREFIX}/{{name}}/{self.operation}"

    @property
    def is_of_collection(self) -> bool:
        """Whether it is a route of one collection."""
        return not self.operation.startswith("/")

    @property
    def writes(self) -> bool:
        """Whether it changes documents."""
        return self.scope == WRITE


_ONE: Final = {
    "id": "a",
    "text": "the ferry to the island leaves at nine",
    "payload": {"lang": "en"},
}
_TEXT: Final = {"text": "the ferry to the island leaves at ten"}

ROUTES: Final = (
    Route("GET", "/healthz", NOTHING, "Report that the server is up."),
    Route(
        "GET",
        "/readyz",
        NOTHING,
        "Report whether every collection can be used.",
        statuses=(200, 503),
    ),
    Route("GET", "/metrics", READ, "Return counts and latencies in the text format of Prometheus."),
    Route("GET", PREFIX, READ, "List the collections that the token may read."),
    Route("GET", "info", READ, "Return the counts and settings of a collection.", "info"),
    Route(
        "POST",
        "query",
        READ,
        "Find the similar documents of a text, a set of items or a vector, or of a batch.",
        "query",
        bodies.Query,
        has_lines=True,
        example=_TEXT,
    ),
    Route(
        "POST",
        "get",
        READ,
        "Return documents by their ids or aliases.",
        "get",
        bodies.Ids,
        example={"ids": ["a"]},
    ),
    Route(
        "POST",
        "count",
        READ,
        "Count documents, by their payloads if conditions are given.",
        "count",
        bodies.Counting,
        example={"where": {"lang": "en"}},
    ),
    Route(
        "GET",
        DOCUMENTS,
        READ,
        "List the documents in insertion order, page by page, or all as lines.",
        "page",
        has_lines=True,
        parameters=("cursor", "limit"),
    ),
    Route("GET", "documents/{id}", READ, "Return one document.", "get_one"),
    Route(
        "POST",
        DOCUMENTS,
        WRITE,
        "Store documents unless the collection has similar ones: one, a batch (all or none), or lines.",
        "insert_new",
        bodies.Documents,
        (200, 201),
        has_lines=True,
        example=_ONE,
    ),
    Route(
        "POST",
        "insert",
        WRITE,
        "Store documents without looking for similar ones.",
        "insert",
        bodies.Documents,
        (201,),
        has_lines=True,
        example=_ONE,
    ),
    Route(
        "POST",
        "put",
        WRITE,
        "Insert documents, or replace those that have their ids.",
        "put",
        bodies.Documents,
        (200, 201),
        has_lines=True,
        example=_ONE,
    ),
    Route(
        "POST", "replace", WRITE, "Replace a document.", "replace", bodies.Document, example=_ONE
    ),
    Route(
        "POST",
        "delete",
        WRITE,
        "Remove documents by their ids, or by their payloads.",
        "delete",
        bodies.Removal,
        example={"ids": ["a"]},
    ),
    Route(
        "POST",
        "check",
        ADMIN,
        "Read the whole index, and describe any damage.",
        "check",
        bodies.Nothing,
        is_slow=True,
    ),
    Route(
        "POST",
        "compact",
        ADMIN,
        "Merge all segments, and free the space of removed documents.",
        "compact",
        bodies.Nothing,
        is_slow=True,
    ),
    Route(
        "POST",
        "snapshot",
        ADMIN,
        "Copy the index beside itself, under a name with the time.",
        "snapshot",
        bodies.Nothing,
        (201,),
        is_slow=True,
    ),
)
_BY_OPERATION: Final = {(route.operation, route.method): route for route in ROUTES}
_METHODS: Final[dict[str, list[str]]] = {}
for _route in ROUTES:
    _METHODS.setdefault(_route.operation, []).append(_route.method)


@dataclasses.dataclass(frozen=True)
class Address:
    """Where a request goes: a route, and the collection and the id in its path."""

    route: Route
    collection: str | None = None
    doc_id: str = ""


def find(method: str, path: str) -> Address | None:
    """Return where a request goes, or None if its path is not one of the service."""
    if path in _METHODS:
        return Address(_route_of(path, method))
    if not path.startswith(f"{PREFIX}/"):
        return None
    name, _, operation = path[len(PREFIX) + 1 :].partition("/")
    if operation.startswith("documents/"):
        doc_id = operation.removeprefix("documents/")
        return Address(_route_of("documents/{id}", method), name, doc_id)
    if operation.startswith("/") or operation not in _METHODS:
        raise RefusedError(
            404, "unknown", f"there is no route {path[:200]!r}", "/docs lists all routes"
        )
    return Address(_route_of(operation, method), name)


def _route_of(operation: str, method: str) -> Route:
    route = _BY_OPERATION.get((operation, "GET" if method == "HEAD" else method))
    if route is None:
        allowed = list(_METHODS[operation])
        if "GET" in allowed:
            allowed.append("HEAD")
        refused = RefusedError(
            405, "method", f"{method[:20]} is not a method of this route", "/docs lists all routes"
        )
        refused.headers.append((b"allow", ", ".join(sorted(allowed)).encode()))
        raise refused
    return route
