"""The page of a list of pairs: in one file, from the server, in a browser; it removes nothing and says so nowhere."""

from __future__ import annotations

import json

import pytest
from starlette.testclient import TestClient

import neardup
from neardup.errors import DataError
from neardup.web.report_file import make_html
from neardup.web.served_pairs import ServedPairs
from neardup.web.server import make_app, open_served
from support.browser_tab import Tab, until
from support.made_run import data_of

ESSAYS = {
    "ann": "the ferry leaves the harbour at noon and comes back before the evening with fresh fish",
    "bob": "the ferry leaves the harbour at noon and comes back before the evening with new guests",
    "cem": "the ferry leaves the harbour at dawn, they say, and comes back before the evening",
    "dora": "nothing in this text is like any other",
    "eve": "the ferry leaves the harbour at noon and comes back before the evening with fresh fish",
    "<b>mallory</b>": "the ferry leaves the harbour at noon <script>alert(1)</script> and comes back",
}
REMOVAL_WORDS = ("removed", "kept", "cluster", "representative")


@pytest.fixture(scope="module", params=["parquet", "jsonl", "csv"])
def listed(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    lines = [json.dumps({"id": name, "text": text}) for name, text in ESSAYS.items()]
    (folder / "essays.jsonl").write_text("".join(f"{line}\n" for line in [*lines, '{"id": "x"}']))
    out = folder / f"pairs.{request.param}"
    neardup.find_pairs(folder / "essays.jsonl", out=out, size=2, threshold=0.3)
    return out


@pytest.fixture
def served(listed):
    opened = open_served(str(listed))
    opened._texts.read()
    yield opened
    opened.close()


def test_page_lists_the_pairs_of_the_file_with_their_texts(listed):
    report = neardup.load(listed)
    data = data_of(make_html(report))
    ids = dict(zip(data["documents"]["key"], data["documents"]["id"], strict=True))
    shown = [({ids[a], ids[b]}, similarity) for a, b, similarity in data["pairs"]]
    stored = sorted(report.pairs.to_pylist(), key=lambda pair: -pair["similarity"])
    assert shown == [({pair["doc_a"], pair["doc_b"]}, pair["similarity"]) for pair in stored]
    assert shown[0] == ({"ann", "eve"}, 1.0)
    assert data["info"]["kind"] == "pairs"
    assert data["info"]["counts"] == {
        "documents": 7,
        "rejected": 1,
        "pairs": len(stored),
        "in_pairs": 5,
        "exact": 1,
    }
    texts = dict(zip(data["documents"]["id"], data["documents"]["text"], strict=True))
    assert "".join(data["pieces"][at] for at in texts["bob"]) == ESSAYS["bob"]
    assert set(texts) == set(ESSAYS) - {"dora"}


def test_server_lists_sorts_and_filters_pairs(served, listed):
    stored = neardup.load(listed).pairs
    client = TestClient(make_app(served), base_url="http://127.0.0.1:8321")
    rows = client.get("/v1/listed").json()
    assert rows["total"] == stored.num_rows == len(rows["rows"])
    similarities = [row["similarity"] for row in rows["rows"]]
    assert similarities == sorted(similarities, reverse=True)
    turned = client.get("/v1/listed", params={"sort": "-similarity"}).json()["rows"]
    assert turned == rows["rows"][::-1]
    assert (
        client.get("/v1/listed", params={"offset": 1, "limit": 2}).json()["rows"]
        == rows["rows"][1:3]
    )
    for search in ("BOB", "guests"):
        found = client.get("/v1/listed", params={"search": search}).json()["rows"]
        assert found
        assert all("bob" in (row["id_a"], row["id_b"]) for row in found)
    for row in rows["rows"]:
        pair = client.get("/v1/pairs", params={"a": row["a"], "b": row["b"]}).json()
        assert pair["similarity"] == row["similarity"]
        assert pair["a"]["text"] == ESSAYS[row["id_a"]]
        assert pair["b"]["shingles"] == len(neardup.shingles(ESSAYS[row["id_b"]], size=2))
    assert client.get("/v1/rows/3").status_code == 404  # dora is in no pair
    assert client.get("/v1/clusters").status_code == 404


def test_changed_inputs_are_said_and_never_read(listed, tmp_path):
    for path in listed.parent.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    report_path = tmp_path / f"{listed.name}.report.json"
    stored = json.loads(report_path.read_text())
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret of the reader")
    stored["inputs"][0] |= {"path": str(secret), "size": secret.stat().st_size}
    report_path.write_text(json.dumps(stored))
    data = data_of(make_html(neardup.load(tmp_path / listed.name)))
    assert data["info"]["texts"]["state"] == "absent"
    assert "has changed since the run" in data["info"]["texts"]["reason"]
    assert "a secret" not in json.dumps(data)
    stored["inputs"][0]["rows"] = 2
    report_path.write_text(json.dumps(stored))
    forged = neardup.load(tmp_path / listed.name)
    with pytest.raises(DataError, match="no such row"):
        make_html(forged)


def test_pairs_without_their_report_are_an_error(listed, tmp_path):
    alone = tmp_path / listed.name
    alone.write_bytes(listed.read_bytes())
    with pytest.raises(DataError, match=r"no report\.json"):
        open_served(str(alone))


def test_containment_and_empty_lists_have_a_page(tmp_path):
    path = tmp_path / "essays.jsonl"
    path.write_text(
        "".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in ESSAYS.items())
    )
    for name, settings in (
        ("inside", {"measure": "containment", "threshold": 0.8}),
        ("none", {"threshold": 1.0, "size": 40}),
    ):
        out = tmp_path / f"{name}.csv"
        report = neardup.find_pairs(path, out=out, **{"size": 2} | settings)
        data = data_of(make_html(neardup.load(out)))
        assert len(data["pairs"]) == report.num_pairs
    served = open_served(str(out))
    assert isinstance(served, ServedPairs)
    served.close()


def test_commands_take_a_list_of_pairs(run, listed, tmp_path):
    done = run("report", listed, "-o", "page.html")
    assert done.code == 0, done.stderr
    assert data_of((tmp_path / "page.html").read_text("utf-8"))["info"]["kind"] == "pairs"


def test_browser_shows_pairs_and_their_texts_without_words_of_removal(browser, listed, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(make_html(neardup.load(listed)), "utf-8")
    tab = Tab(browser, f"file://{path}")
    page = tab.open()
    words = [page.inner_text("body").lower()]
    assert page.inner_text("h1").endswith("pairs in 7 documents")
    assert page.locator("nav a").all_inner_texts() == ["Overview", "Pairs"]
    page.click("nav a:text('Pairs')")
    page.wait_for_selector(".virtual-row [data-row]")
    words.append(page.inner_text("body").lower())
    page.fill("input[type=search]", "mallory")
    until(page, "document.querySelectorAll('.virtual-row').length < 5")
    page.fill("input[type=search]", "")
    until(page, "document.querySelectorAll('.virtual-row').length > 5")
    page.click(".virtual-row [data-row] >> nth=0")
    page.wait_for_selector(".sides")
    assert page.locator(".figures dd").all_inner_texts()[0] == "1.0"
    assert page.inner_text(".text >> nth=0") == ESSAYS["ann"]
    words.append(page.inner_text("body").lower())
    assert page.locator("button.mark").count() == 0
    for word in REMOVAL_WORDS:
        assert not any(word in shown for shown in words), word
    tab.close()
