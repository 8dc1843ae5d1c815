"""The service as a whole: who is answered, limits, queues, headers, the log, metrics, and its description."""

from __future__ import annotations

import http.client
import json
import resource
import socket
import threading
import time

import pytest

import neardup
from neardup.errors import FullDiskError, UnsyncedError
from neardup.web.guard import Limits, Senders
from neardup.web.service import app as app_module
from neardup.web.service.collection import Collection
from neardup.web.service.routes import ROUTES
from support.raw_server import HOST, PATIENCE, wait_for
from support.service import TOKEN, serving

FERRY = "the ferry to the island leaves at nine from the second pier"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    for name in ("shared", "own"):
        (folder / name).mkdir()
        with neardup.Index.create(folder / name / "pages.index", threshold=0.6, size=2) as index:
            index.insert("a", FERRY)
    return folder


@pytest.fixture
def path(made):
    """An index that no other service has open."""
    return made / "own" / "pages.index"


@pytest.fixture(scope="module")
def service(made):
    with serving(made / "shared" / "pages.index") as served:
        yield served


# Who is answered


def test_a_body_must_be_called_json(service):
    body = json.dumps({"id": "x", "text": "a"})
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        path = "/v1/collections/pages/documents"
        reply = service.send("POST", path, body, Content_Type=kind)
        assert reply.problem == (415, "media_type")


def test_a_foreign_page_is_refused_also_with_a_token(service):
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Host": "evil.example"},
    ):
        reply = service.post("documents", {"id": "x", "text": "a"}, **headers)
        assert reply.status == 403


def test_only_named_sites_and_names_may_ask(path):
    senders = Senders(hosts=["data.example"], origins=["https://tool.example"])
    with serving(path, write=False, senders=senders) as served:
        for host in ("data.example", "data.example:8321", "localhost"):
            assert served.get("info", Host=host).status == 200
        for host in ("evil.example", "data.example.evil", "data.example:80:80"):
            assert served.get("info", Host=host).problem == (403, "host")
        reply = served.get("info", Origin="https://tool.example", Sec_Fetch_Site="cross-site")
        assert reply.headers["access-control-allow-origin"] == "https://tool.example"
        assert reply.headers["vary"] == "origin"
        refused = served.post("documents", {}, Origin="https://tool.example")
        assert refused.headers["access-control-allow-origin"] == "https://tool.example"
        asked = served.send("OPTIONS", "/v1/collections/pages/query", Origin="https://tool.example")
        assert asked.status == 204
        assert "authorization" in asked.headers["access-control-allow-headers"]
        other = served.get("info", Origin="https://evil.example")
        assert other.problem == (403, "origin")
        assert "access-control-allow-origin" not in other.headers


def test_a_server_that_reads_refuses_changes(path):
    with serving(path, write=False) as served:
        for operation in ("documents", "insert", "put", "replace", "delete", "compact"):
            assert served.post(operation, {"id": "x", "text": "a"}).problem == (403, "read_only")
        assert served.post("query", {"text": FERRY}).body["matches"][0]["id"] == "a"


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/v1/collections/none/info", (404, "unknown")),
        ("GET", "/v1/collections/pages/nothing", (404, "unknown")),
        ("GET", "/v1/collections/pages/", (404, "unknown")),
        ("GET", "/v1/collections/pages//v1/collections", (404, "unknown")),
        ("GET", "/v1/collections/", (404, "unknown")),
        ("GET", "/nothing", (404, "unknown")),
        ("GET", "/v1/collections/pages/query", (405, "method")),
        ("DELETE", "/v1/collections/pages/documents", (405, "method")),
        ("BREW", "/v1/collections", (405, "method")),
        ("GET", "/v1/collections/pages/documents/none", (404, "unknown")),
    ],
)
def test_an_unknown_route_gets_the_one_error(service, method, path, expected):
    assert service.send(method, path).problem == expected


def test_a_wrong_method_names_the_right_ones(service):
    assert (
        service.send("PUT", "/v1/collections/pages/documents").headers["allow"] == "GET, HEAD, POST"
    )
    assert service.send("GET", "/v1/collections/pages/query").headers["allow"] == "POST"


def test_head_answers_as_get_without_a_body(service):
    for path in ("/healthz", "/v1/collections", "/v1/collections/pages/info", "/docs"):
        head, got = service.send("HEAD", path), service.send("GET", path)
        assert (head.status, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(got.content))


# Limits and queues


