"""The local server: its responses, which requests it accepts, its limits, and how it stops."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

import neardup
from neardup.errors import ConfigError
from neardup.web import document_texts, guard
from neardup.web.run_view import RunView
from neardup.web.server import make_app, open_served, serve
from neardup.web.text_store import TextStore
from support import long_ids
from support.browser_tab import Tab, until
from support.made_run import SETTINGS, documents
from support.server_process import Started


@pytest.fixture(scope="module")
def server(run_folder):
    started = Started(run_folder)
    for _ in range(2400):
        if started.get("/v1/info")["texts"]["search"] == {
            "indexed": 24,
            "documents": 24,
            "error": None,
        }:
            break
        time.sleep(0.05)
    yield started
    assert started.stop() == 0


@pytest.fixture(scope="module")
def index_server(tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "pages.index"
    with neardup.Index.create(path, threshold=0.6, size=2, seed=SETTINGS["seed"]) as index:
        for name, text in documents().items():
            if name.startswith("ferry"):
                index.insert(name, text)
    started = Started(path)
    yield started
    assert started.stop(signal.SIGINT) == 0


def problem_of(answered):
    answer, content = answered
    problem = json.loads(content)
    assert set(problem) == {"type", "title", "status", "code", "message", "hint"}
    assert problem["status"] == answer.status
    return answer.status, problem["code"]


def test_the_overview_equals_that_of_the_file_and_covers_all_documents(server, report):
    info = server.get("/v1/info")
    assert info["counts"]["removed"] == report.num_removed
    assert info["sample"] is None
    assert (info["texts"]["state"], info["texts"]["reason"]) == ("here", None)
    assert str(SETTINGS["seed"]) not in json.dumps(info)
    assert server.get("/healthz") == {"status": "ok"}


@pytest.mark.parametrize("sort", ["size", "-size", "weakest", "-weakest", "id", "-id"])
def test_clusters_come_in_order_and_in_parts(server, sort):
    listed = server.get(f"/v1/clusters?sort={sort}")
    values = [row[sort.removeprefix("-")] for row in listed["rows"]]
    assert values == sorted(values, reverse=sort in ("size", "-weakest", "-id"))
    part = server.get(f"/v1/clusters?sort={sort}&offset=1&limit=2")
    assert part == {"total": listed["total"], "rows": listed["rows"][1:3]}
    found = server.get("/v1/clusters?search=FERRY-0")
    assert [row["id"] for row in found["rows"]] == ["ferry-0"]
    words = server.get(
        f"/v1/clusters?search={quote(' '.join(documents()['ferry-0'].split()[5:9]))}"
    )
    assert [row["id"] for row in words["rows"]] == ["ferry-0"]


def test_a_cluster_a_document_and_a_pair_agree_with_the_library(server, report):
    row = server.get("/v1/clusters?search=ferry-0")["rows"][0]
    cluster = server.get(f"/v1/clusters/{row['key']}")
    assert cluster["documents"][0]["id"] == "ferry-0"
    assert len(cluster["matrix"]) == 15
    texts = documents()
    one = server.get(f"/v1/documents/{quote('ferry-3')}")["documents"][0]
    answer = neardup.explain(report, "ferry-3")
    assert (one["kept"], one["similarity"]) == (row["key"], answer.similarity)
    assert one["text"] == texts["ferry-3"]
    other = server.get("/v1/documents/ferry-5")["documents"][0]
    pair = server.get(f"/v1/pairs?a={one['key']}&b={other['key']}")
    exact = neardup.compare(texts["ferry-3"], texts["ferry-5"], size=2, seed=SETTINGS["seed"])
    assert pair["similarity"] == pytest.approx(exact.jaccard, abs=5e-5)
    assert pair["a"]["shingles"] == exact.shingles_a
    assert pair["a"]["columns"] == {"lang": "en"}


def test_a_line_of_ten_megabytes_is_cut_and_the_rest_of_its_view_is_complete(server):
    keys = {row["id"]: row["key"] for row in server.get("/v1/documents?search=long-")["rows"]}
    pair = server.get(f"/v1/pairs?a={keys['long-0']}&b={keys['long-1']}")
    for side, name in (("a", "long-0"), ("b", "long-1")):
        one = pair[side]
        assert one["bytes"] == len(documents()[name]) > 10_000_000
        assert (len(one["text"]), one["is_whole"]) == (50_000, False)
        assert one["shingles"] > 300
        assert one["columns"] == {"lang": "en"}
    assert pair["similarity"] > 0.9
    answer, content = server.ask(f"/v1/clusters/{keys['long-0']}")
    assert answer.status == 200
    assert len(content) < 200_000


def test_search_finds_ids_words_and_hostile_names(server):
    texts = documents()
    for wanted, name in (
        ("alone-3", "alone-3"),
        (" ".join(texts["alone-4"].split()[20:24]), "alone-4"),
        ("</script>", "</script><b>bold"),
    ):
        assert name in [
            row["id"] for row in server.get(f"/v1/documents?search={quote(wanted)}")["rows"]
        ]
    assert (
        server.get(f"/v1/documents/{quote('</script><b>bold')}")["documents"][0]["id"]
        == "</script><b>bold"
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/clusters/999999", (404, "unknown")),
        ("/v1/clusters/x", (422, "invalid")),
        (f"/v1/clusters/{10**30}", (404, "unknown")),
        (f"/v1/rows/{10**30}", (404, "unknown")),
        (f"/v1/rows/{'9' * 5000}", (422, "invalid")),
        ("/v1/clusters?limit=100000", (422, "invalid")),
        ("/v1/clusters?sort=up", (422, "invalid")),
        ("/v1/rows/-1", (404, "unknown")),
        ("/v1/documents/none", (404, "unknown")),
        ("/v1/documents/../../etc/passwd", (404, "unknown")),
        ("/v1/nothing", (404, "unknown")),
        ("/etc/passwd", (404, "unknown")),
    ],
)
def test_every_error_has_one_shape(server, path, expected):
    assert problem_of(server.ask(path)) == expected


def test_a_rejected_row_is_not_a_document(server):
    assert problem_of(server.ask(f"/v1/rows/{len(documents())}")) == (404, "unknown")


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost:80@evil.example", ""]
)
def test_another_host_name_is_refused(server, host):
    assert problem_of(server.ask("/v1/info", Host=host)) == (403, "host")


def test_another_origin_is_refused_and_no_header_allows_one(server):
    assert problem_of(server.ask("/v1/info", Origin="http://evil.example")) == (403, "origin")
    assert problem_of(server.ask("/v1/info", Origin="null")) == (403, "origin")
    answer, _ = server.ask("/v1/info", Origin=f"http://{server.netloc}")
    assert answer.status == 200
    assert not [
        name for name, _ in answer.getheaders() if name.lower().startswith("access-control")
    ]


@pytest.mark.parametrize("path", ["/", "/docs", "/v1/info", "/v1/nothing"])
def test_every_response_denies_frames_and_carries_the_policy(server, path):
    answer, content = server.ask(path)
    assert answer.getheader("x-frame-options") == "DENY"
    assert answer.getheader("x-content-type-options") == "nosniff"
    policy = answer.getheader("content-security-policy")
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.getheader("server") is None
    assert answer.getheader("referrer-policy") == "no-referrer"
    assert answer.getheader("cache-control") == "no-store"
    assert answer.getheader("cross-origin-resource-policy") == "same-origin"
    assert answer.getheader("cross-origin-opener-policy") == "same-origin"
    assert b'src="http' not in content


def test_methods_that_change_state_are_refused(server):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
        assert problem_of(server.ask("/v1/info", method)) == (405, "method")
    assert problem_of(server.ask("/v1/query", "POST", '{"text": "a"}')) == (400, "refused")


def test_a_query_finds_what_the_index_finds(index_server):
    text = documents()["ferry-3"]
    answer, content = index_server.ask(
        "/v1/query", "POST", json.dumps({"text": text}), Content_Type="application/json"
    )
    matches = json.loads(content)["matches"]
    assert answer.status == 200
    assert matches[0]["doc_id"] == "ferry-3"
    assert matches[0]["similarity"] == 1.0
    assert len(matches) >= 4
    info = index_server.get("/v1/info")
    assert info["counts"]["documents"] == 6
    assert str(SETTINGS["seed"]) not in json.dumps(info)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("{", (422, "invalid")),
        ('{"text": 3}', (422, "invalid")),
        ('{"text": "a", "k": 0}', (422, "invalid")),
        ('{"text": "a", "more": ' + "[" * 100_000 + "]" * 100_000 + "}", (400, "nested")),
        (json.dumps({"text": "a" * 1_000_001}), (413, "too_large")),
        (json.dumps({"text": "a" * 5_000_000}), (413, "too_large")),
    ],
)
def test_a_query_has_limits(index_server, body, expected):
    assert problem_of(index_server.ask("/v1/query", "POST", body)) == expected


def test_a_body_with_too_large_a_content_length_is_refused_unread(index_server):
    connection = http.client.HTTPConnection(index_server.netloc, timeout=120)
    connection.putrequest("POST", "/v1/query")
    connection.putheader("Content-Length", "5000000")
    connection.endheaders()
    answer = connection.getresponse()
    assert problem_of((answer, answer.read())) == (413, "too_large")
    connection.close()


def test_no_route_takes_a_path_or_an_address(server, index_server):
    parameters = set()
    for described in (server.get("/v1/openapi.json"), index_server.get("/v1/openapi.json")):
        for methods in described["paths"].values():
            for route in methods.values():
                parameters |= {one["name"] for one in route.get("parameters", ())}
                for content in route.get("requestBody", {}).get("content", {}).values():
                    parameters |= properties_of(content["schema"], described)
    assert parameters == {
        "offset",
        "limit",
        "sort",
        "search",
        "cell",
        "key",
        "a",
        "b",
        "doc_id",
        "text",
        "k",
        # Of the service.
        *("name", "id", "ids", "cursor", "Idempotency-Key", "items", "vector", "queries"),
        *("threshold", "where", "since", "containment", "payload", "expires", "documents"),
        "on_duplicate",
    }


def properties_of(schema, described):
    """The names in a body, which may be described elsewhere."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return properties_of(described["components"]["schemas"][name], described)
    return set(schema.get("properties", ()))


