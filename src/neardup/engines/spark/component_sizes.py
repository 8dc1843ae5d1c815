"""Records the size of the largest component while components are streamed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.accumulators import AccumulatorParam

Sizes = tuple[int, int]


class Largest(AccumulatorParam[Sizes]):
    """Keeps the largest number of documents and the most bytes; a task that runs twice changes nothing."""

    def zero(self, value: Sizes) -> Sizes:
        """Return the neutral element."""
        del value
        return 0, 0

    def addInPlace(self, value1: Sizes, value2: Sizes) -> Sizes:  # noqa: N802 - Spark calls it so
        """Return the element-wise maximum."""
        return max(value1[0], value2[0]), max(value1[1], value2[1])


def watch_sizes(
    batches: Iterator[pa.RecordBatch], report: Callable[[Sizes], None]
) -> Iterator[pa.RecordBatch]:
    """Pass on batches of documents, those of a component together, and report the sizes of the largest."""
    component = None
    documents = 0
    size = 0
    for batch in batches:
        if batch.num_rows:
            labels = batch.column("component").to_numpy()
            starts = np.flatnonzero(np.r_[True, labels[1:] != labels[:-1]])
            counts = np.diff(np.r_[starts, labels.size])
            sums = np.add.reduceat(
                pc.binary_length(batch.column("text")).to_numpy().astype(np.int64), starts
            )
            if labels[0] == component:
                counts[0] += documents
                sums[0] += size
            report((int(counts.max()), int(sums.max())))
            component = labels[-1]
            documents = int(counts[-1])
            size = int(sums[-1])
        yield batch
