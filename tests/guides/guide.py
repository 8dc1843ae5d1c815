"""Run a page of docs/guides in a temporary folder, and compare the output with the page.

A block that begins with ```console holds commands, each behind `$ ` (a backslash continues it in
the next line), and
below each what it prints: warnings and errors first, then the answer. `...` stands for any text,
also for whole lines. A command with nothing below it may print anything. It must succeed, unless
the last line below it is `[exit 2]`. A block that begins with ```python holds doctests; all blocks
of a page share one folder and one set of names.
"""

from __future__ import annotations

import dataclasses
import doctest
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.programs import Finished, Programs, without_progress

_BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXIT = re.compile(r"\[exit (\d+)\]")
_QUOTED = re.compile(r"'[^']*'|\"[^\"$`\\]*\"")
_OPTIONS = doctest.ELLIPSIS | doctest.REPORT_NDIFF
# Syntax that needs a shell.
_FOR_SHELL = re.compile(r"[|&;<>()$`*?\[\]{}~#!=\\\n]")


@dataclasses.dataclass(frozen=True)
class Command:
    """A command of a page, its output, and its exit code; `printed` is empty if the page shows none."""

    line: int
    command: str
    printed: str
    code: int


@dataclasses.dataclass(frozen=True)
class Examples:
    """A block of doctests."""

    line: int
    source: str


def read_page(text: str) -> Iterator[Command | Examples]:
    """Return the examples of a page in their order."""
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start(2)) + 1
        if block[1] == "python":
            yield Examples(line, block[2])
        else:
            yield from _commands(block[2], line)


def run_page(page: Path, programs: Programs, folder: Path) -> None:
    """Run every example of a page in a folder; raise at the first that differs from the page."""
    names: dict[str, Any] = {}
    for example in read_page(page.read_text("utf-8")):
        where = f"{page.name}, line {example.line}"
        if isinstance(example, Command):
            _check_command(example, where, programs, folder)
        else:
            _check_examples(example, where, names)


def _commands(block: str, line: int) -> Iterator[Command]:
    if not block.startswith("$ "):
        raise ValueError(f"line {line}: a console block begins with a command, behind `$ `")
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        found = re.match(r"(?:[^\n]*\\\n)*[^\n]*\n", part)
        assert found is not None
        printed = part[found.end() :]
        *before, last = printed.splitlines() or [""]
        is_failing = _EXIT.fullmatch(last)
        code = int(is_failing[1]) if is_failing else 0
        yield Command(
            line, found[0].rstrip("\n"), "\n".join(before) + "\n" if is_failing else printed, code
        )
        line += part.count("\n")


def _check_command(example: Command, where: str, programs: Programs, folder: Path) -> None:
    done = _run(example.command, programs, folder)
    printed = without_progress(done.stderr) + done.stdout
    assert done.code == example.code, (
        f"{where}: {example.command}\nends with {done.code}, printing\n{printed}"
    )
    if example.printed.strip() and not doctest.OutputChecker().check_output(
        example.printed, printed, _OPTIONS
    ):
        raise AssertionError(
            f"{where}: {example.command}\nshould print\n{example.printed}\nbut prints\n{printed}"
        )


def _run(command: str, programs: Programs, folder: Path) -> Finished:
    """Run a command: `neardup` alone in a warm process, anything else in a shell."""
    plain = command.replace("\\\n", " ")
    if plain.startswith("neardup ") and not _FOR_SHELL.search(_QUOTED.sub("", plain)):
        return programs.run(*shlex.split(plain)[1:], cwd=folder, COLUMNS="120")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],  # noqa: S607 - the one that a reader has
        cwd=folder,
        env=os.environ | {"PATH": path, "COLUMNS": "120"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def _check_examples(example: Examples, where: str, names: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(
        example.source, names, where, where, example.line - 1
    )
    test.globs = names  # the parser made copies
    differences: list[str] = []
    doctest.DocTestRunner(optionflags=_OPTIONS).run(test, out=differences.append, clear_globs=False)
    assert not differences, "".join(differences)
