"""The description of the service, made from the table of its routes: OpenAPI, and a page of it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from typing import Any, Final

import msgspec

from neardup.version import VERSION
from neardup.web.problems import MEDIA_TYPE
from neardup.web.service import bodies, ndjson
from neardup.web.service.access import NOTHING
from neardup.web.service.routes import ROUTES, Route

_REF: Final = "#/components/schemas/{name}"
_ERRORS: Final = (400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 500, 503, 507)
_ANSWERS: Final[dict[str, Any]] = {
    "get_one": bodies.Stored,
    "page": bodies.Page,
    "replace": bodies.PutOutcome,
}
_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#1b1b1b;background:#fff}h2{font-size:1rem;margin:2rem 0 .25rem;border-top:1px solid #ccc;"
    "padding-top:1rem}code,pre{font:14px/1.4 ui-monospace,monospace}pre{background:#f4f4f4;"
    "padding:.75rem;overflow:auto}p{margin:.25rem 0}@media(prefers-color-scheme:dark){body{color:#eee;"
    "background:#161616}pre{background:#262626}a{color:#9cf}}"
)
_HASH: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
PAGE_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_HASH}'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)


def described(others: dict[str, Any]) -> dict[str, Any]:
    """Return the description of the service; `others`: that of routes beside it, such as those of the page."""
    kinds = (bodies.Query, bodies.Documents, bodies.Document, bodies.Ids, bodies.Removal)
    answers = (bodies.Stored, bodies.Page, bodies.NewResult, bodies.PutOutcome, bodies.Found)
    every = (*kinds, *answers, bodies.Counting, bodies.Nothing)
    _, schemas = msgspec.json.schema_components(every, ref_template=_REF)
    schemas["Problem"] = {
        "type": "object",
        "title": "Problem",
        "required": ["type", "title", "status", "code", "message", "hint"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "code": {"type": "string"},
            "message": {"type": "string"},
            "hint": {"type": ["string", "null"]},
        },
    }
    paths: dict[str, Any] = dict(others.get("paths", {}))
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    theirs = others.get("components", {}).get("schemas", {})
    return {
        "openapi": "3.1.0",
        "info": {"title": "neardup", "version": VERSION},
        "paths": paths,
        "components": {
            "schemas": theirs | schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(route: Route) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "description": _scope_words(route),
        "operationId": f"{route.method.lower()}_{route.call or route.operation.strip('/').replace('/', '_')}",
        "parameters": _parameters(route),
        "responses": _responses(route),
    }
    if route.takes is not None:
        shape = {"$ref": _REF.format(name=route.takes.__name__)}
        own: dict[str, Any] = {"schema": shape}
        if route.example is not None:
            own["example"] = route.example
        operation["requestBody"] = {
            "required": route.takes not in (bodies.Nothing, bodies.Counting),
            "content": {"application/json": own},
        }
        if route.has_lines:
            operation["requestBody"]["content"][ndjson.MEDIA_TYPE] = {"schema": {"type": "string"}}
    return operation


def _scope_words(route: Route) -> str:
    words = "Needs no token." if route.scope == NOTHING else f"Needs the scope {route.scope}."
    if route.has_lines:
        words += f" Also a stream of lines ({ndjson.MEDIA_TYPE}), with one object per line."
    if route.writes:
        words += " With an Idempotency-Key, a repeated request is answered as before, and stores nothing."
    return words


def _parameters(route: Route) -> list[dict[str, Any]]:
    found = []
    if route.is_of_collection:
        found.append(_parameter("name", "path", {"type": "string"}, "The collection."))
    if "{id}" in route.operation:
        found.append(
            _parameter("id", "path", {"type": "string"}, "The id, which may contain slashes.")
        )
    if "cursor" in route.parameters:
        found.append(
            _parameter(
                "cursor",
                "query",
                {"type": "string", "pattern": "^(n[0-9]{1,18})?$"},
                "`next` of the page before.",
            )
        )
        limit = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
        found.append(_parameter("limit", "query", limit, "Documents of a page."))
    if route.writes:
        key = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"}
        found.append(
            _parameter("Idempotency-Key", "header", key, "Names the request, to repeat it safely.")
        )
    return found


def _parameter(name: str, location: str, schema: dict[str, Any], about: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": location,
        "required": location == "path",
        "schema": schema,
        "description": about,
    }


def _responses(route: Route) -> dict[str, Any]:
    content: dict[str, Any]
    if route.operation == "/metrics":
        content = {"text/plain": {"schema": {"type": "string"}}}
    else:
        kind = _ANSWERS.get(route.call)
        schema = {"$ref": _REF.format(name=kind.__name__)} if kind else {"type": "object"}
        content = {"application/json": {"schema": schema}}
    if route.has_lines:
        content[ndjson.MEDIA_TYPE] = {"schema": {"type": "string"}}
    problems = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(name="Problem")}}}
    found: dict[str, Any] = {
        str(status): {"description": "The answer.", "content": content} for status in route.statuses
    }
    for status in _ERRORS:
        found.setdefault(str(status), {"description": "An error.", "content": problems})
    return found


def page(description: dict[str, Any]) -> bytes:
    """Return the description as a page without scripts or outside assets."""
    parts = []
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            example = _example(path, route)
            words = [route.get("summary", ""), route.get("description", "")]
            parts.append(
                f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>"
                + "".join(f"<p>{html.escape(line)}</p>" for line in words if line)
                + (f"<pre>{html.escape(example)}</pre>" if example else "")
            )
    head = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport"'
        f' content="width=device-width, initial-scale=1"><title>neardup: routes</title><style>{_STYLE}</style></head>'
    )
    below = '<p>As data: <a href="/openapi.json">/openapi.json</a></p>'
    return f"{head}<body><main><h1>neardup: routes</h1>{below}{''.join(parts)}</main></body></html>".encode()


def _example(path: str, route: dict[str, Any]) -> str:
    content = route.get("requestBody", {}).get("content", {}).get("application/json", {})
    if "example" not in content:
        return ""
    headers = "-H 'Authorization: Bearer TOKEN' -H 'Content-Type: application/json'"
    return f"curl {headers} \\\n  -d '{json.dumps(content['example'])}' URL{path}"
