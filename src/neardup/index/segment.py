"""A segment: many documents in one immutable file, sorted by band key and memory-mapped.

docs/index-format.md describes it byte by byte. Every header field is checked before it is used;
digests of the sections are checked by `Segment.check`, and references when they are followed.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import stat
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from neardup.errors import DataError
from neardup.index.disk_sync import sync_all, sync_data
from neardup.index.page_requests import expect_random_reads, request
from neardup.index.sketches import (
    FLAT,
    Layout,
    Sketches,
    check_items,
    damaged,
    item_arrays,
    item_columns,
    take_items,
)
from neardup.kernels import bitmaps, lookup
from neardup.kernels.similarity import Sets
from neardup.measures.base import F64, I64, U64
from neardup.measures.registry import measure_of

MAGIC: Final = b"NDUPRUN\n"
VERSION: Final = 2
# Segments of version 1 have no bitmaps; they can be read, and compaction writes them anew.
READABLE_VERSIONS: Final = (1, 2)
HEADER_BYTES: Final = 4096
DIGEST_BYTES: Final = 16
# Without O_NONBLOCK, opening a named pipe would wait for a writer.
_OPEN: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NONBLOCK", 0)
)
_OPEN_FOLDER: Final = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_DIRECTORY", 0)
)
# About as many bitmaps fit into a page; of more documents than one in so many, all pages are
# requested.
_DOCS_A_PAGE: Final = 32
_HEAD: Final = struct.Struct("<8sIIQQ16s")
_SECTION: Final = struct.Struct("<16s8sQQQ16s")
_ALIGNMENT: Final = 64
# Approximate number of postings per directory entry.
_POSTINGS_AN_ENTRY: Final = 8
_BLOCK: Final = 4 << 20
# The most documents whose sizes are requested at once; their numbers take 8 MB.
_SIZES_AT_ONCE: Final = 1 << 20
# Documents whose items are checked at once.
_CHECKED_AT_ONCE: Final = 256


class Section(NamedTuple):
    """An array of a segment; columns: 1 for a one-dimensional array."""

    name: str
    kind: str
    rows: int
    columns: int
    offset: int
    digest: bytes

    @property
    def num_bytes(self) -> int:
        """Bytes of the array."""
        return self.rows * self.columns * np.dtype(self.kind).itemsize


class SegmentPostings(NamedTuple):
    """The sections that say which documents have a key."""

    keys: str
    docs: str
    directory: str


BAND_POSTINGS: Final = SegmentPostings("keys", "docs", "directory")
SET_POSTINGS: Final = SegmentPostings("set_keys", "set_docs", "set_directory")


def digest_of(data: Any = b"") -> Any:
    """Return a hash object over data."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES)


def shapes_of(
    num_docs: int, num_items: int, num_postings: int, layout: Layout
) -> dict[str, tuple[str, int, int]]:
    """Return type, rows and columns of every section of a segment, in their order."""
    signature = np.dtype(layout.signature_type).newbyteorder("<").str
    shapes = {
        "numbers": ("<i8", num_docs, 1),
        "sizes": ("<i8", num_docs, 1),
        "signatures": (signature, num_docs, layout.signature_width),
    }
    for name, (kind, width) in item_columns(layout.config).items() if layout.has_items else ():
        rows = num_items if width is None else num_docs + (name == "ends")
        shapes[name] = kind, rows, width or 1
    if layout.has_bitmaps:
        shapes["bitmaps"] = "<u8", bitmaps.first_word(num_items, num_docs), 1
    for names, count in ((BAND_POSTINGS, num_postings), (SET_POSTINGS, num_items))[
        : 1 + layout.has_set_postings
    ]:
        shapes[names.keys] = ("<u8", count, 1)
        shapes[names.docs] = ("<u4", count, 1)
        shapes[names.directory] = "<i8", (1 << directory_bits(count)) + 1, 1
    return shapes


