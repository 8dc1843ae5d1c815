"""Results in a notebook: well-formed, complete, and with all data escaped."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

import neardup

EVIL = "</td><script>alert('x')</script>&<img src=x onerror=alert(1)>"


class Page(HTMLParser):
    """Collects the tags and the text of a page; every tag that opens must close."""

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.texts = []
        self.open = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, _):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, _):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_a_report_shows_counts_plan_warnings_and_removed_documents():
    texts = {"a": "one two three four five six", "b": "one two three four five six", "c": None}
    report = neardup.find_pairs(texts, bands=9, rows=13)
    page = Page(report._repr_html_())
    assert page.texts[0] == report.plan.judgement()
    cells = dict(zip(page.texts[1:-6:2], page.texts[2:-6:2], strict=False))
    assert [cells[name] for name in ("documents", "rejected", "pairs")] == ["3", "1", "1"]
    assert not {"kept", "removed"} & set(page.texts)
    assert f"warning: {report.warnings[0]}" in page.texts
    assert page.texts[-6:] == ["doc_a", "doc_b", "similarity", "a", "b", "1"]


def test_data_is_escaped_in_html():
    report = neardup.deduplicate(
        {EVIL: "one two three four five six", "b": "one two three four five six"}
    )
    page = Page(report._repr_html_())
    assert not {"script", "img"} & set(page.tags)
    assert EVIL in page.texts


def test_a_report_of_many_removed_documents_shows_ten_and_says_so():
    page = Page(neardup.deduplicate(["one two three four five six"] * 30)._repr_html_())
    assert page.texts[-1] == "the first 10 of 29 removed documents"
    assert page.tags.count("tr") == 5 + 1 + 10


def test_reports_of_files_and_of_pairs_are_rendered_as_html(tmp_path):
    (tmp_path / "a.txt").write_text("one two three", "utf-8")
    assert "documents" in Page(neardup.deduplicate(tmp_path / "a.txt")._repr_html_()).texts
    assert "pairs" in Page(neardup.find_pairs(tmp_path / "a.txt")._repr_html_()).texts


@pytest.mark.parametrize(
    "settings", [{}, {"method": "exact"}, {"measure": "cosine"}, {"threshold": 1.0}]
)
def test_a_plan_shows_its_promise_and_its_curve(settings):
    plan = neardup.plan(**settings)
    page = Page(plan._repr_html_())
    assert page.texts[0] == plan.judgement()
    assert plan.shape in page.texts
    assert page.tags.count("polyline") == 1


def test_a_comparison_shows_every_number():
    comparison = neardup.compare("to be or not to be", "to be or not to sleep", size=2)
    page = Page(comparison._repr_html_())
    assert page.texts[:3] == ["Jaccard similarity 0.8000", "jaccard", "0.8"]
    assert "containment_b" in page.texts
