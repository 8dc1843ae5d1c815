"""Attacks on the server: clients that never finish, requests for too much, and what is no request at all."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import neardup
from neardup.web.guard import Limits
from neardup.web.served_index import MAX_ANSWER, ServedIndex
from neardup.web.server import make_app
from support.raw_server import (
    HOST,
    PATIENCE,
    answered,
    answering,
    body_head,
    read_to_end,
    running,
    wait_for,
)
from support.server_process import Started

TEXT = " ".join(f"word{number}" for number in range(60))
QUERY = json.dumps({"text": TEXT}).encode()
# Stored documents with payloads of 60 KB, more than one answer has room for.
NUM_LARGE = 140
# What a client may make the server wait for, here, so that a test does not have to.
SHORT = 0.2


@pytest.fixture(scope="module")
def index_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "pages.index"
    with neardup.Index.create(path, threshold=0.6, durability="fast") as index:
        for number in range(NUM_LARGE):
            index.insert(f"page-{number}", TEXT, payload={"notes": "ü" * 30_000})
    return path


@pytest.fixture(scope="module")
def served(index_path):
    opened = ServedIndex(str(index_path))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def server(served):
    with running(make_app(served)) as started:
        yield started


# Small requests


def test_answers_do_not_wait_for_delayed_acknowledgements(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.connect()

    def ask():
        begun = time.perf_counter()
        connection.request("GET", "/healthz")
        connection.getresponse().read()
        return time.perf_counter() - begun

    ask()
    own_port = connection.sock.getsockname()[1]
    (accepted,) = [one for one in server.connections if one.client[1] == own_port]
    option = accepted.transport.get_extra_info("socket").getsockopt(
        socket.IPPROTO_TCP, socket.TCP_NODELAY
    )
    assert option != 0
    # A delayed acknowledgement takes 40 ms; without one, most requests are quicker even on a busy
    # machine.
    rounds = (sorted(ask() for _ in range(40))[10] for _ in range(10))
    assert any(seconds < 0.035 for seconds in rounds)
    connection.close()


# Clients that never finish


def test_bodies_that_never_come_keep_nobody_from_an_answer(server):
    for _ in range(16):
        server.send(body_head(100) + b"{")
    assert server.get().status == 200
    assert server.post(json.dumps({"text": TEXT, "k": 1}).encode()).status == 200


def test_a_body_that_never_comes_is_given_up():
    with running(answering(limits=Limits(body_seconds=SHORT))) as server:
        answer = server.exchange(body_head(100) + b"{")
        assert (answer.status, answer.code) == (408, "incomplete")
        assert answer.headers["connection"] == "close"
        chunked = b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"
        assert server.exchange(chunked).status == 408


def test_a_body_that_comes_drop_by_drop_is_given_up():
    with running(answering(limits=Limits(body_seconds=2 * SHORT))) as server:
        client = server.send(body_head(1000))
        with contextlib.suppress(OSError):
            for _ in range(1000):
                client.sendall(b"x")
                time.sleep(SHORT / 10)
                if not server.connections:
                    break
        assert server.connections == set()


def test_only_so_many_bodies_are_read_at_once_and_requests_without_one_need_none():
    app = answering(limits=Limits(most_bodies=2, body_seconds=PATIENCE))
    with running(app) as server:
        for _ in range(2):
            server.send(body_head(100))
        wait_for(lambda: app._bodies == 2)
        answer = server.post(b"{}")
        assert (answer.status, answer.code) == (429, "busy")
        assert server.get().status == 200


def test_unfinished_bodies_hold_a_limited_number_of_bytes():
    app = answering(limits=Limits(max_pending_bytes=300_000, body_seconds=PATIENCE))
    with running(app) as server:
        server.send(body_head(300_000) + b"x" * 299_999)
        wait_for(lambda: app._pending_bytes == 299_999)
        answer = server.post(b"x" * 200_000)
        assert (answer.status, answer.code) == (429, "busy")
        assert server.post(b"{}").status == 200


def test_a_client_that_leaves_frees_its_place():
    app = answering(limits=Limits(most_bodies=1, body_seconds=PATIENCE))
    with running(app) as server:
        client = server.send(body_head(100))
        wait_for(lambda: app._bodies == 1)
        assert server.post(b"{}").status == 429
        client.close()
        wait_for(lambda: server.post(b"{}").status == 200)


@pytest.mark.parametrize(
    "sent", [b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\n" + HOST + b"X: y"]
)
def test_half_sent_headers_are_given_up(sent):
    with running(answering(), header_seconds=SHORT) as server:
        answer = server.exchange(sent)
        assert (answer.status, answer.code) == (408, "incomplete")


def test_headers_that_come_drop_by_drop_are_given_up():
    with running(answering(), header_seconds=2 * SHORT) as server:
        client = server.send(b"GET / HTTP/1.1\r\n")
        with contextlib.suppress(OSError):
            for _ in range(1000):
                client.sendall(b"X")
                time.sleep(SHORT / 10)
                if not server.connections:
                    break
        assert server.connections == set()


def test_half_sent_headers_after_an_answer_are_given_up():
    with running(answering(), header_seconds=SHORT) as server:
        client = server.send(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 200")
        client.sendall(b"GET / HTTP/1.1\r\nHost:")
        content = read_to_end(client)
        assert answered(content[content.index(b"HTTP/1.1 408") :]).code == "incomplete"


def test_a_silent_connection_is_closed_without_an_answer():
    with running(answering(), header_seconds=SHORT) as server:
        assert read_to_end(server.connect()) == b""


def test_an_answer_may_take_longer_than_headers():
    async def compute():
        await asyncio.sleep(4 * SHORT)

    with running(answering(before=compute), header_seconds=SHORT) as server:
        assert server.get().status == 200


def test_an_answer_that_nobody_reads_takes_no_slot_and_is_given_up():
    limits = Limits(most_at_once=1, sending_seconds=2 * SHORT)
    with running(answering(b"x" * 8_000_000, limits), header_seconds=SHORT) as server:
        client = server.connect(receive_bytes=4096)
        client.sendall(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        assert client.recv(1) == b"H"
        assert len(server.get().body) == 8_000_000
        wait_for(lambda: server.connections == set())


def test_answers_that_nobody_reads_hold_a_limited_number_of_bytes():
    with running(answering(b"x" * 8_000_000, Limits(max_pending_bytes=12_000_000))) as server:
        client = server.connect(receive_bytes=4096)
        client.sendall(b"GET / HTTP/1.1\r\n" + HOST + b"\r\n")
        assert client.recv(1) == b"H"
        answer = server.get()
        assert (answer.status, answer.code) == (429, "busy")


# Requests for too much


def test_an_answer_has_a_limited_number_of_bytes_and_the_error_names_how_many_matches_fit(server):
    def ask(k):
        return server.post(json.dumps({"text": TEXT, "k": k}).encode())

    refused = ask(1000)
    assert (refused.status, refused.code) == (400, "too_many_matches")
    hint = json.loads(refused.body)["hint"]
    num_fitting = int(hint.rpartition(" ")[2])
    assert hint == f'request fewer: "k": {num_fitting}'
    fitting = ask(num_fitting)
    assert len(json.loads(fitting.body)["matches"]) == num_fitting
    assert MAX_ANSWER - 61_000 < len(fitting.body) <= MAX_ANSWER
    assert ask(num_fitting + 1).code == "too_many_matches"


def test_one_match_that_is_larger_than_an_answer_is_an_error(tmp_path):
    with neardup.Index.create(tmp_path / "index") as index:
        index.insert("i" * (MAX_ANSWER + 1), TEXT)
    opened = ServedIndex(str(tmp_path / "index"))
    with running(make_app(opened)) as server:
        answer = server.post(QUERY)
    opened.close()
    assert answer.code == "too_many_matches"
    assert "neardup index query" in json.loads(answer.body)["hint"]


@pytest.mark.long
def test_large_queries_at_once_take_little_memory(tmp_path):
    path = tmp_path / "pages.index"
    with neardup.Index.create(path, threshold=0.6, durability="fast") as index:
        for number in range(1000):
            index.insert(f"page-{number}", TEXT, payload={"notes": "x" * 60_000})
    started = Started(path)
    content = json.dumps({"text": TEXT, "k": 1000})
    started.ask("/v1/query", "POST", json.dumps({"text": TEXT, "k": 1}))
    with ThreadPoolExecutor(16) as threads:
        asked = [threads.submit(started.ask, "/v1/query", "POST", content) for _ in range(16)]
        assert {one.result()[0].status for one in asked} == {400}
    status = Path(f"/proc/{started.process.pid}/status").read_text("utf-8")
    (peak,) = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")]
    assert int(peak) / 1024 < 700  # MB; 350 measured, and 1,900 before answers had a limit
    assert started.stop() == 0


# Requests of foreign pages


@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "evil", "Cross-Site"])
def test_a_request_of_a_foreign_page_is_refused_before_any_work(site):
    async def compute():
        pytest.fail("the application was called")

    lines = HOST + b"Connection: close\r\nSec-Fetch-Site: " + site.encode() + b"\r\n"
    with running(answering(before=compute)) as server:
        answer = server.exchange(b"GET /v1/info HTTP/1.1\r\n" + lines + b"\r\n")
        assert (answer.status, answer.code) == (403, "site")
        # It is refused before its body has come, too.
        answer = server.exchange(
            b"POST /v1/query HTTP/1.1\r\n" + lines + b"Content-Length: 9\r\n\r\n"
        )
        assert (answer.status, answer.code) == (403, "site")


@pytest.mark.parametrize("site", [b"same-origin", b"none"])
def test_a_request_of_the_own_page_is_answered(server, site):
    lines = HOST + b"Connection: close\r\nSec-Fetch-Site: " + site + b"\r\n\r\n"
    assert server.exchange(b"GET /v1/info HTTP/1.1\r\n" + lines).status == 200


def test_a_second_header_does_not_hide_the_first(server):
    lines = (
        HOST
        + b"Connection: close\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Site: same-origin\r\n\r\n"
    )
    assert server.exchange(b"GET /v1/info HTTP/1.1\r\n" + lines).code == "site"
    own = b"Origin: http://127.0.0.1\r\n"
    lines = HOST + b"Connection: close\r\nOrigin: http://evil.example\r\n" + own + b"\r\n"
    assert server.exchange(b"GET /v1/info HTTP/1.1\r\n" + lines).code == "origin"


# Methods


@pytest.mark.parametrize(
    "path", ["/", "/docs", "/healthz", "/v1/info", "/v1/openapi.json", "/v1/nothing"]
)
def test_head_answers_as_get_without_a_body(server, path):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    answers = []
    for method in ("HEAD", "GET"):
        connection.request(method, path)
        answer = connection.getresponse()
        answers.append((answer.status, answer.getheaders(), answer.read()))
    connection.close()
    (status, headers, body), (get_status, get_headers, get_body) = answers
    assert (status, headers, body) == (get_status, get_headers, b"")
    assert dict(headers)["content-length"] == str(len(get_body))


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/v1/info", "get, head"),
        ("POST", "/", "get, head"),
        ("POST", "/v1/openapi.json", "get, head"),
        ("OPTIONS", "/healthz", "get, head"),
        ("GET", "/v1/query", "post"),
        ("HEAD", "/v1/query", "post"),
        ("BREW", "/v1/query", "post"),
    ],
)
def test_a_wrong_method_names_the_right_ones(server, method, path, allowed):
    answer = server.exchange(
        f"{method} {path} HTTP/1.1\r\n".encode() + HOST + b"Connection: close\r\n\r\n"
    )
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    if method != "HEAD":
        assert answer.code == "method"


# What is no request


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + HOST + b"\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"A line without a colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /v1/query HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST /v1/query HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 20_000, 431),
    ],
)
def test_what_is_not_http_gets_the_one_error_and_the_connection_ends(server, sent, status):
    answer = server.exchange(sent)
    assert (answer.status, answer.code) == (status, "malformed")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert answer.headers["connection"] == "close"


def test_a_broken_body_after_its_answer_only_ends_the_connection(server):
    client = server.send(
        b"POST /v1/query HTTP/1.1\r\nHost: evil\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    assert client.recv(1 << 16).startswith(b"HTTP/1.1 403")
    client.sendall(b"zz\r\n")
    assert b"HTTP/1.1" not in read_to_end(client)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{", (422, "invalid")),
        (b"\xff", (422, "invalid")),
        (b'{"text": "\xff"}', (422, "invalid")),
        (b'{"text": "\\ud800"}', (422, "invalid")),
        (b'{"text": "a", "k": 1e999}', (422, "invalid")),
        (b'{"text": "a", "k": ' + b"9" * 5000 + b"}", (422, "invalid")),
        (b'{"a": ' + b"[" * 100_000, (400, "nested")),
        (b"null", (422, "invalid")),
        (b"", (422, "invalid")),
    ],
)
def test_what_is_not_a_query_gets_the_one_error(server, body, expected):
    answer = server.post(body)
    assert (answer.status, answer.code) == expected


@pytest.mark.parametrize(
    "path", ["/v1/info/", "/v1/", "//", "/v1/query/", "/v1/%00", "/%ff", "http://evil.example/"]
)
def test_an_unknown_route_gets_the_one_error(server, path):
    answer = server.get(path)
    assert (answer.status, answer.code) == (404, "unknown")


def test_a_failure_of_the_server_gets_the_one_error():
    async def fail():
        raise ZeroDivisionError("no divisor")

    with running(answering(before=fail)) as server:
        answer = server.get()
        assert (answer.status, answer.code) == (500, "failed")
        assert "ZeroDivisionError: no divisor" in json.loads(answer.body)["message"]
        assert server.get().status == 500
