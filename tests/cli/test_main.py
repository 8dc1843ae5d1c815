import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import neardup
from neardup.cli.main import COMMANDS

SLOW_TO_IMPORT = ["numpy", "pyarrow", "numba", "rich", "matplotlib", "pandas"]
# Other installed packages, what Numba needs only to compile, what other commands use: a job with
# cached kernels must not load them.
UNUSED_BY_A_JOB = [
    *(
        "pandas",
        "scipy",
        "yaml",
        "fsspec",
        "matplotlib",
        "pyspark",
        "sqlite3",
        "numba.cpython.cmathimpl",
    ),
    *(
        "neardup.index.index",
        "neardup.search",
        "neardup.jobs.memory",
        "neardup.jobs.audit",
        "neardup.jobs.spark",
    ),
    *("neardup.jobs.forecast", "neardup.jobs.neighbours", "neardup.measures.cosine", "neardup.web"),
]
MAX_MODULES = 795
# Kernels that a job calls, and those of the modules that it imports.
MAX_LOADED = 15
MAX_KERNELS = 29


def failing(error):
    """Python that makes `neardup explain` meet an error in the library."""
    return f"""
import neardup.api as api
def explain(*arguments, **settings):
    {error}
api.explain = explain
"""


def test_version_is_that_of_the_library(run):
    assert run("--version").stdout.strip() == f"neardup, version {neardup.__version__}"


def test_help_lists_every_command_with_its_purpose(run):
    lines = run("--help").stdout.splitlines()
    listed = [line.split()[0] for line in lines[lines.index("Commands:") + 1 :]]
    assert listed == list(COMMANDS)
    assert not [line for line in lines[1:] if line.endswith("...")]


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_loads_nothing_slow(run_afresh, arguments):
    check = f"""
import atexit, sys
atexit.register(lambda: print(*(name for name in {SLOW_TO_IMPORT} if name in sys.modules), file=sys.stderr, end=""))
"""
    finished = run_afresh(*arguments, before=check)
    assert (finished.returncode, finished.stderr) == (0, "")


def test_a_command_imports_only_what_it_uses(run_afresh, pages):
    check = f"""
import atexit, sys
def tell():
    print(*(name for name in {UNUSED_BY_A_JOB} if name in sys.modules), len(sys.modules), file=sys.stderr)
atexit.register(tell)
"""
    run_afresh("dedup", pages, "-o", "first", "--quiet")  # compiles what no test has compiled yet
    finished = run_afresh("dedup", pages, "-o", "second", "--quiet", before=check)
    *unused, num_modules = finished.stderr.split()
    assert (finished.returncode, unused) == (0, [])
    assert int(num_modules) < MAX_MODULES


def test_a_command_loads_each_kernel_that_it_calls_once_and_few_others(run_afresh, pages):
    check = """
import atexit, json, sys
def tell():
    modules = [module for name, module in sys.modules.items() if name.startswith("neardup.kernels.")]
    kernels = {value for module in modules for value in vars(module).values() if hasattr(value, "overloads")}
    cached = {kernel for kernel in kernels if type(kernel._cache).__name__ != "NullCache"}
    loaded = sorted(kernel.__name__ for kernel in cached for _ in kernel.overloads)
    compiled = sum(sum(kernel.stats.cache_misses.values()) for kernel in cached)
    print(json.dumps([loaded, compiled, len(cached)]), file=sys.stderr)
atexit.register(tell)
"""
    run_afresh("dedup", pages, "-o", "first", "--quiet")  # compiles what no test has compiled yet
    finished = run_afresh("dedup", pages, "-o", "second", "--quiet", before=check)
    loaded, compiled, num_kernels = json.loads(finished.stderr)
    assert {"shingle_words", "digest_sets", "walk_components"} <= set(loaded)
    assert len(loaded) == len(set(loaded)) <= MAX_LOADED  # each for arguments of one type
    assert (compiled, num_kernels <= MAX_KERNELS) == (0, True)


