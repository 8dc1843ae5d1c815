"""Finished runs: the tables of an output, and the texts of its documents."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from neardup import schema
from neardup.config import Config
from neardup.errors import DataError
from neardup.io import formats
from neardup.io.files import choose_columns, find_files
from neardup.io.records import InputFile
from neardup.io.workspace import REPORT, is_finished
from neardup.planner import plan_for
from neardup.report import Audit, Report

KEPT: Final = "kept"


def kept_of_runs(paths: Sequence[str]) -> list[str]:
    """Replace the folder of a finished run by its kept documents."""
    found: list[str] = []
    for path in paths:
        found += kept_files(Path(path)) if is_finished(Path(path)) else [path]
    return found


def kept_files(run: Path) -> list[str]:
    """Return the files with the kept rows of a finished run, in input order."""
    report = read_report(run)
    if report["config"]["dry_run"] or not (run / KEPT).is_dir():
        raise DataError(f"the run {run} wrote no kept rows: it was a dry run", hint="run it again without --dry-run")
    if report["config"]["mark"]:
        raise DataError(
            f"the run {run} was written with --mark, so its kept rows do not stand apart",
            hint="run it again without --mark",
        )
    files = [run / KEPT / entry["file"] for entry in report["inputs"] if not entry["ahead"]]
    return [str(file) for file in files if file.is_file()]  # a removed text file is not there


def read_report(run: Path) -> dict[str, Any]:
    """Return what report.json of a run holds; the run is a folder, or the file that a run of pairs wrote."""
    path = run.with_name(f"{run.name}.{REPORT}") if run.is_file() else run / REPORT
    try:
        report: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise DataError(
            f"{run} is no finished run: it has no {REPORT}", hint="name the folder that neardup dedup -o wrote"
        ) from error
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    return report


def load_table(run: Path, name: str) -> pa.Table | None:
    """Return a table of a finished run by name, None if it was not stored."""
    if name == "rejected":
        return load_rejected(run / "rejected.jsonl")
    if name == KEPT:
        return _load_kept(run)
    path = run / f"{name}.parquet"
    return pq.read_table(path) if path.is_file() else None


def load_pairs(path: Path, name: str) -> pa.Table | None:
    """Return what a run of pairs wrote: `pairs` or `rejected`."""
    if name == "rejected":
        return load_rejected(path.with_name(f"{path.name}.rejected.jsonl"))
    if name != "pairs":
        return None
    ending = path.suffix.lower()
    if ending == ".parquet":
        return pq.read_table(path)
    if ending == ".csv":
        kinds = pa.csv.ConvertOptions(column_types=schema.PAIRS_FROM_FILES)
        return pa.csv.read_csv(path, pa.csv.ReadOptions(), pa.csv.ParseOptions(newlines_in_values=True), kinds)
    return _read_lines(path, schema.PAIRS_FROM_FILES)


def load_rejected(path: Path) -> pa.Table:
    """Read rejected.jsonl."""
    return _read_lines(path, schema.REJECTED)


def _read_lines(path: Path, columns: pa.Schema) -> pa.Table:
    lines = path.read_bytes().split(b"\n")
    return pa.Table.from_pylist([json.loads(line) for line in lines if line], schema=columns)


def _load_kept(run: Path) -> pa.Table:
    """The kept documents of all formats alike: doc_id and text."""
    config = settings_of(read_report(run))
    ids, texts = [pa.array([], pa.string())], [pa.array([], pa.large_string())]
    clusters = pq.read_table(run / "clusters.parquet")
    own = clusters.filter(pc.equal(clusters.column("doc_id"), clusters.column("cluster_id"))).column("doc_id")
    for path in kept_files(run):
        [file] = find_files([path], config)
        # Documents without an id are named by their place in the input, which their place here does not tell.
        name = re.escape(Path(path).relative_to(run / KEPT).as_posix())
        places = iter(own.filter(pc.match_substring_regex(own, rf"^{name}:\d+$")).to_pylist())
        form = formats.load(file.format)
        columns = choose_columns(file, form.column_names(file, config), config)
        for span in form.split(file):
            for records in form.read(file, span, columns, config):
                named = [next(places) if doc_id is None else doc_id for doc_id in records.ids.to_pylist()]
                ids.append(pa.array(named, pa.string()))
                texts.append(records.texts)
    return pa.table({"doc_id": pa.chunked_array(ids), "text": pa.chunked_array(texts)})


def restore(run: Path) -> Report:
    """Return the report of a finished run."""
    report = read_report(run)
    config = settings_of(report)
    method, bands, rows = (report["plan"][name] for name in ("method", "bands", "rows"))
    plan = plan_for(Config.of(config, method=method, bands=bands or None, rows=rows or None))
    return Report(
        config=config,
        plan=dataclasses.replace(plan, reason=report["plan"].get("reason")),
        documents=report["documents"],
        num_kept=report["kept"],
        num_removed=report["removed"],
        num_rejected=report["rejected"],
        exact_duplicates=report["exact_duplicates"],
        pairs_verified=report["pairs_verified"],
        num_pairs=report["pairs"],
        seconds=report["seconds"],
        bytes_read=report["bytes_read"],
        peak_memory_bytes=report["peak_memory_bytes"],
        stages=report["stages"],
        warnings=tuple(report["warnings"]),
        columns=report["columns"],
        signature_format=report["signature_format"],
        load=partial(load_pairs if run.is_file() else load_table, run),
        out=str(run),
        inputs=tuple(report["inputs"]),
        files=tuple(report.get("files", ())),
        largest=tuple(report["largest_clusters"]),
        audit=Audit.of(report["audit"], schema.missed(schema.PAIRS_FROM_FILES)) if report.get("audit") else None,
    )


def settings_of(report: dict[str, Any]) -> Config:
    """Return the settings of a finished run."""
    names = set(Config.__dataclass_fields__)
    return Config.of(**{name: value for name, value in report["config"].items() if name in names})


def read_row(file: InputFile, number: int, config: Config) -> str:
    """Return the text of one row of a file, counted from 1."""
    form = formats.load(file.format)
    columns = choose_columns(file, form.column_names(file, config), config)
    first = 1
    for span in form.split(file):
        for records in form.read(file, span, columns, config):
            if first <= number < first + records.num_rows:
                at = (records.rows == number - first).nonzero()[0]
                if at.size:
                    text: str = records.texts[int(at[0])].as_py()
                    return text
            first += records.num_rows
    raise DataError(f"{file.path} has no document in row {number}", hint="the file has changed since the run")