def blocked(monkeypatch, name):
    """Make a method of collections wait until it is released."""
    released = threading.Event()
    method = getattr(Collection, name)

    def wait(*arguments):
        released.wait(PATIENCE)
        return method(*arguments)

    monkeypatch.setattr(Collection, name, wait)
    return released


def begin(service, operation, given):
    """Send a request without reading its answer."""
    connection = http.client.HTTPConnection("127.0.0.1", service.server.port, timeout=PATIENCE)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
    path = f"/v1/collections/pages/{operation}"
    connection.request("POST", path, json.dumps(given), headers)
    return connection


def test_changes_that_wait_are_bounded_and_reading_goes_on(path, monkeypatch):
    monkeypatch.setattr(app_module, "MAX_WRITES", 12)
    with serving(path) as service:
        released = blocked(monkeypatch, "put")
        waiting = [
            begin(service, "put", {"id": f"w{n}", "text": f"text {n} of those that wait"})
            for n in range(12)
        ]
        wait_for(lambda: service.service._writes == 12)
        refused = service.post("put", {"id": "late", "text": "one too many"})
        assert refused.problem == (429, "busy")
        assert refused.headers["retry-after"] == "1"
        assert service.post("query", {"text": FERRY}).status == 200
        assert 'neardup_queue{kind="write"} 12' in service.send("GET", "/metrics").content.decode()
        released.set()
        for one in waiting:
            assert one.getresponse().status in (200, 201)
            one.close()
        wait_for(lambda: service.service._writes == 0)
        assert service.post("put", {"id": "late", "text": "now there is room"}).status == 201


def test_a_request_that_takes_too_long_is_given_up_and_keeps_its_place_until_it_ends(
    path, monkeypatch
):
    with serving(path, limits=Limits(seconds=0.2)) as service:
        released = blocked(monkeypatch, "put")
        assert service.post("put", {"id": "slow", "text": "a"}).problem == (503, "too_slow")
        assert service.service._writes == 1
        released.set()
        wait_for(lambda: service.service._writes == 0)


def test_a_stream_that_pauses_is_ended_and_what_came_before_is_stored(path):
    with serving(path, limits=Limits(body_seconds=0.3)) as service:
        client = service.server.send(
            b"POST /v1/collections/pages/documents HTTP/1.1\r\n"
            + HOST
            + f"Authorization: Bearer {TOKEN}\r\n".encode()
            + b"Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
            + b'4\r\n{"id\r\n'
        )
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 408")


def test_streams_at_once_are_bounded(path, monkeypatch):
    monkeypatch.setattr(app_module, "MAX_STREAMS", 1)
    head = (
        b"POST /v1/collections/pages/query HTTP/1.1\r\n"
        + HOST
        + b"Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with serving(path) as service:
        first = service.server.send(head)
        wait_for(lambda: service.service._streams == 1)
        assert service.stream("query", [{"text": FERRY}]).problem == (429, "busy")
        first.close()
        wait_for(lambda: service.service._streams == 0)
        assert service.stream("query", [{"text": FERRY}]).status == 200


# Failures


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (FullDiskError("the disk is full"), (507, "full")),
        (UnsyncedError("the disk did not confirm"), (503, "unsynced")),
        (ZeroDivisionError("secret"), (500, "failed")),
    ],
)
def test_a_failing_disk_and_a_failing_server(path, monkeypatch, error, expected):
    with serving(path) as service:
        collection = service.service._collections["pages"]

        def fail(*_, **__):
            raise error

        monkeypatch.setattr(collection.index, "put", fail)
        reply = service.post("put", {"id": "x", "text": "a"})
        assert reply.problem == expected
        assert b"secret" not in reply.content
        is_unsynced = expected[1] == "unsynced"
        assert service.send("GET", "/readyz").status == (503 if is_unsynced else 200)
        assert service.send("GET", "/healthz").body == {"status": "ok"}
        if is_unsynced:
            assert service.post("insert", {"id": "y", "text": "a"}).problem == (503, "unsynced")
            assert service.post("query", {"text": FERRY}).status == 200


# What is told about requests


def test_the_log_has_no_text_no_id_and_no_token(path):
    logged = []
    with serving(path, log=logged.append) as service:
        service.post("documents", {"id": "hidden id", "text": "hidden text of a document"})
        service.get("documents/hidden%20id?cursor=hidden")
        service.token = "hidden token"  # noqa: S105
        service.get("info")
        service.token = TOKEN
        service.send("GET", "/hidden/path")
    wait_for(lambda: len(logged) == 4)
    lines = [json.loads(line) for line in logged]
    assert b"hidden" not in b"".join(logged)
    assert all(line.endswith(b"\n") for line in logged)
    assert [line["status"] for line in lines] == [201, 200, 401, 404]
    assert lines[0]["route"] == "/v1/collections/{name}/documents"
    assert (lines[0]["collection"], lines[0]["token"]) == ("pages", "given-1")
    assert lines[2]["code"] == "token"


