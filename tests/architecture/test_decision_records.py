"""Every decision record says at its top whether it still holds, and stays short enough to be read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("*.md"))
NUMBERS = {path.name[:4] for path in RECORDS}
MAX_LINES = 40
# What no longer holds, or which figures are old, may follow a semicolon.
STATUS = re.compile(r"Status: (in force|replaced by (?P<successor>\d{4}))(; .+)?\.")
OTHER_RECORD = re.compile(r"\b0\d{3}\b")


def status_of(text):
    """Return the line below the title: a record begins with its title, an empty line and its status."""
    title, empty, status, after = text.split("\n")[:4]
    assert re.match(r"# \d+\. .+", title)
    assert empty == ""
    assert after == ""
    return status


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_says_below_its_title_whether_it_is_in_force(path):
    assert STATUS.fullmatch(status_of(path.read_text("utf-8")))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_status_names_only_other_records_that_exist(path):
    named = set(OTHER_RECORD.findall(status_of(path.read_text("utf-8"))))
    assert named - (NUMBERS - {path.name[:4]}) == set()


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_is_only_replaced_by_a_later_one(path):
    status = STATUS.fullmatch(status_of(path.read_text("utf-8")))
    assert status["successor"] is None or status["successor"] > path.name[:4]


def test_a_number_is_used_once_and_begins_the_title():
    titles = [path.read_text("utf-8").partition(".")[0] for path in RECORDS]
    assert len(NUMBERS) == len(RECORDS)
    assert titles == [f"# {int(path.name[:4])}" for path in RECORDS]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_at_most_forty_lines(path):
    assert len(path.read_text("utf-8").splitlines()) <= MAX_LINES


def missing_pages(text):
    """Return the pages of docs/, and other pages in Markdown, that a text cites and the repository lacks."""
    root = FOLDER.parents[1]
    cited = {name.rstrip(".") for name in re.findall(r"docs/[\w./-]+", text)}
    cited |= set(re.findall(r"\b[A-Z]+\.md\b", text))
    return {
        name
        for name in cited
        if not (root / name).exists()
        and not list(root.glob(f"{name}-*.md"))
        and not list((root / "src").rglob(name))  # a page of the package
    }


def test_comments_and_docstrings_cite_pages_that_exist():
    files = [
        path for folder in ("src", "tests") for path in (FOLDER.parents[1] / folder).rglob("*.py")
    ]
    gone = {
        path.name: missing_pages(path.read_text("utf-8"))
        for path in files
        if path != Path(__file__)
    }
    assert {name: pages for name, pages in gone.items() if pages} == {}


def test_a_missing_page_is_noticed():
    assert missing_pages("see docs/decisions/0002, README.md, docs/spark.md.") == set()
    assert missing_pages("see docs/decisions/9999 and TREATISE.md") == {
        "docs/decisions/9999",
        "TREATISE.md",
    }
