"""An audit of files: of a run that is under way, or of a finished one, whose input is read again."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.engines.local import LocalEngine
from neardup.errors import DataError
from neardup.io.corpus import FileDocuments
from neardup.io.files import find_files
from neardup.io.records import InputFile
from neardup.io.spool import GIVEN_AS
from neardup.io.workspace import Workspace
from neardup.planner import Plan
from neardup.recall import Audited, measure
from neardup.report import Audit, Report, Watch

# So many pairs are loaded to be verified again; of more, only the removals are.
MAX_LOADED: Final = 10_000_000
_REMOVED: Final = ("file", "row", "kept_file", "kept_row")
_PAIRS: Final = ("file_a", "row_a", "file_b", "row_b")
_SAY_WHERE: Final = "an audit reads what the run has read; put it back, or start it in the same folder, or run again"


def audited_files(
    documents: FileDocuments,
    plan: Plan,
    config: Config,
    load: Callable[[str], pa.Table | None],
    num_documents: int,
    num_pairs: int | None,
) -> Audited:
    """Let an audit see a run on files; `load` returns what it reported by name, `num_pairs` is how many pairs."""

    def name(pairs: pa.Table) -> pa.Table:
        batch = schema.one_batch(pairs.to_batches(), pairs.schema)
        columns = schema.with_shares(schema.PAIRS_FROM_FILES, pairs.schema)
        return pa.Table.from_batches(documents.name_pairs(batch, 2 * batch.num_rows), schema=columns)

    return Audited(
        documents=documents,
        plan=plan,
        config=config,
        num_documents=num_documents,
        reported=partial(_reported, documents, load, num_pairs),
        name=name,
    )


def audit_finished(report: Report, sample: int, config: Config, watch: Watch) -> Audit:
    """Audit a finished run on files; threads and memory are those of `config`."""
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        again = Config.of(
            report.config, keep="first", strict=False, mark=False, threads=config.threads, memory=config.memory
        )
        files = _unchanged(report.inputs, again)
        workspace = Workspace(Path(folder))
        engine = LocalEngine(again.threads, workspace, again.memory)
        num_ahead = sum(entry["ahead"] for entry in report.inputs)
        documents = FileDocuments(files, num_ahead, again, workspace, engine.room() // 2)
        num_documents = report.documents - report.num_rejected
        audited = audited_files(documents, report.plan, again, report.load, num_documents, report.num_pairs)
        return measure(audited, engine, watch, sample)


def _reported(
    documents: FileDocuments, load: Callable[[str], pa.Table | None], num_pairs: int | None
) -> Iterator[pa.Table]:
    for name, places in (("removed", _REMOVED), ("pairs", _PAIRS)):
        table = load(name) if name == "removed" or 0 < (num_pairs or 0) <= MAX_LOADED else None
        if table is not None:
            columns = [schema.one_array(table.column(column)) for column in places]
            rows = [documents.rows_of(file, row.to_numpy()) for file, row in (columns[:2], columns[2:])]
            yield pa.table([*rows, table.column("similarity")], schema=schema.ROW_PAIRS)


def _unchanged(inputs: Sequence[dict[str, Any]], config: Config) -> list[InputFile]:
    """Find the files that a run has read, as they were then."""
    files = []
    for entry in inputs:
        path = entry["path"]
        if path == GIVEN_AS:
            raise DataError(
                "the run read standard input, which cannot be read again", hint="run it on a file, or with --audit"
            )
        try:
            [file] = find_files([path], config)
        except DataError as error:
            raise DataError(f"the input {path} of the run is gone: {error}", hint=_SAY_WHERE) from error
        then = entry["size"], entry["modified"]
        if (file.size, file.modified) != then:
            how = f"it had {then[0]:,} bytes, now {file.size:,}" if file.size != then[0] else "it was written again"
            raise DataError(f"the input {path} has changed since the run: {how}", hint=_SAY_WHERE)
        files.append(dataclasses.replace(file, name=entry["file"]))
    return files
