"""Whether a path is the folder of an index."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

from neardup.errors import ConfigError, DataError

# The SQLite file of an index.
FILE: Final = "index.sqlite"
# What SQLite adds to this name for its log, its shared memory, and its journal.
_BESIDE: Final = ("-wal", "-shm", "-journal")
# The folder of its segments; the name is part of the format.
SEGMENTS: Final = "runs"


def is_index(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the folder of an index."""
    return (Path(path) / FILE).is_file() and (Path(path) / SEGMENTS).is_dir()


def check_path(path: str | os.PathLike[str]) -> None:
    """Raise if a path is an address, such as that of a database: an index is a folder on this machine."""
    address = os.fspath(path)
    if "://" in address:
        raise ConfigError(
            f"the path of an index must be a folder on this machine, got the address {address!r}",
            hint="name a folder, for example pages.index",
        )


def check_folder(folder: Path) -> None:
    """Raise unless a path is the folder of an index, without symbolic links."""
    for path, kind in (
        (folder, stat.S_ISDIR),
        (folder / FILE, stat.S_ISREG),
        (folder / SEGMENTS, stat.S_ISDIR),
    ):
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError as error:
            raise _missing(folder, path) from error
        except OSError as error:
            raise DataError(
                f"the index {folder} cannot be read: {path}: {error.strerror}",
                hint="check the path, and the permissions of the folder",
            ) from error
        if stat.S_ISLNK(mode):
            raise DataError(
                f"{path} is a symbolic link, which an index does not follow",
                hint="name the real folder",
            )
        if not kind(mode):
            expected = "a folder" if kind is stat.S_ISDIR else "a regular file"
            raise DataError(
                f"{folder} is not an index: {path} is not {expected}",
                hint="name the folder of an index",
            )


def check_beside(folder: Path) -> None:
    """Raise if what SQLite keeps beside its file is not a regular file: it follows links, and waits for a pipe."""
    for ending in _BESIDE:
        path = folder / (FILE + ending)
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            continue
        if not stat.S_ISREG(mode):
            raise DataError(
                f"{path} is not a regular file, although SQLite would write it",
                hint="delete it, if you trust the rest of the index",
            )


def bytes_below(folder: Path) -> int:
    """Return the bytes of all files of an index; a segment that is merged away meanwhile counts nothing."""
    num_bytes = 0
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            found = file.lstat()
            num_bytes += found.st_size if stat.S_ISREG(found.st_mode) else 0
    return num_bytes


def _missing(folder: Path, path: Path) -> DataError:
    """Return the error for an index that does not exist, or a folder that lacks what every index has."""
    if path == folder:
        return DataError(
            f"the index {folder} does not exist",
            hint=f"check the spelling and the current folder, or create it with `neardup index create {folder}`",
        )
    return DataError(
        f"{folder} is not an index: it has no {path.name}",
        hint="name the folder of an index; `neardup index create` makes one in a new folder",
    )
