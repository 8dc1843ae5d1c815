"""Rules about the code itself: what is exported, who imports whom, what is documented."""

from __future__ import annotations

import ast
import dataclasses
import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import neardup
from neardup.config import Config

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "neardup"
FILES = sorted(PACKAGE.rglob("*.py"))
NAMES = {file.relative_to(PACKAGE).as_posix(): file for file in FILES}
ENVIRONMENT = os.environ | {
    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
}

EXPORTED = [
    *(
        "AsyncClient",
        "Audit",
        "Client",
        "Comparison",
        "Config",
        "Evaluation",
        "Explanation",
        "Index",
        "InsertNewResult",
    ),
    *("InsertResult", "Inserted", "Match", "NearDupError", "Passage", "PassageMatch"),
    *(
        "Plan",
        "PutResult",
        "Removal",
        "Report",
        "Review",
        "SparkEngine",
        "StoredDocument",
        "Tuning",
    ),
    *(
        "audit",
        "buckets",
        "compare",
        "decontaminate",
        "deduplicate",
        "estimate",
        "evaluate",
        "explain",
        "find_pairs",
        "find_passages",
        "jaccard",
        "load",
        "merge_signatures",
    ),
    *("neighbours", "passages", "plan", "review"),
    *("shingles", "signatures", "tune"),
]
SLOW_TO_IMPORT = [
    "pyspark",
    "numba",
    "llvmlite",
    "numpy",
    "pyarrow",
    "pandas",
    "polars",
    "datasets",
    "click",
    "rich",
    "resiliparse",
]
UNSAFE = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "marshal",
    "shelve",
    "subprocess",
    "pty",
    "ctypes",
}
# One call makes the C library return freed memory to the system; the service listens on sockets and
# reads queries of addresses.
ALLOWED = {
    "engines/local/limits.py": {"ctypes"},
    "web/service/listening.py": {"socket"},
    "web/service/app.py": {"urllib"},
    "client.py": {"httpx", "urllib"},
}
NETWORK = {
    "socket",
    "socketserver",
    "ssl",
    "http",
    "urllib",
    "ftplib",
    "smtplib",
    "xmlrpc",
    "requests",
    "httpx",
    "aiohttp",
}
NO_NAMES = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}


@functools.cache
def tree_of(name):
    """The syntax of a module, which collecting tests does not need."""
    return ast.parse(NAMES[name].read_text("utf-8"))


def run(*arguments):
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )


def loaded_after(program):
    """Which of the slow packages a fresh interpreter has loaded after a program."""
    answer = run(
        "-c",
        f"{program}\nimport sys; print(*(name for name in {SLOW_TO_IMPORT} if name in sys.modules))",
    )
    assert answer.returncode == 0, answer.stderr
    return answer.stdout.split()


