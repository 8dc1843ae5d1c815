"""The client has the names and results of `Index`: one suite for both, and what only a network does."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import inspect
import time

import httpx
import pyarrow as pa
import pytest

import neardup
from neardup.errors import (
    ConfigError,
    DataError,
    DuplicateError,
    IdExistsError,
    NearDupError,
    UnknownIdError,
)
from support.service import TOKEN, serving

FERRY = "the ferry to the island leaves at nine from the second pier"
MUSEUM = "the museum is closed on mondays and on public holidays in winter"
SETTINGS = {"threshold": 0.6, "size": 2, "store": "text", "containment": True}


class Awaited:
    """An `AsyncClient` whose methods are awaited, to be called like an `Index`."""

    def __init__(self, client, runner):
        self._client = client
        self._runner = runner

    def __getattr__(self, name):
        method = getattr(self._client, name)
        return lambda *given, **named: self._runner.run(method(*given, **named))

    def __len__(self):
        return self.count()

    def __contains__(self, doc_id):
        return self.contains(doc_id)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "pages.index"
    neardup.Index.create(path, **SETTINGS).close()
    with serving(path) as served:
        served.url = f"http://127.0.0.1:{served.server.port}"
        yield served


@pytest.fixture(params=["Index", "Client", "AsyncClient"])
def index(request, tmp_path):
    """An empty index, as it is and through both clients."""
    if request.param == "Index":
        with neardup.Index.create(tmp_path / "index", **SETTINGS) as opened:
            yield opened
        return
    service = request.getfixturevalue("service")
    collection = service.service._collections["pages"].index
    collection.remove(list(collection.ids()))
    if request.param == "Client":
        with neardup.Client(service.url, TOKEN, "pages") as client:
            yield client
        return
    with asyncio.Runner() as runner:
        client = neardup.AsyncClient(service.url, TOKEN, "pages")
        yield Awaited(client, runner)
        runner.run(client.close())


# One suite


def test_documents_are_stored_and_found(index):
    index.insert("a", FERRY, payload={"lang": "en", "n": [1, None]})
    (match,) = index.query(f"{FERRY} today")
    exact = neardup.compare(FERRY, f"{FERRY} today", size=2).jaccard
    assert (match.doc_id, match.similarity, match.is_estimate) == ("a", exact, False)
    assert match.payload == {"lang": "en", "n": [1, None]}
    assert match.expires is None
    assert time.time() - 600 < match.inserted < time.time() + 600
    assert index.query(MUSEUM) == []
    assert (len(index), "a" in index, "b" in index) == (1, True, False)
    with pytest.raises(IdExistsError):
        index.insert("a", MUSEUM)


def test_new_documents_and_duplicates(index):
    assert index.insert_new("a", FERRY) == neardup.Inserted(True, None)
    known = index.insert_new("b", FERRY)
    assert (known.is_new, known.match.doc_id, known.match.similarity) == (False, "a", 1.0)
    with pytest.raises(DuplicateError) as raised:
        index.insert_new("b", FERRY, on_duplicate="error")
    assert raised.value.match.doc_id == "a"
    index.insert_new("b", FERRY, on_duplicate="link")
    assert index.aliases() == {"b": "a"}
    assert index.get("b").aliases == ("b",)
    assert index.get("b").times_matched == 2
    index.insert_new("c", FERRY, on_duplicate="replace")
    assert list(index.ids()) == ["c"]


@pytest.mark.parametrize(
    "source",
    [
        {"a": FERRY, "b": MUSEUM, "c": FERRY},
        [{"id": "a", "text": FERRY}, {"id": "b", "text": MUSEUM}, {"id": "c", "text": FERRY}],
        pa.table({"id": ["a", "b", "c"], "text": [FERRY, MUSEUM, FERRY]}),
    ],
    ids=["dict", "rows", "table"],
)
def test_batches(index, source):
    found = index.insert_new_many(source)
    assert found.rows.to_pydict() == {
        "doc_id": ["a", "b", "c"],
        "is_new": [True, True, False],
        "match_id": [None, None, "a"],
        "similarity": [None, None, 1.0],
    }
    assert [match and match.doc_id for match in found.matches] == [None, None, "a"]
    done = index.put_many(source)
    assert done.rows.column("outcome").to_pylist() == ["replaced", "replaced", "inserted"]
    assert (done.inserted, done.replaced) == (1, 2)
    index.remove(["a", "b", "c"])
    assert index.insert_many(source).documents == 3
    assert list(index.ids()) == ["a", "b", "c"]


def test_ids_payloads_and_expiry_of_a_batch(index):
    late = time.time() + 3600
    index.insert_many(
        [FERRY, MUSEUM], ids=["a", "b"], payload=[{"n": 1}, None], expires=[late, None]
    )
    assert (index.get("a").payload, index.get("a").expires) == ({"n": 1}, late)
    assert (index.get("b").payload, index.get("b").expires) == (None, None)


def test_put_replace_and_remove(index):
    assert index.put("a", FERRY) == "inserted"
    assert index.put("a", MUSEUM, payload={"n": 1}) == "replaced"
    index.replace("a", FERRY, payload={"n": 2})
    assert (
        dataclasses.asdict(index.get("a")).items()
        >= {
            "doc_id": "a",
            "payload": {"n": 2},
            "text": FERRY,
            "times_matched": 0,
            "aliases": (),
        }.items()
    )
    with pytest.raises(UnknownIdError):
        index.replace("none", FERRY)
    with pytest.raises(UnknownIdError):
        index.get("none")
    assert index.get_many(["a", "none"]).keys() == {"a"}
    assert (index.count(), index.count(where={"n": 2}), index.count(where={"n": 3})) == (1, 1, 0)
    assert index.remove(where={"n": 2}) == 1
    assert index.remove(["a", "none"]) == 0


def test_options_of_queries(index):
    index.insert("a", FERRY, payload={"lang": "en"})
    index.insert("b", f"{FERRY} today", payload={"lang": "de"})
    assert [one.doc_id for one in index.query(FERRY)] == ["a", "b"]
    assert [one.doc_id for one in index.query(FERRY, k=1)] == ["a"]
    assert [one.doc_id for one in index.query(FERRY, threshold=0.95)] == ["a"]
    assert [one.doc_id for one in index.query(FERRY, where={"lang": "de"})] == ["b"]
    assert index.query(FERRY, since=dt.datetime.now(dt.UTC) + dt.timedelta(days=1)) == []
    contained = index.query("the ferry to the island", containment=0.9)
    assert {(one.doc_id, one.containment_query) for one in contained} == {("a", 1.0), ("b", 1.0)}
    table = index.query_many({"x": FERRY, "y": MUSEUM, "z": f"{FERRY} today"})
    assert next(zip(*table.to_pydict().values(), strict=True)) == ("x", "a", 1.0, 1)
    assert table.column("query_id").to_pylist() == ["x", "x", "z", "z"]
    assert index.query_many([MUSEUM]).num_rows == 0
    with pytest.raises(ConfigError, match="below that of the index"):
        index.query(FERRY, threshold=0.1)


@pytest.mark.parametrize("doc_id", ["", ".", "..", "a/b", "ü?#%"])
def test_every_id(index, doc_id):
    index.insert(doc_id, FERRY)
    assert doc_id in index
    assert index.get(doc_id).doc_id == doc_id
    assert index.remove(doc_id) == 1


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda index: index.insert("a", 3), DataError),
        (lambda index: index.insert(None, FERRY), NearDupError),
        (lambda index: index.insert("a\0", FERRY), DataError),
        (lambda index: index.insert("a", FERRY, payload=[1]), NearDupError),
        (lambda index: index.insert("a", FERRY, expires="soon"), ConfigError),
        (lambda index: index.insert_new("a", FERRY, on_duplicate="merge"), NearDupError),
        (lambda index: index.insert_many([FERRY]), DataError),
        (lambda index: index.insert_many(3), NearDupError),
        (lambda index: index.remove(3.5), ConfigError),
        (lambda index: index.remove("a", where={"x": 1}), ConfigError),
        (lambda index: index.query(FERRY, where=[1]), NearDupError),
        (lambda index: index.query(FERRY, k=0), NearDupError),
    ],
)
def test_wrong_values_are_the_same_errors(index, call, error):
    with pytest.raises(error):
        call(index)
    assert len(index) == 0


def test_maintenance(index):
    index.insert("a", FERRY)
    index.compact()
    assert index.check() == []
    assert index.info()["documents"] == 1
    assert index.info()["settings"]["threshold"] == 0.6


# What only a client does


def test_both_clients_have_the_methods_of_an_index():
    def methods(kind):
        return {
            name
            for name, value in vars(kind).items()
            if inspect.isfunction(value) and not name.startswith("_")
        }

    assert methods(neardup.AsyncClient) == methods(neardup.Client) | {"contains"}
    own = {name for name in dir(neardup.Index) if not name.startswith("_")}
    assert methods(neardup.Client) <= own
    for name in methods(neardup.Client):
        one, two = (getattr(kind, name) for kind in (neardup.Client, neardup.AsyncClient))
        assert inspect.signature(one).parameters == inspect.signature(two).parameters
        assert inspect.iscoroutinefunction(two)


def test_large_batches_are_sent_in_parts(service):
    with neardup.Client(service.url, TOKEN) as client:
        client.remove(list(client.ids()))
        documents = {f"d{n}": f"page {n} has {n * 7} words {n * 3}" for n in range(2_100)}
        assert client.insert_many(documents).documents == 2_100
        assert list(client.ids()) == list(documents)
        assert client.query_many(dict(list(documents.items())[:600])).num_rows >= 600
        assert client.remove(list(documents)) == 2_100


def test_a_client_without_a_right_is_told(service):
    with neardup.Client(service.url) as client:
        assert client.query(FERRY) == []
        with pytest.raises(NearDupError, match="needs a token"):
            client.insert("a", FERRY)
    with (
        neardup.Client(service.url, "wrong") as client,
        pytest.raises(NearDupError, match="unknown, expired or revoked"),
    ):
        client.query(FERRY)
    with (
        neardup.Client(service.url, TOKEN, "unheard") as client,
        pytest.raises(UnknownIdError, match="no such collection"),
    ):
        client.count()


def test_what_cannot_be_reached_is_an_error_that_names_it():
    client = neardup.Client("http://127.0.0.1:9", retries=0)
    with client, pytest.raises(NearDupError, match=r"cannot reach http://127\.0\.0\.1:9"):
        client.query("a")
    for wrong in ("127.0.0.1:8321", "ftp://x", ""):
        with pytest.raises(ConfigError, match="`url`"):
            neardup.Client(wrong)


class Flaky(httpx.BaseTransport):
    """Loses answers, and says that it is busy, before it answers."""

    def __init__(self, troubles):
        self.troubles = list(troubles)
        self.inner = httpx.HTTPTransport()
        self.keys = []

    def handle_request(self, request):
        self.keys.append(request.headers.get("idempotency-key"))
        trouble = self.troubles.pop(0) if self.troubles else None
        if trouble == "lost before":
            raise httpx.ConnectError("refused")
        if trouble == "busy":
            body = b'{"code": "busy", "message": "busy"}'
            return httpx.Response(429, headers={"retry-after": "0"}, content=body)
        answer = self.inner.handle_request(request)
        if trouble == "lost after":
            answer.read()
            answer.close()
            raise httpx.ReadError("reset")
        return answer

    def close(self):
        self.inner.close()


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_change_is_repeated_with_its_key_and_made_once(service, monkeypatch, is_batch):
    pauses = []
    monkeypatch.setattr("neardup.client.time.sleep", pauses.append)
    flaky = Flaky(["lost before", "busy", "lost after", "lost after"])
    with neardup.Client(service.url, TOKEN, "pages") as client:
        client.remove(list(client.ids()))
        client._http.close()
        client._http = httpx.Client(transport=flaky, **client._options)
        if is_batch:
            assert client.insert_new_many({"a": FERRY}).rows.column("is_new").to_pylist() == [True]
        else:
            assert client.insert_new("a", FERRY).is_new
        assert len(client) == 1
    assert len(set(flaky.keys[:5])) == 1
    assert flaky.keys[0] is not None
    assert pauses == sorted(pauses)
    assert len(pauses) == 4


def test_a_client_gives_up_in_the_end(service, monkeypatch):
    monkeypatch.setattr("neardup.client.time.sleep", lambda _: None)
    with neardup.Client(service.url, TOKEN, "pages", retries=2) as client:
        client._http.close()
        flaky = Flaky(["busy"] * 10)
        client._http = httpx.Client(transport=flaky, **client._options)
        with pytest.raises(NearDupError, match="busy"):
            client.query(FERRY)
    assert len(flaky.keys) == 3


def test_a_socket(tmp_path):
    from support.server_process import Started

    neardup.Index.create(tmp_path / "pages.index").close()
    place = tmp_path / "sock"
    started = Started(tmp_path / "pages.index", "--write", "--unix-socket", place)
    with neardup.Client(f"unix://{place}") as client:
        client.insert("a", FERRY)
        assert list(client.ids()) == ["a"]
    assert started.stop() == 0


@pytest.mark.parametrize(
    ("settings", "content"),
    [
        ({"items_column": "items"}, ["x", "y", "z"]),
        ({"items_column": "items"}, {"x", "y", "z"}),
        ({"measure": "cosine", "dimension": 3}, [1.0, 0.0, 2.0]),
    ],
)
def test_items_and_vectors(tmp_path, settings, content):
    neardup.Index.create(tmp_path / "pages.index", **settings).close()
    with serving(tmp_path / "pages.index") as served:
        url = f"http://127.0.0.1:{served.server.port}"
        with neardup.Client(url, TOKEN) as client:
            assert client.insert_new("a", content).is_new
            assert client.query(content)[0].doc_id == "a"
            assert client.insert_new_many({"b": content}).matches[0].doc_id == "a"
