"""A search in the texts of files whose parts workers of a cluster read, and whose rows they write."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.engines.base import no_progress
from neardup.io.columns.text_cuts import TextCuts
from neardup.io.columns.text_edits import PassageMarks, TextEdits
from neardup.io.documents.file_list import FileList
from neardup.io.documents.kept_rows import KeptRows
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.notes import Notes
from neardup.io.documents.row_cache import RowCache
from neardup.io.streams import is_remote
from neardup.jobs.decontaminate_files import ContaminatedFiles
from neardup.jobs.passage_files import RepeatedInFiles
from neardup.jobs.section_files import SectionsOfFiles
from neardup.jobs.start import RunSetup
from neardup.jobs.text_files import TextFiles

if TYPE_CHECKING:
    from neardup.engines.spark import SparkEngine
    from neardup.engines.spark.part_tasks import WorkerFiles

I64 = npt.NDArray[np.int64]
# The changes of a file, in the work folder until a worker has written its rows.
_EDITS = "edits"


class _OnWorkers(TextFiles):
    """A search in files that workers read and write; what they find meets on the driver, within its memory."""

    def __init__(self, setup: RunSetup, engine: SparkEngine | None) -> None:
        from neardup.engines.spark.part_tasks import PartEngine, PartTasks
        from neardup.engines.spark.session import open_engine

        config = setup.config
        own = engine or open_engine(config, sum(file.size for file in setup.own))
        self._tasks = PartTasks(own.begin(setup.workspace), setup.workspace)
        # Workers have another current folder, and perhaps other inodes.
        reachable = dataclasses.replace(
            setup, references=_reachable(setup.references), own=_reachable(setup.own)
        )
        local = PartEngine(self._tasks, setup.workspace, config.threads, config.memory)
        super().__init__(reachable, local)
        read = (*setup.references, *setup.own) if self.reads_references else setup.own
        self._paths = [file.path for file in read]

    def _inputs(self) -> tuple[dict[str, Any], ...]:
        """Return the entry of every file in the report, with the path as the user gave it."""
        entries = super()._inputs()
        return tuple(
            entry | {"path": path if entry["path"] == file.path else entry["path"]}
            for entry, path, file in zip(entries, self._paths, self.layout.files, strict=True)
        )

    def write_kept(self, gone: I64, edits_of: Callable[[int], TextEdits]) -> None:
        """Let workers write the rows of the files that no interrupted run has written."""
        folder = self.workspace.folder.resolve() / _EDITS
        folder.mkdir(exist_ok=True)
        missing = []
        for at in self.layout.own_files():
            if not self.workspace.has(_kept_name(self.layout, at)):
                first, stop = self.layout.file_first_rows[at : at + 2].tolist()
                own = gone[slice(*np.searchsorted(gone, [first, stop]).tolist())]
                _store(folder / f"{at}.npz", edits_of(at), own)
                missing.append(at)
        layout = self.layout

        def task(at: int, files: WorkerFiles) -> None:
            _write_file(at, layout, files)

        self._tasks.run(missing, task, no_progress, len(missing))


class SectionsOnSpark(_OnWorkers, SectionsOfFiles):
    """A search for repeated paragraphs or lines."""


class PassagesOnSpark(_OnWorkers, RepeatedInFiles):
    """A search for repeated passages."""


class ContaminationOnSpark(_OnWorkers, ContaminatedFiles):
    """A search for items of benchmarks."""


def _reachable(files: FileList) -> FileList:
    return FileList(
        msgspec.structs.replace(
            file,
            path=file.path if is_remote(file.path) else str(Path(file.path).absolute()),
            identity="",
        )
        for file in files
    )


def _kept_name(layout: FileLayout, at: int) -> str:
    return f"out/kept/{layout.files[at].name}"


def _store(path: Path, edits: TextEdits, gone: I64) -> None:
    """Store the changes of a file, and the rows that are not written."""
    changes: dict[str, npt.NDArray[Any]] = {}
    if edits.cuts is not None:
        cuts = edits.cuts
        changes = {"cut_rows": cuts.rows, "cut_starts": cuts.starts, "cut_stops": cuts.stops}
        changes["mends"] = np.array(cuts.mends)
    if isinstance(edits.marks, PassageMarks):
        marks = edits.marks
        changes |= {"words": marks.words, "shares": marks.shares, "rows": marks.rows}
        changes |= {"starts": marks.starts, "ends": marks.ends}
    np.savez(path, gone=gone, allow_pickle=False, **changes)


def _write_file(at: int, layout: FileLayout, files: WorkerFiles) -> None:
    """Write the kept rows of a file, on a worker."""
    with np.load(files.folder / _EDITS / f"{at}.npz", allow_pickle=False) as stored:
        found = {name: stored[name] for name in stored.files}
    gone = found["gone"]
    cuts = marks = None
    if "cut_rows" in found:
        cuts = TextCuts(
            rows=found["cut_rows"],
            starts=found["cut_starts"],
            stops=found["cut_stops"],
            mends=bool(found["mends"]),
        )
    if "words" in found:
        names = ("words", "shares", "rows", "starts", "ends")
        marks = PassageMarks(**{name: found[name] for name in names})
    column = next(iter(layout.columns[at].text), None)
    edits = TextEdits(column=column, cuts=cuts, marks=marks)
    selection = pa.table([gone, gone, np.zeros(gone.size)], schema=schema.SELECTION)
    kept = KeptRows(layout, Notes(layout, files), selection, RowCache())
    files.checkpoint(_kept_name(layout, at), lambda path: kept.write_edited(at, str(path), edits))
