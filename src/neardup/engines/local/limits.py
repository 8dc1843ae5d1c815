"""How much memory a run may hold, how much is left, and how many cores there are."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any, Final

# What a stage is given at least, so that a run that starts close to its limit still moves.
MIN_ROOM: Final = 64 << 20
_CGROUP: Final = Path("/sys/fs/cgroup")
# Below this limit freed memory must not linger in the C library.
_TIGHT: Final = 2 * 10**9
# Of malloc.h: blocks from this size on are mapped, and so returned when they are freed; and few heaps for all threads.
# With both 2 million tiny documents under 400 MB peak at 443 instead of 513 MB, an exact join at 413 instead of 550.
_M_MMAP_THRESHOLD, _MAPPED_BYTES = -3, 1 << 20
_M_ARENA_MAX, _NUM_HEAPS = -8, 2


class Memory:
    """The limit of one process: its imports, its buffers and everything else."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = free_bytes() // 2 if limit is None else limit

    def room(self) -> int:
        """Return the bytes that may still be taken."""
        _trim(self.limit)  # freed memory is room too
        return max(MIN_ROOM, self.limit - resident_bytes())


def return_freed(limit: int) -> None:
    """Have the C library give freed memory back to the system where the limit is tight; glibc only."""
    mallopt = _c_function("mallopt", limit)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
        mallopt(_M_ARENA_MAX, _NUM_HEAPS)


def _trim(limit: int) -> None:
    """Give back what was freed so far where the limit is tight: a stage would begin on top of it."""
    malloc_trim = _c_function("malloc_trim", limit)
    if malloc_trim is not None:
        malloc_trim(ctypes.c_size_t(0))


def _c_function(name: str, limit: int) -> Any:
    """Return a function of glibc; None elsewhere, and where the limit is not tight."""
    if limit >= _TIGHT or os.name != "posix":
        return None
    return getattr(ctypes.CDLL(None), name, None)


def resident_bytes() -> int:
    """Return what this process holds, 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # pragma: no cover - no /proc
        return 0


def free_bytes() -> int:
    """Return the memory that the system, or the control group of the process, has left."""
    free = _system_free_bytes()
    limit, used = (_group_bytes(name) for name in ("memory.max", "memory.current"))
    return free if limit is None or used is None else max(0, min(free, limit - used))


def _system_free_bytes() -> int:
    try:
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except OSError:  # pragma: no cover - no /proc
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")  # pragma: no cover


def _group_bytes(name: str) -> int | None:
    try:
        text = (_CGROUP / name).read_text("ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
