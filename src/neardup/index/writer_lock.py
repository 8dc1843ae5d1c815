"""The lock that lets one process at a time write an index; waiting processes can see its owner."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from pathlib import Path
from typing import Final

from neardup.errors import DataError, NearDupError

FILE: Final = "writer.lock"
_OPEN: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_STEP_SECONDS: Final = 0.02


class WriterLock:
    """Held from its creation until `release`."""

    def __init__(self, folder: Path, timeout: float) -> None:
        self._folder = folder
        self._file = -1
        deadline = time.monotonic() + timeout
        try:
            while not self._is_at_path():
                self._close()
                self._file = _open_file(folder)
                self._wait(deadline, timeout)
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps({"process": os.getpid()}).encode(), 0)
        except BaseException:
            self._close()
            raise

    def __del__(self) -> None:
        self._close()

    def check(self) -> None:
        """Raise if the locked file is no longer the one at its path, so that another process could lock that one."""
        if not self._is_at_path():
            raise NearDupError(
                f"the index {self._folder} was replaced, or its {FILE} deleted, while it was open for writing",
                hint="close it and open it again; nothing was changed",
            )

    def _is_at_path(self) -> bool:
        if self._file < 0:
            return False
        try:
            found = os.stat(self._folder / FILE, follow_symlinks=False)  # noqa: PTH116 - half the time of Path.stat
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(self._file))

    def _wait(self, deadline: float, timeout: float) -> None:
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise NearDupError(
                        f"another process is writing the index {self._folder} ({self._owner()}); "
                        f"waited {timeout:g} s for it",
                        hint="wait for it, open with a longer `timeout`, or with read_only=True to query",
                    ) from error
                time.sleep(_STEP_SECONDS)
            except OSError as error:
                # A network disk that does not support locks, or has run out of them.
                raise DataError(
                    f"the index {self._folder} cannot be locked: {error.strerror or error}",
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
        """Let another process write; a forked child only gives up its copy of the file."""
        self._close()

    def _close(self) -> None:
        # First forgotten, then closed: after an interrupt between the two, its number may belong to
        # another file.
        file = self._file
        self._file = -1
        if file >= 0:
            os.close(file)


def _open_file(folder: Path) -> int:
    try:
        file = os.open(folder / FILE, _OPEN, 0o600)
    except OSError as error:
        raise DataError(
            f"the index {folder} cannot be opened for writing: {error.strerror or error}",
            hint="to query it, open it with read_only=True",
        ) from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise DataError(
            f"{folder / FILE} is not a regular file", hint="delete it, and open the index again"
        )
    return file
