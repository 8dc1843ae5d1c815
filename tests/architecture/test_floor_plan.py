"""The floor plan: names that say their room, bodies short enough to read."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "neardup"
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_BODY = 40
# Names of roles that a folder has one of.
ROLES = {"__init__", "base", "registry", "engine"}


def body_lines(function):
    """Lines of a function without its signature and docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return function.end_lineno - body[0].lineno + 1 if body else 0


def functions(path):
    return [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)]


def test_no_body_outside_kernels_is_longer_than_a_screen():
    long = [
        f"{path.relative_to(PACKAGE)}: {function.name} has {body_lines(function)} lines"
        for path in FILES
        if path.parent.name != "kernels"
        for function in functions(path)
        if body_lines(function) > MAX_BODY
    ]
    assert long == []


def test_a_base_name_is_used_once():
    # A kernel may share the name of the stage whose inner loop it is, a command that of the question it asks.
    named = [path.stem for path in FILES if path.parent.name not in ("kernels", "cli")]
    twice = [name for name, count in Counter(named).items() if count > 1 and name not in ROLES]
    assert twice == []


def test_every_folder_is_described_in_the_architecture():
    told = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text("utf-8")
    folders = {path.parent.relative_to(PACKAGE).parts[0] for path in FILES if path.parent != PACKAGE}
    modules = {path.stem for path in FILES if path.parent == PACKAGE} - {"__init__", "version"}
    missing = [name for name in folders if f"`{name}/`" not in told] + [
        name for name in modules if f"{name}.py" not in told
    ]
    assert missing == []


def test_the_walk_of_a_document_names_functions_that_exist():
    told = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text("utf-8")
    walk = told.partition("## The walk of a document")[2].partition("\n## ")[0]
    steps = [step.strip("`").split(": ") for step in re.findall(r"`[\w/]+\.py: \w+`", walk)]
    assert len(steps) >= 10
    gone = [
        f"{file}: {name}"
        for file, name in steps
        if name not in {function.name for function in functions(PACKAGE / file)}
    ]
    assert gone == []
