"""Finished runs in `against`: one folder, a folder of runs, or a glob. A run is replaced by its kept documents."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from neardup.errors import DataError
from neardup.io.finished.finished_run import is_run, kept_files
from neardup.io.streams import is_remote


def kept_of_runs(paths: Sequence[str], out: Path | None = None) -> list[str]:
    """Replace finished runs, folders of them and globs that match them by the files of their kept documents.

    Runs are taken in the order of their paths. `out`, the output of the current run, is left out if
    a folder or a glob includes it, so that a day can be run again.
    """
    found: list[str] = []
    for path in paths:
        runs = [Path(path)] if is_run(Path(path)) else _runs_of(path, out)
        if runs is None:
            found.append(path)
        else:
            for run in runs:
                found += kept_files(run)
    return found


def _runs_of(path: str, out: Path | None) -> list[Path] | None:
    """The runs in a folder or a glob, None if there are none; other files beside them are an error."""
    if is_remote(path):
        return None
    if Path(path).is_dir():
        entries = _children(Path(path))
    elif glob.has_magic(path) and not os.path.lexists(path):
        entries = sorted(map(Path, glob.glob(path)))  # noqa: PTH207 - a glob may begin at the root
    else:
        return None
    reached = [found for entry in entries for found in _reach(entry)]
    runs = [path for path, is_finished in reached if is_finished]
    others = [path for path, is_finished in reached if not is_finished]
    if not runs:
        return None
    if others:
        raise DataError(
            f"{path} contains both finished runs and other files: {others[0]} is not a finished run",
            hint=f"name only the runs, such as against='{runs[0]}'",
        )
    target = None if out is None else os.path.realpath(out)
    return [run for run in runs if os.path.realpath(run) != target]


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise DataError(f"the folder {folder} cannot be listed: {error.strerror}") from error


def _reach(path: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the runs and files below a folder, or the file itself, and whether it is a run; links are not followed."""
    is_finished = path.is_dir() and is_run(path)
    if is_finished or not path.is_dir() or path.is_symlink():
        yield path, is_finished
    else:
        for child in _children(path):
            yield from _reach(child)
