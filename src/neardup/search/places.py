"""Passages, stage 2: where every repeated window of words stands first; see kernels/places.py.

anchors -> the repeated ones, linked to the first -> words around them -> windows compared -> stretches
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.io.storage.big_arrays import BigArrays
from neardup.kernels import places as kernel
from neardup.measures.words import word_runs

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U64 = npt.NDArray[np.uint64]
# Applies a function to numbers, in parallel; results in order.
SideBySide = Callable[[Callable[[int], Any], Iterable[int]], list[Any]]
# Bundles compared by one call: enough to amortise it, and little memory for the results.
_BLOCK: Final = 1 << 16
# Reading a page of a mapped file maps 64 KB: with fewer bundles, fewer are mapped at once (docs/decisions/0045).
_MAPPED_BLOCK: Final = 1 << 10
# Sorting keys takes about this many bytes each, on two threads.
_SORT_BYTES: Final = 160
_CHUNK: Final = 1 << 20
_MAX_RANGES: Final = 64
# Grouping bundles takes about this many bytes each.
_GROUP_BYTES: Final = 100
_MAX_BITS: Final = 6


class Stretches(NamedTuple):
    """Consecutive windows of documents that stand first on one diagonal: sorted by document and start.

    docs: rows; starts: the first word of the first window; counts: windows; sources: the rows where they stand first,
    which may be the same; source_starts: the first word there.
    """

    docs: I64
    starts: I64
    counts: I64
    sources: I64
    source_starts: I64

    def where(self, chosen: npt.NDArray[Any]) -> Stretches:
        """Return some of the stretches."""
        return Stretches(*(column[chosen] for column in self))


class RepeatedAnchors(NamedTuple):
    """The anchors whose key occurs more than once, in input order; leaders: the number of the first with this key."""

    keys: U64
    docs: I64
    groups: I64
    positions: I32
    befores: I32
    counts: I32
    leaders: I64


class Islands(NamedTuple):
    """The words around repeated anchors: of which document, from which word to which, and where they are stored."""

    docs: I64
    starts: I64
    ends: I64
    offsets: I64


class _Bundles(NamedTuple):
    """See kernels/places.py."""

    keys: U64
    owners: I64
    lows: I32
    highs: I32
    lefts: I32
    rights: I32

    @classmethod
    def room(cls, size: int) -> _Bundles:
        """Return bundles to be written."""
        kinds: tuple[Any, ...] = (np.uint64, np.int64, np.int32, np.int32, np.int32, np.int32)
        return cls(*(np.empty(size, kind) for kind in kinds))

    def where(self, chosen: Any) -> _Bundles:
        """Return copies of some bundles."""
        columns: list[Any] = [column[chosen].copy() for column in self]
        return _Bundles(*columns)


_PACKED: Final = np.dtype(
    list(zip(_Bundles._fields, ("<u8", "<i8", "<i4", "<i4", "<i4", "<i4"), strict=True))
)


def link_anchors(
    batches: Callable[[list[str]], Iterable[pa.RecordBatch]],
    arrays: BigArrays,
    side_by_side: SideBySide,
    *,
    room: int = 0,
    num_references: int | None = None,
) -> RepeatedAnchors:
    """Return the anchors that occur more than once.

    Args:
        batches: returns batches with some columns of schema.ANCHORS, in input order, each time.
        arrays: allocates arrays.
        side_by_side: sorts ranges of keys in parallel.
        room: the memory for sorting; 0 for no limit.
        num_references: only anchors that occur in a row below this; None for all.
    """
    size = own_first = 0
    for batch in batches(["row", "keys"]):
        lists = batch.column("keys")
        size += len(lists.flatten())
        if num_references is not None:
            is_reference = batch.column("row").to_numpy() < num_references
            own_first += int(lists.value_lengths().to_numpy()[is_reference].sum())
    keys: U64 = arrays.empty("anchor_keys", size, np.uint64)
    at = 0
    for batch in batches(["row", "keys"]):
        values = batch.column("keys").flatten().to_numpy().view(np.uint64)
        keys[at : at + values.size] = values
        at += values.size
        arrays.drop_pages()
    leaders: I64 = arrays.empty("anchor_leaders", size, np.int64)
    for start in range(0, size, _CHUNK):
        leaders[start : start + _CHUNK] = -1
    bits = 0
    while room and size * _SORT_BYTES > (room << bits) and 1 << bits < _MAX_RANGES:
        bits += 1
    is_split = size > _CHUNK
    ranges = 1 << max(bits, 2 if is_split else 0)
    link = partial(_link_range, keys, leaders, ranges.bit_length() - 1)
    for first in range(0, ranges, 4):
        side_by_side(link, range(first, min(first + 4, ranges)))
        arrays.drop_pages()
    if num_references is not None:
        for start in range(0, size, _CHUNK):
            part = leaders[start : start + _CHUNK]
            part[part >= own_first] = -1
    return _compact(batches, keys, leaders, arrays)


def _link_range(keys: U64, leaders: I64, bits: int, number: int) -> None:
    """Write the leaders of the keys whose highest bits are `number`."""
    found = []
    for start in range(0, keys.size, _CHUNK):
        part = keys[start : start + _CHUNK]
        if bits:
            own = np.flatnonzero(part >> np.uint64(64 - bits) == np.uint64(number))
        else:
            own = np.arange(part.size)
        found.append(own + start)
    numbers = np.concatenate([np.empty(0, np.int64), *found])
    del found
    at, of = _linked(keys[numbers])
    leaders[numbers[at]] = numbers[of]


def _linked(keys: U64) -> tuple[I64, I64]:
    """Return the positions of keys that occur more than once, and the first position with the same key."""
    # A stable sort takes several times as long; the first of a group is its least position.
    order = np.argsort(keys)
    ordered = keys[order]
    is_same = ordered[1:] == ordered[:-1]
    is_first = np.concatenate([np.ones(min(keys.size, 1), np.bool_), ~is_same])
    is_followed = np.concatenate([is_same, np.zeros(min(keys.size, 1), np.bool_)])
    repeated = np.flatnonzero(~is_first | is_followed)
    positions = order[repeated]
    starts = np.flatnonzero(is_first[repeated])
    if not starts.size:
        return positions, positions
    firsts = np.minimum.reduceat(positions, starts)
    return positions, np.repeat(firsts, np.diff(starts, append=positions.size))


def _compact(
    batches: Callable[[list[str]], Iterable[pa.RecordBatch]],
    keys: U64,
    leaders: I64,
    arrays: BigArrays,
) -> RepeatedAnchors:
    """Keep the anchors that have a leader, and number them anew."""
    count = 0
    for start in range(0, leaders.size, _CHUNK):
        count += int(np.count_nonzero(leaders[start : start + _CHUNK] >= 0))
    kept = RepeatedAnchors(
        *(
            arrays.empty(f"repeated_{name}", count, kind)
            for name, kind in (
                ("keys", np.uint64),
                ("docs", np.int64),
                ("groups", np.int64),
                ("positions", np.int32),
                ("befores", np.int32),
                ("counts", np.int32),
                ("leaders", np.int64),
            )
        )
    )
    at = to = 0
    names = ["positions", "befores", "counts"]
    for batch in batches(["row", "group", "keys", *names]):
        lengths = batch.column("keys").value_lengths().to_numpy()
        own = slice(at, at + int(lengths.sum()))
        is_kept = np.flatnonzero(leaders[own] >= 0)
        end = to + is_kept.size
        kept.keys[to:end] = keys[own][is_kept]
        # The key of an anchor is not needed any more: its number among those that are kept takes
        # its place.
        keys[own][is_kept] = np.arange(to, end, dtype=np.uint64)
        doc_of = np.repeat(np.arange(batch.num_rows), lengths)[is_kept]
        kept.docs[to:end] = batch.column("row").to_numpy()[doc_of]
        kept.groups[to:end] = batch.column("group").to_numpy()[doc_of]
        for name in names:
            getattr(kept, name)[to:end] = batch.column(name).flatten().to_numpy()[is_kept]
        kept.leaders[to:end] = keys[leaders[own][is_kept]].view(np.int64)
        at = own.stop
        to = end
        arrays.drop_pages()
    return kept


def lay_out(anchors: RepeatedAnchors, length: int, arrays: BigArrays) -> tuple[I64, Islands, int]:
    """Return where the words of each anchor will be stored, what is stored, and how many words that is."""
    num_anchors = anchors.docs.size
    offsets: I64 = arrays.empty("anchor_offsets", num_anchors, np.int64)
    room = Islands(
        *(arrays.empty(f"island_{name}", num_anchors, np.int64) for name in Islands._fields)
    )
    num_islands, num_words = kernel.cover_anchors(
        anchors.docs,
        anchors.positions,
        anchors.befores,
        anchors.counts,
        length,
        offsets,
        tuple(room),
    )
    return offsets, Islands(*(column[:num_islands] for column in room)), num_words


def store_words(batch: pa.RecordBatch, islands: Islands, stored: U64, config: Config) -> int:
    """Copy the words around repeated anchors to their places; return how many of the documents have such anchors."""
    rows = batch.column("row").to_numpy()
    first = np.searchsorted(islands.docs, rows)
    has_islands = np.searchsorted(islands.docs, rows, side="right") > first
    texts = batch.column("text").filter(pa.array(has_islands))
    first = first[has_islands]
    for run in word_runs(texts, config):
        own = first[run.start : run.start + run.ends.size - 1]
        kernel.store_words(run.words, run.ends, own, tuple(islands), stored)
    return int(has_islands.sum())


class IslandWords:
    """Looks for the words of islands, and stores them."""

    def __init__(
        self, islands: Islands, stored: U64, config: Config, after: Callable[[], None]
    ) -> None:
        """Take the islands, where their words go, and a function to call after each batch."""
        self._islands = islands
        self._stored = stored
        self._config = config
        self._after = after

    def look(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Store the words of the islands of some documents."""
        count = store_words(batch, self._islands, self._stored, self._config)
        self._after()
        return pa.record_batch([pa.array([count])], schema=schema.COUNTS)

    def part_of(self, first: int, stop: int) -> dict[str, npt.NDArray[Any]] | None:
        """Return the islands of some rows, whose words follow each other."""
        islands = self._islands
        own = slice(*np.searchsorted(islands.docs, [first, stop]).tolist())
        if own.start == own.stop:
            return None
        begin = islands.offsets[own.start]
        return {
            "docs": islands.docs[own],
            "starts": islands.starts[own],
            "ends": islands.ends[own],
            "offsets": islands.offsets[own] - begin,
        }

    @property
    def make(self) -> Callable[[Mapping[str, npt.NDArray[Any]]], IslandWords]:
        """Return a function that makes a scan of a part."""
        return partial(_island_words, config=self._config)

    def found(self) -> dict[str, npt.NDArray[Any]]:
        """Return the words."""
        return {"words": self._stored}

    def merge(self, first: int, stop: int, found: Mapping[str, npt.NDArray[Any]]) -> None:
        """Store the words of the islands of some rows."""
        del stop
        begin = self._islands.offsets[np.searchsorted(self._islands.docs, first)]
        self._stored[begin : begin + found["words"].size] = found["words"]
        self._after()


