"""The output of a run on files: drafts in its workspace, published atomically at the end."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa

from neardup.config.checks import check_text
from neardup.errors import ConfigError, DataError
from neardup.io.finished import finished_run, run_tables
from neardup.io.storage.table_writer import known_ending
from neardup.io.storage.workspace import (
    REPORT,
    Reusable,
    Workspace,
    check_output,
    listed_files,
    publish_files,
    publish_folder,
    retract,
    written_files,
)
from neardup.report import Report

_DRAFTS: Final = "out"


def _nothing() -> None:
    """Do nothing after publishing; a named function, because reports are pickled."""


class RunFolder:
    """The output folder of a run; drafts: the file of each table in the workspace.

    A kind of run says its command, and which tables it writes.
    """

    command: ClassVar[str]
    tables: ClassVar[tuple[str, ...]]
    has_kept = True
    reusable: ClassVar[Reusable | None] = None
    # Whether signatures or sets of all documents are stored while it runs.
    stores_sets: ClassVar[bool] = True

    def __init__(
        self, out: str, finish: Callable[[], None] | None = None, page: str | None = None
    ) -> None:
        """Take the folder, a function to call once it is published, and the name of an HTML page of the report in it.

        The function may be called twice if the process is killed.
        """
        if page is not None:
            _check_page(page)
        self.target = _local_path(out)
        self.finish = finish or _nothing
        self.page = page
        if self.target.exists() and not self.target.is_dir():
            raise DataError(
                f"the output {out} is a file, but {self.command} writes a folder",
                hint=f"name a folder: out='{self.target.stem}-clean'",
            )
        self.drafts = {name: f"{_DRAFTS}/{name}.parquet" for name in self.tables}
        self.drafts["rejected"] = f"{_DRAFTS}/rejected.jsonl"

    def check(self, *, overwrite: bool) -> None:
        """Do nothing: the workspace checks the folder."""

    def load(self, name: str) -> pa.Table | None:
        """Return a published table by name, None if it was not stored."""
        return finished_run.load_table(self.target, name)

    def load_draft(self, workspace: Workspace, name: str) -> pa.Table | None:
        """Return a table that is not published yet."""
        return run_tables.read_table(workspace.folder / _DRAFTS, name)

    def files(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the names of all files below the folder."""
        written = written_files(workspace.folder / _DRAFTS)
        if self.page is None:
            return written
        return tuple(sorted({*written, self.page}))

    def write_page(self, workspace: Workspace, report: Report) -> None:
        """Write the report as a page among the drafts, if requested."""
        if self.page is not None:
            drafted = dataclasses.replace(report, load=partial(self.load_draft, workspace))
            (workspace.folder / _DRAFTS / self.page).write_text(drafted.to_html(), "utf-8")

    def publish(self, workspace: Workspace) -> None:
        """Publish the folder, and remove the workspace."""
        publish_folder(workspace, self.target, self.finish)


class DedupFolder(RunFolder):
    """The output folder of `neardup dedup`."""

    command: ClassVar = "dedup"
    tables: ClassVar = ("removed", "clusters", "pairs", "order", "common")


class PairsFile:
    """The output file of `neardup pairs`, with the rejected rows and the report next to it."""

    command: ClassVar = "pairs"
    has_kept: ClassVar = False
    reusable: ClassVar = None
    stores_sets: ClassVar = True

    def __init__(self, out: str, beside: Sequence[str] = ()) -> None:
        """Take the file, and the tables that are written next to it besides the rejected rows."""
        self.target = _local_path(out)
        if self.target.is_dir():
            raise DataError(
                f"the output {out} is a folder, but pairs writes a file",
                hint="name it: out='pairs.parquet'",
            )
        known_ending(self.target)
        self.drafts = {
            "pairs": f"{_DRAFTS}/pairs{self.target.suffix}",
            "rejected": f"{_DRAFTS}/rejected.jsonl",
        }
        self.drafts |= {name: f"{_DRAFTS}/{name}.parquet" for name in beside}
        tables = ("rejected", *beside)
        self._published = {name: run_tables.path_beside(self.target, name) for name in tables}
        report = self.target.with_name(f"{self.target.name}.{REPORT}")
        self._beside = [*self._published.values(), report]

    def write_page(self, workspace: Workspace, report: Report) -> None:
        """Write no page: a list of pairs has none."""

    def finish(self) -> None:
        """Do nothing: publishing the files is the last step."""

    def check(self, *, overwrite: bool) -> None:
        """Raise if a file that neardup did not write is in the place of one written next to the output."""
        retract(self.target, self._beside)
        listed = listed_files(self._beside[-1]) or set()
        for path in self._beside:
            check_output(path, overwrite=overwrite)
            if path.exists() and path.name not in listed:
                raise DataError(
                    f"{path} already exists and was not written by neardup, so it is not overwritten",
                    hint="choose another `out`, or delete it yourself",
                )

    def load(self, name: str) -> pa.Table | None:
        """Return a published table by name."""
        return finished_run.load_pairs(self.target, name)

    def load_draft(self, workspace: Workspace, name: str) -> pa.Table | None:
        """Return the pairs that are not published yet."""
        return run_tables.read_pairs(workspace.folder / self.drafts["pairs"], name)

    def files(self, workspace: Workspace) -> tuple[str, ...]:
        """Return the names of all files."""
        del workspace
        return self.target.name, *(path.name for path in self._beside)

    def publish(self, workspace: Workspace) -> None:
        """Publish the files, the pairs last, and remove the workspace."""
        names = [self.drafts[name] for name in self._published]
        names += [f"{_DRAFTS}/{REPORT}", self.drafts["pairs"]]
        drafts = [workspace.folder / name for name in names]
        targets = [*self._beside, self.target]
        publish_files(workspace, list(zip(drafts, targets, strict=True)))


Output = RunFolder | PairsFile


def write_report(workspace: Workspace, report: Report) -> None:
    """Write report.json among the drafts."""
    path = workspace.folder / _DRAFTS / REPORT
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as target:
        target.writelines(_report_lines(report.as_dict()))


def _report_lines(facts: dict[str, Any]) -> Iterator[str]:
    """Iterate over report.json, indented; each of the inputs and files, which may be a million, is on one line."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    for number, (name, value) in enumerate(facts.items()):
        yield f"{',' if number else '{'}\n {encode(name)}: "
        if name in ("inputs", "files") and value:
            yield from (
                f"{',' if at else '['}\n  {encode(entry)}" for at, entry in enumerate(value)
            )
            yield "\n ]"
        else:
            yield json.dumps(value, ensure_ascii=False, indent=1).replace("\n", "\n ")
    yield "\n}\n"


def _check_page(page: str) -> None:
    if not isinstance(page, str) or Path(page).name != page or Path(page).suffix != ".html":
        raise ConfigError(
            f"`report` must be the name of an HTML file in the output folder, got {page!r}",
            hint="pass report='report.html'; neardup.load(out).to_html() returns a page to write elsewhere",
        )


def _local_path(out: str) -> Path:
    if "://" in out:
        raise ConfigError(
            f"the output must be on a local disk, got {out}", hint="write it here and copy it"
        )
    check_text("output", out, "a path in UTF-8")
    return Path(out)
