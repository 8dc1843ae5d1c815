"""How many bytes the rows of a Parquet file take once they are decoded, from metadata, page headers and dictionaries.

A dictionary stores repeated values once, so decoded rows may take far more than the file says. Page headers say how
many values are dictionary-encoded; pyarrow (26.0) does not expose them, so they are parsed here. If these values could
take much memory, they are read once as references to the dictionary, and what they refer to is added up. Files may be
hostile: whatever cannot be understood here is left to pyarrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup.io.formats.base import BATCH_BYTES, BATCH_ROWS, InputFile
from neardup.io.streams import is_remote
from neardup.io.values.arrow_rows import opened

# Without a buffer, a whole column chunk is read ahead: 274 instead of 46 MB for a row group of 1 GB.
BUFFER_BYTES: Final = 1 << 20
_PROBE_ROWS: Final = 16
# A batch may take four times BATCH_BYTES if all rows have the longest value of a dictionary.
_LONGEST_SHARE: Final = 4
# Most page headers are shorter; one with statistics may hold two values. Longer ones than the second are not read.
_HEADER_BYTES, _MAX_HEADER_BYTES = 256, 1 << 20
# How many answers of `_longest_repeated` are remembered: a file is asked when it is read and when it is written.
_MOST_KNOWN: Final = 1 << 14
_known: dict[tuple[InputFile, int, str], int] = {}
# From parquet.thrift: fields of PageHeader, of the headers in it, page types and encodings.
_PAGE_TYPE, _UNCOMPRESSED_SIZE, _COMPRESSED_SIZE, _DATA_PAGE, _DICTIONARY_PAGE, _DATA_PAGE_V2 = 1, 2, 3, 5, 7, 8
_NUM_VALUES, _ENCODING, _ENCODING_V2 = 1, 2, 4
_IS_DICTIONARY_PAGE: Final = 2
_DICTIONARY_ENCODINGS: Final = (2, 8)
# Types of the compact protocol.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12


def row_bytes(file: InputFile, parquet: Any, groups: Sequence[int], names: Sequence[str] | None) -> float:
    """Estimate the bytes of a decoded row, at least 1, by the row group with the longest rows and by dictionaries."""
    metadata = parquet.metadata
    leaves = [parquet.schema.column(place) for place in range(metadata.num_columns)]
    places = [
        place
        for place, leaf in enumerate(leaves)
        if names is None or any(leaf.path == name or leaf.path.startswith(f"{name}.") for name in names)
    ]
    lists = [leaves[place].path for place in places if leaves[place].max_repetition_level]
    largest = 1.0
    # The first rows of lists are probed, because the values of a list may be repeated as well.
    if lists and groups:
        first_rows = parquet.iter_batches(_PROBE_ROWS, row_groups=[groups[0]], columns=lists, use_threads=False)
        probe = next(first_rows, None)
        if probe is not None and probe.num_rows:
            largest = probe.nbytes / probe.num_rows
    with opened(file, "Parquet") as source:
        for number in groups:
            group = metadata.row_group(number)
            chunks = [chunk for chunk in map(group.column, places) if chunk.path_in_schema not in lists]
            num_bytes = sum(group.column(place).total_uncompressed_size for place in places)
            longest = 0
            for chunk in filter(_has_long_dictionary, chunks):
                found = None if is_remote(file.path) else find_dictionary(source, chunk)
                if found is None or found.is_risky:
                    longest += _longest_known(file, parquet, number, chunk.path_in_schema, found)
            largest = max(largest, num_bytes / max(group.num_rows, 1), longest / _LONGEST_SHARE)
    return largest


def _has_long_dictionary(chunk: Any) -> bool:
    return bool(chunk.has_dictionary_page) and chunk.physical_type == "BYTE_ARRAY"


class Dictionary(NamedTuple):
    """The dictionary of a column chunk, according to page headers.

    num_encoded: the values of the chunk that refer to it; num_bytes: its size;
    comes_first: whether no other value stands before those that refer to it.
    """

    num_encoded: int
    num_bytes: int
    comes_first: bool

    @property
    def is_risky(self) -> bool:
        """Whether a batch could be too large if one value took the whole dictionary and all rows referred to it."""
        return self.num_encoded * self.num_bytes > _LONGEST_SHARE * BATCH_BYTES


def find_dictionary(source: Any, chunk: Any) -> Dictionary | None:
    """Return the dictionary of a column chunk; None if its page headers cannot be read.

    Args:
        source: the file, for random access.
        chunk: the metadata of a column chunk with a dictionary.
    """
    offset = chunk.dictionary_page_offset
    stop = offset + chunk.total_compressed_size
    num_encoded = num_plain = num_bytes = 0
    comes_first = True
    try:
        while offset < stop:
            header, size = _read_header(source, offset, stop)
            if min(header[_COMPRESSED_SIZE], header[_UNCOMPRESSED_SIZE]) < 0:
                return None
            offset += size + header[_COMPRESSED_SIZE]
            if header[_PAGE_TYPE] == _IS_DICTIONARY_PAGE:
                num_bytes = max(num_bytes, header[_UNCOMPRESSED_SIZE])
            for place, encoding in ((_DATA_PAGE, _ENCODING), (_DATA_PAGE_V2, _ENCODING_V2)):
                if place not in header:
                    continue
                if header[place][encoding] in _DICTIONARY_ENCODINGS:
                    num_encoded += header[place][_NUM_VALUES]
                    comes_first = comes_first and not num_plain
                else:
                    num_plain += 1
    # Encrypted, damaged, hostile, or written by a later version.
    except (KeyError, IndexError, TypeError, ValueError, OSError, RecursionError):
        return None
    return Dictionary(num_encoded, num_bytes, comes_first)


def _read_header(source: Any, offset: int, stop: int) -> tuple[dict[int, Any], int]:
    """Return a page header, and its length."""
    num_bytes = _HEADER_BYTES
    while True:
        data = source.read_at(min(num_bytes, stop - offset), offset)
        try:
            return _Compact(data).struct()
        except IndexError:
            if num_bytes >= min(stop - offset, _MAX_HEADER_BYTES):
                raise
            num_bytes *= 16


class _Compact:
    """Reads structs of the Thrift compact protocol; raises IndexError if the bytes are truncated."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def struct(self) -> tuple[dict[int, Any], int]:
        """Return the numbers and nested structs of a struct by field, and its end."""
        fields: dict[int, Any] = {}
        field = 0
        while byte := self._byte():
            field = field + (byte >> 4) if byte >> 4 else self._number()
            fields[field] = self._value(byte & 0xF)
        return fields, self._at

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _size(self) -> int:
        size = shift = 0
        while (byte := self._byte()) & 0x80:
            size |= (byte & 0x7F) << shift
            shift += 7
        return size | byte << shift

    def _number(self) -> int:
        size = self._size()
        return size >> 1 ^ -(size & 1)

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _STRUCT:
            return self.struct()[0]
        if kind in (_LIST, _SET):
            byte = self._byte()
            count = byte >> 4 if byte >> 4 != 0xF else self._size()
            return [self._byte() if byte & 0xF in (_TRUE, _FALSE) else self._value(byte & 0xF) for _ in range(count)]
        if kind in (_BYTE, _DOUBLE, _BINARY):
            size = {_BYTE: 1, _DOUBLE: 8}.get(kind) or self._size()
            self._at += size
            return None
        return self._number()


