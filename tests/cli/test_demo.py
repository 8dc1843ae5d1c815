import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import neardup


def run(*arguments, **environment):
    command = [sys.executable, "-c", "from neardup.cli.main import main; main()", *arguments]
    environment = os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_demo_names_who_stays_and_who_goes():
    finished = run("demo")
    assert finished.returncode == 0
    assert "news/harbour-bridge\n" in finished.stdout.replace(" ", "")
    assert "└─ ja/lighthouse-morning" in finished.stdout
    assert "32 documents: 22 kept (14 of them like no other), 10 removed (2 of them exact copies)" in finished.stdout
    assert "16 bands x 6 rows finds 99.22 % of pairs at 0.8" in finished.stdout


def test_demo_says_which_removals_are_below_the_threshold_when_chains_count():
    finished = run("demo", "--cluster", "components")
    assert finished.returncode == 0
    assert "1 removed below the threshold" in finished.stdout


def test_json_is_one_object_on_stdout_and_nothing_on_stderr():
    finished = run("demo", "--json")
    answer = json.loads(finished.stdout)
    assert finished.stderr == ""
    assert answer["report"]["documents"] == 32
    assert len(answer["removed"]) == answer["report"]["removed"] == 10
    assert {"doc_id", "kept_id", "similarity"} == set(answer["removed"][0])


def test_higher_threshold_removes_exact_copies_only():
    answer = json.loads(run("demo", "--json", "--threshold", "1").stdout)
    assert [row["doc_id"] for row in answer["removed"]] == [
        "news/reading-room-capitals",
        "fr/marche-couvert-decomposed",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo", "--threshold", "80"], "`threshold` must be a number in (0, 1], got 80.0\n\nhint: use 0.8 for 80 %"),
        (["demo", "--threshold", "much"], "'much' is not a valid float"),
        (["demo", "--cluster", "leaders"], "'leaders' is not one of"),
        (["demo", "--fast"], "No such option"),
        (["demonstrate"], "No such command"),
    ],
)
def test_wrong_usage_exits_2_with_a_message_and_no_traceback(arguments, words):
    finished = run(*arguments)
    assert finished.returncode == 2
    assert words in finished.stderr
    assert "Traceback" not in finished.stderr
    assert finished.stdout == ""


def test_help_teaches_with_examples_one_a_line():
    lines = run("demo", "--help").stdout.splitlines()
    assert "    neardup demo" in lines
    assert not any("\\b" in line for line in lines)


def test_terminal_without_unicode_gets_plain_characters():
    finished = run("demo", PYTHONIOENCODING="ascii")
    assert finished.returncode == 0
    assert "`- ja/lighthouse-morning" in finished.stdout
    assert finished.stdout.isascii()


def test_narrow_terminal_gets_no_bars():
    assert "█" not in run("demo", COLUMNS="50").stdout


def test_nothing_is_said_on_stderr_where_nothing_is_wrong_and_kernels_are_cached():
    run("demo")
    assert run("demo").stderr == ""


def test_full_disk_is_a_message_and_exit_1():
    command = [sys.executable, "-c", "from neardup.cli.main import main; main()", "demo"]
    with Path("/dev/full").open("w") as full:
        finished = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert finished.returncode == 1
    assert "No space left on device" in finished.stderr
    assert "Traceback" not in finished.stderr


def test_version_is_that_of_the_library():
    assert run("--version").stdout.strip() == f"neardup, version {neardup.__version__}"


def test_help_lists_every_command():
    assert "demo" in run("--help").stdout
