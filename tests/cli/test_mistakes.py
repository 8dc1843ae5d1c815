"""A wrong value for every option of every command, and other common mistakes: the message and the exit code."""

from __future__ import annotations

import json
import os

import click
import pytest

from neardup.cli import main
from support.programs import without_progress

WORDS = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house".split()
# A wrong value of every option that takes one, whatever the command.
WRONG = {
    "threshold": "80",
    "distance": "-1",
    "recall": "2",
    "measure": "jacard",
    "dimension": "0",
    "unit": "words",
    "size": "0",
    "language": "pyhton",
    "weights": "tfidf",
    "code_names": "folded",
    "sarif": "pairs.txt",
    "method": "fast",
    "sketch": "md5",
    "num_perm": "100",
    "bands": "0",
    "rows": "none",
    "seed": "x",
    "normalise": "nfd",
    "html_content": "body",
    "delimiter": "ab",
    "format": "xlsx",
    "encoding": "utf-99",
    "include": "/",
    "exclude": "/",
    "files_from": "nowhere",
    "max_document": "big",
    "keep": "best",
    "cluster": "graph",
    "per_cluster": "0",
    "level": "word",
    "min_words": "0",
    "decisions": "nowhere",
    "against": "nowhere",
    "ignore_common": "5",
    "limit": "1KB",
    "by": "nothing",
    "text_out": "texts.doc",
    "host": "0.0.0.0",  # noqa: S104
    "port": "70000",
    "allow_host": "a/b",
    "allow_origin": "example",
    "rate": "0",
    "collection": "a/b",
    "scope": "root",
    "expires": "yesterday",
    "engine": "dask",
    "spark_conf": "novalue",
    "memory": "1KB",
    "threads": "0",
    "sample": "0",
    "k": "0",
    "contained": "both",
    "compare_bands": "0",
    "compare_rows": "0",
    "picture": "curve.pdf",
    "row": "first",
    "store": "all",
    "on_duplicate": "drop",
    "least": "2",
    "containment": "2",
    "where": "lang",
    "since": "yesterday",
    "min_count": "1",
    "min_left": "0",
    "rule": "ngram8",
    "around": "-1",
}
# Only reading the files shows whether these are right: the run fails, and names the column or the
# path.
ONLY_THE_FILES_TELL = {
    "text_column",
    "item_column",
    "against_text_column",
    "against_items_column",
    "against_id_column",
    "weights_from",
    "id_column",
    "items_column",
    "vector_column",
    "group_column",
    "common_by",
    "payload_column",
    "expires_column",
    "queries",
    "ignore",
    "labels",
    "token_file",
    "unix_socket",
    "tls_cert",
    "tls_key",
    "access_log",
    "out",
    "target",
}
# Any value is wrong here: --master without Spark, --file for an id that no file has.
NEVER_WRONG = {"master", "file"}
# The other arguments that a command needs.
ARGUMENTS = {
    "demo": [],
    "tune": ["pages.jsonl"],
    "dedup": ["pages.jsonl", "-o", "out"],
    "pairs": ["pages.jsonl", "-o", "out.csv"],
    "neighbours": ["pages.jsonl"],
    "passages": ["pages.jsonl", "-o", "out"],
    "decontaminate": ["pages.jsonl", "--against", "pages.jsonl", "-o", "out"],
    "compare": ["pages.jsonl", "pages.jsonl"],
    "plan": ["pages.jsonl"],
    "audit": ["clean"],
    "evaluate": ["clean", "--labels", "known.csv"],
    "explain": ["clean", "a"],
    "review": ["clean"],
    "report": ["clean", "-o", "page.html"],
    "serve": ["clean"],
    "token new": ["--token-file", "tokens.json"],
    "token list": ["--token-file", "tokens.json"],
    "token revoke": ["1f2e3d4c", "--token-file", "tokens.json"],
    "mcp": ["stored"],
    "completion": ["bash"],
    "index create": ["new"],
    "index insert": ["stored", "pages.jsonl"],
    "index query": ["stored", "pages.jsonl"],
    "index remove": ["stored", "a"],
    **{f"index {name}": ["stored"] for name in ("count", "info", "check", "repair", "compact")},
    **{f"index {name}": ["stored", "copy.csv"] for name in ("snapshot", "export")},
}
# Commands with a different range: --k 0 of a query lists all.
WRONG_OF = {("index query", "k"): "-1"}
BESIDE = {
    "distance": ["--measure", "euclidean"],
    "dimension": ["--measure", "cosine"],
    "spark_conf": ["--engine", "spark"],
    "against_text_column": ["--against", "pages.jsonl"],
    "against_items_column": ["--against", "pages.jsonl", "--items-column", "items"],
    "against_id_column": ["--against", "pages.jsonl"],
    "compare_bands": ["--compare-rows", "5", "--plot", "curve.svg"],
    "compare_rows": ["--compare-bands", "20", "--plot", "curve.svg"],
    "html_content": ["--html"],
    "language": ["--unit", "code"],
    "code_names": ["--unit", "code"],
}