def test_metrics_count_requests_latencies_and_documents(path):
    with serving(path, write=False) as service:
        for _ in range(3):
            service.post("query", {"text": FERRY})
        service.post("query", {"text": 1})
        reply = service.send("GET", "/metrics")
        told = reply.content.decode().splitlines()
        num_documents = service.get("info").body["documents"]
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    route = "/v1/collections/{name}/query"
    assert f'neardup_requests_total{{method="POST",route="{route}",status="200"}} 3' in told
    assert 'neardup_rejected_total{code="invalid"} 1' in told
    assert f'neardup_request_seconds_bucket{{route="{route}",le="+Inf"}} 4' in told
    assert f'neardup_documents{{collection="pages"}} {num_documents}' in told
    for name in ("segments", "unflushed", "merges", "queue"):
        assert any(line.startswith(f"neardup_{name}{{") for line in told)
    names = [line.split()[2] for line in told if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_paths_of_clients_make_no_new_series(service):
    for number in range(20):
        service.send("GET", f"/nothing/{number}")
        service.send(f"M{number}", "/healthz")
    told = service.send("GET", "/metrics").content.decode()
    assert "/nothing" not in told
    assert 'method="M1"' not in told


def test_the_description_has_every_route_with_an_example_and_its_page_loads_nothing(service):
    described = service.send("GET", "/openapi.json").body
    assert service.send("GET", "/v1/openapi.json").body == described
    listed = {
        (method.upper(), path) for path, methods in described["paths"].items() for method in methods
    }
    assert {(route.method, route.path) for route in ROUTES} <= listed
    page = service.send("GET", "/docs")
    text = page.content.decode()
    assert "src=" not in text
    assert "<script" not in text
    assert "style-src 'sha256-" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    for route in ROUTES:
        assert f"{route.method} {route.path}" in text
        if route.example is not None:
            assert f'"{next(iter(route.example))}"' in text.replace("&quot;", '"')


def test_every_answer_carries_the_headers_of_a_server_without_frames_and_stores(service):
    replies = [
        service.get("info"),
        service.get("none"),
        service.stream("query", [{"text": FERRY}]),
        service.send("GET", "/docs"),
    ]
    for reply in replies:
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in reply.headers["content-security-policy"]


# Hostile clients


@pytest.mark.slow("opens 500 connections")
def test_five_hundred_connections_are_served_or_told_to_wait(service):
    # Both ends of every connection are in this process.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4_096)), hard))
    begun = time.monotonic()
    clients = []
    for _ in range(500):
        client = socket.socket()
        client.settimeout(PATIENCE)
        client.connect(("127.0.0.1", service.server.port))
        clients.append(client)
    body = json.dumps({"text": FERRY}).encode()
    head = (
        b"POST /v1/collections/pages/query HTTP/1.1\r\n"
        + HOST
        + b"Content-Type: application/json\r\nConnection: close\r\n"
        + f"Content-Length: {len(body)}\r\n\r\n".encode()
    )
    for client in clients:
        client.sendall(head + body)
    statuses = []
    for client in clients:
        with client:
            statuses.append(int(client.recv(1 << 16).split()[1]))
    assert set(statuses) <= {200, 429}
    assert statuses.count(200) >= 256
    assert time.monotonic() - begun < PATIENCE
    assert service.post("query", {"text": FERRY}).status == 200


def test_an_endless_chunked_body_is_refused_and_then_the_connection_ends(path):
    chunk = b"10000\r\n" + b" " * 65_536 + b"\r\n"
    with serving(path, write=False, header_seconds=0.5) as service:
        client = service.server.send(
            b"POST /v1/collections/pages/query HTTP/1.1\r\n"
            + HOST
            + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for _ in range(70):
            client.sendall(chunk)
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 413")
        with pytest.raises(OSError, match=r"reset|[Bb]roken"):
            client.sendall(chunk * 20_000)
        assert service.post("query", {"text": FERRY}).status == 200


def test_slow_clients_keep_nobody_waiting(service):
    for _ in range(100):
        service.server.send(
            b"POST /v1/collections/pages/query HTTP/1.1\r\n"
            + HOST
            + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
    for _ in range(100):
        service.server.send(b"GET /v1/collections HTTP/1.1\r\nHost:")
    assert service.post("query", {"text": FERRY}).status == 200
