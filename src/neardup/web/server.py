"""Serves the page and its data, read-only, on loopback only."""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import signal
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final, Literal

import msgspec
import uvicorn
from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from neardup.api import load
from neardup.errors import ConfigError, DataError, NearDupError
from neardup.index.index_folder import is_index
from neardup.version import VERSION
from neardup.web.connection import MAX_HEADERS, Connection
from neardup.web.guard import DEFAULT_LIMITS, Guard, Limits
from neardup.web.page import render_page, sources
from neardup.web.pairs_view import PairsView, view_of
from neardup.web.problems import MEDIA_TYPE, problem
from neardup.web.served_index import ServedIndex, TooManyMatchesError, no_index
from neardup.web.served_pairs import ServedPairs
from neardup.web.served_run import ServedRun, UnknownError

DEFAULT_PORT: Final = 8321
# Connections that wait to be accepted.
BACKLOG: Final = 1024
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
MAX_TEXT: Final = 1_000_000
_MAX_KEY: Final = 2**53
Served = ServedRun | ServedIndex
Key = Annotated[int, Query(ge=0, le=_MAX_KEY)]
Words = Annotated[str, Query(max_length=1000)]
Cell = Annotated[str, Query(pattern=r"^(\d{1,2}/\d{1,2}/\d{1,2})?$")]


class Problem(BaseModel):
    """The body of every error."""

    type: str
    title: str
    status: int
    code: str
    message: str
    hint: str | None


class Asked(msgspec.Struct, frozen=True):
    """A query to an index."""

    text: str
    k: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10


_PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    code: {"model": Problem} for code in (400, 403, 404, 405, 408, 413, 422, 429, 500, 503)
}
_ASKED: Final = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "required": ["text"],
                    "properties": {
                        "text": {"type": "string", "maxLength": MAX_TEXT},
                        "k": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 10},
                    },
                }
            }
        },
    }
}


def open_served(path: str) -> Served:
    """Open a finished run, a list of pairs or an index."""
    if is_index(path):
        return ServedIndex(path)
    report = load(Path(path))
    if isinstance(view_of(report), PairsView):
        return ServedPairs(report)
    return ServedRun(report)


def make_app(served: Served, limits: Limits = DEFAULT_LIMITS) -> Guard:
    """Return the application: routes, and the guard before them."""
    app, policy = page_app(served)
    return Guard(app, policy, limits)


def page_app(served: Served) -> tuple[FastAPI, str]:
    """Return the routes of a run or an index, and what the page may load."""
    app = FastAPI(
        title="neardup",
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        redirect_slashes=False,
    )
    app.include_router(_routes(served))
    if isinstance(served, ServedPairs):
        app.include_router(_list_routes(served))
        app.include_router(_document_routes(served))
    elif isinstance(served, ServedRun):
        app.include_router(_cluster_routes(served))
        app.include_router(_document_routes(served))
    else:
        app.include_router(_index_routes(served))
    app.add_exception_handler(NearDupError, _answer_own_error)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    policy = f"{sources().policy}; connect-src 'self'; frame-ancestors 'none'"
    # Not allowed in a meta tag.
    page = render_page("null", policy=policy.replace("; frame-ancestors 'none'", ""))

    @app.get("/", include_in_schema=False)
    def show_page() -> HTMLResponse:
        return HTMLResponse(page)

    @app.get("/docs", include_in_schema=False)
    def show_docs() -> HTMLResponse:
        return HTMLResponse(_docs_page(app.openapi()))

    return app, policy


def _routes(served: Served) -> APIRouter:
    router = APIRouter(responses=_PROBLEMS)

    @router.get("/healthz")
    def healthz() -> dict[str, str]:
        """Report that the server is up."""
        return {"status": "ok"}

    @router.get("/v1/info")
    def info() -> dict[str, Any]:
        """Return the overview of the run, or of the index."""
        return served.info()

    return router


