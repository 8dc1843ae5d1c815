"""Parquet files. A span is a range of row groups."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from neardup.config import Config
from neardup.io.columns.arrow_rows import (
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
from neardup.io.columns.column_checks import outer_column
from neardup.io.formats.parquet_sizes import BUFFER_BYTES, row_bytes
from neardup.io.records import (
    BATCH_BYTES,
    BATCH_ROWS,
    MARK_COLUMNS,
    PASSAGE_MARKS,
    Columns,
    InputFile,
    Records,
    Verdicts,
)
from neardup.io.streams import copy_file, open_arrow_output
from neardup.schema import one_array, one_batch

_KIND: Final = "Parquet"
# Approximate maximum bytes of a written row group, because pyarrow buffers it in memory.
_GROUP_BYTES: Final = 64 << 20
_TEXT_TYPES: Final = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
# Columns with more bytes per value than this were not dictionary-encoded; trying to costs a sixth
# of the writing time.
_LONG_VALUE: Final = 32


@contextlib.contextmanager
def _open(file: InputFile) -> Iterator[Any]:
    with opened(file, _KIND) as source:
        with readable(file, _KIND):
            parquet = pq.ParquetFile(source, pre_buffer=False, buffer_size=BUFFER_BYTES)
        with parquet:
            yield parquet


def split(file: InputFile) -> list[tuple[int, int]]:
    """Split a file into spans of row groups of about PART_BYTES, uncompressed."""
    with _open(file) as parquet:
        return _spans(parquet.metadata)


def _spans(metadata: Any) -> list[tuple[int, int]]:
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return join_parts([group.total_byte_size for group in groups])


def column_names(file: InputFile, config: Config) -> list[str] | None:  # noqa: ARG001
    """Return the top-level columns of the file."""
    with _open(file) as parquet:
        return list(parquet.schema_arrow.names)


def read(
    file: InputFile, span: tuple[int, int], columns: Columns, config: Config
) -> Iterator[Records]:
    """Read the documents of some row groups, batch by batch."""
    with _open(file) as parquet, readable(file, _KIND):
        schema = parquet.schema_arrow
        names = [name for name in wanted_names(columns) if outer_column(schema, name) is not None]
        groups = range(*span)
        num_fitting = _batch_rows(row_bytes(file, parquet, groups, names))
        num_written = _batch_rows(row_bytes(file, parquet, groups, None))
        # A multiple of the rows per write, so that batches kept in memory need not be concatenated.
        num_rows = max(1, num_fitting // num_written) * num_written
        for batch in _batches(parquet, groups, names, num_rows):
            stays = _can_stay(batch, schema)
            for piece in decoded_pieces(batch):
                found = batch_records(piece, columns, config)
                yield dataclasses.replace(found, columns=piece) if stays else found


def table(file: InputFile, config: Config, *, without: Collection[str] = ()) -> pa.Table:  # noqa: ARG001
    """Return all rows with all columns except some, which are not read."""
    with _open(file) as parquet, readable(file, _KIND):
        names = [name for name in parquet.schema_arrow.names if name not in without]
        return parquet.read(columns=names if without else None, use_threads=False)


def _batches(
    parquet: Any, groups: Sequence[int], names: list[str] | None, num_rows: int
) -> Iterator[pa.RecordBatch]:
    # One thread, because callers read several spans in parallel.
    yield from parquet.iter_batches(
        num_rows, row_groups=list(groups), columns=names, use_threads=False
    )


def _batch_rows(row_bytes: float) -> int:
    """Return how many rows of this size take about BATCH_BYTES."""
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / row_bytes)))


def _can_stay(batch: pa.RecordBatch, schema: pa.Schema) -> bool:
    """Whether kept rows can be written from these columns: sliced and concatenated anywhere, next to other columns."""
    kinds = batch.schema.types
    is_plain = all(pa.types.is_primitive(kind) or kind in _TEXT_TYPES for kind in kinds)
    is_distinct = len(set(schema.names)) == len(schema)
    # A dotted path may name a column or a field of another one.
    has_path = any("." in name for name in schema.names)
    return is_plain and is_distinct and not has_path


def write(file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:
    """Write the kept rows with the schema, metadata, codecs and approximate row groups of the source."""
    if is_untouched(verdicts, config):
        copy_file(file, target)
        return
    with _open(file) as parquet, open_arrow_output(target) as output:
        with readable(file, _KIND):
            spans = {
                span: row_bytes(file, parquet, range(*span), None)
                for span in _spans(parquet.metadata)
            }
        edits = verdicts.edits
        schema = output_schema(parquet.schema_arrow, mark=config.mark, edits=edits)
        every_row = _all_rows(file, parquet, spans, verdicts)
        rows = output_batches(file, every_row, verdicts, mark=config.mark, in_slices=True)
        num_fitting = int(_GROUP_BYTES / max(spans.values(), default=1.0))
        most_rows = min(_group_rows(parquet.metadata), num_fitting)
        layout = _layout(parquet.metadata, schema, mark=config.mark or edits is not None)
        with pq.ParquetWriter(output, schema, **layout) as writer:
            for table in _row_groups(rows, max(1, most_rows)):
                writer.write_table(table, row_group_size=table.num_rows)


def _all_rows(
    file: InputFile, parquet: Any, spans: Mapping[tuple[int, int], float], verdicts: Verdicts
) -> Iterator[pa.RecordBatch]:
    """Iterate over all rows; batches end at the same rows whether they are still in memory or read again."""
    with readable(file, _KIND):
        for span, size in spans.items():
            cached = verdicts.cached.get(span)
            if cached is None:
                yield from _even(parquet, range(*span), None, _batch_rows(size))
            else:
                yield from _completed(cached, parquet, span, _batch_rows(size))


def _even(
    parquet: Any, groups: Sequence[int], names: list[str] | None, num_rows: int
) -> Iterator[pa.RecordBatch]:
    """Read batches of `num_rows` rows, the last one shorter; pyarrow may end a batch at the end of a row group."""
    waiting: list[pa.RecordBatch] = []
    missing = num_rows
    for batch in _batches(parquet, groups, names, num_rows):
        rest = batch
        while rest.num_rows >= missing:
            yield one_batch([*waiting, rest.slice(0, missing)], batch.schema)
            rest = rest.slice(missing)
            waiting = []
            missing = num_rows
        if rest.num_rows:
            waiting.append(rest)
            missing -= rest.num_rows
    if waiting:
        yield one_batch(waiting, waiting[0].schema)


def _completed(
    cached: Sequence[pa.RecordBatch], parquet: Any, span: tuple[int, int], num_rows: int
) -> Iterator[pa.RecordBatch]:
    """Split the columns in memory into batches, and read the other columns of the same rows."""
    schema = parquet.schema_arrow
    table = pa.Table.from_batches(cached)
    names = [name for name in schema.names if name not in table.column_names]
    others = _even(parquet, range(*span), names, num_rows) if names else None
    for first in range(0, table.num_rows, num_rows):
        # Usually no copy: the batches that were read have the same length.
        piece = table.slice(first, num_rows)
        columns = {name: one_array(piece.column(name)) for name in piece.column_names}
        if others is not None:
            other = next(others)
            columns |= dict(zip(names, other.columns, strict=True))
        yield pa.record_batch([columns[name] for name in schema.names], schema=schema)


def _group_rows(metadata: Any) -> int:
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return max((group.num_rows for group in groups), default=1)


def _row_groups(batches: Iterator[pa.RecordBatch], most_rows: int) -> Iterator[pa.Table]:
    """Collect batches into tables of `most_rows`; different batch boundaries would give different bytes."""
    waiting: list[pa.RecordBatch] = []
    num_rows = 0
    for batch in batches:
        waiting.append(batch)
        num_rows += batch.num_rows
        while num_rows >= most_rows:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, most_rows)
            waiting = table.slice(most_rows).to_batches()
            num_rows -= most_rows
    if num_rows:
        yield pa.Table.from_batches(waiting)


def _layout(metadata: Any, schema: pa.Schema, *, mark: bool) -> dict[str, Any]:
    """Return writer options that store columns like the first row group."""
    if not metadata.num_row_groups:
        return {}
    group = metadata.row_group(0)
    chunks = [group.column(index) for index in range(group.num_columns)]
    if mark:
        added = (*MARK_COLUMNS.names, *PASSAGE_MARKS.names)
        chunks = [chunk for chunk in chunks if chunk.path_in_schema.split(".")[0] not in added]
    paths = _leaf_paths(schema)
    # Writers name the levels of lists differently, so columns are matched by position; marks are
    # stored like the first.
    num_marks = len(paths) - len(chunks)
    codecs: dict[str, str] = {}
    with_dictionary: list[str] = []
    with_statistics: list[str] = []
    for path, chunk in zip(paths, chunks + chunks[:1] * num_marks, strict=True):
        codecs[path] = chunk.compression.replace("UNCOMPRESSED", "NONE")
        if _has_useful_dictionary(chunk):
            with_dictionary.append(path)
        if chunk.is_stats_set:
            with_statistics.append(path)
    return {
        "compression": codecs,
        "use_dictionary": with_dictionary,
        "write_statistics": with_statistics,
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
    return [stored.column(index).path for index in range(len(stored))]
