"""The processes of a Spark session of this machine."""

from __future__ import annotations

import contextlib
from pathlib import Path


def workers_of(driver):
    """The processes that run tasks, all below the driver."""
    parents = {}
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            pid = int(status.parent.name)
            rest = status.read_text().rpartition(")")[2].split()
            parents[pid] = int(rest[1])
            if b"CoarseGrainedExecutorBackend" in (status.parent / "cmdline").read_bytes():
                found.append(pid)
    return sorted(pid for pid in found if driver in ancestors(pid, parents))


def ancestors(pid, parents):
    while pid := parents.get(pid, 0):
        yield pid
