"""What is held between the first pass and verification: the sets of all documents, or of none."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.engines.base import BatchStep

U64 = npt.NDArray[np.uint64]
# The arena grows by an eighth, and by so many items at least: the system moves pages, not bytes, so that growing often
# costs little, and what was grown for nothing is cleared and counts as memory.
_LEAST_GROWTH: Final = 1 << 14
# Where a set lies that is not held.
NOWHERE: Final = -1


class Arena:
    """Grows as sets are put into it; gives all of them up when they take more than a third of the room.

    The room is asked for with the first set: by then kernels are compiled, and the first batches are in memory.
    """

    def __init__(self, room: Callable[[], int] | None) -> None:
        self._room, self._limit = room, 0
        self._values: U64 = np.empty(0, np.uint64)
        self._size = 0
        self._lock = threading.Lock()
        self.is_whole = True

    def put(self, values: U64) -> int:
        """Copy values into the arena; return where they start, or NOWHERE."""
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

    def give_up(self) -> None:
        """Forget all sets: some will be missing, or nobody needs them any more."""
        with self._lock:
            self._give_up()

    def _give_up(self) -> None:
        self.is_whole = False
        self._values = np.empty(0, np.uint64)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever put."""
        return self._size == 0

    def views(self, starts: npt.NDArray[np.int64], sizes: npt.NDArray[np.int64]) -> pa.Array:
        """Return sets as a list array that points into the arena."""
        values = pa.array(self._values[: self._size].view(np.int64))
        return pa.LargeListViewArray.from_arrays(pa.array(starts), pa.array(sizes), values)


class ArenaTable:
    """A table of held sets, through a step, made anew whenever it is asked for.

    `batches` have the columns row, group, num_shingles and held_at; the step sees the set in place of the text.
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