def test_a_body_without_a_length_is_counted(index_server):
    def chunks():
        for _ in range(60):
            yield b"x" * 100_000

    try:
        answered = index_server.ask("/v1/query", "POST", chunks())
    except (BrokenPipeError, ConnectionResetError):  # it does not wait for the rest
        return
    assert problem_of(answered) == (413, "too_large")


def call(app, path="/v1/info"):
    """Ask an application directly; return status and body."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
    }
    scope |= {
        "headers": [(b"host", b"127.0.0.1")],
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
    }
    scope |= {"asgi": {"version": "3.0"}, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}
    # In a thread of its own: Playwright has a loop in this one.
    with ThreadPoolExecutor(1) as threads:
        threads.submit(lambda: asyncio.run(app(scope, receive, send))).result()
    body = b"".join(message.get("body", b"") for message in sent)
    return sent[0]["status"], json.loads(body), dict(sent[0]["headers"])


def test_too_many_and_too_slow_requests_get_a_hint(run_folder):
    served = open_served(str(run_folder))
    status, problem, headers = call(make_app(served, guard.Limits(most_at_once=0)))
    assert (status, problem["code"], headers[b"retry-after"]) == (429, "busy", b"1")
    assert problem["hint"]

    async def slow(*_):
        await asyncio.sleep(5)

    status, problem, headers = call(
        guard.Guard(slow, "default-src 'none'", guard.Limits(seconds=0.05))
    )
    assert (status, problem["code"], headers[b"retry-after"]) == (503, "too_slow", b"1")
    served.close()


def test_only_loopback_is_served(programs, run_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "neardup.web.server.open_served", lambda _: pytest.fail("it goes on to serve")
    )
    for host in ("0.0.0.0", "::", "192.168.0.1", "example.com"):  # noqa: S104
        with pytest.raises(ConfigError, match="must be one of"):
            serve(str(run_folder), host=host, port=0, on_start=print)
    done = programs.run("serve", run_folder, "--host", "0.0.0.0", cwd=tmp_path)  # noqa: S104
    assert done.code == 2
    assert "must be one of 127.0.0.1, localhost, ::1" in done.stderr


def test_the_page_of_the_server_shows_everything(browser, server):
    tab = Tab(browser, server.url)
    page = tab.open("clusters")
    page.wait_for_selector("[data-row]")
    page.click("[data-row] >> nth=0")
    page.wait_for_selector("a.cell")
    page.click("#members ~ .scroll [data-row] >> nth=0")
    page.wait_for_selector("[data-side=a]")
    tab.open("search?search=ferry-3")
    page.click("[data-row]")
    page.wait_for_selector("#why")
    assert "to ferry-0, which was kept" in page.inner_text("#why")
    tab.close()


def test_hostile_documents_stay_texts_on_the_server(browser, server):
    keys = {row["id"]: row["key"] for row in server.get("/v1/documents?search=script")["rows"]}
    long = [row["key"] for row in server.get("/v1/documents?search=long-")["rows"]]
    key = keys["</script><b>bold"]
    other = keys['=1+1,"x"']
    tab = Tab(browser, server.url)
    views = (
        "",
        "clusters",
        f"cluster/{key}",
        f"pair/{key}/{other}",
        f"document/{key}",
        "search?search=script",
    )
    for view in (*views, f"cluster/{long[0]}", f"pair/{long[0]}/{long[1]}", f"document/{long[0]}"):
        page = tab.open(view)
        page.wait_for_timeout(50)
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main b, main script").count() == 0
        assert page.evaluate("document.querySelector('main').innerText.length") < 200_000
    told = "Cut here: 50,000 characters of a text of 10 MB; 1 word left out."
    assert page.inner_text(".cut-here") == told
    tab.close()


def test_the_page_shows_the_progress_of_the_index_and_that_results_are_partial(browser, server):
    tab = Tab(browser, server.url)

    def alter(route, change):
        answer = route.fetch()
        route.fulfill(response=answer, json=change(answer.json()))

    half = {"search": {"indexed": 12, "documents": 24, "error": None}}
    tab.page.route(
        "**/v1/info",
        lambda route: alter(route, lambda info: info | {"texts": info["texts"] | half}),
    )
    tab.page.route(
        "**/v1/documents?*", lambda route: alter(route, lambda found: found | {"num_texts": 12})
    )
    page = tab.open("search?search=ferry")
    assert page.get_attribute("[role=progressbar]", "aria-valuenow") == "50"
    assert "Indexing the words of all texts for search: 50 %" in page.inner_text(".progress")
    page.wait_for_selector("text=Partial: the words of 12 of 24 documents are indexed so far.")
    tab.page.unroute_all()
    until(page, "document.querySelector('.progress') === null")
    page.wait_for_selector("text=Searched the ids and texts of 24 documents.")
    tab.close()


def test_the_last_member_of_a_large_cluster_can_be_marked(browser, tmp_path):
    rows = [{"id": f"copy-{number}", "text": documents()["ferry-0"]} for number in range(40)]
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    neardup.deduplicate(tmp_path / "pages.jsonl", out=tmp_path / "clean")
    started = Started(tmp_path / "clean")
    tab = Tab(browser, started.url)
    page = tab.open("cluster/0")
    until(page, "document.querySelectorAll('#members ~ .scroll [data-mark]').length === 39")
    page.click("#members ~ .scroll [data-mark] >> nth=38")
    page.wait_for_selector(".badge:text-is('1')")
    stored = page.evaluate("Object.values(localStorage).find((text) => text.includes('copy-39'))")
    (mark,) = json.loads(stored)["marks"].values()
    assert mark["digest"] == document_texts.digest_of(documents()["ferry-0"].encode())
    tab.close()
    assert started.stop() == 0


@pytest.fixture
def start():
    """Start servers that end with the test."""
    started = []

    def start(path):
        started.append(Started(path))
        return started[-1].url

    yield start
    assert [one.stop() for one in started] == [0] * len(started)


# The narrow window is the one that a long id breaks first; the page opened from disk is tested in
# both.
@pytest.mark.parametrize(
    "widths", [[400], pytest.param([400, 1200], marks=pytest.mark.long)], ids=["narrow", "both"]
)
def test_very_long_and_hostile_ids_are_cut_and_can_be_copied_from_the_server(
    browser, start, tmp_path, widths
):
    tab = Tab(browser, start(long_ids.make_run(tmp_path)))
    until(tab.open("search"), "document.querySelector('.progress') === null")
    long_ids.check_views(tab, widths)
    tab.close()


def test_the_page_of_an_index_cuts_a_very_long_id_and_can_copy_it(browser, start, tmp_path):
    with neardup.Index.create(tmp_path / "index") as index:
        index.insert(long_ids.MEGABYTE, long_ids.TEXT)
    tab = Tab(browser, start(tmp_path / "index"))
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = tab.open()
    page.fill("#ask", long_ids.TEXT)
    page.click("text=Find near-duplicates")
    page.wait_for_selector(".id")
    assert page.text_content(".id") == long_ids.SHOWN[long_ids.MEGABYTE]
    page.click(".whole-id summary")
    page.click("text=Copy the whole id")
    page.wait_for_selector("text=Copied")
    assert page.evaluate("navigator.clipboard.readText()") == long_ids.MEGABYTE
    tab.close()


def test_clusters_are_filtered_by_two_sources(tmp_path):
    rows = [
        {"id": f"new:{at}", "text": f"these are the words of page {at % 9}"} for at in range(30)
    ]
    rows += [{"id": f"old:{at}", "text": f"these are the words of page {at}"} for at in range(12)]
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    report = neardup.deduplicate(tmp_path / "pages.jsonl", out=tmp_path / "clean")
    served = open_served(str(tmp_path / "clean"))
    client = TestClient(make_app(served), base_url="http://127.0.0.1:8321")
    [sources] = client.get("/v1/info").json()["sources"]
    removed = report.removed.to_pylist()
    for source, kept_source, number in sources["cells"]:
        names = sources["names"][source], sources["names"][kept_source]
        own = [
            one
            for one in removed
            if (one["doc_id"].partition(":")[0], one["kept_id"].partition(":")[0]) == names
        ]
        assert len(own) == number
        cell = {"cell": f"0/{source}/{kept_source}"}
        found = client.get("/v1/clusters", params=cell).json()
        assert found["total"] == len({one["kept_id"] for one in own})
        assert {row["id"] for row in found["rows"]} == {one["kept_id"] for one in own}
    assert client.get("/v1/clusters", params={"cell": "9/0/0"}).status_code == 404
    assert client.get("/v1/clusters", params={"cell": "x"}).status_code == 422
    served.close()


def test_the_list_of_routes_has_the_style_of_the_page(browser, server):
    tab = Tab(browser, server.url)
    tab.page.goto(f"{server.url}docs")
    font = "getComputedStyle(document.body).fontFamily"
    assert tab.page.evaluate(font).startswith("system-ui")
    tab.close()


def test_a_server_that_has_ended_is_told_and_keeps_nobody_waiting(browser, tmp_path):
    started = Started(long_ids.make_run(tmp_path))
    tab = Tab(browser, started.url)
    page = tab.open("clusters")
    page.wait_for_selector("[data-row]")
    assert started.stop() == 0
    page.click("[data-row]")
    page.wait_for_selector("text=The server does not answer.")
    assert page.locator(".loading").count() == 0
    tab.errors.clear()  # the browser itself notes that nobody answers
    tab.close()


def test_back_returns_to_the_same_place_of_a_list(browser, start, tmp_path):
    texts = [f"{documents()['ferry-0']} page{number % 300}" * 2 for number in range(600)]
    rows = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (tmp_path / "pages.jsonl").write_text(rows, "utf-8")
    neardup.deduplicate(tmp_path / "pages.jsonl", out=tmp_path / "clean", threshold=1)
    tab = Tab(browser, start(tmp_path / "clean"))
    page = tab.open("clusters")
    page.wait_for_selector("[data-row]")
    page.evaluate("document.querySelector('.virtual').scrollTop = 250 * 44")
    until(page, "history.state?.list === 250 * 44")
    until(
        page,
        "[...document.querySelectorAll('[data-row]')].some((one) => one.hash === '#/cluster/252')",
    )
    page.click("[data-row][href='#/cluster/252']")
    page.wait_for_selector("text=Kept, and represents 1 other document.")
    page.go_back()
    page.wait_for_selector("[data-row][href='#/cluster/252']")
    assert page.evaluate("document.querySelector('.virtual').scrollTop") == 250 * 44
    tab.close()


def test_the_page_shows_the_errors_of_the_server(browser, server):
    tab = Tab(browser, server.url)
    assert "there is no cluster 999999" in tab.open("cluster/999999").inner_text("main")
    assert all("404" in error for error in tab.errors)
    tab.errors.clear()  # the browser itself notes the 404
    tab.close()


def test_the_page_of_an_index_finds_near_duplicates(browser, index_server):
    tab = Tab(browser, index_server.url)
    page = tab.open()
    page.fill("#ask", documents()["ferry-3"])
    page.click("text=Find near-duplicates")
    until(page, "document.querySelector('tbody') !== null")
    assert "ferry-3" in page.inner_text("tbody tr >> nth=0")
    page.fill("#ask", "nothing like it at all")
    page.click("text=Find near-duplicates")
    page.wait_for_selector("text=No document of the index has")
    tab.close()


def test_schemathesis_finds_nothing(server):
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings

    schema = schemathesis.openapi.from_url(f"{server.url}v1/openapi.json")
    checks = [
        schemathesis.checks.not_a_server_error,
        schemathesis.checks.response_schema_conformance,
    ]
    checks.append(schemathesis.checks.status_code_conformance)
    for operation in schema.get_all_operations():
        made = operation.ok()

        @settings(
            max_examples=8,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=made.as_strategy())
        def ask(case):
            answer = case.call()
            case.validate_response(answer, checks=checks)

        ask()


def test_closing_the_store_while_it_reads_raises_nothing(report, monkeypatch):
    store = TextStore(RunView(report))
    scan = document_texts.scan

    def closing(run):
        for scanned in scan(run):
            store._file.close()
            yield scanned
            store._is_closed = True

    monkeypatch.setattr(document_texts, "scan", closing)
    with pytest.raises(ValueError, match="closed file"):  # nobody has closed the store
        store.read()
    write = document_texts.np.frombuffer

    def close_first(*arguments):
        store.close()
        return write(*arguments)

    monkeypatch.setattr("neardup.web.text_store.np.frombuffer", close_first)
    store.read()
    assert store.state == "reading"
