"""The ids of kept documents, looked up in batches: all of them may exceed memory."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

I64 = npt.NDArray[np.int64]


class KeptIds:
    """The id of the document kept in place of each removed one; thread-safe.

    Sequential access looks up every id once.
    """

    def __init__(self, kept_rows: I64, ids_of: Callable[[I64], pa.Array], num_at_once: int) -> None:
        """Take the kept row of every removed document, a function from rows to ids, and how many ids to hold."""
        self._kept_rows = kept_rows
        self._ids_of = ids_of
        self._num_at_once = num_at_once
        self._first = 0
        self._cached = pa.array([], pa.string())
        self._lock = threading.Lock()

    def slice(self, first: int, length: int) -> pa.Array:
        """Return the ids for `length` removed documents from the one with number `first` on."""
        found = [pa.array([], pa.string())]
        with self._lock:
            stop = first + length
            while first < stop:
                if not self._first <= first < self._first + len(self._cached):
                    self._load(first)
                found.append(self._cached.slice(first - self._first, stop - first))
                first += len(found[-1])
        return pa.concat_arrays(found)

    def _load(self, first: int) -> None:
        self._cached = pa.array([], pa.string())  # frees memory for the next ones
        rows, inverse = np.unique(
            self._kept_rows[first : first + self._num_at_once], return_inverse=True
        )
        self._cached = self._ids_of(rows).take(pa.array(inverse))
        self._first = first
