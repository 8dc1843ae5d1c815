"""The folder of an index in memory: on a file system in memory if there is one, and deleted with the index."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from neardup.index.writer_lock import FILE, WriterLock

# Linux keeps files here in memory.
_SHARED_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a private folder in it
# Containers often have 64 MB of it, which an index would soon fill.
_MIN_FREE_BYTES: Final = 1 << 30
_PREFIX: Final = "neardup-index-"
_NAME: Final = "memory.index"
# An index is locked well within this time after its folder was made.
_OLD_SECONDS: Final = 60


def make_memory_folder() -> Path:
    """Return the path of an index to create; delete what killed processes have left."""
    parent = Path(tempfile.gettempdir())
    with contextlib.suppress(OSError):
        if shutil.disk_usage(_SHARED_MEMORY).free >= _MIN_FREE_BYTES:
            parent = _SHARED_MEMORY
    for left in parent.glob(f"{_PREFIX}*"):
        with contextlib.suppress(Exception):
            _remove_if_left(left)
    return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent)) / _NAME


def discard(store: Any, folder: Path, process: int) -> None:
    """Close an index in memory and delete its folder, unless this process is a fork of the one that made it."""
    if os.getpid() != process:
        return
    with contextlib.suppress(Exception):
        store.close()
    shutil.rmtree(folder.parent, ignore_errors=True)


def _remove_if_left(folder: Path) -> None:
    """Delete a folder whose index nobody has open."""
    status = folder.lstat()
    is_own = status.st_uid == os.getuid() if hasattr(os, "getuid") else True
    if not is_own or time.time() - status.st_mtime < _OLD_SECONDS:
        return
    if not (folder / _NAME / FILE).exists():
        return
    lock = WriterLock(folder / _NAME, 0)  # raises if a process has the index open
    shutil.rmtree(folder, ignore_errors=True)
    lock.release()
