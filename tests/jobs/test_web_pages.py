"""Jobs on web pages, end to end, on a synthetic crawl with known truth."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

import neardup
from support import corpora, web_pages

PAGES, MIRRORS = web_pages.crawl()


@pytest.fixture
def crawl(tmp_path):
    return corpora.write_json_lines(
        tmp_path / "crawl.jsonl", [{"url": url, "text": page} for url, page in PAGES]
    )


def removed(folder):
    table = pq.read_table(folder / "removed.parquet").to_pylist()
    return {row["doc_id"]: row["kept_id"] for row in table}


def test_main_content_finds_every_mirror_and_removes_no_other_page(run, crawl, tmp_path):
    done = run("dedup", crawl, "-o", "clean", "--html")
    assert done.code == 0, done.stderr
    assert removed(tmp_path / "clean") == MIRRORS
    assert "400 documents: 360 kept, 40 removed" in done.stdout


def test_comparing_all_visible_text_confuses_pages_of_one_template(run, crawl, tmp_path):
    done = run("dedup", crawl, "-o", "clean", "--html", "--html-content", "all")
    assert done.code == 0, done.stderr
    found = removed(tmp_path / "clean")
    assert sum(doc_id not in MIRRORS for doc_id in found) > 100
    assert not any(found.get(mirror) == page for mirror, page in MIRRORS.items())
    assert (
        json.loads((tmp_path / "clean/report.json").read_text())["config"]["html_content"] == "all"
    )


@pytest.mark.parametrize(
    "page", ["<ul><li>one two<li>three four</ul>", "<nav><a href=/>one two three four</a></nav>"]
)
def test_a_page_without_main_content_is_compared_as_a_whole(page):
    # Links and lists alone are not main content.
    assert neardup.compare("one two three four", page, html=True, size=2).containment_a == 1


def test_content_in_elements_named_like_a_template_is_still_compared():
    inside = "<p>the ferry to the island leaves every morning at nine</p>"
    page = f'<html><body class="sidebar"><div class="header">{inside}</div></body></html>'
    assert neardup.compare(inside, page, html=True).jaccard == 1
