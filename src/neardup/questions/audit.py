"""Audit a finished run on files, by reading its input again."""

from __future__ import annotations

import tempfile
from pathlib import Path

from neardup.config import Config
from neardup.engines.local.engine import LocalEngine
from neardup.errors import DataError
from neardup.events import Watch
from neardup.io import finished
from neardup.io.sources.corpus import FileDocuments
from neardup.io.workspace import Workspace
from neardup.measures.registry import measure_of
from neardup.report import Audit, Report
from neardup.runs.recall import audited_files, measure


def audit_finished(report: Report, sample: int, config: Config, watch: Watch) -> Audit:
    """Audit a finished run on files, with the threads and the memory of `config`."""
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
    """Raise if this version computes other signatures than the run, and would therefore find other pairs."""
    now = measure_of(report.config).signature_format(report.config)
    if report.signature_format != now:
        raise DataError(
            f"the run {report.out} has signatures of the format `{report.signature_format}`, and this version computes "
            f"`{now}`",
            hint="run neardup dedup again, and audit that; the tables of the old run can still be read",
        )