def imported_modules(tree):
    """Full names of all modules that a file imports, wherever in the file; `.x` for a relative import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def imports_of(name):
    return {
        module.partition(".")[0] if not module.startswith(".") else "."
        for module in imported_modules(tree_of(name))
    }


def public_definitions(tree):
    """Every public function and class of a module, and every public method of these classes."""
    for node in tree.body:
        is_named = isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith(
            "_"
        )
        if is_named and "overload" not in map(ast.unparse, node.decorator_list):
            yield node.name, node
            members = node.body if isinstance(node, ast.ClassDef) else []
            for member in members:
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    yield f"{node.name}.{member.name}", member


def test_the_exported_names_are_listed_here():
    assert neardup.__all__ == EXPORTED
    assert set(EXPORTED) <= set(dir(neardup))
    assert all(getattr(neardup, name).__module__.startswith("neardup.") for name in EXPORTED)
    with pytest.raises(AttributeError, match="module 'neardup' has no attribute 'dedupe'"):
        _ = neardup.dedupe


def test_public_modules_are_available_without_an_import():
    answer = run(
        "-c",
        "import neardup; print(neardup.textbook.jaccard({1}, {1}), neardup.families.and_chance(0.5, 2))",
    )
    assert (answer.stdout, answer.stderr) == ("1.0 0.25\n", "")
    assert {"families", "textbook"} <= set(dir(neardup))


def test_a_star_import_gives_the_exported_names():
    names = {}
    exec("from neardup import *", names)  # noqa: S102
    assert set(EXPORTED) <= set(names)


@pytest.mark.parametrize(
    "program",
    [
        "import neardup",
        "import neardup; neardup.Config(), neardup.NearDupError, neardup.Plan, dir(neardup)",
    ],
)
def test_importing_neardup_loads_nothing_slow(program):
    assert loaded_after(program) == []


def test_deduplicating_a_list_loads_no_unneeded_package():
    # pandas is missing here: pyarrow loads it, where it is installed, to make an array of a list.
    loaded = loaded_after("import neardup; neardup.deduplicate(['a', 'b'])")
    assert not {"polars", "datasets", "click", "rich", "resiliparse"} & set(loaded)


def foreign_code(name):
    """What a file imports or calls that runs or fetches foreign code."""
    nodes = list(ast.walk(tree_of(name)))
    shells = {node.arg for node in nodes if isinstance(node, ast.keyword)} & {"shell"}
    called = {
        node.func.id for node in nodes if isinstance(node, ast.Call) and hasattr(node.func, "id")
    }
    imported = imports_of(name) & (UNSAFE | NETWORK) - ALLOWED.get(name, set())
    return shells | imported | called & {"eval", "exec", "compile", "__import__"}


def broken(find, names=NAMES):
    """The violations of a rule, by file; empty if it holds."""
    return {name: found for name in names if (found := find(name))}


def test_no_file_imports_what_runs_or_fetches_foreign_code():
    assert broken(foreign_code) == {}


def test_a_kernel_file_imports_only_other_kernels_of_ours():
    def others(name):
        ours = [
            module
            for module in imported_modules(tree_of(name))
            if module.partition(".")[0] in ("neardup", "")
        ]
        return [module for module in ours if not f"{module}.".startswith("neardup.kernels.")]

    kernels = [name for name in NAMES if name.startswith("kernels/")]
    assert len(kernels) > 5
    assert broken(others, kernels) == {}


def test_only_the_command_line_knows_the_terminal():
    def terminal(name):
        names = {node.id for node in ast.walk(tree_of(name)) if isinstance(node, ast.Name)}
        return imports_of(name) & {"click", "rich"} | names & {"print"}

    assert broken(terminal, [name for name in NAMES if not name.startswith("cli/")]) == {}


@pytest.mark.long  # `make check` enforces the same rules
@pytest.mark.slow("import-linter reads every package that ours imports")
def test_import_rules_hold():
    answer = run(
        "-c",
        "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache'])",
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert " 0 broken." in answer.stdout


def test_every_public_name_has_a_docstring():
    def undescribed(name):
        tree = tree_of(name)
        titles = [title for title, node in public_definitions(tree) if not ast.get_docstring(node)]
        return titles if ast.get_docstring(tree) or not tree.body else ["the file", *titles]

    assert broken(undescribed) == {}


def test_every_module_is_named_after_its_job():
    parts = {part for name in NAMES for part in Path(name).with_suffix("").parts}
    assert not parts & NO_NAMES


def test_every_setting_is_described_where_it_is_defined():
    described = re.findall(
        r"^ +(\w+): \S", Config.__doc__.partition("Attributes:\n")[2], re.MULTILINE
    )
    assert described == [field.name for field in dataclasses.fields(Config)]


def documented_settings():
    """The rows of the table in docs/settings.md: name to (default, bounds, meaning)."""
    lines = (ROOT / "docs" / "settings.md").read_text("utf-8").splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("| `")
    ]
    return {name.strip("`"): cells for name, *cells in rows}


def test_every_setting_is_documented_with_its_default():
    documented = documented_settings()
    defaults = {field.name: field.default for field in dataclasses.fields(Config)}
    assert {
        name: ast.literal_eval(default.strip("`")) for name, (default, _, _) in documented.items()
    } == defaults
    assert list(documented) == list(defaults)
    assert all(bounds and meaning.endswith(".") for _, bounds, meaning in documented.values())
