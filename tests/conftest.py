"""Shared by all tests: a process that starts command lines, the rules that CI enforces, and the order of tests."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from support.programs import Programs

# In CI, no test may be skipped.
IS_CI = os.environ.get("CI") == "true"
MAX_CPU_SECONDS = 10.0
UNEXPLAINED = "seconds without a reason"
# What takes longest starts first, so that all processes end together.
FIRST = (
    "tests/spark",
    "tests/jobs/test_memory_bombs.py",
    "tests/jobs/test_resume.py",
    "tests/fuzz",
    "tests/properties",
    "tests/statistics",
    "tests/web",
    "tests/index",
)
_TICKS = os.sysconf("SC_CLK_TCK")


def pytest_configure(config):
    """Try few examples of every property in `make test`, and many in `make test-all`."""
    num_examples = 25 if config.option.markexpr == "not long" else 200
    settings.register_profile(
        "tests", max_examples=num_examples, deadline=None, derandomize=True, database=None
    )
    settings.load_profile("tests")


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """Start runs of the command line, quickly."""
    started = Programs(tmp_path_factory.mktemp("spoken"))
    yield started
    started.close()


@pytest.fixture
def run(programs, tmp_path):
    """Run the command line in the folder of the test."""

    def run_command(*arguments, before=""):
        return programs.run(*arguments, cwd=tmp_path, before=before)

    return run_command


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Record whether a test takes more than ten seconds of CPU time without a reason."""
    before = _cpu_seconds(os.getpid())
    result = yield
    taken = _cpu_seconds(os.getpid()) - before
    if taken > MAX_CPU_SECONDS and item.get_closest_marker("slow") is None:
        item.user_properties.append((UNEXPLAINED, taken))
    return result


def pytest_terminal_summary(terminalreporter):
    """List tests that take long without a reason; they do not fail, because machines differ."""
    for report in terminalreporter.stats.get("passed", []):
        taken = dict(report.user_properties).get(UNEXPLAINED)
        if taken is not None:
            terminalreporter.write_line(
                f"{report.nodeid} took {taken:.1f} s: make it smaller, or mark it slow(reason)"
            )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """In CI, fail a skipped test."""
    report = yield
    if IS_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} is skipped in CI: {call.excinfo.value}"
    return report


class FileScheduling(LoadScopeScheduling):
    """Run each file in one process, and all Spark tests in one, because a session is expensive."""

    def _split_scope(self, nodeid):
        return _scope(nodeid)


# A group marker would do the same, but xdist 3.8 loses it with pytest 9.2.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Distribute tests by file."""
    return FileScheduling(config, log)


def pytest_collection_modifyitems(items):
    """Run the slowest tests first; require a reason for the marker `slow`."""
    items.sort(key=lambda item: _rank(item.nodeid))
    for item in items:
        marker = item.get_closest_marker("slow")
        if marker is not None and not (marker.args and isinstance(marker.args[0], str)):
            raise pytest.UsageError(
                f"{item.nodeid}: `slow` needs a reason, as in slow('builds a 300 MB corpus')"
            )


def _rank(nodeid: str) -> int:
    """Return the position among what starts first, the number of entries for all other tests."""
    ranks = (rank for rank, name in enumerate(FIRST) if nodeid.startswith(name))
    return next(ranks, len(FIRST))


def _scope(nodeid: str) -> str:
    """Return the unit that runs in one process: a file, or the folder of Spark."""
    file = nodeid.partition("::")[0]
    return "tests/spark" if file.startswith("tests/spark/") else file


def pytest_collection_finish():
    """Exclude the collected tests, thousands of objects, from later garbage collections."""
    gc.collect()
    gc.freeze()


def _cpu_seconds(pid: int | str) -> float:
    """Return the CPU time of a process and all its descendants, including Spark and forked processes."""
    try:
        times = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[11:15]
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # it has ended, or this is not Linux
        return 0.0
    children: list[str] = []
    for thread in threads:
        with contextlib.suppress(OSError):  # a thread that has ended
            children += (thread / "children").read_text("ascii").split()
    return sum(map(int, times)) / _TICKS + sum(map(_cpu_seconds, children))