@pytest.fixture
def say(tmp_path, monkeypatch, capfd):
    """Run a command line in this process, in a folder with pages.jsonl; return the exit code and stderr."""
    monkeypatch.chdir(tmp_path)
    rows = [{"id": name, "text": " ".join([*WORDS, name])} for name in "abc"]
    (tmp_path / "pages.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def run(*arguments):
        code = main.run(list(arguments))
        return code, without_progress(capfd.readouterr().err)

    return run


def commands():
    """Every command, with its subcommands, by what is typed."""
    context = click.Context(main.commands)
    found = {}
    for name in main.COMMANDS:
        command = main.commands.get_command(context, name)
        below = command.commands if isinstance(command, click.Group) else {}
        found |= {name: command} | {f"{name} {own}": below[own] for own in below}
    return found


COMMANDS = commands()


def options():
    """Every option of every command."""
    for name, command in COMMANDS.items():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                yield name, parameter


@pytest.mark.parametrize("command", COMMANDS)
def test_a_wrong_value_of_an_option_is_named_with_the_option(say, command):
    if command in ("review", "report", "serve"):
        say("dedup", "pages.jsonl", "-o", "clean", "-q")
    elif command == "index query":
        say("index", "create", "stored", "--containment", "-q")
    for name, option in options():
        if name != command or option.is_flag or option.name in ONLY_THE_FILES_TELL | NEVER_WRONG:
            continue
        flag = option.opts[-1]
        value = WRONG_OF.get((command, option.name), WRONG[option.name])
        code, said = say(
            *command.split(), *ARGUMENTS[command], *BESIDE.get(option.name, []), flag, value
        )
        first = said.partition("\n")[0]
        assert (code, "Traceback" in said) == (2, False), (flag, said)
        assert first.startswith("error: "), (flag, said)
        assert flag in first, (flag, said)
        assert value.split(":")[0].lstrip("-") in first, (flag, said)
        assert said.count("\n\nhint: ") == 1, (flag, said)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_flag_takes_no_value(say, command):
    for name, option in options():
        if name == command and option.is_flag:
            code, said = say(*command.split(), *ARGUMENTS[command], f"{option.opts[-1]}=maybe")
            assert code == 2, option.name
            assert option.opts[-1] in said


def test_every_option_has_a_case_here():
    named = {option.name for _, option in options() if not option.is_flag}
    # A new option gets a wrong value in WRONG, or a reason in one of the sets beside it.
    assert named == WRONG.keys() | ONLY_THE_FILES_TELL | NEVER_WRONG


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--text-column", "story"], "story"),
        (["--id-column", "number"], "number"),
        (["--items-column", "basket"], "basket"),
        (["--group-column", "lang"], "lang"),
        (["--measure", "cosine", "--vector-column", "embedding"], "embedding"),
        (["--keep", "max:score"], "score"),
        (["--ignore", "nowhere.txt"], "nowhere.txt does not exist"),
    ],
)
def test_a_column_that_no_row_has_is_named(say, arguments, words):
    code, said = say("dedup", "pages.jsonl", "-o", "out", *arguments)
    assert (code, words in said, "Traceback" in said) == (1, True, False), said


