"""Arrow IPC files, streams and Feather. A span counts record batches; a stream is one span."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Any, Final

import pyarrow as pa

from neardup.config import Config
from neardup.errors import DataError
from neardup.io.columns.arrow_rows import (
    batch_records,
    decoded_pieces,
    is_untouched,
    join_parts,
    opened,
    output_batches,
    output_schema,
    pieces,
    readable,
    wanted_names,
)
from neardup.io.columns.column_checks import outer_column
from neardup.io.records import PART_BYTES, Columns, InputFile, Records, Verdicts
from neardup.io.streams import copy_file, open_output

_KIND: Final = "Arrow"
_FILE_MAGIC: Final = b"ARROW1"
_FEATHER_1_MAGIC: Final = b"FEA1"
_WHOLE_STREAM: Final = (0, 1)
# pyarrow (26.0) does not expose the codec of a file, so kept rows are not written with that of the
# source but with the default of Feather (docs/decisions/0039).
_COMPRESSION: Final = "lz4"


@contextlib.contextmanager
def _open(file: InputFile, names: list[str] | None = None) -> Iterator[tuple[Any, bool]]:
    """Open a file for some of its columns or all; also return whether its batches can be read in any order."""
    is_mapped = _is_better_mapped(file)
    with opened(file, _KIND, memory_map=is_mapped) as source:
        with readable(file, _KIND):
            is_file = _is_file(file, source)
            open_reader = pa.ipc.open_file if is_file else pa.ipc.open_stream
            reader = open_reader(source)
            # Selecting columns would read a mapped file into memory.
            if names is not None and not is_mapped:
                source.seek(0)
                included = _indexes(reader.schema, names)
                options = pa.ipc.IpcReadOptions(included_fields=included, use_threads=False)
                reader = open_reader(source, options=options)
        yield reader, is_file


def _indexes(columns: pa.Schema, names: list[str]) -> list[int]:
    outer = {outer_column(columns, name) for name in names}
    return [index for index, name in enumerate(columns.names) if name in outer]


def _is_better_mapped(file: InputFile) -> bool:
    """Whether batches are too large for memory. Small ones are not mapped: mapped pages count as memory, too."""
    with opened(file, _KIND) as source, readable(file, _KIND):
        if file.size <= PART_BYTES or not _is_file(file, source):
            return False
        return bool(file.size > PART_BYTES * pa.ipc.open_file(source).num_record_batches)


def _is_file(file: InputFile, source: Any) -> bool:
    magic = source.read(len(_FILE_MAGIC))
    source.seek(0)
    if magic.startswith(_FEATHER_1_MAGIC):
        raise DataError(f"{file.path} is a Feather version 1 file", hint="convert it to version 2")
    return bool(magic == _FILE_MAGIC)


def split(file: InputFile) -> list[tuple[int, int]]:
    """Split a file into spans of record batches of about PART_BYTES."""
    with _open(file) as (reader, is_file):
        if not is_file:
            return [_WHOLE_STREAM]
        num_batches = reader.num_record_batches
        return join_parts([file.size / max(num_batches, 1)] * num_batches)


def column_names(file: InputFile, config: Config) -> list[str] | None:  # noqa: ARG001
    """Return the top-level columns of the file."""
    with _open(file) as (reader, _):
        return list(reader.schema.names)


def read(
    file: InputFile, span: tuple[int, int], columns: Columns, config: Config
) -> Iterator[Records]:
    """Read the documents of some record batches, split into pieces of about BATCH_BYTES."""
    names = wanted_names(columns)
    with _open(file, names) as (reader, is_file), readable(file, _KIND):
        batches = map(reader.get_batch, range(*span)) if is_file else reader
        for batch in batches:
            wanted = batch.select(_indexes(batch.schema, names))
            for piece in decoded_pieces(wanted):
                yield batch_records(piece, columns, config)


def table(file: InputFile, config: Config, *, without: Collection[str] = ()) -> pa.Table:  # noqa: ARG001
    """Return all rows with all columns but some."""
    with _open(file) as (reader, _), readable(file, _KIND):
        rows = reader.read_all()
    chosen = [index for index, name in enumerate(rows.column_names) if name not in without]
    return rows.select(chosen)


def write(file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:
    """Write the kept rows in the same format, with the schema of the source."""
    if is_untouched(verdicts, config):
        copy_file(file, target)
        return
    with _open(file) as (reader, is_file), open_output(target, None) as output:
        options = pa.ipc.IpcWriteOptions(
            compression=_COMPRESSION, emit_dictionary_deltas=True, use_threads=False
        )
        new_writer = pa.ipc.new_file if is_file else pa.ipc.new_stream
        schema = output_schema(reader.schema, mark=config.mark, edits=verdicts.edits)
        every_row = _all_rows(file, reader, is_file=is_file)
        with new_writer(output, schema, options=options) as writer:
            for batch in output_batches(file, every_row, verdicts, mark=config.mark):
                writer.write_batch(batch)


def _all_rows(file: InputFile, reader: Any, *, is_file: bool) -> Iterator[pa.RecordBatch]:
    with readable(file, _KIND):
        if is_file:
            batches = map(reader.get_batch, range(reader.num_record_batches))
        else:
            batches = reader
        for batch in batches:
            yield from pieces(batch, PART_BYTES)
