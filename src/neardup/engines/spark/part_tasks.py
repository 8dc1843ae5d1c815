"""Parts of files on workers, for jobs that group on the driver: a task does what a thread of one machine does.

A worker reads its part as the local engine reads it, and writes its tables to the work folder, which the driver and
all workers reach. The driver finishes the files, so that they are checkpoints of the run.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema as schemas
from neardup.engines.base import (
    Advance,
    BatchStep,
    Documents,
    DocumentStep,
    Parts,
    PartScan,
    no_progress,
)
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.tables import BatchTable, FileTable, part_file
from neardup.engines.spark.engine import SparkEngine
from neardup.io.documents.file_reader import FileReader
from neardup.io.documents.layout import FileLayout
from neardup.io.storage.workspace import Workspace, read_batches, write_batches

# The files that a task has written, with what is recorded about them.
_FINISHED: Final = pa.schema([("files", pa.string())])


class WorkerFiles(Workspace):
    """The work folder as a task sees it: what it finishes becomes a draft, for the driver to finish."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written: list[tuple[str, dict[str, Any]]] = []
        # An attempt that runs twice must not write where the other one does.
        self._attempt = uuid.uuid4().hex

    def has(self, name: str) -> bool:
        """Nothing is finished on a worker."""
        del name
        return False

    def draft(self, name: str) -> Path:
        """Return where this attempt writes a file."""
        path = self.folder / "attempts" / self._attempt / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def finish(self, name: str, facts: dict[str, Any] | None = None) -> None:
        """Move a file to where the driver looks for drafts; none if there is none to publish."""
        draft = self.draft(name)
        target = self.folder / "drafts" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if draft.exists():
            os.replace(draft, target)  # noqa: PTH105
        self.written.append((name, facts or {}))

    def as_batch(self) -> pa.RecordBatch:
        """Return what was written, for the driver."""
        return pa.record_batch([pa.array([json.dumps(self.written)])], schema=_FINISHED)


class PartTasks:
    """Runs tasks on workers that write files of the workspace."""

    def __init__(self, engine: SparkEngine, workspace: Workspace) -> None:
        self._engine = engine
        self._workspace = workspace

    def run(
        self,
        numbers: Sequence[int],
        task: Callable[[int, WorkerFiles], None],
        advance: Advance,
        total: int,
    ) -> None:
        """Do a task for each of some numbers, and finish the files that they have written."""
        if not numbers:
            advance(total)
            return
        folder = self._workspace.folder.resolve()
        listed = tuple(numbers)

        def work(at: int) -> pa.RecordBatch:
            files = WorkerFiles(folder)
            task(listed[at], files)
            return files.as_batch()

        found = self._engine.collect_range(len(listed), work, _FINISHED, (advance, total))
        for written in found.column("files").to_pylist():
            for name, facts in json.loads(written):
                self._workspace.finish(name, facts)


