"""The layout of the code: unique module names, names that scripts can import."""

from __future__ import annotations

import ast
import importlib.util
import re
from collections import defaultdict
from pathlib import Path

from neardup.cli.main import COMMANDS

PACKAGE = Path(__file__).parents[2] / "src" / "neardup"
FILES = sorted(PACKAGE.rglob("*.py"))
# Names for roles that may occur once per folder.
ROLES = {"__init__", "base", "registry", "engine"}


# Names that public classes of several modules have; any other one is a bug.
CLASSES_TWICE = {"Found", "Rule", "WordCounts"}
# The bodies of requests, whose names are those of the documentation that clients read.
BODIES = PACKAGE / "web" / "service" / "bodies.py"


def functions(path):
    return [
        node
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]


def test_a_base_name_is_used_once():
    places = defaultdict(set)
    for path in FILES:
        if path.stem not in ROLES:
            places[path.stem].add(path.parent.relative_to(PACKAGE).as_posix())
    twice = {name: folders for name, folders in places.items() if len(folders) > 1}
    assert [
        name for name, folders in twice.items() if len(folders - {"kernels", "search", "cli"}) > 1
    ] == []
    # A search and a kernel are the inner parts of the stage, the measure or the job of their name.
    loops = {"stages", "search", "measures", "jobs", "cli"}
    assert [
        name
        for name, folders in twice.items()
        if "search" in folders and folders - {"kernels"} - loops
    ] == []
    assert [
        name
        for name, folders in twice.items()
        if "kernels" in folders and folders - {"kernels"} - loops
    ] == []
    # A command has the name of what it calls.
    assert [
        name for name, folders in twice.items() if "cli" in folders and name not in COMMANDS
    ] == []


def test_the_name_of_a_public_class_is_used_once():
    places = defaultdict(set)
    for path in set(FILES) - {BODIES}:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].add(path.stem)
    twice = {name: files for name, files in places.items() if len(files) > 1}
    assert {name: twice[name] for name in twice.keys() - CLASSES_TWICE} == {}


def test_bounds_are_called_max_and_min():
    sources = {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in FILES}
    other = re.compile(r"^_?(MOST|LEAST)_[A-Z_]+\b.* = ", re.MULTILINE)
    assert [name for name, text in sources.items() if other.search(text)] == []


def test_one_module_knows_the_name_of_containment_and_one_compiles_kernels():
    compared = re.compile(r"""(==|!=|\bin \()[^\n]*["']containment["']""")
    sources = {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in FILES}
    assert [name for name, text in sources.items() if compared.search(text)] == []
    assert [name for name, text in sources.items() if "njit" in text] == ["kernels/compilation.py"]


def test_every_folder_is_described_in_the_architecture():
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text("utf-8")
    folders = {
        path.parent.relative_to(PACKAGE).parts[0] for path in FILES if path.parent != PACKAGE
    }
    modules = {path.stem for path in FILES if path.parent == PACKAGE} - {"__init__", "version"}
    missing = [name for name in folders if f"`{name}/`" not in page] + [
        name for name in modules if f"{name}.py" not in page
    ]
    assert missing == []


def test_the_path_of_a_document_names_functions_that_exist():
    page = (PACKAGE.parents[1] / "docs" / "architecture.md").read_text("utf-8")
    walk = page.partition("## The path of a document")[2].partition("\n## ")[0]
    steps = [step.strip("`").split(": ") for step in re.findall(r"`[\w/]+\.py: \w+`", walk)]
    assert len(steps) >= 10
    gone = [
        f"{file}: {name}"
        for file, name in steps
        if name not in {function.name for function in functions(PACKAGE / file)}
    ]
    assert gone == []


def texts_of(tree):
    """The texts of a module that are no docstrings, each with its line; values in an f-string are left out."""
    inner = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inner.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            inner |= {id(child) for child in ast.walk(node)}
            parts = [part.value for part in node.values if isinstance(part, ast.Constant)]
            yield node.lineno, "".join(parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
            yield node.lineno, node.value


COMMAND = re.compile(r"`neardup [^`]*`|neardup [a-z]+( -[\w-]+)+")
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]+|-o\b)")


def test_the_library_names_settings_and_only_the_command_line_options():
    assert OPTION.search(COMMAND.sub("", "see `neardup dedup --pairs`; choose another -o"))
    assert not OPTION.search(COMMAND.sub("", "see `neardup dedup --pairs`; pass pairs=True"))
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path in FILES
        # The server is only started by its command.
        if not {"cli", "service"} & set(path.relative_to(PACKAGE).parts)
        for line, text in texts_of(ast.parse(path.read_text("utf-8")))
        if OPTION.search(COMMAND.sub("", text))
    ]
    assert found == []


def imported_names(path):
    """What a script imports from the package, as (module, name)."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "neardup":
            yield from ((node.module, alias.name) for alias in node.names)


def test_benchmarks_and_tools_import_names_that_exist():
    root = PACKAGE.parents[1]
    scripts = [
        path for folder in ("benchmarks", "tools") for path in sorted((root / folder).rglob("*.py"))
    ]
    wanted = [(path.name, *name) for path in scripts for name in imported_names(path)]
    assert len(wanted) > 20

    def exists(module, name):
        if hasattr(importlib.import_module(module), name):
            return True
        return importlib.util.find_spec(f"{module}.{name}") is not None

    assert [one for one in wanted if not exists(*one[1:])] == []
