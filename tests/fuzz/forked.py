"""Run a function in a forked child, so that a crash or a hang of it is a result like any other."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import tempfile
import traceback
from collections.abc import Callable

Tell = Callable[[str], object]
# A child that waits, as for a pipe that nobody writes to, takes no CPU time.
WAIT_SECONDS = 120
# What a child may allocate beyond what it has at its start.
SPARE_BYTES = 3 << 30


def fault_of(
    act: Callable[[Tell], None], *, cpu_seconds: int = 30, spare_bytes: int = SPARE_BYTES
) -> str | None:
    """Return how a function fails in a child of this process; None if it returns.

    The function is given another one, which it calls with the name of each step; the report lists
    them. spare_bytes: what the child may allocate.
    """
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            _become(act, said.fileno(), cpu_seconds, spare_bytes)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        words = said.read().decode("utf-8", "backslashreplace")
    if code == 0:
        return None
    return words if code > 0 else f"{words}ended by {signal.Signals(-code).name}\n"


def _become(act: Callable[[Tell], None], said: int, cpu_seconds: int, spare_bytes: int) -> None:
    """Be the child: write the name of each step, and the traceback of an error."""
    code = 1
    try:
        used = int(resource.getrusage(resource.RUSAGE_SELF).ru_utime)  # starts at 0 in a child
        resource.setrlimit(resource.RLIMIT_CPU, (used + cpu_seconds, used + cpu_seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open("/proc/self/statm") as memory:  # noqa: PTH123
            held = int(memory.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + spare_bytes, held + spare_bytes))
        faulthandler.disable()  # pytest lets it write of every crash
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(WAIT_SECONDS)
        quiet = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(quiet, descriptor)
        act(lambda step: os.write(said, f"{step}\n".encode("utf-8", "backslashreplace")))
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, the parent reports it
        os.write(said, traceback.format_exc()[-3_000:].encode("utf-8", "backslashreplace"))
    finally:
        os._exit(code)
