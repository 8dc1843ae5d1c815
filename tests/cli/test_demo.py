import json

import pytest


def test_demo_lists_kept_and_removed_documents(run):
    finished = run("demo")
    assert finished.returncode == 0
    assert "news/harbour-bridge\n" in finished.stdout.replace(" ", "")
    assert "└─ ja/lighthouse-morning" in finished.stdout
    assert (
        "32 documents: 22 kept (14 without duplicates), 10 removed (2 exact copies)"
        in finished.stdout
    )
    assert "exact method finds every pair with similarity >= 0.8" in finished.stdout


def test_demo_says_which_removals_are_below_the_threshold_when_chains_count(run):
    finished = run("demo", "--cluster", "components")
    assert finished.returncode == 0
    assert "1 removed document is below the threshold" in finished.stdout


def test_json_is_one_object_on_stdout_and_with_quiet_nothing_on_stderr(run):
    finished = run("demo", "--json", "--quiet")
    answer = json.loads(finished.stdout)
    assert finished.stderr == ""
    assert answer["report"]["documents"] == 32
    assert len(answer["removed"]) == answer["report"]["removed"] == 10
    assert {"doc_id", "kept_id", "similarity"} == set(answer["removed"][0])


def test_higher_threshold_removes_exact_copies_only(run):
    answer = json.loads(run("demo", "--json", "--threshold", "1").stdout)
    assert [row["doc_id"] for row in answer["removed"]] == [
        "news/reading-room-capitals",
        "fr/marche-couvert-decomposed",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["demo", "--threshold", "80"],
            "--threshold must be a number in (0, 1], got 80.0\n\nhint: use 0.8 for 80 %",
        ),
        (["demo", "--threshold", "much"], "'much' is not a number"),
        (["demo", "--cluster", "leaders"], "'leaders' is not one of"),
        (["demo", "--fast"], "there is no option"),
        (["demonstrate"], "there is no command"),
    ],
)
def test_wrong_usage_exits_2_with_a_message_and_no_traceback(run, arguments, words):
    finished = run(*arguments)
    assert finished.returncode == 2
    assert words in finished.stderr
    assert "Traceback" not in finished.stderr
    assert finished.stdout == ""


def test_help_has_examples_one_per_line(run):
    lines = run("demo", "--help").stdout.splitlines()
    assert "    neardup demo" in lines
    assert not any("\\b" in line for line in lines)


def test_terminal_without_unicode_gets_plain_characters(run):
    finished = run("demo", PYTHONIOENCODING="ascii")
    assert finished.returncode == 0
    assert "`- ja/lighthouse-morning" in finished.stdout
    assert finished.stdout.isascii()


def test_narrow_terminal_gets_no_bars(run):
    assert "█" not in run("demo", COLUMNS="50").stdout


def test_stderr_is_empty_if_nothing_is_wrong_and_kernels_are_cached(run, run_afresh):
    run("demo")
    assert run_afresh("demo").stderr == ""


def test_quiet_prints_nothing(run):
    finished = run("demo", "--quiet")
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "", "")