def directory_bits(num_postings: int) -> int:
    """Return the number of leading key bits that the directory of this many postings uses."""
    return max(0, (num_postings // _POSTINGS_AN_ENTRY).bit_length() - 1)


class SegmentWriter:
    """Writes a segment of known size; sections can be written in any order, each from start to end."""

    def __init__(
        self,
        path: Path,
        num_docs: int,
        num_items: int,
        num_postings: int,
        layout: Layout,
        *,
        sync_bytes: int | None = None,
    ) -> None:
        """Create the file; sync_bytes: sync it whenever this much was written."""
        self._sync_bytes = sync_bytes
        self._unsynced_bytes = 0
        self._path = path
        self._num_docs = num_docs
        self._fingerprint = fingerprint_of(layout)
        self._shapes = shapes_of(num_docs, num_items, num_postings, layout)
        self._digests = {name: digest_of() for name in self._shapes}
        self._offsets: dict[str, int] = {}
        at = HEADER_BYTES
        for name, (kind, rows, columns) in self._shapes.items():
            self._offsets[name] = at
            at += Section(name, kind, rows, columns, at, b"").num_bytes
            at += -at % _ALIGNMENT
        self._size = at
        self._written = dict.fromkeys(self._shapes, 0)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.ftruncate(self._file, at)

    def num_written(self, name: str) -> int:
        """Return how many values of a section of numbers are written."""
        return self._written[name] // np.dtype(self._shapes[name][0]).itemsize

    def write(self, name: str, array: Any) -> None:
        """Write the next rows of a section."""
        data = np.ascontiguousarray(array, self._shapes[name][0]).reshape(-1).view(np.uint8).data
        self._digests[name].update(data)
        at = self._offsets[name] + self._written[name]
        end = len(data)
        done = 0
        while done < end:
            count = os.pwrite(self._file, data[done : done + _BLOCK], at + done)
            done += count
            self._unsynced_bytes += count
            if self._sync_bytes is not None and self._unsynced_bytes >= self._sync_bytes:
                sync_data(self._file)
                self._unsynced_bytes = 0
        self._written[name] += end

    def finish(self) -> bytes:
        """Write the header, and sync the file to disk; return the digest of the header."""
        entries = [
            Section(name, kind, rows, columns, self._offsets[name], self._digests[name].digest())
            for name, (kind, rows, columns) in self._shapes.items()
        ]
        if any(entry.num_bytes != self._written[entry.name] for entry in entries):
            raise AssertionError(f"a section of {self._path} is incomplete")
        head = _HEAD.pack(
            MAGIC, VERSION, len(entries), self._size, self._num_docs, self._fingerprint
        )
        for entry in entries:
            head += _SECTION.pack(
                entry.name.encode(),
                entry.kind.encode(),
                entry.rows,
                entry.columns,
                entry.offset,
                entry.digest,
            )
        head = head.ljust(HEADER_BYTES - DIGEST_BYTES, b"\0")
        digest: bytes = digest_of(head).digest()
        os.pwrite(self._file, head + digest, 0)
        sync_all(self._file)
        self._close()
        return digest

    def abandon(self) -> None:
        """Delete what was written so far."""
        self._close()
        self._path.unlink(missing_ok=True)

    def _close(self) -> None:
        # First forgotten, then closed: after an interrupt between the two, its number may belong to
        # another file.
        file = self._file
        self._file = -1
        if file >= 0:
            os.close(file)


def fingerprint_of(layout: Layout) -> bytes:
    """Return a digest of the settings that determine the bytes of a segment."""
    signatures = measure_of(layout.config).signature_format(layout.config)
    words = f"{signatures}|{layout.bands}|{layout.has_items}"
    if layout.has_set_postings:
        words += "|containment"
    return bytes(digest_of(words.encode()).digest())


def write_segment(path: Path, numbers: I64, sketches: Sketches, layout: Layout) -> bytes:
    """Write documents as a segment; return the digest of its header."""
    postings = {BAND_POSTINGS: sorted_postings(sketches)}
    if layout.has_set_postings:
        postings[SET_POSTINGS] = set_postings(sketches.items)
    arrays = item_arrays(sketches.items)
    num_items = next((arrays[name].size for name in ("shingles", "hashes") if name in arrays), 0)
    writer = SegmentWriter(path, numbers.size, num_items, postings[BAND_POSTINGS][0].size, layout)
    try:
        columns = {
            "numbers": numbers,
            "sizes": sketches.sizes,
            "signatures": sketches.signatures,
        } | arrays
        if layout.has_bitmaps:
            columns["bitmaps"] = bitmaps_of(sketches.items, 0)
        for names, (keys, docs) in postings.items():
            columns |= {
                names.keys: keys,
                names.docs: docs,
                names.directory: directory_of([keys], keys.size),
            }
        for name, array in columns.items():
            writer.write(name, array)
        return writer.finish()
    except BaseException:
        writer.abandon()
        raise


def bitmaps_of(sets: Any, before: int) -> U64:
    """Return the bitmaps of documents that follow others with `before` shingles in a segment."""
    stop = bitmaps.first_word(before + sets.shingles.size, sets.ends.size - 1)
    words = np.zeros(stop - bitmaps.first_word(before, 0), np.uint64)
    bitmaps.write_bitmaps(sets, before, words)
    return words


def sorted_postings(sketches: Sketches) -> tuple[U64, Any]:
    """Return the band keys of all documents that can have a match, ascending, with their documents."""
    bands = sketches.keys.shape[1]
    with_items = np.flatnonzero(sketches.sizes > 0)
    keys = sketches.keys[with_items].reshape(-1)
    order = np.argsort(keys, kind="stable")
    return keys[order], with_items[order // max(bands, 1)].astype(np.uint32)


def set_postings(items: Any) -> tuple[U64, Any]:
    """Return the shingles of all sets, ascending, with their documents."""
    order = np.argsort(items.shingles, kind="stable")
    docs = np.arange(items.ends.size - 1, dtype=np.uint32)
    owners = np.repeat(docs, np.diff(items.ends))
    return items.shingles[order], owners[order]


def directory_of(parts: Any, num_postings: int) -> I64:
    """Return where the postings of every key prefix start, for keys given in parts."""
    bits = directory_bits(num_postings)
    counts = np.zeros((1 << bits) + 1, np.int64)
    for keys in parts:
        if bits:
            beginnings = (keys >> np.uint64(64 - bits)).astype(np.int64)
        else:
            beginnings = np.zeros(keys.size, np.int64)
        counts[1:] += np.bincount(beginnings, minlength=1 << bits)
    return np.cumsum(counts)


def open_segment(path: Path) -> int:
    """Open a segment for reading, relative to its folder; raise if the entry is not a regular file."""
    folder = os.open(path.parent, _OPEN_FOLDER)
    try:
        file = os.open(path.name, _OPEN, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise damaged(f"{path} is a symbolic link") from error
        raise
    finally:
        os.close(folder)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise damaged(f"{path} is not a regular file")
    except BaseException:
        os.close(file)
        raise
    return file


def header_digest_of(path: Path) -> bytes:
    """Return the digest that the header of a segment ends with, unchecked."""
    file = open_segment(path)
    try:
        return os.pread(file, DIGEST_BYTES, HEADER_BYTES - DIGEST_BYTES)
    finally:
        os.close(file)


class Segment:
    """An open segment, whose arrays are views of the file.

    digest: that of its header, if known; a file with another one is damaged, or was exchanged.
    is_scanned: the file will be read from start to end.
    """

    def __init__(
        self, path: Path, layout: Layout, *, digest: bytes | None = None, is_scanned: bool = False
    ) -> None:
        self.path = path
        self.layout = layout
        file = open_segment(path)
        try:
            size = os.fstat(file).st_size
            if size < HEADER_BYTES:
                raise damaged(f"{path} is too short to be a segment")
            self._map = mmap.mmap(file, 0, access=mmap.ACCESS_READ)
        finally:
            os.close(file)
        if not is_scanned:
            expect_random_reads(self._map)
        self.digest: bytes = self._map[HEADER_BYTES - DIGEST_BYTES : HEADER_BYTES]
        if digest is not None and self.digest != digest:
            raise damaged(
                f"{path} is not the file that the index wrote: its header has another digest"
            )
        self.sections, self.num_docs = _read_header(path, self._map, size, layout)
        self.arrays = {name: self._array(section) for name, section in self.sections.items()}
        if layout.has_items:
            self._items = {name: self.arrays[name] for name in item_columns(layout.config)}
        else:
            self._items = {}

    def _array(self, section: Section) -> Any:
        count = section.rows * section.columns
        if count:
            array = np.frombuffer(self._map, section.kind, count, section.offset)
        else:
            array = np.empty(0, section.kind)
        if section.name in _MATRICES:
            return array.reshape(section.rows, section.columns)
        return array

    def request_postings(self, keys: U64, names: SegmentPostings) -> Iterator[None]:
        """Request the pages that a lookup of these keys reads, in steps, because each read determines the next.

        Nothing is checked here, only kept within the file: the lookup itself reports damage.
        """
        directory = self.arrays[names.directory]
        bits = directory_bits(self.arrays[names.keys].size)
        keys = np.unique(keys)
        if bits:
            parts = (keys >> np.uint64(64 - bits)).astype(np.int64)
        else:
            parts = np.zeros(keys.size, np.int64)
        self.request(names.directory, parts, parts + 2)
        yield
        self.request(names.keys, directory[parts], directory[parts + 1])
        yield
        firsts = np.empty(keys.size, np.int64)
        lasts = np.empty(keys.size, np.int64)
        lookup.find_postings(keys, self.arrays[names.keys], directory, firsts, lasts)
        self.request(names.docs, firsts, lasts)
        yield
        docs = self.arrays[names.docs][_within(firsts, lasts, _SIZES_AT_ONCE)].astype(np.int64)
        self.request("sizes", *_ranges_of(docs))

    def request(self, name: str, firsts: I64, stops: I64) -> None:
        """Start to read ranges of the rows of a section, without waiting; ranges outside it are cut."""
        section = self.sections[name]
        row_bytes = section.columns * np.dtype(section.kind).itemsize
        starts, stops = (
            section.offset + np.clip(rows, 0, section.rows) * row_bytes for rows in (firsts, stops)
        )
        request(self._map, starts, stops)

    def request_bitmaps(self, docs: I64) -> None:
        """Request the pages of the bitmaps of some documents; where they are has to be read first."""
        firsts, stops = _ranges_of(docs)
        self.request("ends", firsts, firsts + 1)
        self.request("ends", stops, stops + 1)
        first_words, end_words = (
            bitmaps.first_word(self.arrays["ends"][docs], docs) for docs in (firsts, stops)
        )
        self.request("bitmaps", first_words, end_words)

    def request_documents(self, docs: I64) -> None:
        """Request the pages of all that `take` reads of some documents, and of their numbers."""
        for name in ("numbers", "signatures", *self._items):
            if name not in (*FLAT, "ends"):
                self.request(name, docs, docs + 1)
        if "ends" in self._items:
            self.request("ends", docs, docs + 2)
            starts, stops = self._items["ends"][docs], self._items["ends"][docs + 1]
            for name in set(FLAT).intersection(self._items):
                self.request(name, starts, stops)

    def count_shared(self, sets: Sets, threshold: float) -> tuple[I64, I64, I64]:
        """Return sets, documents and shared shingles, if these are a large enough share of the smaller of the two."""
        set_columns = [self.arrays[name] for name in SET_POSTINGS]
        *found, is_sound = lookup.count_shared(sets, *set_columns, self.arrays["sizes"], threshold)
        if not is_sound:
            raise damaged(f"a posting of {self.path} points to no document")
        return found[0], found[1], found[2]

    def take(self, docs: I64) -> Sketches:
        """Copy some documents; their band keys are not stored, and are empty."""
        sizes = self.arrays["sizes"][docs]
        items = None
        if self._items:
            items = take_items(self._items, docs, self.layout.config, self.path)
            check_items(items, sizes, str(self.path))
        keys = np.empty((docs.size, 0), np.uint64)
        return Sketches(items, self.arrays["signatures"][docs], keys, sizes)

    def check_items(self) -> None:
        """Raise if there are items that no document has: their digests may be valid, if the segment was forged."""
        for first in range(0, self.num_docs, _CHECKED_AT_ONCE):
            self.take(np.arange(first, min(first + _CHECKED_AT_ONCE, self.num_docs)))

    def check(self, between: Callable[[], None] = lambda: None) -> str | None:
        """Describe the damage; None if every section is intact. between: called between two blocks."""
        view = memoryview(self._map)
        for section in self.sections.values():
            digest = digest_of()
            for at in range(section.offset, section.offset + section.num_bytes, _BLOCK):
                between()
                digest.update(view[at : min(at + _BLOCK, section.offset + section.num_bytes)])
            if digest.digest() != section.digest:
                return f"the section {section.name} of {self.path} has a wrong checksum"
        return None


_MATRICES: Final = ("signatures", "words", "values")


def _within(firsts: I64, stops: I64, most: int) -> I64:
    """Return the positions within ranges, at most `most` of them; a range that ends before it begins is empty."""
    sizes = np.maximum(stops - firsts, 0)
    ends = np.minimum(np.cumsum(sizes), most)
    counts = np.diff(ends, prepend=0)
    starts = ends - counts
    return np.repeat(firsts - starts, counts) + np.arange(counts.sum())


def _ranges_of(docs: I64) -> tuple[I64, I64]:
    """Return ranges of documents that contain some: one for all if they are close together, else one for each."""
    if not docs.size:
        return docs, docs
    first, stop = int(docs.min()), int(docs.max()) + 1
    if docs.size * _DOCS_A_PAGE >= stop - first:
        return np.array([first]), np.array([stop])
    return docs, docs + 1


def _read_header(
    path: Path, data: Any, size: int, layout: Layout
) -> tuple[dict[str, Section], int]:
    """Return the sections and the number of documents of a segment; raise if the header is invalid."""
    header = data[:HEADER_BYTES]
    magic, version, num_sections, recorded_size, num_docs, fingerprint = _HEAD.unpack_from(header)
    if magic != MAGIC:
        raise damaged(f"{path} is not a segment")
    if version not in READABLE_VERSIONS:
        raise DataError(
            f"{path} has segment format {version}, but this neardup reads {' and '.join(map(str, READABLE_VERSIONS))}",
            hint="use the neardup that wrote it, or build the index again",
        )
    if digest_of(header[:-DIGEST_BYTES]).digest() != header[-DIGEST_BYTES:]:
        raise damaged(f"the header of {path} has a wrong checksum")
    if fingerprint != fingerprint_of(layout):
        raise damaged(f"{path} was written with other settings")
    if recorded_size != size:
        raise damaged(f"{path} has {size:,} bytes instead of {recorded_size:,}")
    if _HEAD.size + num_sections * _SECTION.size > HEADER_BYTES - DIGEST_BYTES:
        raise damaged(f"{path} has {num_sections:,} sections")
    sections = dict(_sections(header, num_sections))
    _check_shapes(path, sections, num_docs, size, layout, version)
    return sections, num_docs


def _sections(header: bytes, num_sections: int) -> Iterator[tuple[str, Section]]:
    for number in range(num_sections):
        start = _HEAD.size + number * _SECTION.size
        name, kind, rows, columns, offset, digest = _SECTION.unpack_from(header, start)
        section = Section(_text_of(name), _text_of(kind), rows, columns, offset, digest)
        yield section.name, section


def _text_of(padded: bytes) -> str:
    return padded.rstrip(b"\0").decode("ascii", "replace")


def _check_shapes(
    path: Path, sections: dict[str, Section], num_docs: int, size: int, layout: Layout, version: int
) -> None:
    def rows(*names: str) -> int:
        return next((sections[name].rows for name in names if name in sections), 0)

    expected = shapes_of(min(num_docs, size), rows("shingles", "hashes"), rows("keys"), layout)
    if version == 1:
        expected.pop("bitmaps", None)
    found = {name: (entry.kind, entry.rows, entry.columns) for name, entry in sections.items()}
    if found != expected:
        raise damaged(f"{path} does not have the sections of a segment")
    for section in sections.values():
        is_aligned = section.offset % _ALIGNMENT == 0 and section.offset >= HEADER_BYTES
        if not is_aligned or section.offset + section.num_bytes > size:
            raise damaged(f"the section {section.name} is outside {path}")


def estimated_similarities(left: Any, right: Any, layout: Layout) -> F64:
    """Return the similarities estimated from pairs of signatures."""
    if layout.config.measure == "cosine":
        differing = np.bitwise_count(left ^ right).sum(axis=1)
        estimate: F64 = np.maximum(np.cos(np.pi * differing / layout.config.num_perm), 0.0)
        return estimate
    agreeing: F64 = (left == right).mean(axis=1)
    return agreeing
