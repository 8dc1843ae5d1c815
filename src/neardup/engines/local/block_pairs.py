"""Every row of a table with every other one: blocks of bounded size with themselves and with all later rows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import pyarrow as pa

from neardup.engines.base import Advance, PairSteps
from neardup.engines.local.blas import one_blas_thread
from neardup.schema import one_batch

# The most bytes of a block; every block takes one pass over the rows after it.
BLOCK_BYTES: Final = 256 << 20
# The most rows and bytes of a piece: a thread compares a block with a piece at a time.
_PIECE_ROWS: Final = 2048
_PIECE_BYTES: Final = 16 << 20

Read = Callable[[], Iterable[pa.RecordBatch]]


def map_block_pairs(
    read: Read, steps: PairSteps, num_threads: int, block_bytes: int, advance: Advance
) -> Iterator[pa.RecordBatch]:
    """Apply a step to every block and piece; `read` iterates over the rows, every time in the same order.

    `advance` is called with as many steps as there are rows.
    """
    num_rows = sum(batch.num_rows for batch in read())
    num_pairs = num_rows * (num_rows + 1) / 2
    compared = 0.0
    start = 0
    with one_blas_thread(), ThreadPoolExecutor(num_threads) as pool:
        while start < num_rows:
            whole = _first_rows(_from_row(read(), start), block_bytes)
            block = steps.block(whole)
            waiting: deque[tuple[int, Future[pa.RecordBatch]]] = deque()
            position = 0
            try:
                for piece in _pieces(_from_row(read(), start), whole.num_rows):
                    found = pool.submit(steps.link, block, piece, min(position, whole.num_rows))
                    waiting.append((piece.num_rows, found))
                    position += piece.num_rows
                    if len(waiting) > 2 * num_threads:
                        yield waiting.popleft()[1].result()
                while waiting:
                    yield waiting.popleft()[1].result()
            finally:
                for _, future in waiting:
                    future.cancel()
            before = compared
            own = whole.num_rows
            compared += own * (own + 1) / 2 + own * (num_rows - start - own)
            advance(round(num_rows * compared / num_pairs) - round(num_rows * before / num_pairs))
            start += own


def _from_row(batches: Iterable[pa.RecordBatch], start: int) -> Iterator[pa.RecordBatch]:
    """Leave out the rows before `start`, and empty batches."""
    for batch in batches:
        skipped = min(start, batch.num_rows)
        start -= skipped
        if skipped < batch.num_rows:
            yield batch.slice(skipped)


def _first_rows(batches: Iterable[pa.RecordBatch], most_bytes: int) -> pa.RecordBatch:
    """Return as many of the first rows as `most_bytes` hold, at least one of them."""
    taken: list[pa.RecordBatch] = []
    for batch in batches:
        num_fitting = int(max(most_bytes, 0) / _row_bytes(batch))
        num_rows = min(batch.num_rows, max(num_fitting, 0 if taken else 1))
        taken.append(batch.slice(0, num_rows))
        most_bytes -= int(num_rows * _row_bytes(batch))
        if num_rows < batch.num_rows:
            break
    return one_batch(taken, taken[0].schema)


def _pieces(batches: Iterable[pa.RecordBatch], end: int) -> Iterator[pa.RecordBatch]:
    """Cut batches into pieces; none lies on both sides of row `end`."""
    position = 0
    for batch in batches:
        most = max(1, min(_PIECE_ROWS, int(_PIECE_BYTES / _row_bytes(batch))))
        at = 0
        while at < batch.num_rows:
            num_rows = min(most, batch.num_rows - at)
            if position < end:
                num_rows = min(num_rows, end - position)
            yield batch.slice(at, num_rows)
            at += num_rows
            position += num_rows


def _row_bytes(batch: pa.RecordBatch) -> float:
    return float(max(1.0, batch.nbytes / batch.num_rows))
