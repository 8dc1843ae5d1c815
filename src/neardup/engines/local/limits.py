"""Limits of the machine: the memory of a run, how much of it is left, and the number of cores."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any, Final

from neardup.io.free_memory import free_bytes
from neardup.report import peak_memory_bytes

# The least memory for a stage, so that a run that starts close to its limit still makes progress.
MIN_ROOM: Final = 64 << 20
# Below this limit, freed memory must be returned to the system.
_TIGHT: Final = 2 * 10**9
# From malloc.h: blocks of at least this size are mapped, so they are returned when freed; and all
# threads share few heaps. Under 400 MB, 2 million tiny documents then peak at 443 instead of 513
# MB, an exact join at 413 instead of 550.
_M_MMAP_THRESHOLD = -3
_MAPPED_BYTES = 1 << 20
_M_ARENA_MAX = -8
_NUM_HEAPS = 2


class Memory:
    """The memory limit of the process, which includes imports, buffers and everything else."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = free_bytes() // 2 if limit is None else limit

    def room(self) -> int:
        """Return the bytes still available."""
        # Memory that was freed but not returned to the system still counts as resident.
        _trim(self.limit)
        return max(MIN_ROOM, self.limit - resident_bytes())


def return_freed(limit: int) -> None:
    """Make the C library return freed memory to the system if the limit is tight; glibc only."""
    mallopt = _c_function("mallopt", limit)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)
        mallopt(_M_ARENA_MAX, _NUM_HEAPS)


def _trim(limit: int) -> None:
    """Return freed memory to the system if the limit is tight, before the next stage allocates more."""
    malloc_trim = _c_function("malloc_trim", limit)
    if malloc_trim is not None:
        malloc_trim(ctypes.c_size_t(0))


def _c_function(name: str, limit: int) -> Any:
    """Return a function of glibc; None on other systems, or if the limit is not tight."""
    if limit >= _TIGHT or os.name != "posix":
        return None
    return getattr(ctypes.CDLL(None), name, None)


def resident_bytes() -> int:
    """Return the resident memory of this process, or its peak where the system does not tell more."""
    try:
        pages = Path("/proc/self/statm").read_text("ascii").split()[1]
    except OSError:
        return peak_memory_bytes()
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def available_cores() -> int:
    """Return the number of cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
