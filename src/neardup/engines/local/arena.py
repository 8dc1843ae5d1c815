"""The arena: the sets of all documents, or of none, kept in memory between the first pass and verification."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.engines.base import BatchStep

U64 = npt.NDArray[np.uint64]
# The arena grows by an eighth, at least by this many items. Growing often is cheap, because the system remaps pages
# instead of copying bytes, while unused room is zeroed and counts as memory.
_LEAST_GROWTH: Final = 1 << 14
# After this share of the input the total size of all sets can be estimated; sets that will not fit are not collected.
# 5 GB of text held 4.4 GB before it was given up, which took 12 s of 36.
_KNOWN_AFTER: Final = 0.05
_TOLERANCE: Final = 1.25
# The offset of a set that is not kept.
NOWHERE: Final = -1


class Arena:
    """Grows as sets are added; drops all of them when they exceed a third of the available memory.

    Available memory is measured with the first set: by then kernels are compiled, and the first batches are in memory.
    """

    def __init__(self, room: Callable[[], int] | None) -> None:
        self._room, self._limit = room, 0
        self._values: U64 = np.empty(0, np.uint64)
        self._size = 0
        self._lock = threading.Lock()
        self.is_whole = True

    def put(self, values: U64) -> int:
        """Copy values into the arena; return their offset, or NOWHERE."""
        with self._lock:
            if not self.is_whole:
                return NOWHERE
            if self._room is not None and self.is_empty:
                self._limit = self._room() // 3
            start, self._size = self._size, self._size + values.size
            if self._room is not None and 8 * self._size > self._limit:
                self._give_up()
                return NOWHERE
            if self._size > self._values.size:
                self._values.resize(self._size + max(_LEAST_GROWTH, self._size >> 3), refcheck=False)
            self._values[start : self._size] = values
            return start

    def expect(self, share: float) -> None:
        """Drop all sets if those of the rest of the input will not fit; `share` of it has been read."""
        with self._lock:
            if share > _KNOWN_AFTER and self._limit and 8 * self._size > _TOLERANCE * self._limit * share:
                self._give_up()

    def give_up(self) -> None:
        """Drop all sets, because some are missing or none is needed any more."""
        with self._lock:
            self._give_up()

    def _give_up(self) -> None:
        self.is_whole = False
        self._values = np.empty(0, np.uint64)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever added."""
        return self._size == 0

    def views(self, starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> pa.Array:
        """Return sets as a list view array that points into the arena."""
        values = pa.array(self._values[: self._size].view(np.int64))
        return pa.LargeListViewArray.from_arrays(pa.array(starts), pa.array(sizes), values)


class ArenaTable:
    """A table computed from the sets in the arena by a step, each time it is read.

    `batches` have the columns row, group, num_shingles and held_at; the step gets the set in place of the text.
    """

    def __init__(
        self, batches: Callable[[], Iterable[pa.RecordBatch]], arena: Arena, step: BatchStep, schema: pa.Schema
    ) -> None:
        self._batches, self._arena, self._step = batches, arena, step
        self.schema = schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over some columns."""
        for batch in self._batches():
            starts, sizes = (batch.column(name).to_numpy() for name in ("held_at", "num_shingles"))
            sets = {"row": batch.column("row"), "text": self._arena.views(starts, sizes)}
            yield self._step(pa.record_batch(sets | {"group": batch.column("group")})).select(list(columns))
