"""The source of a library call: documents in memory, items or paths; and where its results go."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.index.index_folder import is_index
from neardup.io.columns.matrices import is_matrix
from neardup.io.documents.frames import is_from
from neardup.io.documents.in_memory import ItemSets
from neardup.jobs.start import check_against
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


class Against(NamedTuple):
    """The argument `against=`: documents in memory; None if it names files, or is left out."""

    values: Any

    @property
    def is_in_memory(self) -> bool:
        """Whether the documents are in memory."""
        return self.values is not None


# What the settings hold instead of documents in memory.
IN_MEMORY_AGAINST: Final = "(in memory)"


def taken_against(settings: Any, items: Any = None) -> Against:
    """Take documents in memory out of the settings; text, a path, and lists of them stay, as names of files."""
    if items is not None and settings.get("against_items_column") is not None:
        settings.setdefault("items_column", "items")
    value = settings.get("against")
    if not _is_in_memory(value):
        return Against(None)
    settings["against"] = (IN_MEMORY_AGAINST,)
    return Against(value)


def _is_in_memory(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(isinstance(row, (Mapping, list, tuple)) for row in value)
    plain = (str, bytes, os.PathLike, bool, int, float, set, frozenset)
    return value is not None and not isinstance(value, plain)


def check_against_given(config: Config, against: Against) -> None:
    """Raise if settings of an earlier run are used again without the documents that it was given."""
    if IN_MEMORY_AGAINST in config.against and not against.is_in_memory:
        raise ConfigError(
            "`against` was a source in memory, which settings do not hold",
            hint="pass it again: against=...",
        )


def check_files(against: Against) -> None:
    """Raise for files against documents in memory, which a resumed run could not read again."""
    if against.is_in_memory:
        raise ConfigError(
            f"`against` must name files where the source is files, got {type(against.values).__name__}",
            hint="write these documents to a file, such as one in Parquet, and name it",
        )


def check_frame(against: Against, config: Config) -> None:
    """Raise for a Spark DataFrame against documents that are none."""
    if config.against:
        got = type(against.values).__name__ if against.is_in_memory else "files"
        raise ConfigError(
            f"`against` is not supported for a Spark DataFrame, got {got}",
            hint="write both to files, and run on them with engine='spark'",
        )


def check_local(against: Against, config: Config) -> None:
    """Raise for reference documents that this machine cannot hold beside documents in memory."""
    if against.is_in_memory and is_from(against.values, "pyspark"):
        raise ConfigError(
            "`against` is a Spark DataFrame, but the source is in memory",
            hint="pass against=frame.toArrow(), or make a DataFrame of the source",
        )
    if not against.is_in_memory and config.against:
        check_against(config)
        for path in config.against:
            if is_index(path):
                raise ConfigError(
                    f"`against` names the index {path}, but the source is in memory",
                    hint="open it with neardup.Index.open, and call query_many; or write the source to a file",
                )


def check_in_memory(config: Config, *, reads_files: bool = False, **arguments: object) -> None:
    """Raise for settings, and arguments such as `out`, that only apply to files.

    reads_files: whether `against` may name files; settings of how to read them apply to these.
    """
    files_only: tuple[str, ...] = ("decisions", "mark", "dry_run", "include", "exclude", "long")
    if not reads_files:
        files_only += ("against", "format", "encoding", "lines", "delimiter")
    given = [name for name, value in arguments.items() if value is not None and value is not False]
    named = given + [name for name in files_only if getattr(config, name)]
    named += ["keep"] * bool(config.keep_globs)
    if named:
        raise ConfigError(
            f"`{named[0]}` needs files as the source",
            hint="pass a path, a glob, or a list of pathlib.Path",
        )
