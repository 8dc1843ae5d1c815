"""The tree of tests: a file stands where the module that it tests stands, and has its name."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src" / "neardup"
# Folders that follow another order than the package; `spark` shares one session among its tests.
OWN_ORDER = {
    "architecture",
    "fuzz",
    "guides",
    "properties",
    "spark",
    "statistics",
    "support",
    "textbook",
}
# Folders of which a part is a program or the input of a test, named by the pages that describe it.
OWN_PROGRAMS = {"fuzz", "guides"}
# What tests of several modules at once show, end to end.
SUBJECTS = {
    "cli": {"mistakes"},
    "engines/local": {"stored"},
    "index": {
        "bounded_texts",
        "bulk_facts",
        "concurrency",
        "crash",
        "damage",
        "equals_find_pairs",
        "expiry",
        "format",
        "forged_values",
        "full_disk",
        "interrupts",
        "memory_of_long_documents",
        "model",
        "power_cut",
        "put",
        "replaced",
        "template_pages",
        "wrong_values",
    },
    "io": {"encodings"},
    "io/documents": {"rejected_in_memory", "table_columns"},
    "jobs": {
        "against_files",
        "against_in_memory",
        "at_threshold",
        "atomic",
        "auto",
        "bad_input",
        "code_copies",
        "decontamination",
        "detected_encodings",
        "exact",
        "finished_in_library",
        "folders",
        "foreign_files",
        "foreign_runs",
        "forged_copies",
        "hints",
        "inputs",
        "laws_on_files",
        "low_memory_and_disk",
        "measures_in_runs",
        "memory_bombs",
        "one_function_a_job",
        "per_cluster",
        "recall",
        "resume",
        "same_report",
        "sources_and_sinks",
        "web_pages",
    },
    "kernels": {"bounded_probing", "ctrl_c"},
    "measures": {"edges_of_measures", "measures"},
    "stages": {"stages"},
    "web/service": {"kills", "model_over_http", "recipes"},
    "web": {"attacks", "browser", "chromium", "lecture_curve"},
}


def folder_of(path: Path) -> str:
    return path.parent.relative_to(TESTS).as_posix()


def subject_of(path: Path) -> str:
    return path.stem.removeprefix("test_")


def has_own_order(path: Path) -> bool:
    return folder_of(path).partition("/")[0] in OWN_ORDER


def is_named_after_a_module(path: Path) -> bool:
    if has_own_order(path):
        return False
    return (PACKAGE / folder_of(path) / f"{subject_of(path)}.py").is_file()


def shown(paths: list[Path]) -> list[str]:
    return [path.relative_to(TESTS).as_posix() for path in paths]


FILES = sorted(TESTS.rglob("*.py"))
TEST_FILES = [path for path in FILES if path.name.startswith("test_")]
NAMED_BY_SUBJECT = [path for path in TEST_FILES if not is_named_after_a_module(path)]


def test_a_file_of_tests_has_the_name_of_a_module_or_a_listed_subject():
    mirrored = [path for path in NAMED_BY_SUBJECT if not has_own_order(path)]
    unlisted = [
        path for path in mirrored if subject_of(path) not in SUBJECTS.get(folder_of(path), set())
    ]
    assert shown(unlisted) == [], (
        "move it to the folder of the module that it tests, or list its subject above"
    )


def test_every_listed_subject_has_its_file():
    listed = [
        TESTS / folder / f"test_{name}.py"
        for folder, names in SUBJECTS.items()
        for name in sorted(names)
    ]
    assert shown([path for path in listed if not path.is_file()]) == []


def test_a_subject_is_the_name_of_one_file_of_tests():
    times_used = Counter(path.name for path in TEST_FILES)
    assert shown([path for path in NAMED_BY_SUBJECT if times_used[path.name] > 1]) == []


def test_support_holds_no_test_and_all_that_tests_share():
    support = [path for path in FILES if folder_of(path) == "support"]
    functions = [
        f"{path.name}: {node.name}"
        for path in support
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert functions == []
    others = [
        path
        for path in FILES
        if path not in TEST_FILES and path not in support and path.name != "conftest.py"
        if folder_of(path).partition("/")[0] not in OWN_PROGRAMS
    ]
    assert shown(others) == []
    assert shown([path for path in TEST_FILES if path in support]) == []


def test_no_file_of_tests_is_imported():
    imports = [
        f"{path.relative_to(TESTS).as_posix()}: {node.module}"
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        and (node.module or "").rpartition(".")[2].startswith(("test_", "conftest"))
    ]
    assert imports == [], "move what is shared to tests/support"
