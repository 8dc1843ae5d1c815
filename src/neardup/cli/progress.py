"""Progress of a run: bars on a terminal, occasional lines in a log; nothing for short runs."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress
from rich.progress_bar import ProgressBar
from rich.text import Text

from neardup.events import Event, StageAdvanced, StageFinished, StageStarted, Warned
from neardup.report import format_bytes

# Work shorter than this shows nothing.
PATIENCE_SECONDS: Final = 2.0
# The interval between log lines about a slow stage.
LOG_SECONDS: Final = 10.0
_TICK_SECONDS: Final = 0.5
BYTES: Final = "bytes"
KERNELS: Final = "kernels"
# A bar without progress for this long starts to pulse, to show that work continues.
STILL_SECONDS: Final = 1.5
_EARLY: Final = 0.01
# The display name of each stage.
STAGES: Final = {
    "compile": "compiling kernels (first run only)",
    "sample": "sampling",
    "read": "reading",
    "sketch": "shingling and sketching",
    "collapse": "collapsing exact copies",
    "choose": "choosing the method",
    "link": "linking buckets",
    "components": "joining components",
    "verify": "verifying",
    "select": "selecting",
    "write": "writing",
    "report": "reporting",
    "compare": "comparing",
    "draw": "drawing a sample",
    "audit": "comparing the sample with all documents",
    "containment": "searching for containment",
    "build_index": "building the index",
    "shingle": "shingling",
    "differ": "computing the diff",
    "explain": "looking up the document",
    "serve": "starting the server",
    "anchors": "reading words",
    "group": "grouping anchors",
    "sections": "reading paragraphs or lines",
    "group sections": "grouping equal ones",
    "words": "reading the words around anchors",
    "places": "finding first places",
    "locate": "locating passages",
    "count": "counting words",
    "count again": "counting words again",
    "search": "searching for items",
}


def words_for(stage: str) -> str:
    """Return the display name of a stage."""
    return STAGES.get(stage, stage)


def amount(count: float, unit: str) -> str:
    """Format a number of steps: 1.3 GB, 12,000 documents.

    >>> amount(1_300_000_000, BYTES), amount(12_000, "documents")
    ('1.3 GB', '12,000 documents')
    """
    return format_bytes(count) if unit == BYTES else f"{count:,.0f} {unit}"


def duration(seconds: float) -> str:
    """Format a duration: 12 s, 3 min 20 s, 2 h 5 min.

    >>> duration(12.3), duration(200), duration(7500)
    ('12 s', '3 min 20 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@dataclasses.dataclass(slots=True)
class _Stage:
    words: str
    unit: str
    total: int | None
    began: float
    done: int = 0
    reported_at: float | None = None


class Lines:
    """Plain lines: one when a stage turns out to be slow, then one every LOG_SECONDS, and one at its end."""

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._say = say
        self._clock = clock
        self._patience_seconds = patience_seconds
        self._stages: dict[str, _Stage] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        # A thread, because a slow stage may emit nothing for minutes.
        self._ticker = threading.Thread(target=self._tick, daemon=True)
        self._ticker.start()

    def __call__(self, event: Event) -> None:
        """Take an event of a run."""
        with self._lock:
            if isinstance(event, Warned):
                self._say(f"{'WARNING' if event.is_urgent else 'warning'}: {event.message}")
            elif isinstance(event, StageStarted):
                self._stages[event.stage] = _Stage(
                    words_for(event.stage), event.unit, event.total, self._clock()
                )
            elif isinstance(event, StageAdvanced) and event.stage in self._stages:
                stage = self._stages[event.stage]
                stage.done = event.done
                stage.total = event.total
            elif isinstance(event, StageFinished):
                self._finish(self._stages.pop(event.stage, None))

    def report(self) -> None:
        """Report the progress of each slow stage, if it is time to."""
        with self._lock:
            now = self._clock()
            for stage in self._stages.values():
                since = now - (stage.began if stage.reported_at is None else stage.reported_at)
                if since >= (self._patience_seconds if stage.reported_at is None else LOG_SECONDS):
                    stage.reported_at = now
                    self._say(_progress_line(stage, now - stage.began))

    def stop(self) -> None:
        """Stop reporting."""
        self._stopped.set()
        self._ticker.join()

    def _tick(self) -> None:
        while not self._stopped.wait(_TICK_SECONDS):
            self.report()

    def _finish(self, stage: _Stage | None) -> None:
        seconds = 0.0 if stage is None else self._clock() - stage.began
        if stage is None or (stage.reported_at is None and seconds < self._patience_seconds):
            return
        done = amount(stage.done, stage.unit)
        rate = amount(stage.done / max(seconds, 1e-9), stage.unit)
        if stage.done and stage.unit != KERNELS:
            did = f", {done}, {rate}/s"
        else:
            did = ""
        self._say(f"{stage.words}: done in {duration(seconds)}{did}")


def _progress_line(stage: _Stage, seconds: float) -> str:
    if not stage.done:
        return f"{stage.words}: {duration(seconds)} so far"
    if stage.unit == KERNELS:
        return f"{stage.words}: {stage.done} of up to {stage.total}"
    rate = stage.done / seconds
    if stage.total and stage.done < _EARLY * stage.total:  # too early to estimate the time left
        return f"{stage.words}: {stage.done:,} of {amount(stage.total, stage.unit)}, {duration(seconds)} so far"
    speed = f"{amount(rate, stage.unit)}/s"
    if not stage.total:
        return f"{stage.words}: {amount(stage.done, stage.unit)} so far, {speed}"
    # The total may be an estimate; never show more than 100 %.
    share = min(1.0, stage.done / stage.total)
    left = max(0, stage.total - stage.done) / rate
    return f"{stage.words}: {100 * share:.0f} %, {speed}, {duration(left)} left"


class _MovingBar(BarColumn):
    def render(self, task: Task) -> ProgressBar:
        """Show the share that is done or, without progress, a pulse."""
        drawn = super().render(task)
        drawn.pulse = not task.finished and task.get_time() - task.fields["heard"] > STILL_SECONDS
        return drawn


class _RateColumn(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Show steps per second."""
        if task.fields["unit"] == KERNELS:
            return Text(
                f"{task.completed:.0f} of up to {task.total or 0:.0f}", style="progress.data.speed"
            )
        speed = task.finished_speed or task.speed
        return Text(
            f"{amount(speed, task.fields['unit'])}/s" if speed else "", style="progress.data.speed"
        )


class Bars:
    """One bar per stage with rate and time left; silent for the first seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = RichProgress(
            TextColumn("{task.description:<24}"),
            _MovingBar(bar_width=30),
            TaskProgressColumn(),
            _RateColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        # A timer, because the first stage may take long before it emits anything: kernels are
        # compiled once per machine.
        self._timer = threading.Timer(PATIENCE_SECONDS, self._bars.start)
        self._timer.daemon = True
        self._timer.start()

    def __call__(self, event: Event) -> None:
        """Take an event of a run."""
        if isinstance(event, Warned):
            word, style = ("WARNING", "bold red") if event.is_urgent else ("warning", "yellow")
            self._console.print(
                f"{word}: {event.message}", style=style, soft_wrap=True, markup=False
            )
        elif isinstance(event, StageStarted):
            task = self._bars.add_task(
                words_for(event.stage),
                total=event.total or None,
                unit=event.unit,
                heard=self._bars.get_time(),
            )
            self._tasks[event.stage] = task
        elif event.stage not in self._tasks:
            return
        elif isinstance(event, StageAdvanced):
            task = self._tasks[event.stage]
            heard = self._bars.get_time()
            self._bars.update(task, completed=event.done, total=event.total or None, heard=heard)
        elif isinstance(event, StageFinished):
            self._finish(self._tasks[event.stage])

    def _finish(self, number: TaskID) -> None:
        task = next(task for task in self._bars.tasks if task.id == number)
        done = task.completed or 1
        self._bars.update(number, completed=done, total=done)

    def stop(self) -> None:
        """Remove the bars."""
        self._timer.cancel()
        if self._timer.is_alive():
            self._timer.join()
        if self._bars.live.is_started:  # otherwise it would print an empty line
            self._bars.stop()
