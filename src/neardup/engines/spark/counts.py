"""Saturating counts of many workers, added up on the driver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from neardup.engines.base import Counts, CountStep
from neardup.engines.local.groups import split_groups
from neardup.engines.spark.arrow_steps import Batches, StreamStep, map_frame

# Counters sent in one row.
_PIECE: Final = 1 << 20
_PIECES: Final = pa.schema([("piece", pa.int64()), ("counts", pa.binary())])


def add_counts(rows: DataFrame, choose: StreamStep, step: CountStep, num_counters: int) -> Counts:
    """Let a step count the rows of every partition that `choose` returns, and add up the counts."""

    def counted(batches: Batches) -> Iterator[pa.RecordBatch]:
        counts = np.zeros(num_counters, np.uint8)
        for batch in choose(batches):
            step(batch, counts)
        for piece, start in enumerate(range(0, num_counters, _PIECE)):
            yield _piece(piece, counts[start : start + _PIECE])

    def added(batches: Batches) -> Iterator[pa.RecordBatch]:
        for group in split_groups(batches, "piece"):
            several = [
                np.frombuffer(counts, np.uint8) for counts in group.column("counts").to_pylist()
            ]
            total = np.minimum(np.sum(several, axis=0, dtype=np.int64), 255).astype(np.uint8)
            yield _piece(group.column("piece")[0].as_py(), total)

    pieces = map_frame(rows, _PIECES, counted).repartition("piece").sortWithinPartitions("piece")
    found = (
        map_frame(pieces, _PIECES, added).toArrow().sort_by("piece").column("counts").to_pylist()
    )
    # The kernel that reads them is compiled for writable arrays.
    total: Counts = np.frombuffer(b"".join(found), np.uint8).copy()
    return total if total.size else np.zeros(num_counters, np.uint8)


def _piece(number: int, counts: Counts) -> pa.RecordBatch:
    return pa.record_batch(
        [pa.array([number]), pa.array([counts.tobytes()], pa.binary())], schema=_PIECES
    )
