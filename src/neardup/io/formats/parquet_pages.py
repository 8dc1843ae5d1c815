"""What the page headers of Parquet files say about dictionaries.

pyarrow (26.0) does not expose them, so they are parsed here. Files may be hostile: whatever cannot
be understood is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa

# Most page headers are shorter; one with statistics may hold two values. Longer ones than the
# second are not read.
_HEADER_BYTES = 256
_MAX_HEADER_BYTES = 1 << 20
# From parquet.thrift: fields of PageHeader, of the headers in it, page types and encodings.
_PAGE_TYPE = 1
_UNCOMPRESSED_SIZE = 2
_COMPRESSED_SIZE = 3
_DATA_PAGE = 5
_DATA_PAGE_V2 = 8
_NUM_VALUES = 1
_ENCODING = 2
_ENCODING_V2 = 4
_IS_DICTIONARY_PAGE: Final = 2
_DICTIONARY_ENCODINGS: Final = (2, 8)
# Types of the compact protocol.
_TRUE = 1
_FALSE = 2
_BYTE = 3
_DOUBLE = 7
_BINARY = 8
_LIST = 9
_SET = 10
_STRUCT = 12
# What parsing damaged or hostile bytes raises.
_UNKNOWN: Final = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    OverflowError,
    OSError,
    RecursionError,
    pa.ArrowException,
)


class Dictionary(NamedTuple):
    """The dictionary of a column chunk, according to its pages.

    num_encoded: the values of the chunk that refer to it; num_bytes: its size;
    comes_first: whether no other value precedes those that refer to it.
    """

    num_encoded: int
    num_bytes: int
    comes_first: bool

    @property
    def most_decoded(self) -> int:
        """The largest number of bytes that the values that refer to the dictionary can take."""
        return self.num_encoded * self.num_bytes


def find_dictionary(source: Any, chunk: Any) -> Dictionary | None:
    """Return the dictionary of a column chunk; None if its pages cannot be read.

    Args:
        source: the file, for random access.
        chunk: the metadata of a column chunk that has a dictionary and is not repeated.
    """
    num_encoded = num_plain = num_bytes = 0
    comes_first = True
    try:
        for header in _headers(source, chunk):
            if header[_PAGE_TYPE] == _IS_DICTIONARY_PAGE:
                num_bytes += header[_UNCOMPRESSED_SIZE]
            for page_kind, encoding in ((_DATA_PAGE, _ENCODING), (_DATA_PAGE_V2, _ENCODING_V2)):
                if page_kind not in header:
                    continue
                num_values = header[page_kind][_NUM_VALUES]
                if num_values < 0:
                    return None
                if header[page_kind][encoding] in _DICTIONARY_ENCODINGS:
                    num_encoded += num_values
                    comes_first = comes_first and not num_plain
                else:
                    num_plain += num_values
    except _UNKNOWN:
        return None
    # pyarrow may read pages that were not found here.
    if num_encoded + num_plain < chunk.num_values:
        return None
    return Dictionary(num_encoded, num_bytes, comes_first)


def _headers(source: Any, chunk: Any) -> Iterator[dict[int, Any]]:
    """Iterate over the page headers of a column chunk."""
    offset = chunk.dictionary_page_offset
    stop = offset + chunk.total_compressed_size
    if chunk.data_page_offset < offset:
        raise ValueError("the dictionary does not come first")
    while offset < stop:
        header, size = _read_header(source, offset, stop)
        if min(header[_COMPRESSED_SIZE], header[_UNCOMPRESSED_SIZE]) < 0:
            raise ValueError("a page has a negative size")
        yield header
        offset += size + header[_COMPRESSED_SIZE]


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and its end."""
    number = shift = 0
    while (byte := data[at]) & 0x80:
        number |= (byte & 0x7F) << shift
        shift = shift + 7
        at = at + 1
    return number | byte << shift, at + 1


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
        self._data = data
        self._at = 0

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
        size, self._at = _unsigned(self._data, self._at)
        return size

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
            return [
                self._byte() if byte & 0xF in (_TRUE, _FALSE) else self._value(byte & 0xF)
                for _ in range(count)
            ]
        if kind in (_BYTE, _DOUBLE, _BINARY):
            size = {_BYTE: 1, _DOUBLE: 8}.get(kind) or self._size()
            self._at += size
            return None
        return self._number()
