"""The files of the tables of a finished run: found in its folder only, and read if they have the right columns."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from neardup import schema
from neardup.errors import DataError
from neardup.io.storage.table_writer import known_ending

# What Python and Arrow raise for JSON lines that are not rows of the table.
_MALFORMED: Final = (ValueError, TypeError, AttributeError, OverflowError, RecursionError)
_REJECTED_FILE: Final = "rejected.jsonl"
_COMMON_FILE: Final = "common.parquet"


def file_of(run: Path, name: str | Path) -> Path:
    """Return a file that a run has written, by name; raise if it is missing or outside the folder of the run."""
    path = run / name
    folder = os.path.realpath(run)
    if os.path.commonpath([folder, os.path.realpath(path)]) != folder:
        raise DataError(
            f"the run {run} names {name}, which is outside its folder",
            hint="name the file itself if you trust it, or run neardup again on the input files",
        )
    return _regular(path)


def _regular(path: Path) -> Path:
    """Return the path of a regular file; a pipe or a device could be read forever."""
    if not os.path.isfile(path):  # noqa: PTH113 - False for a path that the system refuses
        raise missing(path)
    return path


def missing(path: Path) -> DataError:
    """Return the error for a file of a run that is not there."""
    return DataError(
        f"{path}, which the run wrote, is missing", hint="restore it, or repeat the run"
    )


def damaged(path: Path, reason: str) -> DataError:
    """Return the error for a file that no run has written like this."""
    return DataError(
        f"{path} is damaged or was not written by neardup: {reason}",
        hint="run neardup again on the input files",
    )


def path_of(run: Path, name: str) -> Path:
    """Return the path of a table of a run by name."""
    return run / (_REJECTED_FILE if name == "rejected" else f"{name}.parquet")


def path_beside(path: Path, name: str) -> Path:
    """Return the path of a table of a run of pairs, whose output is `path`, by name."""
    if name == "rejected":
        return path.with_name(f"{path.name}.{_REJECTED_FILE}")
    if name == "common":
        return path.with_name(f"{path.name}.{_COMMON_FILE}")
    return path


def read_table(run: Path, name: str) -> pa.Table | None:
    """Read a table of a run by name; None if it was not stored. Its values are not checked."""
    if name == "rejected":
        return _read_rejected(file_of(run, _REJECTED_FILE))
    path = path_of(run, name)
    if not os.path.lexists(path):
        return None
    if not path.is_dir():
        return _read_part(file_of(run, path.name), name)
    return _read_parts(run, path, name)


def _read_parts(run: Path, path: Path, name: str) -> pa.Table:
    """Read a table that Spark has written as a folder of parts."""
    try:
        parts = sorted(os.listdir(path))  # noqa: PTH208
    except OSError as error:
        raise DataError(f"the folder {path} cannot be listed: {error.strerror}") from error
    if not parts:
        raise damaged(path, "it is an empty folder")
    tables = [_read_part(file_of(run, Path(path.name, part)), name) for part in parts]
    try:
        return pa.concat_tables(tables)
    except pa.ArrowException as error:  # the parts have different columns
        raise damaged(path, str(error)) from error


def _read_part(path: Path, name: str) -> pa.Table:
    return checked(path, partial(pq.read_table, path, partitioning=None), _COLUMNS[name])


def read_pairs(path: Path, name: str) -> pa.Table | None:
    """Read `pairs`, `rejected` or `common` of a run of pairs; None for other names. Their values are not checked."""
    if name == "rejected":
        return _read_rejected(_regular(path_beside(path, name)))
    if name == "common":
        beside = path_beside(path, name)
        return _read_part(_regular(beside), name) if os.path.lexists(beside) else None
    if name != "pairs":
        return None
    return checked(
        path, partial(_READERS[known_ending(path)], _regular(path)), schema.PAIRS_FROM_FILES
    )


def _read_rejected(path: Path) -> pa.Table:
    return checked(path, partial(_read_lines, path, schema.REJECTED), schema.REJECTED)


def checked(path: Path, read: Callable[[], pa.Table], columns: pa.Schema) -> pa.Table:
    """Read a table; raise unless it has at least these columns, once, without nulls, and valid text."""
    try:
        table = read()
        table.validate(full=True)
    except FileNotFoundError as error:
        raise missing(path) from error
    except (OSError, pa.ArrowException, *_MALFORMED) as error:
        raise damaged(path, str(error)) from error
    optional = [field for field in _OPTIONAL if field.name in table.column_names]
    for field in (*columns, *optional):
        _check_column(table, field, path)
    return table


def _check_column(table: pa.Table, field: pa.Field, path: Path) -> None:
    """Raise unless a table has a column once, of its type, without nulls."""
    found = table.schema.get_all_field_indices(field.name)
    if not found:
        raise damaged(path, f"it has no column {field.name!r}")
    if len(found) > 1:
        raise damaged(path, f"it has the column {field.name!r} {len(found)} times")
    column = table.column(found[0])
    if column.type != field.type:
        raise damaged(path, f"its column {field.name!r} holds {column.type}, not {field.type}")
    if column.null_count:
        raise damaged(path, f"its column {field.name!r} has a null")


def _read_csv(path: Path) -> pa.Table:
    passages = schema.PAIR_PASSAGES
    columns = schema.PAIRS_FROM_FILES.append(pa.field(passages.name, pa.string()))
    table = pa.csv.read_csv(
        path,
        parse_options=pa.csv.ParseOptions(newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(column_types=columns),
    )
    at = table.schema.get_field_index(passages.name)
    if at < 0:
        return table
    # A list in CSV is JSON.
    lists = [json.loads(text) for text in table.column(at).to_pylist()]
    return table.set_column(at, passages, pa.array(lists, passages.type))


def _read_lines(path: Path, columns: pa.Schema) -> pa.Table:
    lines = path.read_bytes().split(b"\n")
    return pa.Table.from_pylist([json.loads(line) for line in lines if line], schema=columns)


def _read_pair_lines(path: Path) -> pa.Table:
    lines = path.read_bytes().split(b"\n")
    rows = [json.loads(line) for line in lines if line]
    names = {name for row in rows for name in row}
    optional = [field for field in _OPTIONAL_OF_PAIRS if field.name in names]
    return pa.Table.from_pylist(rows, schema=pa.schema([*schema.PAIRS_FROM_FILES, *optional]))


# Runs of earlier versions did not record sizes.
_SIZE: Final = "cluster_size"
_COLUMNS: Final = {
    "removed": schema.REMOVED_FROM_FILES,
    "clusters": pa.schema([field for field in schema.clusters(pa.string()) if field.name != _SIZE]),
    "pairs": schema.PAIRS_FROM_FILES,
    "order": schema.KEEP_ORDER,
    "passages": schema.passages(pa.string(), has_files=True),
    "repeated": schema.REPEATED,
    "contaminated": schema.contaminated(pa.string(), has_files=True),
    "benchmarks": schema.BENCHMARKS,
    "common": schema.COMMON,
}


def _added(columns: pa.Schema, usual: pa.Schema) -> list[pa.Field]:
    return [field for field in columns if field.name not in usual.names]


_OPTIONAL_OF_PAIRS: Final = (
    *_added(schema.CONTAINMENT_PAIRS, schema.ROW_PAIRS),
    schema.PAIR_PASSAGES,
)
# Columns that only some runs have.
_OPTIONAL: Final = (
    schema.clusters(pa.string()).field(_SIZE),
    *_added(schema.CONTAINMENT_SELECTION, schema.SELECTION),
    *_OPTIONAL_OF_PAIRS,
)
_READERS: Final[dict[str, Callable[[Path], pa.Table]]] = {
    ".parquet": partial(pq.read_table, partitioning=None),
    ".csv": _read_csv,
    ".jsonl": _read_pair_lines,
}