def _island_words(arrays: Mapping[str, npt.NDArray[Any]], config: Config) -> IslandWords:
    islands = Islands(*(arrays[name] for name in Islands._fields))
    stored = np.empty(int((islands.ends - islands.starts).sum()), np.uint64)
    return IslandWords(islands, stored, config, lambda: None)


class _BundleStore:
    """What is left of bundles, in parts by their key: in memory, or in files if it may not fit; thread-safe."""

    def __init__(self, most: int, arrays: BigArrays, room: int = 0) -> None:
        """Take the most bundles there can be, and the memory for them; 0 for no limit."""
        self._bits = 0
        while room and most * _GROUP_BYTES > room << self._bits and self._bits < _MAX_BITS:
            self._bits += 1
        self.num_parts = 1 << self._bits
        files = [arrays.file(f"bundles-{part}") for part in range(self.num_parts)]
        self._files = [file for file in files if file is not None]
        self._cached: list[_Bundles] = []
        self._lock = threading.Lock()

    def put(self, bundles: _Bundles) -> None:
        """Add bundles."""
        if not self._bits or not self._files:
            with self._lock:
                self._cached.append(bundles)
            return
        packed = np.empty(bundles.keys.size, _PACKED)
        for name, column in zip(_Bundles._fields, bundles, strict=True):
            packed[name] = column
        parts = (bundles.keys >> np.uint64(64 - self._bits)).astype(np.int64)
        order = np.argsort(parts, kind="stable")
        ends = np.searchsorted(parts[order], np.arange(self.num_parts + 1))
        packed = packed[order]
        with self._lock:
            for part, file in enumerate(self._files):
                with file.open("ab") as output:
                    output.write(packed[ends[part] : ends[part + 1]].tobytes())

    def take(self, part: int) -> _Bundles:
        """Return the bundles of a part, in input order, and release them."""
        if not self._bits or not self._files:
            cached = [_Bundles.room(0), *self._cached]
            self._cached = []
            columns: list[Any] = _concatenated(cached, _Bundles._fields)
        else:
            packed = np.fromfile(self._files[part], _PACKED)
            self._files[part].unlink()
            columns = [np.ascontiguousarray(packed[name]) for name in _Bundles._fields]
        bundles = _Bundles(*columns)
        if (np.diff(bundles.owners) >= 0).all():
            return bundles
        return bundles.where(np.argsort(bundles.owners, kind="stable"))


