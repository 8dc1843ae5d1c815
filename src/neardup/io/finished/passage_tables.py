"""The tables of a finished search for repeated passages, for items of benchmarks, or for repeated sections."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from neardup import schema
from neardup.io.columns import whole_rows
from neardup.io.documents.column_choice import choose_columns, read_records
from neardup.io.documents.discover import find_file
from neardup.io.documents.file_encodings import as_recorded
from neardup.io.finished import run_tables
from neardup.io.finished.stored_report import StoredReport, read_report
from neardup.io.formats import registry as formats

_STORED: Final = ("passages", "repeated", "contaminated", "benchmarks", "rejected")
_KEPT: Final = "kept"


def load_table(run: Path, name: str, stored: StoredReport | None = None) -> pa.Table | None:
    """Return a table by name; None if it was not stored.

    `stored` is the report of the run; without it, it is read.
    """
    if name in _STORED:
        return run_tables.read_table(run, name)
    if name == "items":
        return _items(run)
    if name == "removed_parts":
        return load_removed_parts(run, name)
    stored = stored or read_report(run)
    config = stored.settings()
    if name == "removed":
        return _removed(run) if config.cut or config.remove or config.level else None
    is_cut = config.cut or (name == _KEPT and (config.remove or config.level is not None))
    if name in ("cut", _KEPT) and is_cut and not config.dry_run:
        return _cut(run, stored)
    return None


def _removed(run: Path) -> pa.Table:
    path = run_tables.file_of(run, "removed.parquet")
    columns = schema.left_over(pa.string(), has_files=True)
    read = partial(pq.read_table, path, partitioning=None)
    # No document stands for one that is removed because too little of it is left.
    table = run_tables.checked(path, read, pa.schema([columns.field("doc_id")]))
    names = [name for name in columns.names if name not in table.column_names]
    if names:
        raise run_tables.damaged(path, f"it has no column {names[0]!r}")
    if any(table.column(name).null_count for name in ("file", "row")):
        raise run_tables.damaged(path, "it has a null")
    return table.select(columns.names).cast(columns)


def load_removed_parts(run: Path, name: str) -> pa.Table | None:
    """Return the removed sections of a run with `level`; None for another table, or if it has none."""
    path = run_tables.file_of(run, "removed_parts.parquet")
    if name != "removed_parts" or not path.exists():
        return None
    columns = schema.removed_parts(pa.string(), has_files=True)
    read = partial(pq.read_table, path, partitioning=None)
    # With keep="none", no place stays.
    always = [
        field
        for field in columns
        if not field.name.startswith("kept_") and field.name != "similarity"
    ]
    table = run_tables.checked(path, read, pa.schema(always))
    for column in columns.names:
        if column not in table.column_names:
            raise run_tables.damaged(path, f"it has no column {column!r}")
    return table.select(columns.names).cast(columns)


def _items(run: Path) -> pa.Table | None:
    path = run_tables.file_of(run, "items.parquet")
    read = partial(pq.read_table, path, partitioning=None)
    # An item that was not found has no score.
    always = [field for field in schema.BENCH_ITEMS if field.name != "best_score"]
    table = run_tables.checked(path, read, pa.schema(always))
    if "best_score" not in table.column_names:
        raise run_tables.damaged(path, "it has no column 'best_score'")
    return table.select(schema.BENCH_ITEMS.names).cast(schema.BENCH_ITEMS)


def _cut(run: Path, stored: StoredReport) -> pa.Table:
    """Return the rows without passages, with the columns of their files; of formats without columns, `text`."""
    config = stored.settings()
    tables = []
    for entry in stored.inputs:
        if entry["ahead"] or f"{_KEPT}/{entry['file']}" not in (stored.written or ()):
            continue
        path = run_tables.file_of(run, Path(_KEPT, entry["file"]))
        file = find_file(str(path), as_recorded(config, entry))
        form = formats.load(file.format)
        table = form.table(file, config)
        if table is None:
            columns = choose_columns(file, form.column_names(file, config), config)
            texts = [records.texts for records in read_records(file, config, columns)]
            table = pa.table({"text": pa.chunked_array(texts, pa.large_string())})
        tables.append(table)
    bare = pa.table({"text": pa.array([], pa.large_string())})
    return whole_rows.joined(tables or [bare])