@pytest.mark.parametrize(
    ("arguments", "error", "hint"),
    [
        (["dedpu", "pages.jsonl"], "there is no command 'dedpu'", "did you mean neardup dedup?"),
        (
            ["dedup", "--treshold", "1"],
            "there is no option --treshold",
            "did you mean --threshold?",
        ),
        (
            ["dedup", "--frobnicate"],
            "there is no option --frobnicate",
            "neardup dedup --help lists the options",
        ),
        (["xyz"], "there is no command 'xyz'", "neardup --help lists the commands"),
        (
            ["dedup", "pages.jsonl"],
            "missing option -o / --output",
            "neardup dedup --help lists the options",
        ),
        (
            ["plan", "--recall", "0.99999"],
            "--recall 0.99999 leaves no room for the signature filter, which may drop 0.0001",
            "pass a recall below 0.9999, or pass --no-signature-filter",
        ),
        (
            ["dedup", "pages.jsonl", "-o", "out", "--unit", "words"],
            "invalid value for --unit: 'words' is not one of 'word', 'char', 'code'",
            "did you mean word?",
        ),
        (
            ["plan", "--threshold", "80%"],
            "invalid value for -t / --threshold: '80%' is not a number",
            "use 0.8 for 80 %",
        ),
        (
            ["plan", "--size", "five"],
            "invalid value for --size: 'five' is not a whole number",
            "neardup plan --help lists the options",
        ),
        (
            ["plan", "--bands", "30", "--rows", "30"],
            "--bands x --rows must be at most --num-perm, got 30 x 30 = 900 > 128",
            "use at most 4 bands of 30 rows, or a larger --num-perm",
        ),
        (
            ["dedup", "pages.jsonl", "-o", "out", "--only-against"],
            "--only-against needs --against: there is nothing to compare the input with",
            "name the documents to compare with: --against benchmark.jsonl",
        ),
        (
            ["dedup", "pages.jsonl", "-o", "out", "--engine", "spark", "--spark-conf", "cores"],
            "--spark-conf must be settings as name=value, got 'cores'",
            "pass --spark-conf spark.executor.memory=4g",
        ),
        (
            ["neighbours", "pages.jsonl", "--threshold", "0.5", "--distance", "0.2"],
            "--threshold 0.5 and --distance 0.2 disagree",
            "leave one of them out",
        ),
        (
            ["pairs", "pages.jsonl", "-o", "pages.jsonl"],
            "the output pages.jsonl is the input itself",
            "write elsewhere, for example -o pages-clean",
        ),
    ],
)
def test_wrong_usage_gets_one_hint(say, arguments, error, hint):
    assert say(*arguments) == (2, f"error: {error}\n\nhint: {hint}\n")


def test_an_output_that_contains_the_input_is_refused(say, tmp_path):
    (tmp_path / "crawl").mkdir()
    (tmp_path / "pages.jsonl").rename(tmp_path / "crawl" / "pages.jsonl")
    code, said = say("dedup", "crawl", "-o", "crawl")
    assert (code, said.splitlines()[0]) == (
        2,
        "error: the output crawl contains the input crawl/pages.jsonl",
    )
    assert "-o crawl-clean" in said


def test_the_hint_for_the_current_folder_is_no_option(say):
    code, said = say("dedup", ".", "-o", ".")
    assert (code, said.splitlines()[-1]) == (2, "hint: write elsewhere, for example -o input-clean")


def test_the_hint_for_vectors_is_a_command_that_can_be_typed(say):
    code, said = say("compare", "pages.jsonl", "pages.jsonl", "--measure", "cosine")
    assert (code, said.splitlines()[-1]) == (
        2,
        "hint: list their pairs instead, or pass --measure jaccard",
    )


@pytest.mark.parametrize(
    "arguments",
    [["none.jsonl"], ["pages.jsonl", "--against", "new"], ["pages.jsonl", "--text-column", "x"]],
)
def test_a_run_that_cannot_start_leaves_no_new_folder(say, tmp_path, arguments):
    before = sorted(tmp_path.iterdir())
    code, said = say("dedup", *arguments, "-o", "new/folder/out")
    assert code in (1, 2), said
    assert sorted(tmp_path.iterdir()) == before
    assert "names new, which is neither" not in said


def test_dedup_onto_a_file_names_a_folder_instead(say):
    code, said = say("dedup", "pages.jsonl", "-o", "pages.jsonl")
    assert (code, said.splitlines()[-1]) == (1, "hint: name a folder: -o pages-clean")


