"""Pages of Parquet files: what their headers say, and how often values of a dictionary are used.

pyarrow (26.0) exposes neither, so they are parsed here. Files may be hostile: whatever cannot be
understood is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
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
_DICTIONARY_PAGE = 7
_DATA_PAGE_V2 = 8
_NUM_VALUES = 1
_ENCODING = 2
_LEVELS_ENCODING = 3
_ENCODING_V2 = 4
_LEVEL_BYTES_V2 = 5
_REPETITION_BYTES_V2 = 6
_IS_COMPRESSED_V2 = 7
_IS_DICTIONARY_PAGE: Final = 2
_DICTIONARY_ENCODINGS: Final = (2, 8)
_RLE: Final = 3
# Types of the compact protocol.
_TRUE = 1
_FALSE = 2
_BYTE = 3
_DOUBLE = 7
_BINARY = 8
_LIST = 9
_SET = 10
_STRUCT = 12
# Beyond these, references are left to pyarrow: a Python loop over the runs would take too long, and
# unpacking a byte of references takes 64 bytes.
_MAX_RUNS: Final = 1 << 12
_MAX_ENTRIES: Final = 1 << 20
_MAX_PAGE_BYTES: Final = 1 << 18
_MAX_BITS: Final = 32
# How many values refer to the same entry if that is not known; more than any column chunk has.
_ALL: Final = 1 << 63
# Names of codecs that pyarrow spells differently in metadata and for decompression.
_CODECS: Final = {"LZ4": "lz4_raw"}
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
    comes_first: whether no other value precedes those that refer to it;
    most_used: how many values at most refer to the same entry.
    """

    num_encoded: int
    num_bytes: int
    comes_first: bool
    most_used: int

    @property
    def most_decoded(self) -> int:
        """The largest number of bytes that the values that refer to the dictionary can take.

        The entries together take no more than the dictionary, so if each is used once, so do the
        decoded values.
        """
        return self.most_used * self.num_bytes


class _Page(NamedTuple):
    """A data page that refers to the dictionary: where its contents are, and its header."""

    offset: int
    header: dict[int, Any]


def find_dictionary(source: Any, chunk: Any, max_definition_level: int) -> Dictionary | None:
    """Return the dictionary of a column chunk; None if its pages cannot be read.

    Args:
        source: the file, for random access.
        chunk: the metadata of a column chunk that has a dictionary and is not repeated.
        max_definition_level: 0 if no value can be null.
    """
    num_encoded = num_plain = num_bytes = num_entries = 0
    comes_first = True
    pages = []
    try:
        for offset, header in _headers(source, chunk):
            if header[_PAGE_TYPE] == _IS_DICTIONARY_PAGE:
                num_bytes += header[_UNCOMPRESSED_SIZE]
                num_entries += header[_DICTIONARY_PAGE][_NUM_VALUES]
            for page_kind, encoding in ((_DATA_PAGE, _ENCODING), (_DATA_PAGE_V2, _ENCODING_V2)):
                if page_kind not in header:
                    continue
                num_values = header[page_kind][_NUM_VALUES]
                if num_values < 0:
                    return None
                if header[page_kind][encoding] in _DICTIONARY_ENCODINGS:
                    pages.append(_Page(offset, header))
                    num_encoded += num_values
                    comes_first = comes_first and not num_plain
                else:
                    num_plain += num_values
    except _UNKNOWN:
        return None
    if (
        num_encoded + num_plain < chunk.num_values
    ):  # pyarrow may read pages that were not found here
        return None
    return Dictionary(
        num_encoded,
        num_bytes,
        comes_first,
        min(
            num_encoded,
            _most_used(source, chunk.compression, pages, num_entries, max_definition_level),
        ),
    )


