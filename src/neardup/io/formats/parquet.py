"""Parquet files. A span is a range of row groups."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup.config import Config
from neardup.io.formats.base import (
    BATCH_BYTES,
    BATCH_ROWS,
    MARK_COLUMNS,
    PART_BYTES,
    Columns,
    InputFile,
    Records,
    Verdicts,
)
from neardup.io.streams import copy_file, open_output
from neardup.io.values.arrow_rows import (
    batch_records,
    decoded_pieces,
    is_untouched,
    join_parts,
    opened,
    output_batches,
    output_schema,
    readable,
    wanted_names,
)
from neardup.io.values.columns import outer_column

_KIND: Final = "Parquet"
# Without a buffer, a whole column chunk is read ahead: 274 instead of 46 MB for a row group of 1 GB.
_BUFFER_BYTES: Final = 1 << 20
_PROBE_ROWS: Final = 16
# The most bytes of a batch if all rows have the longest value of a dictionary.
_MAX_BATCH_BYTES: Final = 4 * BATCH_BYTES
# Columns with more bytes per value than this were not dictionary-encoded; trying to costs a sixth of the writing time.
_LONG_VALUE: Final = 32


@contextlib.contextmanager
def _open(file: InputFile) -> Iterator[Any]:
    with opened(file, _KIND) as source:
        with readable(file, _KIND):
            parquet = pq.ParquetFile(source, pre_buffer=False, buffer_size=_BUFFER_BYTES)
        with parquet:
            yield parquet


def split(file: InputFile) -> list[tuple[int, int]]:
    """Split a file into spans of row groups of about PART_BYTES, uncompressed."""
    with _open(file) as parquet:
        metadata = parquet.metadata
        return join_parts([metadata.row_group(group).total_byte_size for group in range(metadata.num_row_groups)])


def column_names(file: InputFile, config: Config) -> list[str] | None:  # noqa: ARG001
    """Return the top-level columns of the file."""
    with _open(file) as parquet:
        return list(parquet.schema_arrow.names)


def read(file: InputFile, span: tuple[int, int], columns: Columns, config: Config) -> Iterator[Records]:
    """Read the documents of some row groups, batch by batch."""
    with _open(file) as parquet, readable(file, _KIND):
        names = [name for name in wanted_names(columns) if outer_column(parquet.schema_arrow, name) is not None]
        for batch in _batches(file, parquet, range(*span), names):
            for piece in decoded_pieces(batch):
                yield batch_records(piece, columns, config)


def table(file: InputFile, config: Config) -> pa.Table:  # noqa: ARG001
    """Return all rows with all their columns."""
    with _open(file) as parquet, readable(file, _KIND):
        return parquet.read(use_threads=False)


def _batches(file: InputFile, parquet: Any, groups: Sequence[int], names: list[str] | None) -> Iterator[pa.RecordBatch]:
    # One thread, because callers read several spans in parallel.
    yield from parquet.iter_batches(
        batch_size=_batch_rows(file, parquet, groups, names), row_groups=list(groups), columns=names, use_threads=False
    )


def _batch_rows(file: InputFile, parquet: Any, groups: Sequence[int], names: list[str] | None) -> int:
    """Estimate how many rows hold BATCH_BYTES, by the row group with the longest rows and by dictionaries."""
    metadata = parquet.metadata
    leaves = [parquet.schema.column(place) for place in range(metadata.num_columns)]
    places = [
        place
        for place, leaf in enumerate(leaves)
        if names is None or any(leaf.path == name or leaf.path.startswith(f"{name}.") for name in names)
    ]
    row_bytes = 1.0
    for group in map(metadata.row_group, groups):
        group_bytes = sum(group.column(place).total_uncompressed_size for place in places)
        row_bytes = max(row_bytes, group_bytes / max(group.num_rows, 1))
    # A dictionary stores repeated texts once, so the metadata may be far below the decoded size: probe the first rows
    # of lists, and the dictionaries of columns.
    lists = [leaves[place].path for place in places if leaves[place].max_repetition_level]
    if lists and groups:
        first_rows = parquet.iter_batches(_PROBE_ROWS, row_groups=[groups[0]], columns=lists, use_threads=False)
        probe = next(first_rows, None)
        if probe is not None and probe.num_rows:
            row_bytes = max(row_bytes, probe.nbytes / probe.num_rows)
    flat = [leaves[place].path for place in places if leaves[place].path not in lists]
    longest = max((_longest_values(file, metadata, group, flat) for group in groups), default=0)
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / row_bytes), _MAX_BATCH_BYTES // max(longest, 1)))


def _longest_values(file: InputFile, metadata: Any, number: int, paths: Sequence[str]) -> int:
    """Add up the longest dictionary value of each column of a row group: the most bytes of a row."""
    group = metadata.row_group(number)
    chunks = [group.column(place) for place in range(group.num_columns)]
    stored = [
        chunk.path_in_schema
        for chunk in chunks
        if chunk.path_in_schema in paths and chunk.has_dictionary_page and chunk.physical_type == "BYTE_ARRAY"
    ]
    longest = 0
    with opened(file, _KIND) as source:
        parquet = pq.ParquetFile(
            source, metadata=metadata, read_dictionary=stored, pre_buffer=False, buffer_size=_BUFFER_BYTES
        )
        # Reading one row loads the whole dictionary.
        for row in parquet.iter_batches(1, row_groups=[number], columns=stored, use_threads=False) if stored else ():
            for column in row.columns:
                if pa.types.is_dictionary(column.type):
                    longest += pc.max(pc.binary_length(column.dictionary)).as_py() or 0
            break
    return longest


def write(file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:
    """Write the kept rows with the schema, metadata, codecs and approximate row groups of the source."""
    if is_untouched(verdicts, config):
        copy_file(file, target)
        return
    with _open(file) as parquet, open_output(target, None) as output:
        schema = output_schema(parquet.schema_arrow, mark=config.mark)
        rows = output_batches(file, _all_rows(file, parquet), verdicts, mark=config.mark)
        with pq.ParquetWriter(output, schema, **_layout(parquet.metadata, schema, mark=config.mark)) as writer:
            for table in _row_groups(rows, _group_rows(parquet.metadata)):
                writer.write_table(table, row_group_size=table.num_rows)


def _all_rows(file: InputFile, parquet: Any) -> Iterator[pa.RecordBatch]:
    with readable(file, _KIND):
        yield from _batches(file, parquet, range(parquet.metadata.num_row_groups), None)


def _group_rows(metadata: Any) -> int:
    return max((metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)), default=1)


def _row_groups(batches: Iterator[pa.RecordBatch], max_rows: int) -> Iterator[pa.Table]:
    """Collect batches into tables of `max_rows` or PART_BYTES, because pyarrow writes a row group from memory."""
    waiting: list[pa.RecordBatch] = []
    num_rows = num_bytes = 0
    for batch in batches:
        waiting.append(batch)
        num_rows, num_bytes = num_rows + batch.num_rows, num_bytes + batch.nbytes
        while num_rows >= max_rows or num_bytes >= PART_BYTES:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, max_rows)
            waiting = table.slice(max_rows).to_batches()
            num_rows, num_bytes = max(0, num_rows - max_rows), sum(rest.nbytes for rest in waiting)
    if waiting:
        yield pa.Table.from_batches(waiting)


def _layout(metadata: Any, schema: pa.Schema, *, mark: bool) -> dict[str, Any]:
    """Return writer options that store columns like the first row group."""
    if not metadata.num_row_groups:
        return {}
    group = metadata.row_group(0)
    chunks = [group.column(place) for place in range(group.num_columns)]
    if mark:
        chunks = [chunk for chunk in chunks if chunk.path_in_schema not in MARK_COLUMNS.names]
    paths = _leaf_paths(schema)
    # Writers name the levels of lists differently, so columns are matched by position; marks are stored like the first.
    stored = dict(zip(paths, chunks + chunks[:1] * (len(paths) - len(chunks)), strict=True))
    return {
        "compression": {path: chunk.compression.replace("UNCOMPRESSED", "NONE") for path, chunk in stored.items()},
        "use_dictionary": [path for path, chunk in stored.items() if _has_useful_dictionary(chunk)],
        "write_statistics": [path for path, chunk in stored.items() if chunk.is_stats_set],
        "write_page_index": any(chunk.has_column_index for chunk in chunks),
        "use_deprecated_int96_timestamps": any(chunk.physical_type == "INT96" for chunk in chunks),
        "sorting_columns": None if mark else group.sorting_columns or None,
    }


def _has_useful_dictionary(chunk: Any) -> bool:
    """Whether values were dictionary-encoded; long texts overflow the dictionary and are then stored plain."""
    is_plain = chunk.total_uncompressed_size > _LONG_VALUE * max(1, chunk.num_values)
    return bool(chunk.has_dictionary_page) and not is_plain


def _leaf_paths(schema: pa.Schema) -> list[str]:
    """Return the paths under which pyarrow stores the columns of a schema."""
    buffer = pa.BufferOutputStream()
    pq.ParquetWriter(buffer, schema).close()
    stored = pq.ParquetFile(pa.BufferReader(buffer.getvalue())).schema
    return [stored.column(place).path for place in range(len(stored))]
