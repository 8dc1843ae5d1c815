"""The arena: the sets of all documents, or of none, kept in memory between the first pass and verification."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.engines.base import BatchStep
from neardup.io.free_memory import free_bytes

U64 = npt.NDArray[np.uint64]
# After this share of the input the total size of all sets can be estimated; sets that will not fit
# are not collected. 5 GB of text used to collect 4.4 GB before giving up, which took 12 s of 36.
_KNOWN_AFTER: Final = 0.05
_TOLERANCE: Final = 1.25
# The offset of a set that is not kept.
NOWHERE: Final = -1


class Arena:
    """Takes sets up to a third of the available memory, and drops all of them when they exceed it.

    Available memory is measured with the first set: by then kernels are compiled, and the first
    batches are in memory. The address space for all sets is reserved at once, and memory is used as
    several threads copy sets in parallel. Growing an array would zero it first, on one thread: 5 %
    of the time of a run.
    """

    def __init__(self, room: Callable[[], int] | None) -> None:
        self._room = free_bytes if room is None else room
        self._values: U64 = np.empty(0, np.uint64)
        self._size = 0
        self._lock = threading.Lock()
        self.is_whole = True

    def put(self, values: U64) -> int:
        """Copy values into the arena; return their offset, or NOWHERE."""
        with self._lock:
            if not self.is_whole:
                return NOWHERE
            if self.is_empty:
                self._values = _reserved(self._room() // 3)
            start = self._size
            self._size = self._size + values.size
            if self._size > self._values.size:
                self._give_up()
                return NOWHERE
            stored = self._values
        stored[start : start + values.size] = values
        return start

    def expect(self, share: float) -> None:
        """Drop all sets if those of the rest of the input will not fit; `share` of it has been read."""
        with self._lock:
            if share > _KNOWN_AFTER and self._size > _TOLERANCE * self._values.size * share:
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


def _reserved(num_bytes: int) -> U64:
    """Return an array whose pages take memory only when written to; empty if the system refuses.

    NumPy requests huge pages, whose first access takes five times as long as that of small ones
    (3.3 instead of .6 s per GB).
    """
    try:
        buffer = pa.allocate_buffer(num_bytes // 8 * 8, memory_pool=pa.system_memory_pool())
    except pa.ArrowMemoryError:
        return np.empty(0, np.uint64)
    return np.frombuffer(buffer, np.uint64)


class ArenaTable:
    """A table computed from the sets in the arena by a step, each time it is read.

    `batches` have the columns row, group, num_shingles and held_at; the step gets the set in place
    of the text.
    """

    def __init__(
        self,
        batches: Callable[[], Iterable[pa.RecordBatch]],
        arena: Arena,
        step: BatchStep,
        schema: pa.Schema,
    ) -> None:
        self._batches = batches
        self._arena = arena
        self._step = step
        self.schema = schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over some columns."""
        for batch in self._batches():
            if list(columns) == ["row"]:  # needs no set
                yield batch.select(["row"])
                continue
            starts, sizes = (batch.column(name).to_numpy() for name in ("held_at", "num_shingles"))
            sets = {"row": batch.column("row"), "text": self._arena.views(starts, sizes)}
            yield self._step(pa.record_batch(sets | {"group": batch.column("group")})).select(
                list(columns)
            )
