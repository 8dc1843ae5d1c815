"""Compaction: merge the live documents of several segments into one segment, piece by piece.

A piece of documents or postings is bounded in bytes, so an index can be much larger than memory,
whatever the size of its documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.index.segment import (
    BAND_POSTINGS,
    SET_POSTINGS,
    Segment,
    SegmentPostings,
    SegmentWriter,
    bitmaps_of,
    directory_bits,
)
from neardup.index.sketches import FLAT, Layout, damaged, item_columns
from neardup.io import records
from neardup.measures.base import I64

Bools = npt.NDArray[np.bool_]
# Postings sorted per step: 12 MB, and a few times as much to sort them.
_POSTINGS_AT_ONCE: Final = 1 << 20
# Entries of a directory written at once (8 MB).
_ENTRIES_AT_ONCE: Final = 1 << 20
# A merged segment is synced as it grows: syncing all of it at the end would keep the log of commits
# waiting.
_SYNC_BYTES: Final = 16 << 20


class Merged(NamedTuple):
    """A segment that was written; digest: that of its header."""

    num_docs: int
    digest: bytes


def merge_segments(
    path: Path,
    segments: Sequence[Segment],
    is_live: Sequence[Bools],
    layout: Layout,
    between: Callable[[], None] = lambda: None,
) -> Merged:
    """Merge the live documents of one or more segments into one segment; write nothing if there are none.

    is_live: for every segment, which of its documents are live. between: called between two pieces;
    may raise to stop.
    """
    num_docs = int(sum(live.sum() for live in is_live))
    if not num_docs:
        return Merged(0, b"")
    sizes = [_sizes_of(segment, live) for segment, live in zip(segments, is_live, strict=True)]
    has_sets = _num_items_of(segments[0]) is not None
    num_items = sum(int(size.sum()) for size in sizes) if has_sets else 0
    num_postings = sum(int((size > 0).sum()) for size in sizes) * layout.bands
    renumbered = _renumber(is_live)
    writer = SegmentWriter(path, num_docs, num_items, num_postings, layout, sync_bytes=_SYNC_BYTES)
    try:
        for segment, live in zip(segments, is_live, strict=True):
            for docs in _pieces(segment, np.flatnonzero(live)):
                between()
                _copy_documents(writer, segment, docs, layout)
        if layout.has_items and "ends" in item_columns(layout.config):
            _write_ends(writer, sizes)
        _merge_postings(writer, segments, renumbered, BAND_POSTINGS, num_postings, between)
        if layout.has_set_postings:
            _merge_postings(writer, segments, renumbered, SET_POSTINGS, num_items, between)
        return Merged(num_docs, writer.finish())
    except BaseException:
        writer.abandon()
        raise


def _sizes_of(segment: Segment, is_live: Bools) -> I64:
    """Return the sizes of the live documents of a segment; raise if they are more than it has items for."""
    sizes: I64 = segment.arrays["sizes"][is_live]
    most = _num_items_of(segment)
    if most is not None and (((sizes < 0) | (sizes > most)).any() or sizes.sum() > most):
        raise damaged(f"the sizes in {segment.path} do not match its sets")
    return sizes


def _num_items_of(segment: Segment) -> int | None:
    """Return the number of items of all sets of a segment; None if it has no sets."""
    return next((segment.arrays[name].size for name in FLAT if name in segment.arrays), None)


def _renumber(is_live: Sequence[Bools]) -> list[I64]:
    """Return the new position of every document of every segment; -1 for a dead one."""
    new_numbers = []
    before = 0
    for live in is_live:
        renumbered = np.cumsum(live, dtype=np.int64) - 1 + before
        renumbered[~live] = -1
        new_numbers.append(renumbered)
        before += int(live.sum())
    return new_numbers


def _pieces(segment: Segment, docs: I64) -> Iterator[I64]:
    """Split documents of a segment into pieces of bounded size in bytes."""
    flat_bytes = 0
    row_bytes = 0
    for name, array in segment.arrays.items():
        if name in FLAT:
            flat_bytes += array.itemsize
        elif array.ndim > 1:
            row_bytes += array.itemsize * array.shape[1]
    sizes = np.maximum(segment.arrays["sizes"][docs], 0)
    ends = np.cumsum(row_bytes + flat_bytes * sizes)
    for first, stop in records.runs(ends):
        yield docs[first:stop]


def _copy_documents(writer: SegmentWriter, segment: Segment, docs: I64, layout: Layout) -> None:
    """Copy the sketches of some documents of a segment."""
    columns = item_columns(layout.config) if layout.has_items else {}
    taken = segment.take(docs)
    writer.write("numbers", segment.arrays["numbers"][docs])
    writer.write("sizes", taken.sizes)
    writer.write("signatures", taken.signatures)
    if layout.has_bitmaps:
        writer.write("bitmaps", bitmaps_of(taken.items, writer.num_written("shingles")))
    for name in columns:
        if name != "ends":
            writer.write(name, getattr(taken.items, name))


def _write_ends(writer: SegmentWriter, sizes: Sequence[I64]) -> None:
    last = np.zeros(1, np.int64)
    writer.write("ends", last)
    for size in sizes:
        ends = np.cumsum(size) + last
        writer.write("ends", ends)
        last = ends[-1:] if ends.size else last


def _merge_postings(
    writer: SegmentWriter,
    segments: Sequence[Segment],
    renumbered: Sequence[I64],
    names: SegmentPostings,
    total: int,
    between: Callable[[], None],
) -> None:
    directory = _GrowingDirectory(writer, names.directory, total)
    for keys, docs in _sorted_postings(segments, renumbered, names):
        between()
        writer.write(names.keys, keys)
        writer.write(names.docs, docs)
        directory.add(keys)
    if directory.num_postings != total:
        folder = segments[0].path.parent
        raise damaged(
            f"the segments to merge in {folder} have {directory.num_postings:,} postings in their sections {names.keys}"
            f" instead of {total:,}"
        )
    directory.finish()


class _GrowingDirectory:
    """Writes the directory of postings that arrive in order; `directory_of` makes the same of all at once."""

    def __init__(self, writer: SegmentWriter, name: str, num_postings: int) -> None:
        self._writer = writer
        self._name = name
        self._bits = directory_bits(num_postings)
        self._num_written = 0
        self.num_postings = 0

    def add(self, keys: Any) -> None:
        """Add postings; write the entries up to that of their last key."""
        if keys.size:
            prefixes = self._prefixes(keys)
            self._write_to(int(prefixes[-1]) + 1, prefixes)
            self.num_postings += keys.size

    def finish(self) -> None:
        """Write the entries after that of the last key."""
        self._write_to((1 << self._bits) + 1, np.empty(0, np.int64))

    def _prefixes(self, keys: Any) -> I64:
        if not self._bits:
            return np.zeros(keys.size, np.int64)
        prefixes: I64 = (keys >> np.uint64(64 - self._bits)).astype(np.int64)
        return prefixes

    def _write_to(self, stop: int, prefixes: I64) -> None:
        while self._num_written < stop:
            last = min(stop, self._num_written + _ENTRIES_AT_ONCE)
            entries = np.arange(self._num_written, last)
            self._writer.write(self._name, np.searchsorted(prefixes, entries) + self.num_postings)
            self._num_written = last


def _sorted_postings(
    segments: Sequence[Segment], renumbered: Sequence[I64], names: SegmentPostings
) -> Iterator[tuple[Any, Any]]:
    """Iterate over the postings of all segments in key order, except of dead documents; a bounded number a step."""
    keys = [segment.arrays[names.keys] for segment in segments]
    sizes = np.array([segment_keys.size for segment_keys in keys], np.int64)
    starts = np.zeros(len(segments), np.int64)
    while (starts < sizes).any():
        ranges, next_key = _ranges_below(keys, starts, sizes)
        stops = np.array([stop for _, stop in ranges], np.int64)
        if (stops > starts).any():
            yield _sorted_range(segments, renumbered, names, ranges)
        else:
            ranges = [
                (int(at), _stop_of(segment_keys, int(at), next_key))
                for segment_keys, at in zip(keys, starts, strict=True)
            ]
            stops = np.array([stop for _, stop in ranges], np.int64)
            yield from _postings_of_one_key(segments, renumbered, names, ranges)
        starts = stops


def _ranges_below(
    keys: Sequence[Any], starts: I64, sizes: I64
) -> tuple[list[tuple[int, int]], Any]:
    """Return for every segment the range of its next postings below a common key, and this key; None: to the end."""
    left = sizes - starts
    windows = starts + np.minimum(left, 1 + left * _POSTINGS_AT_ONCE // left.sum())
    lasts = [
        segment_keys[stop - 1]
        for segment_keys, stop, size in zip(keys, windows, sizes, strict=True)
        if stop < size
    ]
    if not lasts:
        return list(zip(starts.tolist(), windows.tolist(), strict=True)), None
    bound = min(lasts)
    ranges = []
    for segment_keys, start, stop in zip(keys, starts.tolist(), windows.tolist(), strict=True):
        ranges.append((start, start + int(np.searchsorted(segment_keys[start:stop], bound))))
    return ranges, bound


def _stop_of(keys: Any, start: int, key: Any) -> int:
    """Return where the postings of a key end, of those from `start`."""
    return start + int(np.searchsorted(keys[start:], key, side="right"))


def _postings_of_one_key(
    segments: Sequence[Segment],
    renumbered: Sequence[I64],
    names: SegmentPostings,
    ranges: Sequence[tuple[int, int]],
) -> Iterator[tuple[Any, Any]]:
    """Iterate over the postings of a key, segment by segment; there may be more of them than fit in memory."""
    for segment, new_numbers, (start, stop) in zip(segments, renumbered, ranges, strict=True):
        for first in range(start, stop, _POSTINGS_AT_ONCE):
            own = slice(first, min(first + _POSTINGS_AT_ONCE, stop))
            yield _live_postings(segment, new_numbers, names, own)


def _sorted_range(
    segments: Sequence[Segment],
    renumbered: Sequence[I64],
    names: SegmentPostings,
    ranges: Sequence[tuple[int, int]],
) -> tuple[Any, Any]:
    parts = [
        _live_postings(segment, new_numbers, names, slice(start, stop))
        for segment, new_numbers, (start, stop) in zip(segments, renumbered, ranges, strict=True)
    ]
    keys = np.concatenate([part[0] for part in parts])
    docs = np.concatenate([part[1] for part in parts])
    order = np.argsort(keys, kind="stable")
    return keys[order], docs[order]


def _live_postings(
    segment: Segment, new_numbers: I64, names: SegmentPostings, own: slice
) -> tuple[Any, Any]:
    """Return keys and new positions of the live documents of a range of postings."""
    old = segment.arrays[names.docs][own]
    if old.size and old.max() >= new_numbers.size:
        raise damaged(f"a posting of {segment.path} points to no document")
    new = new_numbers[old]
    is_live = new >= 0
    return segment.arrays[names.keys][own][is_live], new[is_live].astype(np.uint32)
