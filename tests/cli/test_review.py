"""`neardup review`: answers from standard input, the estimate, the decisions."""

from __future__ import annotations

import json

import pytest


@pytest.fixture(scope="module")
def folder(programs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("review")
    base = [f"word{number}" for number in range(60)]
    texts = [
        " ".join(base),
        *(" ".join([*base[: 58 - at], "new", *base[58 - at :]]) for at in range(6)),
    ]
    rows = [json.dumps({"id": f"page-{at}", "text": text}) for at, text in enumerate(texts)]
    (folder / "pages.jsonl").write_text("\n".join(rows) + "\n")
    done = programs.run("dedup", "pages.jsonl", "-o", "clean", "-q", cwd=folder)
    assert done.code == 0, done.stderr
    return folder


def test_answers_are_read_one_character_each(programs, folder):
    done = programs.run("review", "clean", "--json", cwd=folder, stdin="ynuy yyny")
    assert done.code == 0, done.stderr
    answer = json.loads(done.stdout)
    judged = [one["is_right"] for one in answer["removals"]]
    assert judged == [True, True, None, True, True, False]
    assert answer["judged"] == 5
    assert answer["low"] < answer["precision"] < answer["high"] <= 1


def test_removals_are_shown_with_what_differs(programs, folder):
    done = programs.run("review", "clean", "-o", "decisions.json", cwd=folder, stdin="nq")
    assert done.code == 0, done.stderr
    assert "1 of 6: page-" in done.stdout
    assert "+ new" in done.stdout or "new" in done.stdout
    assert "Are the two the same? y yes, n no, space skip, u back, q stop" in done.stdout
    assert "1 of 6 judged: 0 right, 1 wrong" in done.stdout
    assert "Written to decisions.json: 1 to keep." in done.stdout
    assert len(json.loads((folder / "decisions.json").read_text())["decisions"]) == 1
    again = programs.run(
        "dedup", "pages.jsonl", "-o", "again", "--decisions", "decisions.json", cwd=folder
    )
    assert again.code == 0, again.stderr
