"""One process, threads, everything in memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

import numpy as np
import pyarrow as pa

from neardup import schema as schemas
from neardup.engines.base import Advance, BatchStep
from neardup.kernels import components

BATCH_BYTES: Final = 4 << 20
BATCH_ROWS: Final = 1 << 16


class LocalEngine:
    """Runs stages on the threads of this process."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or _available_cores()

    def map_batches(
        self, batches: Iterable[pa.RecordBatch], step: BatchStep, schema: pa.Schema, advance: Advance
    ) -> pa.Table:
        """Apply a step to every batch; results stay in the order of the batches."""
        results = []
        for batch, result in self._in_order(batches, step):
            results.append(result)
            advance(batch.num_rows)
        return pa.Table.from_batches(results, schema=schema)

    def _in_order(
        self, batches: Iterable[pa.RecordBatch], step: BatchStep
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        if self.threads == 1:
            for batch in batches:
                yield batch, step(batch)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[tuple[pa.RecordBatch, Future[pa.RecordBatch]]] = deque()
            for batch in batches:
                waiting.append((batch, pool.submit(step, batch)))
                if len(waiting) > 2 * self.threads:
                    done, future = waiting.popleft()
                    yield done, future.result()
            while waiting:
                done, future = waiting.popleft()
                yield done, future.result()

    def cut(self, documents: pa.Table) -> Iterator[pa.RecordBatch]:
        """Cut documents into batches of about BATCH_BYTES of text."""
        for batch in documents.to_batches(max_chunksize=BATCH_ROWS):
            if batch.num_rows:
                ends = np.cumsum(_text_bytes(batch.column("text")))
                for start, stop in _runs(ends):
                    yield batch.slice(start, stop - start)

    def cut_groups(self, documents: pa.Table, groups: pa.Table) -> Iterator[pa.RecordBatch]:
        """Gather whole components, a batch of them at a time."""
        rows, group_rows = documents.column("row").to_numpy(), groups.column("row").to_numpy()
        labels = groups.column("component").to_numpy()
        at = np.searchsorted(rows, group_rows)
        order = np.lexsort((documents.column("priority").to_numpy()[at], labels))
        at, labels = at[order], labels[order]
        sizes = np.concatenate([_text_bytes(chunk) for chunk in documents.column("text").chunks] or [np.empty(0, int)])
        lasts = np.flatnonzero(np.r_[labels[1:] != labels[:-1], True]) if labels.size else np.empty(0, int)
        starts = np.r_[0, lasts + 1]
        for first, stop in _runs(np.cumsum(sizes[at])[lasts]):
            members = slice(starts[first], starts[stop])
            taken = documents.take(pa.array(at[members])).combine_chunks()
            batch = taken.append_column("component", pa.array(labels[members])).to_batches()
            yield from batch

    def connected_components(self, links: pa.Table) -> pa.Table:
        """Union-find over all links."""
        ends = np.r_[links.column("row").to_numpy(), links.column("smallest").to_numpy()]
        rows, nodes = np.unique(ends, return_inverse=True)
        parents = np.arange(rows.size)
        components.union_links(nodes[: links.num_rows], nodes[links.num_rows :], parents)
        return pa.table([rows, rows[parents]], schema=schemas.COMPONENTS)


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _text_bytes(texts: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Bytes of each text of a large_string array."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return np.diff(offsets)


def _runs(ends: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Iterator[tuple[int, int]]:
    """Cut items whose sizes add up to `ends` into runs of about BATCH_BYTES, at least one item each."""
    start = 0
    while start < ends.size:
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + BATCH_BYTES, side="right")))
        yield start, stop
        start = stop
