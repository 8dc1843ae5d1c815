"""Control characters from documents, ids and file names are shown, never sent to a terminal."""

from __future__ import annotations

import json
import re
import sys
import unicodedata

import pytest

from neardup.cli import render
from neardup.cli.main import main
from neardup.cli.visible import visible, visible_json
from neardup.events import Warned

# Clear the screen, name the window, begin a control sequence by one byte, reorder, end the line,
# and markup of rich.
ODD = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202egpj.exe\u2066\r\n\t\x7f[red]:skull:[/red]"
SHOWN = r"\x1b[2J\x1b]0;owned\x07\x9b31m\u202egpj.exe\u2066\r\n\t\x7f[red]:skull:[/red]"
WORDS = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house".split()
# Words of a text with controls inside, and what ends no word.
HOSTILE = [f"{word}\x1b[{at}m\x9b\u202e" if at % 5 == 0 else word for at, word in enumerate(WORDS)]
LEGITIMATE = "Müller 灯台 наука नमस्ते فارسی‌ها ע֑ברית 👩‍🚀 ❤️ e\u0301 \u00ad ไทย\u200bไทย"


@pytest.fixture
def answer(tmp_path, monkeypatch, capsys):
    """Run the command line in this process; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["neardup", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code, said.out, said.err

    return run


@pytest.fixture
def pages(tmp_path):
    rows = [
        {"id": f"a{ODD}", "text": " ".join(HOSTILE)},
        {"id": f"b{ODD}", "text": " ".join([*HOSTILE[:-1], "station\x1b[5m"])},
        {"id": "c", "text": "nothing like the others at all, not a bit"},
    ]
    path = tmp_path / "pages.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n", "utf-8")
    return path


def controls(text):
    """The controls in a text, without line ends."""
    kinds = ("Cc", "Zl", "Zp", "Cs")
    bidi = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    return {
        char
        for char in text
        if (unicodedata.category(char) in kinds or char in bidi) and char != "\n"
    }


def test_every_control_character_is_escaped_and_nothing_else():
    everything = list(map(chr, range(sys.maxunicode + 1)))
    for control in [*controls(everything), "\n"]:
        assert visible(control).startswith("\\"), hex(ord(control))
    letters = "".join(char for char in everything if unicodedata.category(char)[0] in "LMNPS")
    assert visible(letters) == letters
    assert visible(LEGITIMATE) == LEGITIMATE
    assert visible(ODD) == SHOWN


@pytest.mark.parametrize("text", [ODD, "\ud800", "\U000e0041", LEGITIMATE, "\u2028 \x85"])
def test_json_without_control_characters_has_the_same_value(text):
    shown = visible_json(json.dumps({"id": text}, ensure_ascii=False, indent=1))
    assert controls(shown) == set()
    assert json.loads(shown) == {"id": text}


COMMANDS = {
    "dedup": ["dedup", "pages.jsonl", "-o", "again"],
    "explain a removed document": ["explain", "out", f"b{ODD}"],
    "explain a kept document": ["explain", "out", f"a{ODD}"],
    "explain an unknown document": ["explain", "out", f"x{ODD}"],
    "audit": ["audit", "weak"],
    "neighbours": ["neighbours", "pages.jsonl"],
    "pairs": ["pairs", "pages.jsonl", "-o", f"{ODD.replace('/', '')}.csv"],
    "compare": ["compare", "a\x1b[2J.txt", "b\u202e.txt"],
    "a missing file": ["dedup", f"nowhere\n{ODD}", "-o", "again"],
    "an unknown option": ["dedup", f"--{ODD}"],
    "an unknown command": [ODD],
    "a value that is not a number": ["dedup", "pages.jsonl", "-o", "again", "--threshold", ODD],
    "an unknown choice": ["dedup", "pages.jsonl", "-o", "again", "--method", ODD],
    "an unknown keep column": ["dedup", "pages.jsonl", "-o", "again", "--keep", f"max:{ODD}"],
    "an unknown extension": ["pairs", "pages.jsonl", "-o", f"pairs.{ODD.replace('/', '')}"],
    "one argument too many": ["audit", "out", ODD],
    "a run that does not exist": ["audit", ODD],
    "an unknown shell": ["completion", ODD],
    "plan": ["plan", "odd\x1b[2J.jsonl"],
    "an --against that does not exist": [
        "dedup",
        "pages.jsonl",
        "-o",
        "again",
        "--against",
        f"{ODD}",
    ],
    "columns": ["dedup", "columns.jsonl", "-o", "again"],
    "strict": ["dedup", "odd\x1b[2J.jsonl", "-o", "again", "--strict"],
    "all rejected": ["dedup", "odd\x1b[2J.jsonl", "-o", "again"],
}


@pytest.fixture
def finished(answer, pages, tmp_path):
    (tmp_path / "a\x1b[2J.txt").write_text(" ".join(HOSTILE), "utf-8")
    (tmp_path / "b\u202e.txt").write_text(" ".join(["another\x1b]8;;x\x07", *HOSTILE]), "utf-8")
    (tmp_path / "columns.jsonl").write_text(json.dumps({ODD: "x"}) + "\n", "utf-8")
    (tmp_path / "odd\x1b[2J.jsonl").write_text('{"text": 1}\n', "utf-8")
    assert answer("dedup", pages.name, "-o", "out", "--threshold", "0.5")[0] == 0
    assert (
        answer(
            "dedup", pages.name, "-o", "weak", "--bands", 1, "--rows", 128, "--threshold", "0.5"
        )[0]
        == 0
    )


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_no_command_prints_control_characters_from_data(answer, arguments):
    code, out, err = answer(*arguments)
    assert code in (0, 1, 2)
    assert controls(out + err) == set()


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize(
    "name",
    [
        "dedup",
        "explain a removed document",
        "explain a kept document",
        "audit",
        "neighbours",
        "pairs",
        "compare",
    ],
)
def test_json_output_is_valid_and_has_no_control_characters(answer, name):
    code, out, _ = answer(*COMMANDS[name], "--json")
    assert code == 0
    assert controls(out) == set()
    json.loads(out)


@pytest.mark.usefixtures("finished")
def test_ids_are_shown_in_one_line_and_markup_is_text(answer):
    lines = answer("explain", "out", f"b{ODD}")[1].splitlines()
    assert lines[0].startswith(f"b{SHOWN} (pages.jsonl:2) was removed: ")
    assert f"--- A  b{SHOWN}" in lines
    assert {r"- station\x1b[5m", "+ house"} <= set(lines)
    rows = answer("neighbours", "pages.jsonl")[1].splitlines()
    assert len(rows) == 3
    assert all(SHOWN in row for row in rows[1:])


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize("name", ["explain a removed document", "compare", "all rejected"])
def test_a_wide_terminal_gets_no_control_characters_except_colours(answer, name, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    code, out, err = answer(*COMMANDS[name])
    assert code == (1 if name == "all rejected" else 0)
    assert controls(re.sub(r"\x1b\[[0-9;]*m", "", out + err)) == set()
    assert "\x1b[15m" not in out


def test_a_warning_is_one_line_on_a_terminal_and_in_a_log(monkeypatch, capsys):
    for is_terminal in (False, True):
        if is_terminal:
            monkeypatch.setenv("FORCE_COLOR", "1")
        with render.progress() as progress:
            progress(Warned(f"rows of {ODD}"))
        said = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().err)
        assert said == f"warning: rows of {SHOWN}\n"


def test_an_error_and_its_hint_are_separate_lines(answer, tmp_path):
    (tmp_path / "a\n\nhint: run rm.jsonl").write_text('{"x": 1}\n')
    code, _, err = answer("dedup", "a\n\nhint: run rm.jsonl", "-o", "out")
    assert code == 1
    message, blank, hint = err.splitlines()
    assert message.startswith(r"error: a\n\nhint: run rm.jsonl has no column named ")
    assert (blank, hint.partition(":")[0]) == ("", "hint")


@pytest.mark.parametrize(
    "what",
    [
        "raise ValueError(f'cannot parse {ODD}')",
        "warnings.warn(f'cannot parse {ODD}')",
        "thread = threading.Thread(target=lambda: int(ODD)); thread.start(); thread.join()",
    ],
)
def test_errors_and_warnings_printed_by_python_have_no_control_characters(run_afresh, what):
    before = f"""
import threading, warnings
import neardup.api, neardup.errors
ODD = {ODD!r}
def fail(*arguments, **settings):
    {what}
    raise neardup.errors.DataError("the end")
neardup.api.explain = fail
"""
    finished = run_afresh("explain", "out", "x", before=before)
    assert finished.returncode == 1
    assert "Error" in finished.stderr or "UserWarning" in finished.stderr
    assert "owned" in finished.stderr
    assert controls(finished.stderr) == set()
