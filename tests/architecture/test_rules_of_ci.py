"""In CI a skipped test fails; a test that takes long without a reason is listed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.grids import pairwise_grid, turning_grid

TESTS = Path(__file__).parents[1]
CASES = """
import time

import pytest


def burn():
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass


def test_skipped():
    pytest.skip("no Java")


def test_long():
    burn()


@pytest.mark.slow("burns")
def test_long_for_a_reason():
    burn()


def test_short():
    pass
"""


@pytest.mark.parametrize(
    ("is_ci", "said"), [("true", "1 failed, 3 passed"), ("", "3 passed, 1 skipped")]
)
def test_skips_fail_in_ci_and_unexplained_long_tests_are_listed(is_ci, said, tmp_path):
    conftest = (
        (TESTS / "conftest.py")
        .read_text("utf-8")
        .replace("MAX_CPU_SECONDS = 10.0", "MAX_CPU_SECONDS = 0.1")
    )
    (tmp_path / "conftest.py").write_text(conftest, "utf-8")
    (tmp_path / "test_cases.py").write_text(CASES, "utf-8")
    answer = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            os.devnull,
            "--rootdir",
            tmp_path,
            tmp_path,
            "-p",
            "no:cacheprovider",
        ],
        env=os.environ
        | {"CI": is_ci, "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, sys.path)])}
        | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert said in answer.stdout, answer.stdout
    assert ("is skipped in CI: no Java" in answer.stdout) == bool(is_ci)
    assert answer.stdout.count("mark it slow(reason)") == 1


def short_cases(grid):
    return [case.values for case in grid if not case.marks]


def test_a_pairwise_grid_covers_every_pair_of_values():
    axes = (range(4), "abc", (False, True))
    grid = pairwise_grid(*axes)
    assert len(grid) == 24
    chosen = short_cases(grid)
    assert len(chosen) == 12
    assert {case[:2] for case in chosen} == {(a, b) for a in range(4) for b in "abc"}
    assert {case[1:] for case in chosen} == {(b, c) for b in "abc" for c in (False, True)}
    assert {case[::2] for case in chosen} == {(a, c) for a in range(4) for c in (False, True)}


def test_a_turning_grid_covers_every_value():
    grid = turning_grid("abcd", (1, 2, 3))
    assert len(grid) == 12
    assert short_cases(grid) == [("a", 1), ("b", 2), ("c", 3), ("d", 1)]
