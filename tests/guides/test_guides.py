"""Every page of docs/guides works as shown, on a corpus that `made/PAGE.py` generates."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from guides.guide import Command, read_page, run_page

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
INDEX = GUIDES / "README.md"
PAGES = sorted(set(GUIDES.glob("*.md")) - {INDEX})
MADE = Path(__file__).parent / "made"


def make(name, folder):
    """Write the corpus of a page into a folder."""
    spec = importlib.util.spec_from_file_location(f"made_{name}", MADE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.make(folder)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_guide_does_what_it_shows(page, programs, tmp_path, monkeypatch):
    make(page.stem.replace("-", "_"), tmp_path)
    monkeypatch.chdir(tmp_path)
    run_page(page, programs, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_guide_shows_what_its_commands_print(page):
    commands = [
        example for example in read_page(page.read_text("utf-8")) if isinstance(example, Command)
    ]
    assert any(
        command.command.startswith("neardup ") and command.printed.strip() for command in commands
    )


def test_every_generated_corpus_belongs_to_a_guide():
    assert sorted(path.stem for path in MADE.glob("*.py")) == sorted(
        page.stem.replace("-", "_") for page in PAGES
    )


def test_the_index_names_every_guide_and_no_other():
    named = re.findall(r"\]\(([\w-]+\.md)\)", INDEX.read_text("utf-8"))
    assert sorted(named) == [page.name for page in PAGES]
