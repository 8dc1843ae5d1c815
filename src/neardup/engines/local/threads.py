"""A thread pool: steps run in parallel, results come in order, and the first error stops all threads."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

import pyarrow as pa

from neardup.engines.base import Advance, BatchStep, no_progress
from neardup.engines.local.limits import available_cores

T = TypeVar("T")


class Threads:
    """The given number of threads, or one per core."""

    def __init__(self, threads: int | None) -> None:
        self.threads = threads or available_cores()
        self._stopped = threading.Event()
        self._num_readers = 0
        self._readers_lock = threading.Lock()

    def side_by_side(
        self, step: Callable[[int], T], numbers: Iterable[int], *, in_order: bool = False
    ) -> list[T]:
        """Call a step for every number, in parallel; the first error, in time or in order, stops the others."""
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                futures = [pool.submit(step, number) for number in numbers]
                if in_order:
                    done = set()
                else:
                    done = wait(futures, return_when=FIRST_EXCEPTION).done
                for future in futures:
                    if future in done:
                        future.result()
                return [future.result() for future in futures]
            except BaseException:
                self._stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def check_going(self) -> None:
        """Raise if another thread has failed or the run was interrupted."""
        if self._stopped.is_set():
            raise InterruptedError("another thread has failed")

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Count a reader while it reads."""
        with self._readers_lock:
            self._num_readers += 1
        try:
            yield
        finally:
            with self._readers_lock:
                self._num_readers -= 1

    def in_order(
        self,
        batches: Iterable[pa.RecordBatch],
        step: BatchStep,
        pool: ThreadPoolExecutor,
        slots: threading.Semaphore,
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Process the batches of one reader in a pool shared with others; `slots` bounds the batches in flight.

        While there are as many readers as threads, each processes its own batches, which are still
        in its cache.
        """
        waiting: deque[tuple[pa.RecordBatch, Future[pa.RecordBatch]]] = deque()

        def oldest() -> tuple[pa.RecordBatch, pa.RecordBatch]:
            batch, future = waiting.popleft()
            try:
                return batch, future.result()
            finally:
                slots.release()

        try:
            with self._reading():
                for batch in batches:
                    self.check_going()
                    if self._num_readers >= self.threads:
                        while waiting:
                            yield oldest()
                        yield batch, step(batch)
                        continue
                    while not slots.acquire(blocking=not waiting):
                        yield oldest()
                    waiting.append((batch, pool.submit(step, batch)))
                    while waiting and waiting[0][1].done():
                        yield oldest()
            while waiting:
                yield oldest()
        finally:
            for _, future in waiting:
                future.cancel()
                slots.release()

    def read_ahead(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Iterate over batches while another thread, if there is one, prepares the next."""
        if self.threads == 1:
            yield from batches
            return
        rest = iter(batches)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(next, rest, None)
            while (batch := waiting.result()) is not None:
                waiting = pool.submit(next, rest, None)
                yield batch

    def map_batches(
        self,
        batches: Iterable[pa.RecordBatch],
        step: BatchStep,
        schema: pa.Schema,
        advance: Advance = no_progress,
    ) -> pa.Table:
        """Apply a step to every batch; results stay in the order of the batches."""
        results = []
        with ThreadPoolExecutor(self.threads) as pool:
            for batch, result in self.in_order(
                batches, step, pool, threading.Semaphore(2 * self.threads + 1)
            ):
                results.append(result)
                advance(batch.num_rows)
        return pa.Table.from_batches(results, schema=schema)