def _longest_known(file: InputFile, parquet: Any, number: int, path: str, found: Dictionary | None) -> int:
    """Return `_longest_repeated`, remembered."""
    key = file, number, path
    if key not in _known:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        num_rows = found.num_encoded if found is not None and found.comes_first else None
        _known[key] = _longest_repeated(file, parquet.metadata, number, path, num_rows)
    return _known[key]


def _longest_repeated(file: InputFile, metadata: Any, number: int, path: str, num_rows: int | None) -> int:
    """Return the bytes of the longest dictionary value of a column of a row group, 0 if little is repeated.

    num_rows: as many rows, from the first on, refer to the dictionary; None if that is not known.
    """
    # Reading one row loads the whole dictionary; rows that do not refer to it would be added to it.
    num_batches = max(1, -(-(num_rows or 1) // BATCH_ROWS))
    batch_rows = (num_rows or 1) // num_batches
    longest = distinct = used = 0
    with opened(file, "Parquet") as source:
        parquet = pq.ParquetFile(
            source, metadata=metadata, read_dictionary=[path], pre_buffer=False, buffer_size=BUFFER_BYTES
        )
        batches = parquet.iter_batches(batch_rows, row_groups=[number], columns=[path], use_threads=False)
        for column in (batch.column(0) for batch in islice(batches, num_batches)):
            if not pa.types.is_dictionary(column.type):
                return 0
            lengths = pc.binary_length(column.dictionary)
            longest = max(longest, pc.max(lengths).as_py() or 0)
            distinct = max(distinct, pc.sum(lengths).as_py() or 0)
            used += pc.sum(lengths.take(column.indices)).as_py() or 0
    used += longest * ((num_rows or 1) - batch_rows * num_batches)
    return 0 if num_rows is not None and used <= distinct + BATCH_BYTES else longest
