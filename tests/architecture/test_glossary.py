"""The glossary lists every word once, and the pages that contributors read first point to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"


def test_a_word_is_explained_once():
    words = re.findall(r"^\| (\*\*[^|]+)\|", GLOSSARY.read_text("utf-8"), flags=re.MULTILINE)
    explained = [word for entry in words for word in re.findall(r"\*\*(.+?)\*\*", entry)]
    # The index of an array is not `neardup.Index`; every other word has one meaning.
    assert len(explained) > 70
    assert sorted({word for word in explained if explained.count(word) > 1}) == ["index"]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_the_pages_for_contributors_point_to_the_glossary(page):
    assert re.search(r"\]\((docs/)?glossary\.md\)", (ROOT / page).read_text("utf-8"))
