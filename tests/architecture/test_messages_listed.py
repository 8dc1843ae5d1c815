"""tools/list_messages.py lists what users read; these are the rules for every message."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from neardup.cli import main

TOOL = Path(__file__).parents[2] / "tools" / "list_messages.py"
# What a native speaker would not write, and the words of the field to use instead.
TRANSLATED = {
    r"\b(is|are) no (index|JSON|output|name|text|set|number|neighbours?)\b": "is not a ...",
    r"\bis gone\b": "is missing, does not exist",
    r"\b(is|are) there already\b": "already exists",
    r"\bin vain\b": "false candidates",
    r"\b(a|one) \w+ a line\b": "one per line",
    r"\bis none\b": "is not one",
    r"\bchance to\b": "chance of ...ing",
    r"\bas it was written\b": "intact, damaged",
    r", because \{?(reason|broken|text)": "the first is PLACE: REASON",
    r"\baside\b": "skip, reject",
    r"\bgo(es)? on\b": "continue, resume",
    r"\bmake room\b": "free some space",
    r"\bask(s|ed)? for\b": "pass, request",
    r"\bcannot become\b": "cannot be converted to",
    r"\d\} similar\b": "has a similarity of",
    r"\bnumber (of \w+ )?from \d,": "a number >= 1",
    r"\bdoes not run on\b": "is not supported on",
    r"\bnothing of (this|the)\b": "was not stored, was rolled back",
    r"\btoo far away\b": "out of range",
}


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("list_messages", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def written(tool):
    """Every text of the source, line by line."""
    return [line for texts in tool.written() for line in texts.splitlines()]


def test_help_is_printed_and_no_file_is_written(tmp_path):
    finished = subprocess.run(
        [sys.executable, TOOL, "--help"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert "usage: list_messages.py" in finished.stdout
    assert list(tmp_path.iterdir()) == []


def test_help_summaries_errors_and_hints_are_listed(tool, tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "RUNS", ("plan --method exact", "dedup missing.jsonl -o none"))
    tool.write(tmp_path / "messages.txt")
    listed = (tmp_path / "messages.txt").read_text("utf-8")
    assert all(f"\nUsage: neardup {command} [OPTIONS]" in listed for command in main.COMMANDS)
    assert "\nUsage: neardup index insert [OPTIONS]" in listed
    assert "$ neardup plan --method exact\nThe exact method finds every pair" in listed
    assert "error: missing.jsonl does not exist\n\nhint: check the spelling" in listed
    assert "\n## config/config.py\n" in listed


def test_docstrings_and_statements_are_not_messages(tool):
    source = '"""A module of words."""\nx = "SELECT id FROM documents"\ny = f"{count} rows were rejected"\n'
    assert list(tool.messages(source)) == ["{count} rows were rejected"]


@pytest.mark.parametrize("pattern", TRANSLATED)
def test_no_message_sounds_translated(written, pattern):
    found = [line for line in written if re.search(pattern, line)]
    assert found == [], f"write instead: {TRANSLATED[pattern]}"
