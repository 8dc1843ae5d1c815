"""Write every message a user can see to one file, for review: python tools/list_messages.py messages.txt.

The help and a summary of every command, as printed; and every other text of the source with at
least three words (errors, hints, warnings, reasons of rejected rows), with {names} for
placeholders.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from neardup.cli import main

PACKAGE = Path(main.__file__).resolve().parents[1]
MIN_WORDS = 3
# SQL statements and generated code are not messages.
NOT_A_MESSAGE = (
    "SELECT ",
    "INSERT ",
    "CREATE ",
    "DELETE ",
    "UPDATE ",
    "DROP ",
    "PRAGMA ",
    "WITH ",
    "ATTACH ",
    "BEGIN ",
)
TEXT = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house"
RUNS = (
    "demo",
    "dedup pages.jsonl -o clean",
    "dedup pages.jsonl -o banded --method lsh --pairs --audit",
    "dedup pages.jsonl -o fresh --against clean",
    "dedup pages.jsonl -o dry --dry-run --cluster components",
    "dedup pages.jsonl -o clean",
    "pairs pages.jsonl -o pairs.parquet",
    "pairs banded -o close.jsonl --threshold 0.9",
    "neighbours pages.jsonl --k 1",
    "compare pages.jsonl:a pages.jsonl:b",
    "compare pages.jsonl:a pages.jsonl:c --quiet",
    "compare pages.jsonl:a pages.jsonl:c",
    "compare pages.jsonl:a pages.jsonl:d",
    "plan",
    "plan --method exact",
    "plan --bands 20 --rows 5",
    "plan pages.jsonl",
    "audit clean",
    "audit banded",
    "explain clean b",
    "explain clean a",
    "explain pairs.parquet a",
    "index create pages.index",
    "index insert pages.index pages.jsonl",
    "index info pages.index",
    "index query pages.index pages.jsonl --k 1",
    "index remove pages.index d",
    "index remove pages.index d",
    "index compact pages.index",
    "index check pages.index",
    "index snapshot pages.index copy.index",
    "index export pages.index documents.parquet",
    "dedup pages.jsonl -o fresher --against pages.index --update",
    "dedupe pages.jsonl",
    "dedup missing.jsonl -o none",
    "dedup pages.jsonl -o none --threshold 80",
)


def helps() -> Iterator[str]:
    """Yield the help of neardup, of every command and of the commands of commands."""
    yield main.commands.get_help(click.Context(main.commands, info_name="neardup"))
    for name in main.COMMANDS:
        command = main.commands.get_command(click.Context(main.commands), name)
        if command is not None:
            yield from _help(command, f"neardup {name}")


def _help(command: click.Command, name: str) -> Iterator[str]:
    yield command.get_help(click.Context(command, info_name=name))
    if isinstance(command, click.Group):
        for part in command.commands.values():
            yield from _help(part, f"{name} {part.name}")


def printed() -> Iterator[str]:
    """Yield what commands print on a small corpus."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        texts = {
            "a": TEXT,
            "b": TEXT.replace("house", "station"),
            "c": "nothing like the others",
            "d": TEXT,
        }
        rows = [json.dumps({"id": name, "text": text}) for name, text in texts.items()]
        Path("pages.jsonl").write_text("\n".join([*rows, "{broken"]) + "\n", "utf-8")
        for line in RUNS:
            output = io.StringIO()
            with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
                main.run(line.split())
            yield f"$ neardup {line}\n{output.getvalue()}"


def written() -> Iterator[str]:
    """Yield the texts in the source, file by file."""
    for path in sorted(PACKAGE.rglob("*.py")):
        found = list(dict.fromkeys(messages(path.read_text("utf-8"))))
        if found:
            yield "\n".join([f"## {path.relative_to(PACKAGE)}", *found])


def messages(source: str) -> Iterator[str]:
    """Yield every text of a module except docstrings and SQL statements; hints are labelled.

    >>> list(messages('raise OSError("the disk is full", hint=f"free {n} bytes or so")'))
    ['the disk is full', '    hint: free {n} bytes or so']
    """
    tree = ast.parse(source)
    hints = {
        id(word.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        for word in node.keywords
        if word.arg == "hint"
    }
    yield from _texts(tree, hints, "")


def _texts(node: ast.AST, hints: set[int], mark: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue
        child_mark = "    hint: " if id(child) in hints else mark
        if isinstance(child, (ast.Constant, ast.JoinedStr)):
            words = _text(child)
            if len(words.split()) >= MIN_WORDS and not words.lstrip().upper().startswith(
                NOT_A_MESSAGE
            ):
                yield child_mark + words
        if not isinstance(child, ast.JoinedStr):
            yield from _texts(child, hints, child_mark)


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    return f"{{{ast.unparse(node.value)}}}" if isinstance(node, ast.FormattedValue) else ""


def write(path: Path) -> None:
    """Write all messages into a file."""
    parts = {"Help": helps(), "Printed by commands": printed(), "Texts in the source": written()}
    lines = "\n".join(
        f"# {title}\n\n" + "\n\n".join(texts) + "\n" for title, texts in parts.items()
    )
    path.write_text(
        "".join(
            sign if sign.isprintable() or sign == "\n" else ascii(sign)[1:-1] for sign in lines
        ),
        "utf-8",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Write every message a user can see into one file."
    )
    parser.add_argument("file", type=Path, help="the file to write")
    file = parser.parse_args().file
    os.environ.setdefault("COLUMNS", "120")
    write(file)
