"""What all tests share: one process that starts runs of the command line, and what CI holds tests to."""

from __future__ import annotations

import contextlib
import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from runs.programs import Programs

# Where no test may be skipped.
IS_CI = os.environ.get("CI") == "true"
MAX_CPU_SECONDS = 10.0
UNEXPLAINED = "seconds without a reason"
# These run first, so that both processes end at about the same time.
LONGEST = (
    "/spark/",
    "/runs/test_resume.py",
    "/runs/test_memory_bombs.py",
    "/fuzz/",
    "/kernels/test_cache.py",
    "/properties/test_oracle_agreement.py",
    "/runs/test_auto.py",
    "/runs/test_foreign_runs.py",
    "/runs/test_exact.py",
    "/statistics/",
    "/test_measures_in_runs.py",
    "/architecture/",
)
_TICKS = os.sysconf("SC_CLK_TCK")


def pytest_configure(config):
    """Try few examples of every property in `make test`, and many where long tests run too."""
    num_examples = 25 if config.option.markexpr == "not long" else 200
    settings.register_profile("tests", max_examples=num_examples, deadline=None, derandomize=True, database=None)
    settings.load_profile("tests")


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """Start runs of the command line, quickly."""
    started = Programs(tmp_path_factory.mktemp("spoken"))
    yield started
    started.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Note a test that takes more than ten seconds of processors and does not say why."""
    before = _cpu_seconds(os.getpid())
    result = yield
    taken = _cpu_seconds(os.getpid()) - before
    if taken > MAX_CPU_SECONDS and item.get_closest_marker("slow") is None:
        item.user_properties.append((UNEXPLAINED, taken))
    return result


def pytest_terminal_summary(terminalreporter):
    """List tests that take long without a reason; a time is no reason to fail, because machines differ."""
    for report in terminalreporter.stats.get("passed", []):
        for name, value in report.user_properties:
            if name == UNEXPLAINED:
                terminalreporter.write_line(
                    f"{report.nodeid} took {value:.1f} s: make it smaller, or mark it slow(reason)"
                )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Fail a test in CI that is skipped."""
    report = yield
    if IS_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"{item.nodeid} is skipped in CI: {call.excinfo.value}"
    return report


class FileScheduling(LoadScopeScheduling):
    """Keep a file in one process, and all of Spark, whose session is expensive, in one."""

    def _split_scope(self, nodeid):
        file = nodeid.partition("::")[0]
        return "spark" if file.startswith("tests/spark/") else file


# A group marker would do the same, but xdist 3.8 loses it with pytest 9.2.
@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Hand tests out by file."""
    return FileScheduling(config, log)


def pytest_collection_modifyitems(items):
    """Start with what takes longest; hold the marker `slow` to a reason."""
    items.sort(key=lambda item: _place(item.path.as_posix()))
    for item in items:
        marker = item.get_closest_marker("slow")
        if marker is not None and not (marker.args and isinstance(marker.args[0], str)):
            raise pytest.UsageError(f"{item.nodeid}: `slow` needs a reason, as in slow('builds a 300 MB corpus')")


def _place(path: str) -> int:
    """Return where a file stands in the order of tests."""
    return next((place for place, part in enumerate(LONGEST) if part in path), len(LONGEST))


def pytest_collection_finish():
    """Leave the tests themselves, thousands of objects, out of every later garbage collection."""
    gc.collect()
    gc.freeze()


def _cpu_seconds(pid: int | str) -> float:
    """Return what a process and all below it have taken of processors; of Spark's and forked ones, too."""
    try:
        times = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[11:15]
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:  # it has ended, or this is no Linux
        return 0.0
    children: list[str] = []
    for thread in threads:
        with contextlib.suppress(OSError):  # a thread that has ended
            children += (thread / "children").read_text("ascii").split()
    return sum(map(int, times)) / _TICKS + sum(map(_cpu_seconds, children))
