"""Passages, stage 4: where places, sources and spans stand in the texts, which are read once more for it."""

from __future__ import annotations

import mmap
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.io.storage.big_arrays import write_pieces
from neardup.kernels import words as kernel
from neardup.measures.words import LocatedRun, located_runs
from neardup.search.places import Stretches
from neardup.search.spans import NO_PASSAGES, Passages, Spans

I64 = npt.NDArray[np.int64]
# Texts of passages that are kept in memory however little of it is left; more go to a file, if there is a folder.
_CACHED_BYTES = 8 << 20
# Reading a page of a mapped file maps its neighbours, too: so many texts at once map some 32 MB.
_TEXTS_AT_ONCE = 512


class Bounds(NamedTuple):
    """First byte of some words in their document, and the byte behind them; the same in code points; lines before."""

    start_bytes: I64
    end_bytes: I64
    starts: I64
    ends: I64
    lines: I64

    @classmethod
    def room(cls, size: int) -> Bounds:
        """Return bounds to be written."""
        return cls(*(np.zeros(size, np.int64) for _ in cls._fields))


class PassageTexts:
    """The texts of passages, in any order; thread-safe."""

    def __init__(self, size: int, folder: Path | None, room: int = 0) -> None:
        """Take the number of texts, the folder for those that do not fit in memory, and the memory for them."""
        self._room = max(room, _CACHED_BYTES)
        self._offsets = np.zeros(size, np.int64)
        self._sizes = np.zeros(size, np.int64)
        self._folder = folder
        self._cached = bytearray()
        self._num_written = 0
        self._mapped: mmap.mmap | None = None
        self._lock = threading.Lock()

    def put(self, numbers: slice, content: bytes, sizes: I64) -> None:
        """Add the texts of consecutive passages, end to end."""
        with self._lock:
            self._offsets[numbers] = (
                self._num_written + len(self._cached) + np.cumsum(sizes) - sizes
            )
            self._sizes[numbers] = sizes
            self._cached += content
            if self._folder is not None and len(self._cached) > self._room:
                self._write()
                # Now a file is mapped anyway, so that holding more of it would save nothing.
                self._room = _CACHED_BYTES

    def _write(self) -> None:
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        write_pieces(self._folder / "texts", self._cached, "ab" if self._num_written else "wb")
        self._num_written += len(self._cached)
        self._cached = bytearray()

    def take(self, numbers: I64) -> pa.Array:
        """Return the texts of some passages."""
        source = self._source()
        offsets = self._offsets[numbers]
        sizes = self._sizes[numbers]
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        gathered = np.empty(ends[-1], np.uint8)
        for first in range(0, numbers.size, _TEXTS_AT_ONCE):
            stop = min(first + _TEXTS_AT_ONCE, numbers.size)
            kernel.gather_bytes(source, offsets[first:stop], ends[first : stop + 1], gathered)
            if self._mapped is not None and hasattr(self._mapped, "madvise"):
                self._mapped.madvise(mmap.MADV_DONTNEED)  # or its pages count as memory
        return pa.LargeStringArray.from_buffers(
            numbers.size, pa.py_buffer(ends), pa.py_buffer(gathered)
        )

    def bytes_of(self, numbers: I64) -> I64:
        """Return the bytes of some texts."""
        sizes: I64 = self._sizes[numbers]
        return sizes

    def _source(self) -> npt.NDArray[np.uint8]:
        if self._folder is None or not self._num_written:
            cached = np.frombuffer(self._cached, np.uint8)
            cached.flags.writeable = False
            return cached
        if self._cached:
            self._write()
        if self._mapped is None:
            with (self._folder / "texts").open("rb") as file:
                self._mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(self._mapped, np.uint8)


