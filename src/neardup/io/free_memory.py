"""Free memory of the system, or of the control group of the process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_CGROUP: Final = Path("/sys/fs/cgroup")


def free_bytes() -> int:
    """Return the free memory of the system or of the control group of the process, whichever is less."""
    free = _system_free_bytes()
    limit, used = (_group_bytes(name) for name in ("memory.max", "memory.current"))
    if limit is None or used is None:
        return free
    return max(0, min(free, limit - used))


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
