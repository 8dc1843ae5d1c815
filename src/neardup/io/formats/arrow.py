"""Arrow IPC files, streams and Feather. A span counts record batches; a stream is one span."""

from __future__ import annotations

import contextlib
import struct
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
# In the file format, the messages of a stream follow the magic, which is padded to 8 bytes.
_MESSAGES_START: Final = 8
_WHOLE_STREAM: Final = (0, 1)
# Field numbers in Arrow's Message.fbs, and the codecs of BodyCompression.
_MESSAGE_HEADER: Final = 2
_BATCH_COMPRESSION: Final = 3
_CODECS: Final = ("lz4", "zstd")


@contextlib.contextmanager
def _open(file: InputFile, names: list[str] | None = None) -> Iterator[tuple[Any, bool]]:
    """Open a file for some of its columns or all; also return whether its batches can be read in any order."""
    is_mapped = _is_better_mapped(file)
    with opened(file, _KIND, memory_map=is_mapped) as source:
        with readable(file, _KIND):
            is_file = _is_file(file, source)
            open_reader = pa.ipc.open_file if is_file else pa.ipc.open_stream
            reader = open_reader(source)
            if (
                names is not None and not is_mapped
            ):  # selecting columns would read a mapped file into memory
                source.seek(0)
                options = pa.ipc.IpcReadOptions(
                    included_fields=_places(reader.schema, names), use_threads=False
                )
                reader = open_reader(source, options=options)
        yield reader, is_file


def _places(columns: pa.Schema, names: list[str]) -> list[int]:
    outer = {outer_column(columns, name) for name in names}
    return [index for index, name in enumerate(columns.names) if name in outer]


def _is_better_mapped(file: InputFile) -> bool:
    """Whether batches are too large for memory. Small ones are not mapped: mapped pages count as memory, too."""
    with opened(file, _KIND) as source, readable(file, _KIND):
        if file.size <= PART_BYTES or not _is_file(file, source):
            return False
        has_large_batches = file.size > PART_BYTES * pa.ipc.open_file(source).num_record_batches
    return has_large_batches and _compression(file) is None


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
        for batch in map(reader.get_batch, range(*span)) if is_file else reader:
            for piece in decoded_pieces(batch.select(_places(batch.schema, names))):
                yield batch_records(piece, columns, config)


def table(file: InputFile, config: Config, *, without: Collection[str] = ()) -> pa.Table:  # noqa: ARG001
    """Return all rows with all columns but some."""
    with _open(file) as (reader, _), readable(file, _KIND):
        rows = reader.read_all()
    return rows.select(
        [index for index, name in enumerate(rows.column_names) if name not in without]
    )


def write(file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:
    """Write the kept rows in the same format, with the schema and the compression of the source."""
    if is_untouched(verdicts, config):
        copy_file(file, target)
        return
    compression = _compression(file)
    with _open(file) as (reader, is_file), open_output(target, None) as output:
        options = pa.ipc.IpcWriteOptions(
            compression=compression, emit_dictionary_deltas=True, use_threads=False
        )
        new_writer = pa.ipc.new_file if is_file else pa.ipc.new_stream
        rows = output_batches(
            file, _all_rows(file, reader, is_file=is_file), verdicts, mark=config.mark
        )
        with new_writer(
            output,
            output_schema(reader.schema, mark=config.mark, edits=verdicts.edits),
            options=options,
        ) as writer:
            for batch in rows:
                writer.write_batch(batch)


def _all_rows(file: InputFile, reader: Any, *, is_file: bool) -> Iterator[pa.RecordBatch]:
    with readable(file, _KIND):
        for batch in map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader:
            yield from pieces(batch, PART_BYTES)


def _compression(file: InputFile) -> str | None:
    """Return the codec of the first record batch.

    pyarrow (26.0) decompresses transparently and does not expose the codec: neither readers,
    `ReadStats` and `IpcReadOptions` nor `Message` have it. The metadata of a message is the only
    source, so the flatbuffer is parsed.
    """
    with opened(file, _KIND, memory_map=True) as source, readable(file, _KIND):
        if _is_file(file, source):
            source.seek(_MESSAGES_START)
        messages = pa.ipc.MessageReader.open_stream(source)
        with contextlib.suppress(StopIteration):
            while (message := messages.read_next_message()) is not None:
                if message.type == "record batch":
                    return _codec(message.metadata.to_pybytes())
    return None


def _codec(message: bytes) -> str | None:
    """Read the codec from the flatbuffer of a record batch."""
    root = struct.unpack_from("<I", message)[0]
    header = _child(message, root, _MESSAGE_HEADER)
    compression = header and _child(message, header, _BATCH_COMPRESSION)
    if not compression:
        return None
    codec = _field(message, compression, 0)
    return _CODECS[message[codec] if codec else 0]


def _child(message: bytes, table: int, index: int) -> int:
    """Return the offset of the table that a field refers to, 0 if it is absent."""
    field = _field(message, table, index)
    return field and field + int(struct.unpack_from("<I", message, field)[0])


def _field(message: bytes, table: int, index: int) -> int:
    """Return the offset of a field of a flatbuffer table, 0 if it is absent."""
    layout = table - struct.unpack_from("<i", message, table)[0]
    entry = 4 + 2 * index
    if entry >= struct.unpack_from("<H", message, layout)[0]:
        return 0
    offset = struct.unpack_from("<H", message, layout + entry)[0]
    return offset and table + int(offset)
