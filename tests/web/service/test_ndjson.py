"""Streams of lines: every line is answered in order, and no body expands without bound."""

from __future__ import annotations

import contextlib
import json
import tracemalloc

import pytest

import neardup
from neardup.web.guard import MAX_BODY, RefusedError
from neardup.web.service import ndjson
from neardup.web.service.ndjson import LINES_AT_ONCE, Splitter, unpacked
from support.service import gzipped, serving

FERRY = "the ferry to the island leaves at nine from the second pier"


@pytest.fixture
def service(tmp_path):
    neardup.Index.create(tmp_path / "pages.index", threshold=0.6, size=2).close()
    with serving(tmp_path / "pages.index") as served:
        yield served


def documents(count):
    return [{"id": f"d{n}", "text": f"page {n} has {n * 7} words {n * 3}"} for n in range(count)]


def test_every_line_is_answered_in_order_and_a_bad_one_spoils_no_other(service):
    given = [
        {"id": "a", "text": FERRY},
        b"{",
        b"",
        {"id": "b", "text": FERRY},
        {"id": "a", "text": FERRY},
        {"id": "c", "vector": [1.0]},
        b"\xff",
        {"id": "d", "text": "quite another text of several words"},
    ]
    answers = service.stream("documents", given).lines
    told = [one["error"]["code"] if "error" in one else one["is_new"] for one in answers]
    assert told == [True, "invalid", False, "exists", "refused", "invalid", True]
    assert [one["id"] for one in service.get("documents").body["documents"]] == ["a", "d"]


@pytest.mark.parametrize("operation", ["documents", "insert", "put"])
@pytest.mark.parametrize("is_gzip", [False, True])
def test_a_stream_of_several_batches(service, operation, is_gzip):
    given = documents(2 * LINES_AT_ONCE + 3)
    body = b"\n".join(json.dumps(one).encode() for one in given)  # no end of the last line
    path = f"/v1/collections/pages/{operation}"
    headers = {"Content_Type": ndjson.MEDIA_TYPE}
    if is_gzip:
        body = gzipped(body)
        headers["Content_Encoding"] = "gzip"
    reply = service.send("POST", path, body, **headers)
    assert [one["id"] for one in reply.lines] == [one["id"] for one in given]
    assert reply.headers["content-type"] == ndjson.MEDIA_TYPE
    assert service.get("info").body["documents"] == sum(
        one.get("is_new", True) for one in reply.lines
    )


def test_wrong_options_of_a_stream_are_refused(service):
    assert service.stream("documents?on_duplicate=merge", documents(1)).problem == (422, "invalid")
    assert service.stream("query?k=0", [{"text": "a"}]).problem == (422, "invalid")
    assert service.stream("query?threshold=high", [{"text": "a"}]).problem == (422, "invalid")
    assert service.stream("delete", [{"ids": []}]).problem == (415, "media_type")


def test_a_line_has_a_limit_and_what_was_before_it_stays(service):
    first = documents(LINES_AT_ONCE)
    reply = service.stream("documents", [*first, b"x" * (MAX_BODY + 1)])
    *answers, last = reply.lines
    assert len(answers) == LINES_AT_ONCE
    assert (last["error"]["code"], last["error"]["is_last"]) == ("too_large", True)
    num_new = sum(one["is_new"] for one in answers)
    assert service.get("info").body["documents"] == num_new
    assert service.stream("documents", [b"x" * (MAX_BODY + 1)]).problem == (413, "too_large")


def test_a_bomb_is_refused_after_as_many_bytes_as_a_body_may_have():
    bomb = gzipped(b" " * 100_000_000)
    tracemalloc.start()
    with pytest.raises(RefusedError, match="expands to more"):
        unpacked(bomb)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * MAX_BODY


@pytest.mark.parametrize("content", [b" " * 50_000_000, b" \n" * 1_000_000])
def test_a_bomb_of_lines_takes_the_memory_of_a_batch(content):
    bomb = gzipped(content)
    splitter = Splitter(is_gzip=True)
    tracemalloc.start()
    with contextlib.suppress(RefusedError):  # a line of spaces is too long
        for first in range(0, len(bomb), 1 << 16):
            for batch in splitter.feed(bomb[first : first + (1 << 16)]):
                assert len(batch) <= LINES_AT_ONCE
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 120_000_000


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"no gzip", 422), (gzipped(b"{}")[:-4], 422), (gzipped(b"{}") + b"more", 422)],
)
def test_what_is_not_gzip_is_refused(service, body, status):
    path = "/v1/collections/pages/query"
    for kind in ("application/json", ndjson.MEDIA_TYPE):
        headers = {"Content_Type": kind, "Content_Encoding": "gzip"}
        assert service.send("POST", path, body, **headers).problem == (status, "encoding")
    headers = {"Content_Type": "application/json", "Content_Encoding": "br"}
    assert service.send("POST", path, b"{}", **headers).problem == (415, "encoding")


def test_a_compressed_request_is_answered(service):
    body = gzipped(json.dumps({"id": "a", "text": FERRY}).encode())
    headers = {"Content_Type": "application/json", "Content_Encoding": "gzip"}
    path = "/v1/collections/pages/documents"
    assert service.send("POST", path, body, **headers).status == 201