class Locator:
    """Finds places, the passages of their sources, and spans in the texts of documents."""

    def __init__(
        self,
        places: Stretches,
        passages: Passages,
        spans: Spans,
        min_words: int,
        config: Config,
        folder: Path | None = None,
        room: int = 0,
    ) -> None:
        """Take what to find; `folder` is for the texts of passages that do not fit in `room` bytes of memory."""
        self._places = places
        self._passages = passages
        self._spans = spans
        self._extra = min_words - 1
        self._config = config
        self.places = Bounds.room(places.docs.size)
        self.passages = Bounds.room(passages.sources.size)
        self.spans = Bounds.room(spans.docs.size)
        self.texts = PassageTexts(passages.sources.size, folder, room)

    def look(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Find everything in the documents of a batch."""
        return pa.record_batch([pa.array([self.locate(batch)])], schema=schema.COUNTS)

    def part_of(self, first: int, stop: int) -> dict[str, npt.NDArray[Any]] | None:
        """Return what to find in some rows."""
        places, passages, spans = self._slices(first, stop)
        own = self._places, self._passages, self._spans
        if all(part.start == part.stop for part in (places, passages, spans)):
            return None
        return {
            "place_docs": own[0].docs[places],
            "place_starts": own[0].starts[places],
            "place_counts": own[0].counts[places],
            "passage_docs": own[1].sources[passages],
            "passage_starts": own[1].starts[passages],
            "passage_words": own[1].words[passages],
            "span_docs": own[2].docs[spans],
            "span_starts": own[2].starts[spans],
            "span_ends": own[2].ends[spans],
        }

    def _slices(self, first: int, stop: int) -> tuple[slice, slice, slice]:
        """Return which places, passages and spans are in some rows."""
        docs = self._places.docs, self._passages.sources, self._spans.docs
        bounds = (np.searchsorted(own, [first, stop]).tolist() for own in docs)
        places, passages, spans = (slice(begin, end) for begin, end in bounds)
        return places, passages, spans

    @property
    def make(self) -> Callable[[Mapping[str, npt.NDArray[Any]]], Locator]:
        """Return a function that makes a scan of a part."""
        return partial(_locator_of, min_words=self._extra + 1, config=self._config)

    def found(self) -> dict[str, npt.NDArray[Any]]:
        """Return where everything stands, and the texts of passages."""
        found: dict[str, npt.NDArray[Any]] = {}
        for name, bounds in self._bounds().items():
            found[name] = np.stack(bounds)
        numbers = np.arange(self._passages.sources.size)
        texts = self.texts.take(numbers)
        found["sizes"] = self.texts.bytes_of(numbers)
        found["content"] = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
        return found

    def merge(self, first: int, stop: int, found: Mapping[str, npt.NDArray[Any]]) -> None:
        """Add where everything in some rows stands."""
        slices = self._slices(first, stop)
        for own, (name, bounds) in zip(slices, self._bounds().items(), strict=True):
            for column, values in zip(bounds, found[name], strict=True):
                column[own] = values
        self.texts.put(slices[1], found["content"].tobytes(), found["sizes"])

    def _bounds(self) -> dict[str, Bounds]:
        return {"places": self.places, "passages": self.passages, "spans": self.spans}

    def locate(self, batch: pa.RecordBatch) -> int:
        """Find everything in the documents of a batch; return how many documents have something."""
        rows: I64 = batch.column("row").to_numpy()
        is_wanted = np.zeros(rows.size, np.bool_)
        for docs in (self._places.docs, self._passages.sources, self._spans.docs):
            first = np.searchsorted(docs, rows)
            is_wanted |= np.searchsorted(docs, rows, side="right") > first
        rows = rows[is_wanted]
        for run in located_runs(batch.column("text").filter(pa.array(is_wanted)), self._config):
            self._locate_run(run, rows[run.start : run.start + run.ends.size - 1])
        return rows.size

    def _locate_run(self, run: LocatedRun, rows: I64) -> None:
        places = self._places
        passages = self._passages
        spans = self._spans
        wanted = (
            (places.docs, self.places),
            (passages.sources, self.passages),
            (spans.docs, self.spans),
        )
        for docs, bounds in wanted:
            first, stop = np.searchsorted(docs, [rows[0], rows[-1] + 1]).tolist()
            own = slice(first, stop)
            # Only of this run: all of them, run after run, would be quadratic.
            if bounds is self.places:
                starts = places.starts[own]
                words = places.counts[own] + self._extra
            elif bounds is self.passages:
                starts = passages.starts[own]
                words = passages.words[own]
            else:
                starts = spans.starts[own]
                words = spans.ends[own] - starts
            of_doc = np.searchsorted(rows, docs[own])
            at = run.ends[of_doc] + starts
            begins = run.starts[at]
            ends = run.stops[at + words - 1]
            bounds.start_bytes[own] = begins
            bounds.end_bytes[own] = ends
            if bounds is not self.spans or self._config.mark:
                self._count(run, of_doc, own, bounds)
            if bounds is self.passages:
                self._take_texts(run, of_doc, own)

    def _count(self, run: LocatedRun, of_doc: I64, own: slice, bounds: Bounds) -> None:
        """Count the code points and lines before bytes."""
        count = of_doc.size
        positions = np.concatenate([bounds.start_bytes[own], bounds.end_bytes[own]])
        docs = np.concatenate([of_doc, of_doc])
        order = np.lexsort((positions, docs))
        ends = np.searchsorted(docs[order], np.arange(run.offsets.size))
        points = np.empty(2 * count, np.int64)
        lines = np.empty(2 * count, np.int64)
        found = np.empty(2 * count, np.int64)
        kernel.count_before(run.source, run.offsets, positions[order], ends, points, lines)
        found[order] = points
        bounds.starts[own] = found[:count]
        bounds.ends[own] = found[count:]
        found[order] = lines
        bounds.lines[own] = found[:count]

    def _take_texts(self, run: LocatedRun, of_doc: I64, own: slice) -> None:
        first = run.offsets[of_doc] + self.passages.start_bytes[own]
        sizes = self.passages.end_bytes[own] - self.passages.start_bytes[own]
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        gathered = np.empty(ends[-1], np.uint8)
        kernel.gather_bytes(run.source, first, ends, gathered)
        self.texts.put(own, gathered.tobytes(), sizes)


def _locator_of(arrays: Mapping[str, npt.NDArray[Any]], min_words: int, config: Config) -> Locator:
    """Return what locates the places, passages and spans of a part."""
    docs = arrays["place_docs"]
    places = Stretches(docs, arrays["place_starts"], arrays["place_counts"], docs, docs)
    passages = NO_PASSAGES._replace(
        sources=arrays["passage_docs"],
        starts=arrays["passage_starts"],
        words=arrays["passage_words"],
    )
    spans = Spans(arrays["span_docs"], arrays["span_starts"], arrays["span_ends"])
    return Locator(places, passages, spans, min_words, config)