class PartEngine(LocalEngine):
    """Maps the documents of files on the workers of a cluster; everything else on the driver, within its memory."""

    def __init__(
        self, tasks: PartTasks, workspace: Workspace, threads: int | None, memory: int | None
    ) -> None:
        super().__init__(threads, workspace, memory)
        self._tasks = tasks
        self._files = workspace
        self._num_scans = 0

    def map_documents(
        self,
        documents: Documents,
        step: DocumentStep,
        schema: pa.Schema,
        advance: Advance,
        name: str = "sketch",
        gather: PartScan | None = None,
    ) -> BatchTable:
        """Apply a step to the documents of every part that no interrupted run has read."""
        self._skip_parts(name, documents, no_progress)
        numbers = range(documents.num_parts)
        missing = [part for part in numbers if not self._files.has(part_file(name, part))]
        layout = _layout_of(documents)
        make = None if gather is None else gather.make

        def task(part: int, files: WorkerFiles) -> None:
            if make is None:
                read_part(part, layout, files, lambda batch: step(batch, None), schema, name)
                return
            own = make({})
            read_part(part, layout, files, own.look, schema, name)
            _bring(files, "gathered", part, own)

        self._tasks.run(missing, task, advance, documents.total)
        documents.finish_reading(self.sort)
        if gather is not None:
            self._merge("gathered", missing, documents, gather)
        paths = [self._files.folder / part_file(name, part) for part in numbers]
        return FileTable(paths, schema, self.room() // 16, documents)

    def scan_documents(
        self, documents: Parts, step: BatchStep, schema: pa.Schema, advance: Advance
    ) -> pa.Table:
        """Apply a step to the documents of every part; the results are few, and pass through the driver."""
        layout = _layout_of(documents)
        name = self._next_scan()

        def task(part: int, files: WorkerFiles) -> None:
            read_part(part, layout, files, step, schema, name)

        self._tasks.run(range(documents.num_parts), task, advance, documents.total)
        batches = [
            batch
            for part in range(documents.num_parts)
            for batch in read_batches(self._files.folder / part_file(name, part))
            if batch.num_rows
        ]
        return pa.Table.from_batches(batches, schema=schema)

    def scan_parts(
        self,
        documents: Parts,
        scan: PartScan,
        advance: Advance,
        schema: pa.Schema = schemas.COUNTS,
    ) -> None:
        """Let workers look at the parts in which there is something to look for, and merge what they bring back."""
        del schema
        layout = _layout_of(documents)
        name = self._next_scan()
        inputs = self._files.folder.resolve() / f"{name}-inputs"
        inputs.mkdir(parents=True, exist_ok=True)
        wanted = []
        for part in range(documents.num_parts):
            first, stop = layout.first_rows[part : part + 2].tolist()
            arrays = scan.part_of(first, stop)
            if arrays is not None:
                np.savez(inputs / f"{part}.npz", allow_pickle=False, **arrays)
                wanted.append(part)
        make = scan.make

        def task(part: int, files: WorkerFiles) -> None:
            own = make(_loaded(inputs / f"{part}.npz"))
            for batch in FileReader(layout, files).read(part, no_progress):
                own.look(batch)
            _bring(files, name, part, own)

        self._tasks.run(wanted, task, advance, documents.total)
        self._merge(name, wanted, documents, scan)
        shutil.rmtree(inputs)

    def _next_scan(self) -> str:
        self._num_scans += 1
        return f"scan-{self._num_scans}"

    def _merge(self, name: str, parts: Sequence[int], documents: Parts, scan: PartScan) -> None:
        """Add what workers have found in parts, one after the other."""
        first_rows = _layout_of(documents).first_rows
        for part in parts:
            file = f"{name}/{part}.npz"
            path = self._files.folder / file
            first, stop = first_rows[part : part + 2].tolist()
            scan.merge(first, stop, _loaded(path))
            self._files.forget(file)
            path.unlink()


def _layout_of(documents: Parts | Documents) -> FileLayout:
    """Return what the files of documents hold; a run on workers has no other documents."""
    if not isinstance(documents, FileReader):
        raise TypeError(f"workers read files, not {type(documents).__name__}")
    return documents.layout


def _bring(files: WorkerFiles, name: str, part: int, scan: PartScan) -> None:
    """Write what a scan of a part has found."""
    found = scan.found()
    files.checkpoint(f"{name}/{part}.npz", lambda path: np.savez(path, allow_pickle=False, **found))


def _loaded(path: Path) -> dict[str, npt.NDArray[Any]]:
    with np.load(path, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def read_part(
    part: int,
    layout: FileLayout,
    files: WorkerFiles,
    step: BatchStep,
    schema: pa.Schema,
    name: str,
) -> None:
    """Read a part and write a table, and in the first pass its notes, as the local engine does."""
    reader = FileReader(layout, files)

    def results() -> Iterator[pa.RecordBatch]:
        return (step(batch) for batch in reader.read(part, no_progress))

    files.checkpoint(part_file(name, part), lambda path: write_batches(path, results(), schema))
