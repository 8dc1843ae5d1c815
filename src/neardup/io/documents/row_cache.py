"""Rows of the first pass that stay in memory until the kept rows are written, so that they are decoded once."""

from __future__ import annotations

import threading

import pyarrow as pa


class RowCache:
    """The columns read in the first pass, by piece of a file; thread-safe.

    All pieces are kept, or none: keeping only some would take memory from every later stage and
    save little.
    """

    def __init__(self, room: int = 0, expected: int = 0) -> None:
        """Take the memory limit in bytes, and the estimated size of all pieces."""
        self._room = room if expected <= room else 0
        self._batches: dict[int, list[pa.RecordBatch]] = {}
        self._lock = threading.Lock()

    def put(self, piece: int, columns: pa.RecordBatch) -> None:
        """Add a copy of rows to a piece; if they do not fit, drop all pieces.

        Decoding grows its buffers as it goes. If they were kept, every batch would be decoded to
        fresh memory, which takes 1.3 core-seconds more for 640 MB than copying.
        """
        if not self._room:
            return
        copied = pa.ipc.read_record_batch(columns.serialize(), columns.schema)
        with self._lock:
            self._room -= min(self._room, copied.nbytes)
            if self._room:
                self._batches.setdefault(piece, []).append(copied)
            else:
                self._batches.clear()

    def take(self, piece: int) -> list[pa.RecordBatch] | None:
        """Return the rows of a piece and release them; None if they are not cached."""
        return self._batches.pop(piece, None)