def test_help_takes_a_fifth_of_a_second_at_most(run_afresh):
    def seconds():
        before = os.times()
        run_afresh("--help")
        after = os.times()
        return (
            after.children_user
            + after.children_system
            - before.children_user
            - before.children_system
        )

    # CPU time, and the best of several runs, because other processes share the machine.
    assert min(seconds() for _ in range(5)) <= 0.2


def test_calling_neardup_without_a_command_prints_help_and_is_wrong_usage(run):
    finished = run()
    assert finished.returncode == 2
    assert "Commands:" in finished.stderr + finished.stdout


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        ("raise MemoryError", 1, "error: out of memory\n\nhint: pass a smaller --memory"),
        (
            "raise OSError(28, 'full', '/data/out')",
            1,
            "error: No space left on device: /data/out\n\nhint: free some space",
        ),
        ("raise PermissionError(13, 'Permission denied', 'x')", 1, "error: x: Permission denied"),
        ("raise __import__('neardup').errors.DataError('row 3 is bad')", 1, "error: row 3 is bad"),
        (
            "raise __import__('neardup').errors.ConfigError('no such value')",
            2,
            "error: no such value",
        ),
        (
            "raise BrokenPipeError(32, 'the server hung up')",
            1,
            "error: [Errno 32] the server hung up",
        ),
    ],
)
def test_an_error_prints_a_message_without_a_traceback(run, error, code, words):
    finished = run("explain", "out", "x", before="import neardup.errors\n" + failing(error))
    assert finished.returncode == code
    assert finished.stderr.startswith(words)
    assert "Traceback" not in finished.stderr
    assert finished.stdout == ""


def test_an_interrupted_command_exits_130_and_says_how_to_resume(run):
    raising = "error = KeyboardInterrupt(); error.add_note('run the same command again to resume'); raise error"
    finished = run("explain", "out", "x", before=failing(raising))
    assert finished.returncode == 130
    assert finished.stderr == "interrupted\nrun the same command again to resume\n"


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_closed_pipe_is_not_a_failure(unbuffered):
    command = [sys.executable, "-m", "neardup", "plan"]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as closed:
        finished = subprocess.run(
            command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False, env=environment
        )
    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.parametrize(("closed", "command", "code"), [(">&-", "plan", 0), ("2>&-", "pla", 2)])
def test_a_closed_output_changes_no_exit_code(closed, command, code):
    line = f'exec "$0" -m neardup {command} {closed}'
    finished = subprocess.run(
        ["/bin/sh", "-c", line, sys.executable], capture_output=True, text=True, check=False
    )
    assert (finished.returncode, finished.stderr) == (code, "")


def test_functions_registered_for_the_exit_are_called_and_everything_is_printed():
    code = "import atexit; from neardup.cli.main import program; atexit.register(print, 'bye', end=''); program()"
    finished = subprocess.run(
        [sys.executable, "-c", code, "plan"], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0
    assert finished.stdout.startswith("16 bands x 6 rows")
    assert finished.stdout.endswith("bye")


def test_full_disk_is_a_message_and_exit_1():
    command = [sys.executable, "-m", "neardup", "plan"]
    with Path("/dev/full").open("w") as full:
        finished = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert finished.returncode == 1
    assert finished.stderr.startswith("error: No space left on device")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_a_shell(run, shell):
    finished = run("completion", shell)
    assert finished.returncode == 0
    assert f"_NEARDUP_COMPLETE={shell}_complete" in finished.stdout


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("neardup de", ["plain,demo", "plain,dedup", "plain,decontaminate"]),
        ("neardup dedup x.jsonl --cluster c", ["plain,components"]),
        ("neardup dedup x.jsonl --keep m", ["plain,max:", "plain,min:"]),
        ("neardup dedup pag", ["file,pag"]),
        ("neardup compare a.txt b", ["file,b"]),
    ],
)
def test_a_shell_completes_commands_choices_and_files(run, words, completed):
    finished = run(
        _NEARDUP_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1)
    )
    assert finished.stdout.split() == completed


def test_json_of_a_plan_is_one_object(run):
    assert json.loads(run("plan", "--json").stdout)["bands"] == 16
