"""The source of a library call: documents in memory, items or paths; and where its results go."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.io.columns.matrices import is_matrix
from neardup.io.documents.in_memory import ItemSets
from neardup.report import Report


def items_or_source(source: Any, items: Any, config: Config) -> tuple[Any, Config]:
    """Return the source, or sets of items in memory as one, and the settings for it."""
    if (source is None) == (items is None):
        raise DataError(
            f"pass either a source or items, got {'neither' if items is None else 'both'}",
            hint="neardup.deduplicate(texts), or neardup.deduplicate(items=baskets)",
        )
    if (
        items is None
        and config.measure == "weighted"
        and config.items_column is None
        and is_matrix(source)
    ):
        items = source
    if items is not None:
        return ItemSets(items), Config.of(config, items_column=config.items_column or "items")
    if config.measure == "weighted" and config.items_column is None:
        raise ConfigError(
            "the measure 'weighted' compares items", hint="pass items=, or name their items_column"
        )
    return source, config


def from_files(
    job: Callable[[str], Report], ids: Sequence[Any] | None, out: str | os.PathLike[str] | None
) -> Report:
    """Call a job on files with its output; without `out`, the tables are only available from the report."""
    destination = Destination(ids, out)
    return destination.report_of(job(destination.path))


class Destination:
    """Where a job on files writes: to `out`, or to a temporary folder that only its report can read."""

    def __init__(self, ids: Sequence[Any] | None, out: str | os.PathLike[str] | None) -> None:
        if ids is not None:
            raise ConfigError(
                "`ids` must be left out for files", hint="id_column= names the column with the ids"
            )
        self._loader: _Loader | None = None
        if out is None:
            self._loader = _Loader()
            out = self._loader.path
        self.path = os.fspath(out)

    def report_of(self, report: Report) -> Report:
        """Return the report of the job, which keeps a temporary folder as long as it is used."""
        if self._loader is None:
            return report
        self._loader.load = report.load
        return dataclasses.replace(report, out=None, files=(), load=self._loader)


class _Loader:
    """Loads the tables of a run from a temporary folder, which lives as long as the report does."""

    def __init__(self) -> None:
        folder = Path(tempfile.mkdtemp(prefix="neardup-"))
        self.path = folder / "out.parquet"
        self.load: Callable[[str], pa.Table | None] = lambda _: None
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def __call__(self, name: str) -> pa.Table | None:
        return self.load(name)


def check_in_memory(config: Config, **arguments: object) -> None:
    """Raise for settings, and arguments such as `out`, that only apply to files."""
    files_only = (
        "against",
        "decisions",
        "mark",
        "dry_run",
        "format",
        "encoding",
        "lines",
        "delimiter",
        "include",
        "exclude",
    )
    given = [name for name, value in arguments.items() if value is not None and value is not False]
    named = given + [name for name in files_only if getattr(config, name)]
    named += ["keep"] * bool(config.keep_globs)
    if named:
        raise ConfigError(
            f"`{named[0]}` needs files as the source",
            hint="pass a path, a glob, or a list of pathlib.Path",
        )
