"""Serves the page and its data, read-only, on loopback only."""

from __future__ import annotations

import contextlib
import html
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final, Literal

import msgspec
import uvicorn
from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from neardup.api import load
from neardup.errors import ConfigError, DataError, NearDupError
from neardup.index.index_folder import is_index
from neardup.version import VERSION
from neardup.web.guard import TOO_LARGE, Guard, TooLargeError, problem
from neardup.web.page import render_page, sources
from neardup.web.served_index import ServedIndex, no_index
from neardup.web.served_run import ServedRun, UnknownError

DEFAULT_PORT: Final = 8321
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
MOST_TEXT: Final = 1_000_000
_MOST_KEY: Final = 2**53
Served = ServedRun | ServedIndex
Key = Annotated[int, Query(ge=0, le=_MOST_KEY)]
Words = Annotated[str, Query(max_length=1000)]


class Problem(BaseModel):
    """The body of every error."""

    code: str
    message: str
    hint: str | None


class Asked(msgspec.Struct, frozen=True):
    """A query to an index."""

    text: str
    k: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10


_PROBLEMS: Final[dict[int | str, dict[str, Any]]] = {
    code: {"model": Problem} for code in (400, 403, 404, 405, 413, 422, 429, 503)
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
                        "text": {"type": "string", "maxLength": MOST_TEXT},
                        "k": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 10},
                    },
                }
            }
        },
    }
}


def open_served(path: str) -> Served:
    """Open a finished run or an index."""
    return ServedIndex(path) if is_index(path) else ServedRun(load(Path(path)))


def make_app(served: Served, **limits: Any) -> Guard:
    """Return the application: routes, and the guard before them."""
    app = FastAPI(title="neardup", version=VERSION, docs_url=None, redoc_url=None, openapi_url="/v1/openapi.json")
    app.include_router(_routes(served))
    if isinstance(served, ServedRun):
        app.include_router(_cluster_routes(served))
        app.include_router(_document_routes(served))
    else:
        app.include_router(_index_routes(served))
    app.add_exception_handler(NearDupError, _answer_own_error)
    app.add_exception_handler(TooLargeError, _answer_too_large)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    policy = f"{sources().policy}; connect-src 'self'; frame-ancestors 'none'"
    page = render_page("null", policy=policy.replace("; frame-ancestors 'none'", ""))  # not allowed in a meta tag

    @app.get("/", include_in_schema=False)
    def show_page() -> HTMLResponse:
        return HTMLResponse(page)

    @app.get("/docs", include_in_schema=False)
    def show_docs() -> HTMLResponse:
        return HTMLResponse(_docs_page(app.openapi()))

    return Guard(app, policy, **limits)


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
        offset: Annotated[int, Query(ge=0, le=_MOST_KEY)] = 0,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        sort: Literal["size", "-size", "weakest", "-weakest", "id", "-id"] = "size",
        search: Words = "",
    ) -> dict[str, Any]:
        """List clusters in an order; `search` filters them by the id or the words of the kept document."""
        return run.clusters(offset=offset, limit=limit, sort=sort, search=search)

    @router.get("/clusters/{key}")
    def cluster(key: int) -> dict[str, Any]:
        """Return one cluster with its members."""
        return run.cluster(key)

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
    async def query(request: Request) -> JSONResponse:
        """Return the documents of the index that are similar to a text, most similar first."""
        body = await request.body()
        try:
            asked = msgspec.json.decode(body, type=Asked)
        except RecursionError:
            return JSONResponse(
                problem("nested", "the request is nested too deeply", 'send {"text": "..."} as JSON'), 400
            )
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            hint = 'send {"text": "..."} as JSON'
            return JSONResponse(problem("invalid", str(error), hint), 422)
        if len(asked.text) > MOST_TEXT:
            too_large = problem("too_large", f"a text must not exceed {MOST_TEXT:,} characters", "send a part of it")
            return JSONResponse(too_large, 413)
        return JSONResponse(await run_in_threadpool(index.query, asked.text, asked.k))

    return router


async def _answer_own_error(_: Request, error: Exception) -> JSONResponse:
    status = 404 if isinstance(error, UnknownError) else 400
    message, hint = (error.message, error.hint) if isinstance(error, NearDupError) else (str(error), None)
    return JSONResponse(problem("unknown" if status == 404 else "refused", message, hint), status)


async def _answer_too_large(_: Request, error: Exception) -> JSONResponse:
    del error
    return JSONResponse(TOO_LARGE, 413)


async def _answer_http_error(_: Request, error: Exception) -> JSONResponse:
    status = error.status_code if isinstance(error, HTTPException) else 500
    name = {404: "unknown", 405: "method"}.get(status, "refused")
    return JSONResponse(problem(name, f"{status}: {getattr(error, 'detail', error)}", "/docs lists all routes"), status)


async def _answer_invalid(_: Request, error: Exception) -> JSONResponse:
    first = error.errors()[0] if isinstance(error, RequestValidationError) else {}
    place = ".".join(map(str, first.get("loc", ())))
    return JSONResponse(problem("invalid", f"{place}: {first.get('msg', error)}", "/docs lists all routes"), 422)


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
    below = (
        f'<p>As data: <a href="/v1/openapi.json">/v1/openapi.json</a>, OpenAPI {json.dumps(described["openapi"])}</p>'
    )
    head = f'<!doctype html><html lang="en"><head><meta charset="utf-8">{policy}<title>neardup: routes</title></head>'
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
    """Serve a finished run or an index until a signal; `on_start` is called with the address."""
    if host not in LOOPBACK:
        raise ConfigError(
            f"`host` must be one of {', '.join(LOOPBACK)}, got {host!r}: the server has no authentication",
            hint="to open it from another machine, forward the port with ssh -L",
        )
    served = open_served(path)
    config = uvicorn.Config(
        make_app(served),
        host=host,
        port=port,
        log_level="critical",
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=3,
        ws="none",
    )
    try:
        bound = config.bind_socket()
    except SystemExit as error:
        raise DataError(
            f"cannot listen on port {port} of {host}", hint="choose another --port, or 0 for any free one"
        ) from error
    bound.listen(128)  # before the address is printed; requests wait until the server runs
    address = bound.getsockname()
    on_start(f"http://{f'[{address[0]}]' if ':' in address[0] else address[0]}:{address[1]}/")
    served.start()
    try:
        _Server(config).run(sockets=[bound])
    finally:
        bound.close()
        served.close()
