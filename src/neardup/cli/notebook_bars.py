"""Progress of a run in a notebook: one bar per stage, as HTML that is replaced in place."""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from neardup.cli.progress import amount, words_for
from neardup.events import Event, StageAdvanced, StageFinished, StageStarted, Warned

# The shortest interval between updates: each one is a message to the browser.
TICK_SECONDS: Final = 0.2


class NotebookBars:
    """Shows the stages of a run; `show` displays HTML and returns a handle to replace it, like IPython's `display`."""

    def __init__(
        self,
        show: Callable[[str], Callable[[str], Any]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._show = show
        self._clock = clock
        self._replace: Callable[[str], Any] | None = None
        self._lines: dict[str, str] = {}
        self._units: dict[str, str] = {}
        self._drawn = -TICK_SECONDS
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Handle an event of a run; may be called on any thread."""
        with self._lock:
            if isinstance(event, Warned):
                self._lines[f"warning {len(self._lines)}"] = (
                    f"warning: {html.escape(event.message)}"
                )
            elif isinstance(event, StageStarted):
                self._units[event.stage] = event.unit
                self._lines[event.stage] = f"{_name(event.stage)} <progress></progress>"
            elif isinstance(event, StageAdvanced):
                self._lines[event.stage] = _bar(event, self._units.get(event.stage, ""))
            elif isinstance(event, StageFinished):
                self._lines[event.stage] = f"{_name(event.stage)} done in {event.seconds:.1f} s"
            if not isinstance(event, StageAdvanced) or self._clock() - self._drawn >= TICK_SECONDS:
                self._draw()

    def stop(self) -> None:
        """Show the final state."""
        with self._lock:
            if self._lines:
                self._draw()

    def _draw(self) -> None:
        page = "<br>".join(self._lines.values())
        if self._replace is None:
            self._replace = self._show(page)
        else:
            self._replace(page)
        self._drawn = self._clock()


def _name(stage: str) -> str:
    return html.escape(words_for(stage))


def _bar(event: StageAdvanced, unit: str) -> str:
    done = html.escape(amount(event.done, unit))
    if not event.total:
        return f"{_name(event.stage)} {done}"
    share = min(1.0, event.done / event.total)
    return f'{_name(event.stage)} <progress value="{share:.3f}"></progress> {share:.0%}, {done}'


def show_in_notebook(page: str) -> Callable[[str], Any]:
    """Display HTML in the running cell; return a function that replaces it."""
    from IPython.display import HTML, display

    handle: Any = display(HTML(page), display_id=True)
    return lambda again: handle.update(HTML(again)) if handle is not None else None
