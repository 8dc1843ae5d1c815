import io
import os
import subprocess
import sys

import pytest
from rich.console import Console
from rich.progress import BarColumn

import neardup
from neardup import events
from neardup.cli.progress import STILL_SECONDS, Bars, Lines, words_for
from neardup.events import StageAdvanced, StageFinished, StageStarted, Warned


class Log:
    """Lines with a clock that is set by hand."""

    def __init__(self):
        self.now = 0.0
        self.said = []
        self.lines = Lines(self.said.append, clock=lambda: self.now)
        self.lines.stop()  # the test advances the clock

    def at(self, seconds, event=None):
        self.now = seconds
        if event is not None:
            self.lines(event)
        self.lines.report()


@pytest.fixture
def log():
    return Log()


def test_a_stage_under_two_seconds_prints_nothing(log):
    log.at(0, StageStarted("read", 100))
    log.at(1.9, StageAdvanced("read", 99, 100))
    log.at(1.95, StageFinished("read", 1.95))
    assert log.said == []


def test_a_slow_stage_reports_every_ten_seconds_and_at_its_end(log):
    log.at(0, StageStarted("read", 1_000_000_000, "bytes"))
    for second in range(1, 26):
        log.at(second, StageAdvanced("read", second * 40_000_000, 1_000_000_000))
    log.at(25, StageFinished("read", 25.0))
    assert log.said == [
        "reading: 8 %, 40 MB/s, 23 s left",
        "reading: 48 %, 40 MB/s, 13 s left",
        "reading: 88 %, 40 MB/s, 3 s left",
        "reading: done in 25 s, 1.0 GB, 40 MB/s",
    ]


def test_a_stage_without_a_total_still_reports_progress(log):
    log.at(0, StageStarted("components", None, "links"))
    log.at(3)
    log.at(4, StageAdvanced("components", 4000, None))
    log.at(14)
    log.at(15, StageFinished("components", 15.0))
    assert log.said == [
        "joining components: 3 s so far",
        "joining components: 4,000 links so far, 286 links/s",
        "joining components: done in 15 s, 4,000 links, 267 links/s",
    ]


def test_warnings_are_shown_immediately(log):
    log.at(0, Warned("12 pairs"))
    assert log.said == ["warning: 12 pairs"]


def test_a_stage_without_a_label_is_shown_by_its_name():
    assert words_for("ponder") == "ponder"


def test_progress_never_exceeds_100_percent(log):
    log.at(0, StageStarted("sketch", 100))
    log.at(5, StageAdvanced("sketch", 120, 100))
    assert log.said == ["shingling and sketching: 100 %, 24 documents/s, 0 s left"]


def test_a_stage_that_has_just_begun_shows_no_time_left(log):
    log.at(0, StageStarted("verify", 15_363))
    log.at(3, StageAdvanced("verify", 26, 15_363))
    assert log.said == ["verifying: 26 of 15,363 documents, 3 s so far"]


def test_compiling_kernels_has_its_own_progress_line(log):
    log.at(0, StageStarted("compile", 31, "kernels"))
    log.at(3, StageAdvanced("compile", 4, 31))
    log.at(13, StageAdvanced("compile", 12, 31))
    log.at(20, StageFinished("compile", 20.0))
    assert log.said == [
        "compiling kernels (first run only): 4 of up to 31",
        "compiling kernels (first run only): 12 of up to 31",
        "compiling kernels (first run only): done in 20 s",
    ]


def test_a_bar_without_progress_pulses():
    bars = Bars(Console(file=io.StringIO(), force_terminal=True, width=100))
    try:
        bars(StageStarted("verify", 100))
        (task,) = bars._bars.tasks
        column = next(column for column in bars._bars.columns if isinstance(column, BarColumn))
        bars(StageAdvanced("verify", 1, 100))
        assert not column.render(task).pulse
        task.fields["heard"] -= 2 * STILL_SECONDS
        assert column.render(task).pulse
        bars(StageAdvanced("verify", 2, 100))
        assert not column.render(task).pulse
    finally:
        bars.stop()


def test_one_long_kernel_call_reports_progress(monkeypatch):
    monkeypatch.setattr(events, "POLL_SECONDS", 0.005)
    page = " ".join(f"w{number}" for number in range(60))
    for size in (
        1200,
        2400,
        4800,
    ):  # one component, at least 719,400 pairs, one call; longer on a machine too fast for it
        seen = []
        texts = [f"{page} x{number}" for number in range(size)]
        report = neardup.deduplicate(
            texts, method="lsh", threshold=0.7, pairs=True, progress=seen.append
        )
        assert report.num_pairs == size * (size - 1) // 2
        done = [
            event.done
            for event in seen
            if isinstance(event, StageAdvanced) and event.stage == "verify"
        ]
        assert done == sorted(done)
        assert done[-1] == size
        if len(done) > 4:
            break
    assert len(done) > 4


def test_the_exact_join_reports_the_sets_it_has_processed():
    seen = []
    texts = [" ".join(f"{number}w{at}" for at in range(9)) for number in range(40)]
    neardup.deduplicate([*texts, *texts[:5], None], method="exact", progress=seen.append)
    (started,) = [
        event for event in seen if isinstance(event, StageStarted) and event.stage == "link"
    ]
    assert (started.total, started.unit) == (2 * 46, "sets")
    done = [
        event.done for event in seen if isinstance(event, StageAdvanced) and event.stage == "link"
    ]
    assert (40 in done, 80 in done, done[-1]) == (True, True, 92)


def test_writing_counts_the_bytes_of_the_input_and_moves_within_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "POLL_SECONDS", 0.002)
    for size in (7000, 14_000, 28_000):  # on a machine that is too fast for the clock, more rows
        path = tmp_path / f"{size}.csv"
        rows = [
            f"{number},{' '.join(str(number * at) for at in range(3, 60))}\n"
            for number in range(1000, 1000 + size)
        ]
        path.write_text("id,text\n" + "".join([*rows, rows[0]]), "utf-8")
        seen = []
        neardup.deduplicate(path, out=tmp_path / f"out{size}", progress=seen.append, method="lsh")
        (started,) = [
            event for event in seen if isinstance(event, StageStarted) and event.stage == "write"
        ]
        assert (started.total, started.unit) == (path.stat().st_size, "bytes")
        done = [
            event.done
            for event in seen
            if isinstance(event, StageAdvanced) and event.stage == "write"
        ]
        assert done[-1] == started.total
        if len(done) > 2:
            break
    assert len(done) > 2


def test_a_restarted_pass_is_not_reported_twice():
    seen = []
    tally = events.Tally(seen.append)
    with tally.polled(), tally.counter(10, walks=2) as counter:
        for walked in (4, 2, 8, 20):
            counter[0] = walked
            tally.report()
    tally.report(least=12)
    assert seen == [2, 2, 6, 2]


def test_compiled_kernels_are_reported_and_cached_ones_are_not(tmp_path):
    program = """
from neardup.cli.compile_watch import CompilationWatch
from neardup.events import StageStarted
from neardup.kernels.bounds import least_overlap
seen = []
watch = CompilationWatch(seen.append)
watch(StageStarted("read", None))
least_overlap(10, 12, 0.8)
watch.stop()
print(*(f"{type(event).__name__}:{event.stage}" for event in seen))
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", program]
    first, again = (
        subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    )
    assert first == [
        "StageStarted:read",
        "StageStarted:compile",
        "StageAdvanced:compile",
        "StageFinished:compile",
    ]
    assert again == ["StageStarted:read"]