class PlaceFinder:
    """Finds the first place of every window around repeated anchors."""

    def __init__(
        self,
        anchors: RepeatedAnchors,
        offsets: I64,
        words: U64,
        shape: tuple[int, int],
        *,
        num_references: int | None = None,
    ) -> None:
        """Take the anchors and the words around them.

        Args:
            anchors: the repeated anchors.
            offsets: where the first word of each is in `words`.
            words: the words around anchors.
            shape: words in an anchor, and the most words from the start of a window to its anchor.
            num_references: only first places in a row below this; None for all.
        """
        self._anchors = anchors
        self._columns = anchors.docs, anchors.groups, anchors.positions, offsets
        self._words = words
        self._shape = shape
        self._num_references = num_references
        self._block = _BLOCK

    def find(
        self,
        side_by_side: SideBySide,
        after_block: Callable[[int], None],
        arrays: BigArrays,
        room: int = 0,
    ) -> Stretches:
        """Return the stretches.

        Args:
            side_by_side: compares blocks in parallel.
            after_block: called with the number of bundles that are done.
            arrays: where bundles go that do not fit in memory.
            room: the memory for them; 0 for no limit.
        """
        anchors = self._anchors
        count = anchors.docs.size
        nothing = np.zeros(count, np.int32)
        # The anchors become the first bundles, so that their columns need not be copied.
        np.subtract(anchors.befores, anchors.counts - 1, out=anchors.counts)
        first = _Bundles(
            anchors.keys, np.arange(count), anchors.counts, anchors.befores, nothing, nothing
        )
        rest = _BundleStore(2 * count, arrays, room)
        self._block = min(_BLOCK, _MAPPED_BLOCK) if arrays.are_mapped else _BLOCK
        found = [self._compare(first, anchors.leaders, side_by_side, after_block, rest)]
        del first, nothing
        # Bundles with equal keys, and all that is left of them later, are in one part.
        for part in range(rest.num_parts):
            bundles, leaders = self._grouped(rest.take(part))
            while bundles.keys.size:
                left = _BundleStore(0, arrays)
                found.append(self._compare(bundles, leaders, side_by_side, after_block, left))
                bundles, leaders = self._grouped(left.take(0))
        return _joined(found)

    def _compare(
        self,
        bundles: _Bundles,
        leaders: I64,
        side_by_side: SideBySide,
        after_block: Callable[[int], None],
        rest: _BundleStore,
    ) -> Stretches:
        """Compare all bundles with their leaders; put what is left of them into `rest`."""

        def compare(first: int) -> Stretches:
            stop = min(first + self._block, leaders.size)
            stretches = Stretches(*(np.empty(stop - first, np.int64) for _ in Stretches._fields))
            left = _Bundles.room(2 * (stop - first))
            num_stretches, num_left = kernel.compare_bundles(
                first,
                stop,
                leaders,
                tuple(bundles),
                self._columns,
                self._shape,
                self._words,
                tuple(stretches),
                tuple(left),
            )
            rest.put(left.where(slice(num_left)))
            after_block(stop - first)
            return Stretches(*(column[:num_stretches].copy() for column in stretches))

        blocks = side_by_side(compare, range(0, leaders.size, self._block))
        nothing = Stretches(*(np.empty(0, np.int64) for _ in Stretches._fields))
        return Stretches(*_concatenated([nothing, *blocks], Stretches._fields))

    def _grouped(self, bundles: _Bundles) -> tuple[_Bundles, I64]:
        """Keep the bundles whose key occurs more than once; return them and their leaders."""
        at, of = _linked(bundles.keys)
        if self._num_references is not None:
            can_be = self._anchors.docs[bundles.owners[of]] < self._num_references
            at = at[can_be]
            of = of[can_be]
        order = np.argsort(at)
        kept = at[order]
        leaders = np.searchsorted(kept, of[order])
        return bundles.where(kept), leaders


def _concatenated(blocks: Sequence[Any], names: Sequence[str]) -> list[npt.NDArray[Any]]:
    return [np.concatenate([getattr(block, name) for block in blocks]) for name in names]


def _joined(found: Sequence[Stretches]) -> Stretches:
    """Return the stretches of all levels, sorted and joined."""
    if not found:
        return Stretches(*(np.empty(0, np.int64) for _ in Stretches._fields))
    stretches = Stretches(*_concatenated(found, Stretches._fields))
    if len(found) > 1:
        order = np.lexsort((stretches.starts, stretches.docs))
        stretches = stretches.where(order)
    count = kernel.join_stretches(*stretches)
    return Stretches(*(column[:count] for column in stretches))
