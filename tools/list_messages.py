"""Write every message a user can see into one file, to be read through: python tools/list_messages.py messages.txt.

Help of every command, and what a summary of each looks like, as they are printed; errors, hints, warnings and reasons
of rejected rows as they stand in the source, with {names} for what is filled in.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from neardup.cli import main

PACKAGE = Path(main.__file__).resolve().parents[1]
# Calls whose first argument a user reads.
SPEAKING = {"warn", "Rejected", "failure", "text"}
LEAST_WORDS = 3
TEXT = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house"
RUNS = (
    "demo",
    "dedup pages.jsonl -o clean",
    "dedup pages.jsonl -o banded --method lsh --pairs --audit",
    "dedup pages.jsonl -o fresh --against clean",
    "pairs pages.jsonl -o pairs.parquet",
    "neighbours pages.jsonl --k 1",
    "compare pages.jsonl:a pages.jsonl:b",
    "compare pages.jsonl:a pages.jsonl:c --quiet",
    "plan",
    "plan --bands 20 --rows 5",
    "plan pages.jsonl",
    "audit clean",
    "audit banded",
    "explain clean b",
    "explain clean a",
    "explain pairs.parquet a",
)


def helps() -> Iterator[str]:
    """The help of neardup and of every command."""
    yield main.commands.get_help(click.Context(main.commands, info_name="neardup"))
    for name in main.COMMANDS:
        command = main.commands.get_command(click.Context(main.commands), name)
        if command is not None:
            yield command.get_help(click.Context(command, info_name=f"neardup {name}"))


def printed() -> Iterator[str]:
    """What commands print on a small corpus."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        texts = {"a": TEXT, "b": TEXT.replace("house", "station"), "c": "nothing like the others", "d": TEXT}
        rows = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
        Path("pages.jsonl").write_text("\n".join([*rows, "{broken"]) + "\n", "utf-8")
        for line in RUNS:
            told = io.StringIO()
            with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
                main.run(line.split())
            yield f"$ neardup {line}\n{told.getvalue()}"


def spoken() -> Iterator[str]:
    """Errors, hints, warnings and reasons, file by file."""
    for path in sorted(PACKAGE.rglob("*.py")):
        found = list(dict.fromkeys(_messages(ast.parse(path.read_text("utf-8")))))
        if found:
            yield "\n".join([f"## {path.relative_to(PACKAGE)}", *found])


def _messages(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
        if name.endswith("Error") or name in SPEAKING:
            yield from (words for argument in node.args for words in _texts(argument))
        yield from (
            f"    hint: {words}" for word in node.keywords if word.arg == "hint" for words in _texts(word.value)
        )


def _texts(node: ast.expr) -> Iterator[str]:
    """The texts that an expression may be."""
    if isinstance(node, ast.IfExp):
        yield from _texts(node.body)
        yield from _texts(node.orelse)
    elif isinstance(node, (ast.Constant, ast.JoinedStr)):
        words = _text(node)
        if len(words.split()) >= LEAST_WORDS:
            yield words


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    return f"{{{ast.unparse(node.value)}}}" if isinstance(node, ast.FormattedValue) else ""


def write(path: Path) -> None:
    """Write all messages into a file."""
    parts = [("Help", helps()), ("Printed by commands", printed()), ("Errors, hints, warnings and reasons", spoken())]
    path.write_text("\n".join(f"# {title}\n\n" + "\n\n".join(messages) + "\n" for title, messages in parts), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/list_messages.py FILE")
    os.environ.setdefault("COLUMNS", "120")
    write(Path(sys.argv[1]))
