"""Open the file of a run safely: a regular file in the folder of runs, whatever an attacker has put there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

from neardup.index.sketches import damaged

HEADER_BYTES: Final = 4096
DIGEST_BYTES: Final = 16
# Without O_NONBLOCK, opening a named pipe would wait for a writer.
_OPEN: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_OPEN_FOLDER: Final = (
    os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_DIRECTORY", 0)
)


def open_run(path: Path) -> int:
    """Open a run for reading, relative to its folder; raise if the entry is not a regular file."""
    folder = os.open(path.parent, _OPEN_FOLDER)
    try:
        file = os.open(path.name, _OPEN, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise damaged(f"{path} is a symbolic link") from error
        raise
    finally:
        os.close(folder)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise damaged(f"{path} is not a regular file")
    except BaseException:
        os.close(file)
        raise
    return file


def header_digest_of(path: Path) -> bytes:
    """Return the digest that the header of a run ends with, unchecked."""
    file = open_run(path)
    try:
        return os.pread(file, DIGEST_BYTES, HEADER_BYTES - DIGEST_BYTES)
    finally:
        os.close(file)
