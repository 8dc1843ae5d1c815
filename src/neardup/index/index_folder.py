"""Whether a path is the folder of an index."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from neardup.errors import DataError

# The SQLite file of an index.
FILE: Final = "index.sqlite"


def is_index(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the folder of an index."""
    return (Path(path) / FILE).is_file() and (Path(path) / "runs").is_dir()


def check_folder(folder: Path) -> None:
    """Raise unless a path is the folder of an index, without symbolic links."""
    for path, kind in ((folder, stat.S_ISDIR), (folder / FILE, stat.S_ISREG), (folder / "runs", stat.S_ISDIR)):
        try:
            mode = path.lstat().st_mode
        except OSError as error:
            raise DataError(
                f"{folder} is not an index: {path.name} cannot be read: {error.strerror}",
                hint="create one with neardup.Index.create(path), or `neardup index create`",
            ) from error
        if stat.S_ISLNK(mode):
            raise DataError(f"{path} is a symbolic link, which an index does not follow", hint="name the real folder")
        if not kind(mode):
            expected = "a folder" if kind is stat.S_ISDIR else "a regular file"
            raise DataError(
                f"{folder} is not an index: {path} is not {expected}",
                hint="name the folder of an index",
            )
