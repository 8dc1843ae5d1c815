"""Reports the compilation of kernels as the events of a separate stage."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any, Final

from neardup.events import Event, Progress, StageAdvanced, StageFinished, StageStarted

STAGE: Final = "compile"
_COMPILE: Final = "numba:compile"


class CompilationWatch:
    """Forwards events, and adds events for kernel compilation, starting with the first event of a run.

    It does not import Numba: nothing is compiled before a run begins.
    """

    def __init__(self, show: Progress) -> None:
        self._show = show
        self._lock = threading.Lock()
        self._is_listening = False
        self._began: float | None = None
        self._done = 0

    def __call__(self, event: Event) -> None:
        """Forward an event."""
        if not self._is_listening and "neardup.kernels" in sys.modules:
            self._is_listening = True
            # Deriving from Numba's class would import Numba.
            _events().Listener.register(CompilationWatch)
            _events().register(_COMPILE, self)
        self._show(event)

    def notify(self, event: Any) -> None:
        """Handle an event of Numba; kernels called only by other kernels are compiled with them and not counted."""
        if not _is_cached(event.data["dispatcher"]):
            return
        with self._lock:
            if event.is_start and self._began is None:
                self._began = time.perf_counter()
                self._show(StageStarted(STAGE, _num_kernels(), "kernels"))
            elif event.is_end:
                self._done += 1
                self._show(StageAdvanced(STAGE, self._done, _num_kernels()))

    def stop(self) -> None:
        """Stop listening."""
        if self._is_listening:
            _events().unregister(_COMPILE, self)
        if self._began is not None:
            self._show(StageFinished(STAGE, time.perf_counter() - self._began))


def _events() -> Any:
    from numba.core import event

    return event


def _is_cached(dispatcher: Any) -> bool:
    """Whether a function is one of our kernels, which are cached once compiled."""
    function = getattr(dispatcher, "py_func", None)
    is_own = getattr(function, "__module__", "").startswith("neardup.kernels.")
    return is_own and type(getattr(dispatcher, "_cache", None)).__name__ != "NullCache"


def _num_kernels() -> int:
    """The number of loaded kernels; a run compiles those that it calls."""
    kernels = set()
    # Iterate over copies: other threads may be importing modules.
    for name, module in list(sys.modules.items()):
        if name.startswith("neardup.kernels."):
            for value in list(vars(module).values()):
                if _is_cached(value):
                    kernels.add(id(value))
    return len(kernels)
