"""The lock that lets one process at a time write an index; waiting processes can see its owner."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Final

from neardup.errors import DataError, NearDupError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no such module
    fcntl = None  # type: ignore[assignment]

FILE: Final = "writer.lock"
_OPEN: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_STEP_SECONDS: Final = 0.02


class WriterLock:
    """Held from its creation until `release`."""

    def __init__(self, folder: Path, timeout: float) -> None:
        try:
            self._file = os.open(folder / FILE, _OPEN, 0o600)
        except OSError as error:
            raise DataError(
                f"the index {folder} cannot be opened for writing: {error.strerror or error}",
                hint="to query it, open it with read_only=True",
            ) from error
        try:
            self._wait(folder, timeout)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps({"process": os.getpid()}).encode(), 0)
        except BaseException:
            os.close(self._file)
            raise

    def _wait(self, folder: Path, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while fcntl is not None:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise NearDupError(
                        f"another process is writing the index {folder} ({self._owner()}); waited {timeout:g} s for it",
                        hint="wait for it, open with a longer `timeout`, or with read_only=True to query",
                    ) from error
                time.sleep(_STEP_SECONDS)
            except OSError as error:  # a network disk that does not support locks, or has run out of them
                raise DataError(
                    f"the index {folder} cannot be locked: {error.strerror or error}",
                    hint="put it on a disk that supports locks",
                ) from error
            else:
                return

    def _owner(self) -> str:
        try:
            return f"process {int(json.loads(os.pread(self._file, 4096, 0))['process'])}"
        except (OSError, ValueError, KeyError, TypeError):
            return "process unknown"

    def release(self) -> None:
        """Let another process write."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
