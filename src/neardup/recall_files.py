"""An audit of files: of a run that is under way, or of a finished one, whose input is read again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.engines.local import LocalEngine
from neardup.errors import DataError
from neardup.io import finished
from neardup.io.corpus import FileDocuments
from neardup.io.workspace import Workspace
from neardup.measures.choice import measure_of
from neardup.planner import Plan
from neardup.recall import Audited, measure
from neardup.report import Audit, Report, Watch

# So many pairs are loaded; of more, only the removals are verified again, and what the run finds is computed.
MAX_LOADED: Final = 10_000_000
_REMOVED: Final = ("file", "row", "kept_file", "kept_row")
_PAIRS: Final = ("file_a", "row_a", "file_b", "row_b")


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
        removed=partial(_reported, documents, load, "removed", _REMOVED),
        listed=None
        if num_pairs is None or num_pairs > MAX_LOADED
        else partial(_reported, documents, load, "pairs", _PAIRS),
        name=name,
    )


def audit_finished(report: Report, sample: int, config: Config, watch: Watch) -> Audit:
    """Audit a finished run on files; threads and memory are those of `config`."""
    _check_format(report)
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        again = Config.of(
            report.config, keep="first", strict=False, mark=False, threads=config.threads, memory=config.memory
        )
        files = [finished.find_again(entry, again) for entry in report.inputs]
        workspace = Workspace(Path(folder))
        engine = LocalEngine(again.threads, workspace, again.memory)
        num_ahead = sum(entry["ahead"] for entry in report.inputs)
        documents = FileDocuments(files, num_ahead, again, workspace, engine.room() // 2)
        num_documents = report.documents - report.num_rejected
        audited = audited_files(documents, report.plan, again, report.load, num_documents, report.num_pairs)
        return measure(audited, engine, watch, sample)


def _check_format(report: Report) -> None:
    """Raise for a run whose signatures this version does not compute: it would find other pairs than the run did."""
    now = measure_of(report.config).signature_format(report.config)
    if report.signature_format != now:
        raise DataError(
            f"the run {report.out} has signatures of the format `{report.signature_format}`, and this version computes "
            f"`{now}`",
            hint="run neardup dedup again, and audit that; the tables of the old run can still be read",
        )


def _reported(
    documents: FileDocuments, load: Callable[[str], pa.Table | None], name: str, places: tuple[str, ...]
) -> Iterator[pa.Table]:
    table = load(name)
    if table is not None and table.num_rows:
        columns = [schema.one_array(table.column(column)) for column in places]
        rows = [documents.rows_of(file, row.to_numpy()) for file, row in (columns[:2], columns[2:])]
        yield pa.table([*rows, table.column("similarity")], schema=schema.ROW_PAIRS)
