"""Audit a finished run on files, by reading its input again."""

from __future__ import annotations

from neardup.config import Config
from neardup.errors import DataError
from neardup.events import Watch
from neardup.io.finished import finished_run
from neardup.measures.registry import measure_of
from neardup.report import Audit, Report
from neardup.runs.recall import Reported, audit_files


def audit_finished(report: Report, sample: int, config: Config, watch: Watch) -> Audit:
    """Audit a finished run on files, with the threads and the memory of `config`."""
    _check_format(report)
    again = Config.of(report.config, threads=config.threads, memory=config.memory)
    files = [finished_run.find_again(entry, again) for entry in report.inputs]
    num_ahead = sum(entry["ahead"] for entry in report.inputs)
    reported = Reported(report.plan, report.load, report.documents - report.num_rejected, report.num_pairs)
    return audit_files(files, num_ahead, reported, again, watch, sample)


def _check_format(report: Report) -> None:
    """Raise if this version computes other signatures than the run, and would therefore find other pairs."""
    now = measure_of(report.config).signature_format(report.config)
    if report.signature_format != now:
        raise DataError(
            f"the run {report.out} has signatures of the format `{report.signature_format}`, and this version computes "
            f"`{now}`",
            hint="run neardup dedup again, and audit that; the tables of the old run can still be read",
        )