def _cluster_routes(run: ServedRun) -> APIRouter:
    router = APIRouter(prefix="/v1", responses=_PROBLEMS)

    @router.get("/clusters")
    def clusters(
        offset: Annotated[int, Query(ge=0, le=_MAX_KEY)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        sort: Literal["size", "-size", "weakest", "-weakest", "id", "-id"] = "size",
        search: Words = "",
        cell: Cell = "",
    ) -> dict[str, Any]:
        """List clusters in an order; `search` filters by the kept document, `cell` by two sources of /v1/info."""
        return run.clusters(offset=offset, limit=limit, sort=sort, search=search, cell=cell)

    @router.get("/clusters/{key}")
    def cluster(key: int) -> dict[str, Any]:
        """Return one cluster with its members."""
        return run.cluster(key)

    @router.get("/pairs")
    def pairs(a: Key, b: Key) -> dict[str, Any]:
        """Return two documents by their keys, with their exact similarity."""
        return run.pair(a, b)

    return router


def _list_routes(run: ServedPairs) -> APIRouter:
    router = APIRouter(prefix="/v1", responses=_PROBLEMS)

    @router.get("/listed")
    def listed(
        offset: Annotated[int, Query(ge=0, le=_MAX_KEY)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        sort: Literal["similarity", "-similarity"] = "similarity",
        search: Words = "",
    ) -> dict[str, Any]:
        """List pairs, most similar first; `search` filters them by the ids or the words of either document."""
        return run.listed(offset=offset, limit=limit, sort=sort, search=search)

    @router.get("/pairs")
    def pairs(a: Key, b: Key) -> dict[str, Any]:
        """Return two documents by their keys, with their exact similarity."""
        return run.pair(a, b)

    return router


def _document_routes(run: ServedRun) -> APIRouter:
    router = APIRouter(prefix="/v1", responses=_PROBLEMS)

    @router.get("/documents")
    def documents(search: Words) -> dict[str, Any]:
        """Find documents with `search` in their id, or all its words in their text."""
        return run.search(search)

    @router.get("/documents/{doc_id:path}")
    def document(doc_id: str) -> dict[str, Any]:
        """Return the documents with an id, and why they were kept or removed."""
        return run.named(doc_id)

    @router.get("/rows/{key}")
    def row(key: int) -> dict[str, Any]:
        """Return one document by its key."""
        return run.document(key)

    @router.post("/query", openapi_extra=_ASKED)
    def query() -> dict[str, Any]:
        """Refuse: only the server of an index answers queries."""
        raise no_index()

    return router


def _index_routes(index: ServedIndex) -> APIRouter:
    router = APIRouter(prefix="/v1", responses=_PROBLEMS)

    @router.post("/query", openapi_extra=_ASKED)
    async def query(request: Request) -> Response:
        """Return the documents of the index that are similar to a text, most similar first."""
        body = await request.body()
        try:
            asked = msgspec.json.decode(body, type=Asked)
        except RecursionError:
            return _refusal(
                400, "nested", "the request is nested too deeply", 'send {"text": "..."} as JSON'
            )
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            hint = 'send {"text": "..."} as JSON'
            return _refusal(422, "invalid", str(error), hint)
        if len(asked.text) > MAX_TEXT:
            message = f"a text must not exceed {MAX_TEXT:,} characters"
            return _refusal(413, "too_large", message, "send a part of it")
        matches = await asyncio.wrap_future(index.submit(asked.text, asked.k))
        return Response(matches, media_type="application/json")

    return router


async def _answer_own_error(_: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, NearDupError):
        raise error
    if isinstance(error, UnknownError):
        return _refusal(404, "unknown", error.message, error.hint)
    if isinstance(error, TooManyMatchesError):
        code = "too_many_matches"
    else:
        code = "refused"
    return _refusal(400, code, error.message, error.hint)


async def _answer_http_error(_: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise error
    status = error.status_code
    name = {404: "unknown", 405: "method"}.get(status, "refused")
    message = f"{status}: {error.detail}"
    refusal = _refusal(status, name, message, "/docs lists all routes")
    refusal.headers.update(_with_head(error.headers))
    return refusal


def _refusal(status: int, code: str, message: str, hint: str | None) -> JSONResponse:
    """Return an error response."""
    return JSONResponse(problem(status, code, message, hint), status, media_type=MEDIA_TYPE)


def _with_head(headers: Mapping[str, str] | None) -> dict[str, str]:
    """Add HEAD to the allowed methods where GET is one: the guard answers it by GET."""
    if headers is None or "Allow" not in headers:
        return {}
    methods = set(headers["Allow"].split(", "))
    if "GET" in methods:
        methods.add("HEAD")
    return {"Allow": ", ".join(sorted(methods))}


async def _answer_invalid(_: Request, error: Exception) -> JSONResponse:
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
    else:
        first = {}
    location = ".".join(map(str, first.get("loc", ())))
    message = f"{location}: {first.get('msg', error)}"
    return _refusal(422, "invalid", message, "/docs lists all routes")


def _docs_page(described: dict[str, Any]) -> str:
    """The routes as a plain page without scripts or external assets."""
    parts = []
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            given = [f"{one['name']} ({one['in']})" for one in route.get("parameters", ())]
            description = html.escape(route.get("description", route.get("summary", "")))
            listed = html.escape(", ".join(given))
            parts.append(
                f"<h2><code>{method.upper()} {html.escape(path)}</code></h2><p>{description}</p><p>{listed}</p>"
            )
    policy = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    version = json.dumps(described["openapi"])
    below = f'<p>As data: <a href="/v1/openapi.json">/v1/openapi.json</a>, OpenAPI {version}</p>'
    # The policy allows the style of the page, by its hash, and no other.
    style = f"<style>{sources().style}</style>"
    title = "<title>neardup: routes</title>"
    head = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8">{policy}{title}{style}</head>'
    )
    return f"{head}<body><main><h1>neardup: routes</h1>{''.join(parts)}{below}</main></body></html>"


class _Server(uvicorn.Server):
    """A server for which Ctrl-C and SIGTERM are a normal end, with exit code 0."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on a signal without raising it again afterwards."""
        before = {kind: signal.signal(kind, self._stop) for kind in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for kind, handler in before.items():
                signal.signal(kind, handler)

    def _stop(self, kind: int, frame: FrameType | None) -> None:
        self.handle_exit(kind, frame)


def serve(path: str, *, host: str, port: int, on_start: Callable[[str], None]) -> None:
    """Serve the page of a finished run until a signal; `on_start` is called with the address."""
    if host not in LOOPBACK:
        raise ConfigError(
            f"`host` must be one of {', '.join(LOOPBACK)}, got {host!r}: the server has no authentication",
            hint="to open it from another machine, forward the port with ssh -L",
        )
    served = open_served(path)
    config = configure(make_app(served), host=host, port=port)
    bound = listen(config, host, port)
    on_start(address_of(bound))
    served.start()
    try:
        run_until_signal(config, bound)
    finally:
        served.close()


def listen(config: uvicorn.Config, host: str, port: int) -> Any:
    """Return a socket that listens, before the address is printed; requests wait until the server runs."""
    try:
        bound = config.bind_socket()
    except SystemExit as error:
        raise DataError(
            f"cannot listen on port {port} of {host}",
            hint="choose another `port`, or 0 for any free one",
        ) from error
    bound.listen(BACKLOG)
    return bound


def address_of(bound: Any, scheme: str = "http") -> str:
    """Return the address of a socket that listens."""
    address = bound.getsockname()
    return f"{scheme}://{f'[{address[0]}]' if ':' in address[0] else address[0]}:{address[1]}/"


def run_until_signal(config: uvicorn.Config, bound: Any) -> None:
    """Serve until Ctrl-C or SIGTERM; requests that were begun are answered first."""
    try:
        _Server(config).run(sockets=[bound])
    finally:
        bound.close()


def configure(
    app: Guard,
    *,
    host: str,
    port: int,
    protocol: type[Connection] = Connection,
    certificate: tuple[str, str | None] | None = None,
) -> uvicorn.Config:
    """Return the settings of uvicorn; certificate: the files of a TLS certificate and its key."""
    if certificate is None:
        certificate_file, key_file = None, None
    else:
        certificate_file, key_file = certificate
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=protocol,
        h11_max_incomplete_event_size=MAX_HEADERS,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=3,
        ws="none",
        ssl_certfile=certificate_file,
        ssl_keyfile=key_file,
    )