def test_an_invalid_against_is_reported(say, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.jpg").write_bytes(b"jpg")
    (tmp_path / ".stopped.neardup").mkdir()
    for name in ("pairs.csv", "pairs.csv.report.json"):
        (tmp_path / name).write_text("")
    errors = {
        "nowhere": "which does not exist",
        "photos": "which is neither a finished run nor a folder with documents",
        "stopped": "a run that has not finished",
        "pairs.csv": "a list of pairs, not of documents",
    }
    for path, what in errors.items():
        code, said = say("dedup", "pages.jsonl", "-o", "out", "--against", path)
        assert (code, said.splitlines()[0]) == (2, f"error: --against names {path}, {what}")
        assert said.count("hint: ") == 1


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (["dedup", "pages.jsonl", "-o"], "pages.jsonl/out"),
        (["pairs", "pages.jsonl", "-o"], "pages.jsonl/out.csv"),
        (["neighbours", "pages.jsonl", "-o"], "pages.jsonl/out.csv"),
        (["plan", "--plot"], "pages.jsonl/out.svg"),
    ],
)
def test_an_output_that_cannot_be_written_is_the_same_error_everywhere(
    say, tmp_path, arguments, path
):
    code, said = say(*arguments, path)
    error = (
        f"error: cannot write the output {path}: {tmp_path}/pages.jsonl is a file, not a folder\n"
    )
    assert (code, said) == (1, f"{error}\nhint: choose another {arguments[-1]}\n")


def test_a_folder_that_cannot_be_written_is_named(say):
    """On /proc even root cannot make a folder."""
    for arguments in (
        ["dedup", "pages.jsonl", "-o", "/proc/out"],
        ["neighbours", "pages.jsonl", "-o", "/proc/o.csv"],
    ):
        code, said = say(*arguments)
        assert (code, said.startswith(f"error: cannot write the output {arguments[-1]}: ")) == (
            1,
            True,
        ), said


def test_bits_without_a_usable_row_are_an_error_with_the_reason(say):
    for distance in ([], ["--distance", "3"]):
        arguments = ["--measure", "hamming", "--vector-column", "text", *distance]
        code, said = say("pairs", "pages.jsonl", "-o", "out.csv", *arguments)
        assert (code, "pages.jsonl row 1: vector is text, not a list of numbers" in said) == (
            1,
            True,
        ), said
        assert said.count("hint: ") == 1


# Bytes that are not UTF-8, as Python reads them, and half of a surrogate pair; an argument has no
# NUL.
NOT_UTF8 = {
    "bytes": os.fsdecode(b"\xff\xfe"),
    "in a name": "x\udcffy.jsonl",
    "half": "\ud800",
    "NUL": "a\0b",
}


@pytest.mark.parametrize("value", NOT_UTF8.values(), ids=NOT_UTF8)
@pytest.mark.parametrize("command", ARGUMENTS)
def test_no_value_that_is_not_utf8_gives_a_traceback(say, command, value):
    if command == "serve":  # would serve on
        return
    if "clean" in ARGUMENTS.get(command, ()):
        say("dedup", "pages.jsonl", "-o", "clean", "-q", "--pairs")
    elif "stored" in ARGUMENTS.get(command, ()):
        say("index", "create", "stored", "-q")
    words = [*command.split(), *ARGUMENTS[command]]
    num_commands = len(command.split())
    for at in range(num_commands, len(words)):
        if not words[at].startswith("-"):
            assert say(*words[:at], value, *words[at + 1 :])[0] in (0, 1, 2)
    for name, option in options():
        if name == command and not option.is_flag and option.name not in ("out", "target"):
            code, said = say(*words, option.opts[0], value, *BESIDE.get(option.name, ()))
            assert (code in (1, 2) and said) or option.name in (
                "picture",
                "master",
                "out",
                "token_file",
            ), (
                option.opts,
                said,
            )


@pytest.mark.parametrize(
    "setting", ["--text-column", "--id-column", "--items-column", "--group-column", "--against"]
)
def test_a_setting_that_is_not_utf8_is_named(say, setting):
    code, said = say("dedup", "pages.jsonl", "-o", "out", setting, os.fsdecode(b"\xff"))
    assert code == 2
    assert f"error: {setting} must be" in said
    assert "'\\udcff'" in said


def test_a_run_whose_folder_is_not_utf8_is_refused_as_output_and_as_input(say, tmp_path):
    odd = os.fsdecode(b"\xff")
    for words in (
        ("dedup", "pages.jsonl", "-o", odd),
        ("audit", odd),
        ("report", odd, "-o", "page.html"),
    ):
        code, said = say(*words)
        assert code == 2
        assert "must be a path in UTF-8" in said
    assert not any(path.name.startswith(odd) for path in tmp_path.iterdir())
