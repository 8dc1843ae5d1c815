"""An exchange of rows in blocks: workers partition and sort them, and Java only passes on a few large values.

Spark converts every value of every row four times on its way from one Python worker to another,
which for band keys and texts took longer than all stages together (decision 29). Here a worker
sends one block, a serialised Arrow batch, to each bucket.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from neardup import schema as schemas
from neardup.engines.spark.arrow_steps import StreamStep, map_frame, narrow
from neardup.engines.spark.storage import one_task_each
from neardup.io.columns.arrow_rows import pieces
from neardup.io.storage.spill import sort_on_disk

# Maps the number of a bucket and its sorted rows.
RangeStep = Callable[[int, Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]
BLOCKS: Final = pa.schema([("bucket", pa.int32()), ("block", pa.binary())])
# Rows that are partitioned at once: many, so that blocks are large.
_PACKED_BYTES: Final = 32 << 20
_SORTED_BYTES: Final = 16 << 20
_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
_SHIFT: Final = np.uint64(32)
# Validity and values.
_BUFFERS_OF_NUMBERS: Final = 2


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """Which rows meet in a bucket, and in which order.

    columns: the schema of the rows; order: the integers that the rows of a bucket are sorted by;
    limit: bytes of rows that a worker sorts in memory, more are sorted on its disk; by: rows with
    equal integers in these columns meet;
    bounds: instead of `by`, the first value of `order` in every bucket but the first, so that
    buckets are in order.
    """

    columns: pa.Schema
    order: tuple[str, ...]
    num_buckets: int
    limit: int
    by: tuple[str, ...] = ()
    bounds: tuple[int, ...] | None = None

    @property
    def _is_numeric(self) -> bool:
        return all(kind.num_buffers == _BUFFERS_OF_NUMBERS for kind in self.columns.types)

    def pack(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Turn rows into BLOCKS: of about 32 MB of rows, one block for each bucket."""
        collected: list[pa.RecordBatch] = []
        for batch in batches:
            collected.append(batch)
            if sum(part.nbytes for part in collected) >= _PACKED_BYTES:
                yield self._blocks(collected)
                collected = []
        if collected:
            yield self._blocks(collected)

    def _blocks(self, collected: list[pa.RecordBatch]) -> pa.RecordBatch:
        whole = schemas.one_batch(collected, self.columns)
        buckets = self._buckets(whole)
        ordered = whole.take(pa.array(np.argsort(buckets, kind="stable")))
        sizes = np.bincount(buckets, minlength=self.num_buckets)
        starts = np.cumsum(sizes) - sizes
        used = np.flatnonzero(sizes)
        blocks = [self._serialised(ordered.slice(starts[at], sizes[at])) for at in used]
        columns = [pa.array(used, pa.int32()), pa.array(blocks, pa.binary())]
        return pa.record_batch(columns, schema=BLOCKS)

    def _buckets(self, batch: pa.RecordBatch) -> npt.NDArray[np.integer[Any]]:
        # NumPy uses radix sort for 16-bit numbers, which takes linear time.
        kind = np.uint16 if self.num_buckets <= 1 << 16 else np.uint32
        if self.bounds is not None:
            first: npt.NDArray[np.int64] = batch.column(self.order[0]).to_numpy()
            bounds = np.array(self.bounds, np.int64)
            return np.searchsorted(bounds, first, side="right").astype(kind)
        mixed = np.zeros(batch.num_rows, np.uint64)
        for name in self.by:
            mixed = (mixed ^ batch.column(name).to_numpy().view(np.uint64)) * _MULTIPLIER
            mixed ^= mixed >> _SHIFT
        return (mixed % np.uint64(self.num_buckets)).astype(kind)

    def _serialised(self, batch: pa.RecordBatch) -> bytes:
        if self._is_numeric:  # mostly hashes, which do not compress
            return bytes(batch.serialize())
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
            writer.write_batch(batch)
        return bytes(sink.getvalue())

    def unpack(self, blocks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the rows of blocks, sorted, in batches."""
        rows = chain.from_iterable(map(self._rows, blocks))
        collected: list[pa.RecordBatch] = []
        size = 0
        for batch in rows:
            collected.append(batch)
            size += batch.nbytes
            if size > self.limit:
                yield from self._sort_on_disk(chain(collected, rows))
                return
        if collected:
            yield from self._sort(collected)

    def _rows(self, blocks: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        for block in blocks.column("block").drop_null():
            if self._is_numeric:
                yield pa.ipc.read_record_batch(block.as_buffer(), self.columns)
            else:
                with pa.ipc.open_stream(block.as_buffer()) as reader:
                    yield from reader

    def _sort(self, collected: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        whole = schemas.one_batch(collected, self.columns)
        collected.clear()  # so that the rows are in memory once
        order = np.lexsort([whole.column(name).to_numpy() for name in reversed(self.order)])
        num_rows = max(_SORTED_BYTES * whole.num_rows // max(whole.nbytes, 1), 1)
        for start in range(0, whole.num_rows, num_rows):
            yield whole.take(pa.array(order[start : start + num_rows]))

    def _sort_on_disk(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        columns = narrow(self.columns)
        order = [(name, "ascending") for name in self.order]
        small = (piece.cast(columns) for batch in rows for piece in pieces(batch, _SORTED_BYTES))
        with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
            for batch in sort_on_disk(small, columns, order, Path(folder), self.limit):
                yield from (piece.cast(self.columns) for piece in pieces(batch, _SORTED_BYTES))


def map_buckets(
    blocks: DataFrame, exchange: Exchange, schema: pa.Schema, step: StreamStep
) -> DataFrame:
    """Send blocks to their buckets, and apply a step to the sorted rows of each."""
    sent = one_task_each(blocks, "bucket", exchange.num_buckets)
    return map_frame(sent, schema, lambda batches: step(exchange.unpack(batches)))


def map_ranges(
    blocks: DataFrame, exchange: Exchange, schema: pa.Schema, step: RangeStep
) -> DataFrame:
    """Send blocks to their buckets, and apply a step to the number and the sorted rows of each that has a block."""
    # Before Spark 4.1 several buckets may share a task.
    sent = one_task_each(blocks, "bucket", exchange.num_buckets).sortWithinPartitions("bucket")

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for bucket, own in groupby(_single_rows(batches), _bucket_of):
            yield from step(bucket, exchange.unpack(own))

    return map_frame(sent, schema, run)


def _single_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for at in range(batch.num_rows):
            yield batch.slice(at, 1)


def _bucket_of(single: pa.RecordBatch) -> int:
    bucket: int = single.column("bucket")[0].as_py()
    return bucket


def markers(spark: SparkSession, num_buckets: int) -> DataFrame:
    """Return an empty block for every bucket."""
    return spark.range(num_buckets).selectExpr(
        "cast(id as int) bucket", "cast(null as binary) block"
    )
