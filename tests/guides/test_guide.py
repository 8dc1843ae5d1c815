"""The guide runner fails if a page is wrong."""

from __future__ import annotations

import json

import pytest

from guides.guide import Command, Examples, read_page, run_page

WORDS = [f"word{number}" for number in range(40)]


def check(text, programs, tmp_path):
    for name, words in (("a", WORDS), ("b", [*WORDS[:-1], "other"])):
        (tmp_path / f"{name}.txt").write_text(" ".join(words), "utf-8")
    (tmp_path / "pages.jsonl").write_text(
        "".join(json.dumps({"id": name, "text": " ".join(WORDS)}) + "\n" for name in "ab"), "utf-8"
    )
    page = tmp_path / "page.md"
    page.write_text(text, "utf-8")
    run_page(page, programs, tmp_path)


def console(*lines):
    return "\n".join(["```console", *lines, "```", ""])


def test_a_page_is_read_in_order_with_its_lines():
    commands = console("$ ls \\", "  -l", "total ...", "$ false", "[exit 1]")
    assert list(read_page(f"# Title\n\n{commands}\n```python\n>>> 1 + 1\n2\n```\n")) == [
        Command(4, "ls \\\n  -l", "total ...\n", 0),
        Command(7, "false", "\n", 1),
        Examples(12, ">>> 1 + 1\n2\n"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        console(
            "$ neardup dedup pages.jsonl -o out",
            "2 documents: 1 kept, 1 removed (1 exact)...",
            "...",
        ),
        console("$ neardup dedup pages.jsonl -o out", "$ ls out/kept | wc -l", "1"),
        console("$ neardup dedup 'pages.jsonl' -o out --json"),
        console(
            "$ neardup dedup pages.jsonl -o out --threshold 80", "error: ...", "...", "[exit 2]"
        ),
        "```python\n>>> import pathlib\n>>> size = 2\n```\nand\n```python\n>>> size, pathlib.Path('a.txt').exists()\n"
        "(2, True)\n```\n",
    ],
    ids=["output", "shell", "silent", "failure", "python"],
)
def test_correct_output_passes(text, programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(text, programs, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        console("$ neardup dedup pages.jsonl -o out", "2 documents: 2 kept, ..."),
        console("$ neardup dedup pages.jsonl -o out --threshold 80"),
        console("$ neardup dedup pages.jsonl -o out", "[exit 2]"),
        console("$ cat nowhere | wc -l"),
        console("$ echo one", "one", "two"),
        "```python\n>>> 1 + 1\n3\n```\n",
    ],
    ids=["output", "failure", "success", "pipe", "more", "python"],
)
def test_wrong_output_fails_and_names_the_line(text, programs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match=r"page\.md, line 2"):
        check(text, programs, tmp_path)
