"""Everything the command line shows: progress on stderr, answers on stdout."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import click
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from neardup.report import Event, Report, StageAdvanced, StageFinished, StageStarted, Warned, count_below
from neardup.report import Progress as Listener

# Work shorter than this shows nothing.
PATIENCE_SECONDS: Final = 2.0
_STAGE_WORDS: Final = {
    "read": "reading",
    "sketch": "shingling and sketching",
    "collapse": "collapsing exact copies",
    "link": "linking buckets",
    "components": "joining components",
    "verify": "verifying",
    "select": "selecting",
    "report": "reporting",
}


class _Symbols(NamedTuple):
    branch: str
    last: str
    full: str
    rest: str


_LINES: Final = _Symbols("├─ ", "└─ ", "█", "░")
_ASCII: Final = _Symbols("|- ", "`- ", "#", ".")


class _Bars:
    """One bar per stage on a terminal, one line per stage elsewhere; silent for the first seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.perf_counter()
        self._bars = Progress(
            TextColumn("{task.description:<24}"), BarColumn(), TimeElapsedColumn(), console=console, transient=True
        )
        self._tasks: dict[str, TaskID] = {}
        # A timer, because the first stage may take long before it says anything: kernels compile once a machine.
        self._timer = threading.Timer(PATIENCE_SECONDS, self._bars.start)
        self._timer.daemon = True
        if console.is_terminal:
            self._timer.start()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Warned):
            self._console.print(f"warning: {event.message}", style="yellow", soft_wrap=True)
        elif isinstance(event, StageStarted):
            words = _STAGE_WORDS.get(event.stage, event.stage)
            self._tasks[event.stage] = self._bars.add_task(words, total=event.total or None)
        elif isinstance(event, StageAdvanced):
            self._bars.update(self._tasks[event.stage], completed=event.done)
        elif isinstance(event, StageFinished):
            self._bars.update(self._tasks[event.stage], completed=1, total=1)
            if not self._console.is_terminal and self._is_late:
                click.echo(f"{_STAGE_WORDS.get(event.stage, event.stage)}: {event.seconds:.1f} s", err=True)

    @property
    def _is_late(self) -> bool:
        return time.perf_counter() - self._began >= PATIENCE_SECONDS

    def stop(self) -> None:
        """Take the bars away."""
        self._timer.cancel()
        if self._timer.is_alive():
            self._timer.join()
        if self._bars.live.is_started:  # else it would print an empty line
            self._bars.stop()


@contextlib.contextmanager
def progress(*, quiet: bool = False) -> Iterator[Listener | None]:
    """Show the events of a run on stderr while it lasts."""
    if quiet:
        yield None
        return
    bars = _Bars(Console(stderr=True))
    try:
        yield bars
    finally:
        bars.stop()


def as_json(answer: dict[str, Any]) -> None:
    """Print an answer for machines."""
    click.echo(json.dumps(answer, ensure_ascii=False, indent=2))


def clusters(report: Report, *, has_compiled: bool) -> None:
    """Print who stays, who goes and how similar the two are; then what the run promises."""
    console = Console(highlight=False)
    symbols = _ASCII if console.options.ascii_only else _LINES
    removals: dict[str, list[dict[str, Any]]] = {}
    for removal in report.removed.to_pylist():
        removals.setdefault(removal["kept_id"], []).append(removal)
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("kept, and what it stands for", overflow="fold")
    table.add_column("similarity", no_wrap=True)
    for kept_id, group in removals.items():
        table.add_row(Text(kept_id, "bold green"), "")
        for removal in group:
            branch = symbols.last if removal is group[-1] else symbols.branch
            bar = _bar(removal["similarity"], report.config.threshold, symbols, width=20 if console.width >= 60 else 0)
            table.add_row(f"{branch}{removal['doc_id']}", bar)
        table.add_section()
    console.print(table)
    for line in _summary(report, num_alone=len(report.kept_rows) - len(removals), has_compiled=has_compiled):
        console.print(f"  {line}", soft_wrap=True)


def _bar(similarity: float, threshold: float, symbols: _Symbols, *, width: int) -> Text:
    """A number and a bar, red below the threshold."""
    style = "red" if similarity < threshold else "cyan"
    filled = round(similarity * width)
    full, rest = symbols.full * filled, symbols.rest * (width - filled)
    return Text.assemble((f"{similarity:.3f} ", style), (full, style), (rest, "dim"))


def _summary(report: Report, *, num_alone: int, has_compiled: bool) -> Iterator[str]:
    yield (
        f"{report.documents} documents: {len(report.kept_rows)} kept ({num_alone} of them like no other), "
        f"{report.removed.num_rows} removed ({report.exact_duplicates} of them exact copies), "
        f"{report.rejected.num_rows} rejected."
    )
    if below := count_below(report.removed, report.config.threshold):
        yield f"{below} removed below the threshold: with cluster=components chains count."
    else:
        yield f"Nothing false: every removal is verified to be {report.config.threshold:g} similar or more."
    yield f"Nothing missed, with a number: {report.plan.judgement()}."
    compiling = ", nearly all of it to compile the kernels, once" if has_compiled else ""
    yield f"{report.bytes_read / 1e3:.0f} kB in {report.seconds:.2f} s{compiling}."
