"""Every route with every token: only what its scope and collection allow is answered."""

from __future__ import annotations

import json
import time

import pytest

import neardup
from neardup.web.service.access import ANYBODY, Access, Grant
from neardup.web.service.routes import ROUTES
from neardup.web.tokens import SCOPES, TokenFile
from support.service import serving

NEEDS = {"nothing": 0, "read": 1, "write": 2, "admin": 3}
BODIES = {
    "query": {"text": "one two three"},
    "get": {"ids": ["a"]},
    "count": {},
    "documents": {"id": "new", "text": "four five six"},
    "insert": {"id": "new", "text": "four five six"},
    "put": {"id": "a", "text": "one two three"},
    "replace": {"id": "a", "text": "one two three"},
    "delete": {"ids": ["none"]},
}
# What each kind of token may do at most.
HOLDERS = {
    "none": 0,
    "wrong": 0,
    "revoked": 0,
    "expired": 0,
    **{scope: place for place, scope in enumerate(SCOPES, 1)},
}


@pytest.fixture(scope="module")
def tokens(tmp_path_factory):
    file = TokenFile(tmp_path_factory.mktemp("tokens") / "tokens.json")
    made = {scope: file.new(collection="pages", scope=scope)[0] for scope in SCOPES}
    made |= {f"other {scope}": file.new(collection="other", scope=scope)[0] for scope in SCOPES}
    made["wrong"] = "ndup_00000000_" + "A" * 43
    made["revoked"], stored = file.new(scope="admin")
    file.revoke(stored.token_id)
    made["expired"] = file.new(scope="admin", expires=time.time() + 0.2)[0]
    made["none"] = None
    time.sleep(0.3)
    return file, made


@pytest.fixture(scope="module")
def service(tmp_path_factory, tokens):
    folder = tmp_path_factory.mktemp("indexes")
    for name in ("pages", "other"):
        with neardup.Index.create(folder / f"{name}.index", size=2) as index:
            index.insert("a", "one two three")
    both = (folder / "pages.index", folder / "other.index")
    with serving(*both, given=(), stored=tokens[0], without=None) as served:
        yield served


def ask(service, route, token):
    path = route.path.replace("{name}", "pages").replace("{id}", "a")
    service.token = token
    if route.method == "GET":
        return service.send("GET", path)
    body = json.dumps(BODIES.get(route.operation, {}))
    return service.send("POST", path, body, Content_Type="application/json")


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.operation}")
def test_a_route_answers_only_tokens_of_its_scope(service, tokens, route, holder):
    reply = ask(service, route, tokens[1][holder])
    if HOLDERS[holder] >= NEEDS[route.scope]:
        assert reply.status in (200, 201, 422)  # a document may exist from the test before
        assert reply.status != 422 or reply.problem == (422, "exists")
    elif HOLDERS[holder]:
        assert reply.problem == (403, "scope")
    else:
        assert reply.problem == (401, "token")
        assert reply.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize(
    "route",
    [route for route in ROUTES if route.is_of_collection],
    ids=lambda route: route.operation,
)
def test_no_token_of_another_collection_is_answered_and_no_name_is_told(service, tokens, route):
    for scope in SCOPES:
        assert ask(service, route, tokens[1][f"other {scope}"]).problem == (403, "scope")
    service.token = tokens[1]["other admin"]
    assert service.send("GET", "/v1/collections/unheard/info").problem == (403, "scope")


def test_the_list_has_the_collections_of_the_token(service, tokens):
    service.token = tokens[1]["other read"]
    listed = service.send("GET", "/v1/collections").body["collections"]
    assert listed == [{"name": "other", "is_writable": True}]


def test_a_revoked_token_ends_at_once(service, tokens):
    secret, stored = tokens[0].new(scope="read")
    service.token = secret
    assert service.get("info").status == 200
    tokens[0].revoke(stored.token_id)
    assert service.get("info").problem == (401, "token")


def test_a_token_in_the_address_is_none(service, tokens):
    service.token = None
    reply = service.send("GET", f"/v1/collections/pages/info?token={tokens[1]['admin']}")
    assert reply.problem == (401, "token")


@pytest.mark.parametrize("header", ["", "Bearer", "Basic dXNlcjpwYXNz", "bearer  x", "Bearer x y"])
def test_another_authorization_is_refused_also_where_none_is_needed(tmp_path, header):
    neardup.Index.create(tmp_path / "pages.index").close()
    with serving(tmp_path / "pages.index") as service:
        service.token = None
        assert service.get("info").status == 200
        assert service.get("info", Authorization=header).problem == (401, "token")


def test_a_token_has_a_rate():
    access = Access(given=["a" * 20], rate=3.0, without=None)
    headers = {"authorization": f"Bearer {'a' * 20}"}
    codes = []
    for _ in range(5):
        try:
            access.check(headers, "read", "pages")
        except Exception as refused:  # noqa: BLE001 - its code is compared
            codes.append(refused.answer["code"])
    assert codes[:2] == ["rate", "rate"]


def test_a_grant_covers_lower_scopes_and_its_own_collection():
    grant = Grant("t", "write", "pages")
    assert grant.allows("read", "pages")
    assert grant.allows("write", None)
    assert not grant.allows("admin", "pages")
    assert not grant.allows("read", "other")
    assert ANYBODY.allows("read", "pages")
    assert not ANYBODY.allows("write", "pages")
