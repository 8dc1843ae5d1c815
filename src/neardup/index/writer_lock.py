"""The lock that lets one process at a time write an index; waiting processes can see its owner."""

from __future__ import annotations

import fcntl
import io
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

    # Closing a FileIO, or dropping it, is one step that no interrupt can divide.
    _file: io.FileIO | None = None

    def __init__(self, folder: Path, timeout: float) -> None:
        self._folder = folder
        deadline = time.monotonic() + timeout
        try:
            while not self._is_at_path():
                self.release()
                self._file = _open_file(folder)
                self._wait(self._file, deadline, timeout)
                _name_owner(self._file)
        except BaseException:
            self.release()
            raise

    def __del__(self) -> None:
        self.release()

    def check(self) -> None:
        """Raise if the locked file is no longer the one at its path, so that another process could lock that one."""
        if not self._is_at_path():
            raise NearDupError(
                f"the index {self._folder} was replaced, or its {FILE} deleted, while it was open for writing",
                hint="close it and open it again; nothing was changed",
            )

    def _is_at_path(self) -> bool:
        if self._file is None or self._file.closed:
            return False
        try:
            found = os.stat(self._folder / FILE, follow_symlinks=False)  # noqa: PTH116 - half the time of Path.stat
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(self._file.fileno()))

    def _wait(self, file: io.FileIO, deadline: float, timeout: float) -> None:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() >= deadline:
                    raise NearDupError(
                        f"another process is writing the index {self._folder} ({_owner(file)}); "
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

    def release(self) -> None:
        """Let another process write; a forked child only gives up its copy of the file."""
        if self._file is not None:
            self._file.close()


def _name_owner(file: io.FileIO) -> None:
    """Write which process holds the lock, for `_owner` in others."""
    line = json.dumps({"process": os.getpid()}).encode()
    os.ftruncate(file.fileno(), 0)
    os.pwrite(file.fileno(), line, 0)


def _owner(file: io.FileIO) -> str:
    try:
        return f"process {int(json.loads(os.pread(file.fileno(), 4096, 0))['process'])}"
    except (OSError, ValueError, KeyError, TypeError):
        return "process unknown"


def _open_file(folder: Path) -> io.FileIO:
    try:
        file = io.FileIO(folder / FILE, "r+", opener=lambda path, _: os.open(path, _OPEN, 0o600))
    except OSError as error:
        raise DataError(
            f"the index {folder} cannot be opened for writing: {error.strerror or error}",
            hint="to query it, open it with read_only=True",
        ) from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise DataError(
            f"{folder / FILE} is not a regular file", hint="delete it, and open the index again"
        )
    return file