def _headers(source: Any, chunk: Any) -> Iterator[tuple[int, dict[int, Any]]]:
    """Iterate over the page headers of a column chunk, with the offset where the contents of the page begin."""
    offset = chunk.dictionary_page_offset
    stop = offset + chunk.total_compressed_size
    if chunk.data_page_offset < offset:
        raise ValueError("the dictionary does not come first")
    while offset < stop:
        header, size = _read_header(source, offset, stop)
        if min(header[_COMPRESSED_SIZE], header[_UNCOMPRESSED_SIZE]) < 0:
            raise ValueError("a page has a negative size")
        yield offset + size, header
        offset += size + header[_COMPRESSED_SIZE]


def _most_used(
    source: Any, codec: str, pages: list[_Page], num_entries: int, max_definition_level: int
) -> int:
    """Return how many values at most refer to the same entry of the dictionary: all, if the pages are not understood.

    Only the pages of references are read, a few bits per value; the dictionary itself is not.
    """
    largest = max((page.header[_UNCOMPRESSED_SIZE] for page in pages), default=0)
    if not 0 <= num_entries <= _MAX_ENTRIES or largest > _MAX_PAGE_BYTES:
        return _ALL
    uses = np.zeros(num_entries, np.int64)
    try:
        for page in pages:
            _count_uses(_references(source, codec, page, max_definition_level), uses)
    except _UNKNOWN:
        return _ALL
    return int(uses.max(initial=0))


def _references(source: Any, codec: str, page: _Page, max_definition_level: int) -> bytes:
    """Return the encoded references of a data page: a byte for their width in bits, then runs."""
    header = page.header
    data = source.read_at(header[_COMPRESSED_SIZE], page.offset)
    if _DATA_PAGE_V2 in header:
        own = header[_DATA_PAGE_V2]
        level_bytes = own[_LEVEL_BYTES_V2] + own[_REPETITION_BYTES_V2]
        if min(own[_LEVEL_BYTES_V2], own[_REPETITION_BYTES_V2]) < 0:
            raise ValueError("the levels of a page have a negative size")
        rest: bytes = data[level_bytes:]
        size = header[_UNCOMPRESSED_SIZE] - level_bytes
        if own.get(_IS_COMPRESSED_V2, True):
            return _decompressed(rest, codec, size)
        return rest
    contents = _decompressed(data, codec, header[_UNCOMPRESSED_SIZE])
    if not max_definition_level:
        return contents
    if header[_DATA_PAGE][_LEVELS_ENCODING] != _RLE:
        raise ValueError("the levels of a page are not run-length encoded")
    return contents[4 + int.from_bytes(contents[:4], "little") :]


def _decompressed(data: bytes, codec: str, size: int) -> bytes:
    if codec == "UNCOMPRESSED":
        return data
    return bytes(pa.Codec(_CODECS.get(codec, codec.lower())).decompress(data, size, asbytes=True))


def _count_uses(data: bytes, uses: npt.NDArray[np.int64]) -> None:
    """Add how often each entry is used; raise ValueError or IndexError if the references are not valid.

    Runs are repeated values, or packed ones in groups of eight; the last group may be padded, which
    counts too many.
    """
    width = data[0]
    at = 1
    num_runs = 0
    if width > _MAX_BITS:
        raise ValueError("references of too many bits")
    while at < len(data):
        num_runs += 1
        if num_runs > _MAX_RUNS:
            raise ValueError("too many runs")
        head, at = _unsigned(data, at)
        count = head >> 1
        if head & 1:
            packed = np.frombuffer(data, np.uint8, count * width, at)
            at += count * width
            bits = np.zeros((count * 8, 0), np.uint8)
            if width:
                bits = np.unpackbits(packed, bitorder="little").reshape(-1, width)
            found = np.bincount(bits @ (1 << np.arange(width, dtype=np.int64)), minlength=uses.size)
            if found.size > uses.size:
                raise ValueError("a reference to an entry that does not exist")
            uses += found
        else:
            num_bytes = -(-width // 8)
            uses[int.from_bytes(data[at : at + num_bytes], "little")] += count
            at += num_bytes


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
