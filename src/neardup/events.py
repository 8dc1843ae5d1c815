"""The events that a run emits while it works, and the watch that times its stages."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import numpy.typing as npt


@dataclasses.dataclass(frozen=True, slots=True)
class StageStarted:
    """A stage began; `total` is the number of steps it will take, if known, and `unit` what a step is."""

    stage: str
    total: int | None
    unit: str = "documents"


@dataclasses.dataclass(frozen=True, slots=True)
class StageAdvanced:
    """A stage has done `done` of `total` steps."""

    stage: str
    done: int
    total: int | None


@dataclasses.dataclass(frozen=True, slots=True)
class StageFinished:
    """A stage ended after `seconds`."""

    stage: str
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Warned:
    """Something the user should know now, not only in the report; in the library an urgent one is a Python warning.

    An urgent warning says that the result may not be what the user wants.
    """

    message: str
    is_urgent: bool = False


# The polling interval for the progress of a long kernel call.
POLL_SECONDS: Final = 0.5
Event = StageStarted | StageAdvanced | StageFinished | Warned
Progress = Callable[[Event], None]


def _ignore(event: Event) -> None:
    """Ignore events if there is no `progress` function."""


def as_python_warning(event: Event) -> None:
    """Issue an urgent warning of a run as a Python warning, at the line that called the library."""
    if not isinstance(event, Warned) or not event.is_urgent:
        return
    level = 1
    frame = sys._getframe()
    package = __name__.partition(".")[0]
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in (
        package,
        "contextlib",
    ):
        level = level + 1
        frame = frame.f_back
    warnings.warn(event.message, stacklevel=level)


class Tally:
    """Counts the steps of one long call, by polling a counter that the call advances."""

    def __init__(self, advance: Callable[[int], None] | None = None) -> None:
        self._advance = advance
        self._finished = self._reported = 0
        self._running: list[tuple[int, Callable[[], int]]] = []
        self._lock = threading.Lock()

    def add(self, steps: int) -> None:
        """Count steps, and report them."""
        with self._lock:
            self._finished += steps
        self.report()

    @contextlib.contextmanager
    def asking(self, total: int, how_far: Callable[[], int]) -> Iterator[None]:
        """Poll a function from another thread for the number of steps done; at the end report all `total` steps."""
        entry = total, how_far
        with self._lock:
            self._running.append(entry)
        yield
        with self._lock:
            self._running = [other for other in self._running if other is not entry]
            self._finished += total

    @contextlib.contextmanager
    def counter(self, num_docs: int, walks: int = 1) -> Iterator[npt.NDArray[np.int64]]:
        """Yield an array in which a kernel counts documents, each one `walks` times."""
        counter = np.zeros(1, np.int64)
        with self.asking(num_docs, lambda: int(counter[0]) // walks):
            yield counter

    @contextlib.contextmanager
    def polled(self) -> Iterator[None]:
        """Report periodically how many steps are done, and all of them at the end."""
        ended = threading.Event()

        def poll() -> None:
            while not ended.wait(POLL_SECONDS):
                self.report()

        thread = threading.Thread(target=poll, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        self.report()

    def report(self, least: int = 0) -> None:
        """Report the steps done since the last report, at least `least` in total; a restart is not reported twice."""
        with self._lock:
            done = self._finished + sum(min(how_far(), total) for total, how_far in self._running)
            done = max(done, least)
            steps = max(0, done - self._reported)
            self._reported = max(self._reported, done)
            if steps and self._advance is not None:
                self._advance(steps)


class Watch:
    """Times the stages of one run and passes events on."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.seconds_by_stage: dict[str, float] = {}
        self.warnings: list[str] = []
        self._emit = progress or _ignore
        self._began = time.perf_counter()

    @contextlib.contextmanager
    def stage(
        self, name: str, total: int | None = None, unit: str = "documents"
    ) -> Iterator[Callable[[int], None]]:
        """Time a stage; yields a thread-safe function to report the number of steps done since its last call."""
        done = 0
        lock = threading.Lock()

        def advance(steps: int) -> None:
            nonlocal done
            with lock:
                done += steps
                self._emit(StageAdvanced(name, done, total))

        self._emit(StageStarted(name, total, unit))
        began = time.perf_counter()
        yield advance
        seconds = time.perf_counter() - began
        self.seconds_by_stage[name] = self.seconds_by_stage.get(name, 0.0) + seconds
        self._emit(StageFinished(name, seconds))

    def warn(self, message: str, *, is_urgent: bool = False) -> None:
        """Record a warning for the report, and emit it."""
        self.warnings.append(message)
        self._emit(Warned(message, is_urgent))

    @property
    def seconds(self) -> float:
        """Time since the run began."""
        return time.perf_counter() - self._began
