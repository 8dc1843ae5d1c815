"""The page of a list of pairs: in one file, from the server, in a browser; it removes nothing and says so nowhere."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

import neardup
from neardup.errors import DataError
from neardup.web.pairs_view import SHOWN_OF_PASSAGE
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
        assert "passages" not in pair
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
    assert "".join(page.locator("[data-side=a]").all_text_contents()) == ESSAYS["ann"]
    page.click("text=next pair")
    page.wait_for_selector("text=previous pair")
    words.append(page.inner_text("body").lower())
    assert page.locator("button.mark").count() == 0
    for word in REMOVAL_WORDS:
        assert not any(word in shown for shown in words), word
    tab.close()


COPIED = " ".join(f"copied{number}" for number in range(24))
MOVED = " ".join(f"moved{number}" for number in range(20))


def filler(word, num_lines):
    return "\n".join(f"{word}{number} stays\there" for number in range(num_lines))


# Characters beyond the basic plane, which are one code point and two units of JavaScript, before and in passages.
COPIES = {
    "ann": f"😀🎉 {filler('alpha', 300)}\n{COPIED} 😀 {COPIED[:6]}\n{filler('beta', 90)}\n{MOVED} 🎉",
    "bob": f"{filler('gamma', 40)}\n{MOVED}\n𝔘𝔫 {filler('delta', 250)}\n{COPIED.replace('copied7 ', '<b>𝔘</b> ')} end",
}
SETTINGS = {"size": 1, "threshold": 0.01, "method": "exact", "passages": True, "edits": True}


@pytest.fixture(scope="module", params=["parquet", "jsonl", "csv"])
def with_passages(request, tmp_path_factory):
    return list_copies(tmp_path_factory.mktemp("passages"), COPIES, request.param)


@pytest.fixture(scope="module")
def copies(tmp_path_factory):
    return list_copies(tmp_path_factory.mktemp("copies"), COPIES)


def list_copies(folder, texts, ending="parquet"):
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in texts.items()]
    (folder / "essays.jsonl").write_text("".join(lines))
    out = folder / f"pairs.{ending}"
    neardup.find_pairs(folder / "essays.jsonl", out=out, **SETTINGS)
    return out


def forge(listed, folder, **values):
    """Copy a list of pairs with other values of its first passage."""
    shutil.copytree(listed.parent, folder, dirs_exist_ok=True)
    table = pq.read_table(folder / listed.name)
    at = table.schema.get_field_index("passages")
    passages = table.column(at).to_pylist()
    passages[0][0] |= values
    column = pa.array(passages, table.schema.field(at).type)
    pq.write_table(table.set_column(at, table.schema.field(at), column), folder / listed.name)
    return folder / listed.name


def found_in(page, side):
    return "".join(page.locator(f"[data-side={side}] .is-found").all_text_contents())


def test_passages_of_a_list_are_read_alike_from_every_format(with_passages):
    [pair] = neardup.load(with_passages).pairs.to_pylist()
    expected = neardup.passages(*COPIES.values(), edits=True)
    names = [name for name in pair["passages"][0] if name != "similarity"]
    assert len(expected) == 2
    for passage, found in zip(pair["passages"], expected, strict=True):
        assert {name: passage[name] for name in names} == {
            name: getattr(found, name) for name in names
        }
        assert passage["similarity"] == pytest.approx(found.similarity, abs=1e-15)


def test_shares_of_containment_are_kept_in_every_format(tmp_path):
    path = tmp_path / "essays.jsonl"
    lines = [json.dumps({"id": name, "text": text}) + "\n" for name, text in ESSAYS.items()]
    path.write_text("".join(lines))
    tables = []
    for ending in ("parquet", "jsonl", "csv"):
        out = tmp_path / f"inside.{ending}"
        neardup.find_pairs(path, out=out, measure="containment", threshold=0.5, size=2)
        tables.append(neardup.load(out).pairs.to_pylist())
    assert "containment_a" in tables[0][0]
    assert tables[0] == tables[1] == tables[2]


def test_click_on_a_passage_marks_it_in_both_texts(browser, copies, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(make_html(neardup.load(copies)), "utf-8")
    [pair] = neardup.load(copies).pairs.to_pylist()
    tab = Tab(browser, f"file://{path}")
    for link, sides in (("pair/0/1", "ab"), ("pair/1/0", "ba")):
        page = tab.open(link)
        page.wait_for_selector(f".side:first-child[aria-label={'ann' if sides == 'ab' else 'bob'}]")
        assert page.locator(".jump").count() == 2
        assert page.locator(".is-found").count() == 0
        for number, passage in enumerate(pair["passages"]):
            # The first click shows the place on the left, the second one that on the right.
            for shown, own in zip("ab", sides, strict=True):
                page.click(f".jump >> nth={number}")
                until(page, f"document.querySelectorAll('.jump')[{number}].ariaPressed === 'true'")
                text = COPIES["ann" if own == "a" else "bob"]
                span = text[passage[f"start_{own}"] : passage[f"end_{own}"]]
                marked = f"[...document.querySelectorAll('[data-side={shown}] .is-found')]"
                told = f"{marked}.map((one) => one.textContent).join('')"
                until(page, f"{told} === {json.dumps(span)}")
                until(
                    page,
                    f"""(() => {{
                      const pane = document.querySelector(".aligned").getBoundingClientRect();
                      const mark = document.querySelector("[data-side={shown}] .is-found").getBoundingClientRect();
                      return mark.top >= pane.top && mark.top < pane.bottom;
                    }})()""",
                )
            lines = (
                f"line {passage[f'line_{sides[0]}']} on the left, {passage[f'line_{sides[1]}']} on"
            )
            assert lines in page.inner_text(f".passages li >> nth={number}")
    tab.close()


def test_server_answers_with_the_passages_of_a_pair(copies):
    served = open_served(str(copies))
    client = TestClient(make_app(served), base_url="http://127.0.0.1:8321")
    found = client.get("/v1/pairs", params={"a": 1, "b": 0}).json()
    served.close()
    stored = neardup.load(copies).pairs.to_pylist()[0]["passages"]
    rows = [[passage[name] for name in SHOWN_OF_PASSAGE] for passage in stored]
    assert found["passages"] == {"total": 2, "rows": rows}


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"start_a": -1}, "`start_a` is at least 0"),
        ({"end_b": 0}, "`start_b` is at least 0 and before `end_b`"),
        ({"end_a": 2**62}, "before `end_a`"),
        ({"start_byte_b": -5}, "`start_byte_b`"),
        ({"line_a": 0}, "`line_a`"),
        ({"line_b": 2**40}, "`line_b`"),
        ({"words": 0}, "`words` is at least 1"),
        ({"words": 10**6}, "no room for `words`"),
        ({"similarity": 1.5}, "`similarity`"),
        ({"similarity": float("nan")}, "`similarity`"),
        ({"end_a": None}, "null"),
    ],
)
def test_forged_passage_is_an_error(copies, tmp_path, values, told):
    forged = forge(copies, tmp_path / "forged", **values)
    with pytest.raises(DataError, match="row 1 has the passage") as failure:
        make_html(neardup.load(forged))
    assert told in str(failure.value)


@pytest.mark.parametrize("text", ["[", "5", '[{"start_a": "x"}]', "null", "[5]"])
def test_passages_in_csv_that_are_none_are_an_error(tmp_path, text):
    listed = list_copies(tmp_path, COPIES, "csv")
    head, row = listed.read_text().splitlines()
    before = row.partition(',"[')[0]
    quoted = text.replace('"', '""')
    listed.write_text(f'{head}\n{before},"{quoted}"\n')
    with pytest.raises(DataError, match="damaged"):
        _ = neardup.load(listed).pairs


def test_spans_outside_of_the_texts_are_counted_or_said_to_be_cut(browser, copies, tmp_path):
    # Overlapping: from the beginning of the text over all of the other passage.
    spans = {"start_a": 0, "line_a": 1, "end_a": len(COPIES["ann"])}
    overlapping = forge(copies, tmp_path / "overlapping", **spans)
    outside = forge(copies, tmp_path / "outside", end_a=len(COPIES["ann"]) + 1)
    (tmp_path / "long").mkdir()
    behind = f"{'x' * 50_000} {COPIED}"
    cut = list_copies(tmp_path / "long", {"ann": behind, "bob": COPIES["bob"]})
    told = []
    path = tmp_path / "page.html"
    tab = Tab(browser, f"file://{path}")
    for listed in (overlapping, outside, cut):
        path.write_text(make_html(neardup.load(listed)), "utf-8")
        tab.page.goto("about:blank")
        page = tab.open("pair/0/1")
        page.wait_for_selector(".passages")
        told.append((page.locator(".jump").count(), page.inner_text("[aria-labelledby=passages]")))
        if listed is overlapping:
            page.click(".jump >> nth=0")
            until(page, "document.querySelectorAll('[data-side=a] .is-found').length > 1")
            assert found_in(page, "a") == COPIES["ann"]
    tab.close()
    assert [links for links, _ in told] == [2, 1, 0]
    assert "left out" not in told[0][1]
    assert "1 passage of the list of pairs does not lie in the texts and is left out" in told[1][1]
    assert "1 passage beyond the cut of a text has no link" in told[2][1]
    assert "copied0" in told[2][1]
