import pytest

from neardup.cli.progress import Lines, words_for
from neardup.events import StageAdvanced, StageFinished, StageStarted, Warned


class Log:
    """Lines with a clock that is set by hand."""

    def __init__(self):
        self.now = 0.0
        self.said = []
        self.lines = Lines(self.said.append, clock=lambda: self.now)
        self.lines.stop()  # the ticking is done here

    def at(self, seconds, event=None):
        self.now = seconds
        if event is not None:
            self.lines(event)
        self.lines.speak()


@pytest.fixture
def log():
    return Log()


def test_a_stage_of_less_than_two_seconds_says_nothing(log):
    log.at(0, StageStarted("read", 100))
    log.at(1.9, StageAdvanced("read", 99, 100))
    log.at(1.95, StageFinished("read", 1.95))
    assert log.said == []


def test_a_slow_stage_says_percent_rate_and_time_left_every_ten_seconds_and_its_end(log):
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


def test_a_stage_without_a_total_or_steps_still_speaks(log):
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


def test_warnings_are_said_at_once(log):
    log.at(0, Warned("12 pairs"))
    assert log.said == ["warning: 12 pairs"]


def test_a_stage_nobody_named_is_called_by_its_name():
    assert words_for("ponder") == "ponder"


def test_an_estimated_total_that_was_too_small_never_shows_more_than_all(log):
    log.at(0, StageStarted("sketch", 100))
    log.at(5, StageAdvanced("sketch", 120, 100))
    assert log.said == ["shingling and sketching: 100 %, 24 documents/s, 0 s left"]
