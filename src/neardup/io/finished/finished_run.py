"""Finished runs: the tables of an output, and the texts of its documents.

A run may come from someone else, so it is not trusted: its report must match a schema, its tables
must have the right columns, its files must be in its folder, and an input is read again only if it
is unchanged.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.io.columns import whole_rows
from neardup.io.columns.common_groups import common_keys
from neardup.io.documents.column_choice import choose_columns, of_references, read_records
from neardup.io.documents.discover import find_file
from neardup.io.documents.file_encodings import as_recorded
from neardup.io.documents.file_reader import documents_of
from neardup.io.documents.layout import rows_in
from neardup.io.documents.stdin import STDIN_PATH
from neardup.io.finished import passage_tables, run_tables, run_values
from neardup.io.finished.run_tables import damaged, file_of
from neardup.io.finished.stored_report import StoredReport, read_report
from neardup.io.formats import registry as formats
from neardup.io.records import Columns, InputFile, Records
from neardup.io.storage.workspace import REPORT
from neardup.io.streams import head_of
from neardup.report import Audit, ContaminationReport, PartsReport, PassagesReport, Report
from neardup.theory.plan import Plan, plan_for

KEPT: Final = "kept"
_SAY_WHERE: Final = (
    "this command reads the input files again: restore them, start in the same folder, "
    "or repeat the run"
)


def is_run(folder: Path) -> bool:
    """Whether a folder is the output of a run on files, even if it was changed since."""
    # `os.path` answers False for a path that the system refuses, such as one with a very long name.
    return os.path.exists(folder / "removed.parquet") and os.path.isfile(folder / REPORT)  # noqa: PTH110, PTH113


def kept_files(run: Path) -> list[str]:
    """Return the files with the kept rows of a finished run, in input order; raise if one is missing."""
    report = read_report(run)
    config = report.settings()
    if config.dry_run or not (run / KEPT).is_dir():
        raise DataError(
            f"the run {run} wrote no kept rows: it was a dry run",
            hint="run it again without dry_run=True",
        )
    if config.mark:
        raise DataError(
            f"the run {run} was written with mark=True, so its kept rows are not in separate files",
            hint="run it again without mark=True",
        )
    names = [entry["file"] for entry in report.inputs if not entry["ahead"]]
    absent = _without_kept_file(run, names, report, config)
    return [str(file_of(run, Path(KEPT, name))) for name in names if name not in absent]


def _without_kept_file(
    run: Path, names: Sequence[str], report: StoredReport, config: Config
) -> set[str]:
    """The inputs without a file among the kept ones: single-document files that were not kept."""
    whole = {
        name
        for name in names
        if (formats.format_of(name, config, is_named=True) or ("",))[0] == "text"
    }
    if report.written is not None:
        return {name for name in whole if f"{KEPT}/{name}" not in report.written}
    if not whole:
        return set()
    tables = [_table_of(run, name, report) for name in ("removed", "rejected")]
    return whole & {name for table in tables for name in table.column("file").to_pylist()}


def load_table(run: Path, name: str, stored: StoredReport | None = None) -> pa.Table | None:
    """Return a table of a finished run by name, with its values checked; None if it was not stored.

    `stored` is the report of the run; without it, it is read.
    """
    if name == KEPT:
        return _load_kept(run)
    if name == "mask":
        return _mask(run)
    table = run_tables.read_table(run, name)
    if table is not None:
        run_values.check_values(
            table, name, run_tables.path_of(run, name), stored or read_report(run)
        )
    return table


def _table_of(run: Path, name: str, stored: StoredReport | None = None) -> pa.Table:
    """Return a table that every finished run has stored."""
    table = load_table(run, name, stored)
    if table is None:
        raise run_tables.missing(run_tables.path_of(run, name))
    return table


def load_pairs(path: Path, name: str, stored: StoredReport | None = None) -> pa.Table | None:
    """Return a table of a run of pairs, `pairs` or `rejected`, with its values checked."""
    table = run_tables.read_pairs(path, name)
    if table is not None:
        beside = run_tables.path_beside(path, name)
        run_values.check_values(table, name, beside, stored or read_report(path))
    return table


def _load_kept(run: Path) -> pa.Table:
    """The kept documents: doc_id, and the columns of their files; of formats without columns, `text`."""
    config = read_report(run).settings()
    own = _kept_ids(run)
    tables = list[pa.Table]()
    entries = {Path(run, KEPT, entry["file"]): entry for entry in read_report(run).inputs}
    for path in kept_files(run):
        file = find_file(path, as_recorded(config, entries.get(Path(path), {})))
        form = formats.load(file.format)
        columns = choose_columns(file, form.column_names(file, config), config)
        ids, texts, rows = _kept_documents(run, file, columns, own, config)
        table = form.table(file, config)
        if table is None:
            table = pa.table({"text": texts})
        else:
            table = table.take(pa.array(rows))
        tables.append(whole_rows.with_doc_ids(table, ids, columns.id))
    bare = pa.table({"doc_id": pa.array([], pa.string()), "text": pa.array([], pa.large_string())})
    return whole_rows.joined(tables or [bare])


def _kept_ids(run: Path) -> pa.ChunkedArray:
    """The ids of the kept documents, including those named by file and row."""
    own = _table_of(run, "clusters").column("doc_id")
    removed = _table_of(run, "removed")
    locations = pc.binary_join_element_wise(
        removed.column("file"), removed.column("row").cast(pa.string()), ":"
    )
    gone = removed.column("doc_id")
    gone = gone.filter(pc.or_(pc.equal(gone, locations), pc.equal(gone, removed.column("file"))))
    return own.filter(pc.invert(pc.is_in(own, gone.combine_chunks())))


def _kept_documents(
    run: Path, file: InputFile, columns: Columns, own: pa.ChunkedArray, config: Config
) -> tuple[pa.ChunkedArray, pa.ChunkedArray, npt.NDArray[np.int64]]:
    """The ids, texts and rows (from 0) of the documents of a kept file."""
    # Documents without an id are named by their row in the input, which differs from the row among
    # the kept ones.
    name = re.escape(Path(file.path).relative_to(run / KEPT).as_posix())
    locations = iter(own.filter(pc.match_substring_regex(own, rf"^{name}(:\d+)?$")).to_pylist())
    ids = [pa.array([], pa.string())]
    texts = [pa.array([], pa.large_string())]
    rows = [np.empty(0, np.int64)]
    first = 0
    for records in read_records(file, config, columns):
        stored_ids = records.ids.to_pylist()
        named = [next(locations, None) if doc_id is None else doc_id for doc_id in stored_ids]
        if None in named:
            raise damaged(
                run / "clusters.parquet", f"it names fewer documents than {file.path} contains"
            )
        ids.append(pa.array(named, pa.string()))
        texts.append(records.texts)
        rows.append(first + records.rows)
        first += records.num_rows
    return pa.chunked_array(ids), pa.chunked_array(texts), np.concatenate(rows)


def own_rows(table: pa.Table, inputs: Sequence[Mapping[str, Any]]) -> npt.NDArray[np.int64]:
    """Return the rows of the input, from 0, that `file` and `row` of a table name."""
    own = [entry for entry in inputs if not entry["ahead"]]
    firsts = np.cumsum([0, *(entry["rows"] for entry in own)], dtype=np.int64)
    files = schema.one_array(table.column("file"))
    numbers = table.column("row").to_numpy()
    return rows_in(files, numbers, pa.array([entry["file"] for entry in own], pa.string()), firsts)


def _mask(run: Path) -> pa.Table:
    """Return whether each row of the input is kept; blank lines count as rows that are not."""
    stored = read_report(run)
    gone = [_table_of(run, name, stored) for name in ("removed", "rejected")]
    own = [entry for entry in stored.inputs if not entry["ahead"]]
    num_rows = sum(entry["rows"] for entry in own)
    if num_rows == stored.documents:
        # The tables have as many rows, so a forged number cannot claim any amount of memory.
        _table_of(run, "clusters", stored)
        is_kept = np.ones(num_rows, np.bool_)
    else:  # no table records which rows are blank
        is_kept = np.concatenate([are_documents(entry, stored.settings()) for entry in own])
    for table in gone:
        is_kept[own_rows(table, stored.inputs)] = False
    return pa.table({"is_kept": is_kept})


def are_documents(entry: Mapping[str, Any], config: Config) -> npt.NDArray[np.bool_]:
    """Whether each row of an input file is a document."""
    found = [np.empty(0, np.bool_)]
    for records in read_again(entry, config):
        is_document = np.zeros(records.num_rows, np.bool_)
        is_document[records.rows] = True
        found.append(is_document)
    return np.concatenate(found)


def restore(run: Path) -> Report:
    """Return the report of a finished run."""
    stored = read_report(run)
    config = stored.settings()
    load = load_pairs if run.is_file() else load_table
    audit = None
    if stored.audit:
        audit = Audit.of(dict(stored.audit), schema.missed(schema.PAIRS_FROM_FILES))
    report = Report(
        config=config,
        plan=_plan_of(run, stored, config),
        num_kept=stored.kept,
        num_removed=stored.removed,
        removed_against=_removed_against(run, stored),
        decisions=stored.decisions,
        ignored_common=stored.ignored_common,
        weights=stored.weights,
        num_rejected=stored.rejected,
        num_pairs=stored.pairs,
        warnings=tuple(stored.warnings),
        documents=stored.documents,
        exact_duplicates=stored.exact_duplicates,
        pairs_verified=stored.pairs_verified,
        seconds=stored.seconds,
        bytes_read=stored.bytes_read,
        peak_memory_bytes=stored.peak_memory_bytes,
        stages=stored.stages,
        columns=stored.columns,
        signature_format=stored.signature_format,
        load=partial(load, run, stored=stored),
        out=str(run),
        inputs=tuple(map(dict, stored.inputs)),
        files=tuple(stored.files or ()),
        largest=tuple(map(dict, stored.largest_clusters)),
        audit=audit,
    )
    values = {field.name: getattr(report, field.name) for field in dataclasses.fields(report)}
    values["load"] = partial(passage_tables.load_table, run, stored=stored)
    if stored.passages is not None:
        return PassagesReport(**values, **stored.passages)
    if stored.contamination is not None:
        return ContaminationReport(**values, **stored.contamination)
    if stored.parts is not None:
        return PartsReport(**values, **stored.parts)
    return report


def _removed_against(run: Path, stored: StoredReport) -> int:
    """How many documents were removed because of a reference document; recounted if the report does not say."""
    references = [entry["file"] for entry in stored.inputs if entry["ahead"]]
    if stored.removed_against is not None or not references or run.is_file():
        return min(stored.removed_against or 0, stored.removed)
    kept_files = _table_of(run, "removed", stored).column("kept_file")
    return pc.sum(pc.is_in(kept_files, pa.array(references, pa.string()))).as_py() or 0


def _plan_of(run: Path, stored: StoredReport, config: Config) -> Plan:
    chosen = stored.plan
    try:
        plan = plan_for(
            Config.of(
                config, method=chosen.method, bands=chosen.bands or None, rows=chosen.rows or None
            )
        )
    except ConfigError as error:
        raise DataError(
            f"the plan of the run {run} does not match its settings: {error.message}",
            hint="run neardup again",
        ) from error
    return dataclasses.replace(plan, reason=chosen.reason, shared_words=chosen.shared_words)


def find_again(entry: Mapping[str, Any], config: Config) -> InputFile:
    """Find an input file of a run; raise unless it is unchanged, before more of it is read.

    `entry` is the file's entry in the report, with a digest of its first bytes: a forged report
    cannot make a user disclose a file that its author has not seen.
    """
    path = entry["path"]
    if path == STDIN_PATH:
        raise DataError(
            "the run read standard input, which cannot be read again",
            hint="run it on a file, or with audit=True",
        )
    # What could not be read, such as a broken link, has neither a size nor a time.
    was_read = bool(entry["size"] or entry["modified"])
    try:
        file = find_file(path, as_recorded(config, entry), is_given=was_read)
    except DataError as error:
        raise DataError(
            f"the input {path} of the run cannot be read: {error.message}", hint=_SAY_WHERE
        ) from error
    if file.size != entry["size"]:
        how: str | None = f"it had {entry['size']:,} bytes, now {file.size:,}"
    elif file.modified != entry["modified"]:
        how = "it was modified"
    elif not file.reason and head_of(path) != entry.get("head"):
        if "head" in entry:
            how = "its first bytes differ"
        else:
            how = "the report does not record its first bytes"
    else:
        how = None
    if how is not None:
        raise DataError(f"the input {path} has changed since the run: {how}", hint=_SAY_WHERE)
    return msgspec.structs.replace(file, name=entry["file"])


def settings_for(entry: Mapping[str, Any], config: Config) -> Config:
    """Return the settings for reading an input file of a run; files of `against` may have columns of their own."""
    return of_references(config) if entry["ahead"] else config


def read_again(entry: Mapping[str, Any], config: Config) -> Iterator[Records]:
    """Read an input file of a run again; raise unless it has as many rows as the run has read."""
    num_rows = 0
    for records in read_records(find_again(entry, config), settings_for(entry, config)):
        num_rows += records.num_rows
        if num_rows <= entry["rows"]:
            yield records
    if num_rows != entry["rows"]:
        raise DataError(
            f"the input {entry['path']} has {num_rows:,} rows, and the report of the run says {entry['rows']:,}",
            hint="run neardup again on the input files",
        )


def common_groups(
    records: Records, entry: Mapping[str, Any], config: Config
) -> npt.NDArray[np.int64]:
    """Return the groups of `ignore_common` of records of an input file; zeros without it."""
    if config.ignore_common is None:
        return np.zeros(len(records.rows), np.int64)
    is_text = (formats.format_of(entry["path"], config, is_named=True) or ("",))[0] == "text"
    return common_keys(records.ids, records.common, config, None if is_text else entry["file"])


def read_documents_row(file: InputFile, number: int, config: Config) -> pa.RecordBatch:
    """Return one row of a file, counted from 1, as schema.DOCUMENTS."""
    first = 1
    for records in read_records(file, config):
        if first <= number < first + records.num_rows:
            at = (records.rows == number - first).nonzero()[0]
            if at.size:
                name = None if file.format == "text" else file.name
                documents = documents_of(records, records.rows + first, config, name)
                return documents.slice(int(at[0]), 1)
        first += records.num_rows
    raise DataError(
        f"{file.path} has no document in row {number}", hint="the file has changed since the run"
    )
