"""One process and its threads; tables in memory, or, with a workspace, on disk and within a limit of memory."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema as schemas
from neardup.engines.base import Advance, BatchStep, BlockStep, Documents, Table, View
from neardup.engines.components import SHELF_BYTES, map_shelved, plan_shelves
from neardup.engines.memory import Memory
from neardup.io.spill import Shelves, SortKey, sort_on_disk
from neardup.io.workspace import Workspace, read_batches, write_batches
from neardup.kernels import components

I64 = npt.NDArray[np.int64]
T = TypeVar("T")
# A sort or a hash table in memory takes about this many times its columns.
_GROUPING_COST: Final = 6
# Reading a column of 10 million rows takes 0.1 s, sorting it on disk 4 s: so many ranges are read before it is sorted.
_MAX_RANGES: Final = 32


class HeldTable:
    """A table in memory, in batches."""

    def __init__(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> None:
        self._batches = batches
        self.schema = schema

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over some columns."""
        return (batch.select(list(columns)) for batch in self._batches)


class StoredTable:
    """A table in files, one a part of the documents it was made of; read once for all where it takes little room."""

    def __init__(self, paths: Sequence[Path], schema: pa.Schema, documents: Documents, room: int) -> None:
        self._paths = paths
        self._documents = documents
        self.schema = schema
        self._is_small = sum(path.stat().st_size for path in paths) <= room
        self._held: list[pa.RecordBatch] | None = None
        self._lock = threading.Lock()

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over some columns, with the rows and priorities of the whole run."""
        if not self._is_small:
            return self._read(columns)
        with self._lock:
            if self._held is None:
                self._held = list(self._read(self.schema.names))
        return (batch.select(list(columns)) for batch in self._held)

    def _read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        for part, path in enumerate(self._paths):
            for batch in read_batches(path, list(columns)):
                yield self._documents.place(part, batch)


class LocalEngine:
    """Runs stages on the threads of this process."""

    def __init__(
        self, threads: int | None = None, workspace: Workspace | None = None, memory: int | None = None
    ) -> None:
        self.threads = threads or available_cores()
        self._workspace = workspace
        self._memory = Memory(memory) if workspace is not None else None
        self._stopped = threading.Event()

    def map_documents(self, documents: Documents, step: BatchStep, schema: pa.Schema, advance: Advance) -> Table:
        """Apply a step to every document; parts are read side by side, and their batches worked on side by side."""
        slots, workspace = threading.Semaphore(2 * self.threads + 1), self._workspace
        with ThreadPoolExecutor(self.threads) as workers:

            def results(part: int) -> Iterator[pa.RecordBatch]:
                batches = documents.read(part, advance)
                return (result for _, result in self._in_order(batches, step, workers, slots))

            if workspace is None:
                return HeldTable([batch for part in range(documents.num_parts) for batch in results(part)], schema)

            def store(part: int) -> Path:
                name = f"sketch/{part:06}.arrow"
                if workspace.has(name) and documents.has_read(part):
                    documents.skip(part, advance)
                else:
                    workspace.forget(name)
                return workspace.once(name, lambda path: write_batches(path, results(part), schema))

            paths = self.side_by_side(store, range(documents.num_parts), in_order=documents.stops_at_first)
            return StoredTable(paths, schema, documents, self.room() // 16)

    def scan_documents(self, documents: Documents, step: BatchStep, schema: pa.Schema, advance: Advance) -> pa.Table:
        """Apply a step to every document and hold what comes of it, in the order of parts and batches."""
        slots = threading.Semaphore(2 * self.threads + 1)
        with ThreadPoolExecutor(self.threads) as workers:

            def results(part: int) -> list[pa.RecordBatch]:
                found = self._in_order(documents.read(part, advance), step, workers, slots)
                return [result for _, result in found if result.num_rows]

            parts = self.side_by_side(results, range(documents.num_parts), in_order=documents.stops_at_first)
        return pa.Table.from_batches(chain.from_iterable(parts), schema=schema)

    def side_by_side(self, step: Callable[[int], T], numbers: Iterable[int], *, in_order: bool = False) -> list[T]:
        """Call a step for every number on all threads; the first error, in time or in order, stops the others."""
        with ThreadPoolExecutor(self.threads) as pool:
            futures = [pool.submit(step, number) for number in numbers]
            try:
                done = set() if in_order else wait(futures, return_when=FIRST_EXCEPTION).done
                for future in futures:
                    if future in done:
                        future.result()
                return [future.result() for future in futures]
            except BaseException:
                self._stopped.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def room(self) -> int:
        """Return the bytes of memory that may still be taken; 0 for an engine without a limit."""
        return 0 if self._memory is None else self._memory.room()

    def check_going(self) -> None:
        """Raise where another thread has failed, or the run was interrupted."""
        if self._stopped.is_set():
            raise InterruptedError("another thread has failed")

    def _in_order(
        self, batches: Iterable[pa.RecordBatch], step: BatchStep, pool: ThreadPoolExecutor, slots: threading.Semaphore
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Work on the batches of one reader in a pool shared with others; `slots` bounds what is in flight."""
        waiting: deque[tuple[pa.RecordBatch, Future[pa.RecordBatch]]] = deque()

        def oldest() -> tuple[pa.RecordBatch, pa.RecordBatch]:
            batch, future = waiting.popleft()
            try:
                return batch, future.result()
            finally:
                slots.release()

        try:
            for batch in batches:
                self.check_going()
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

    def map_batches(
        self, batches: Iterable[pa.RecordBatch], step: BatchStep, schema: pa.Schema, advance: Advance
    ) -> pa.Table:
        """Apply a step to every batch; results stay in the order of the batches."""
        results = []
        with ThreadPoolExecutor(self.threads) as pool:
            for batch, result in self._in_order(batches, step, pool, threading.Semaphore(2 * self.threads + 1)):
                results.append(result)
                advance(batch.num_rows)
        return pa.Table.from_batches(results, schema=schema)

    def map_groups(
        self, table: Table, views: Sequence[View], step: BatchStep, where: npt.NDArray[np.bool_], advance: Advance
    ) -> Iterator[pa.RecordBatch]:
        """Hold a view where it fits, or a range of its groups at a time; where there were too many, sort it on disk."""
        cost = int(np.count_nonzero(where)) * 8 * max(len(view.columns) for view in views) * _GROUPING_COST
        ranges = 1
        if self._memory is not None:
            while ranges <= _MAX_RANGES and self.threads * cost > ranges * (self._memory.room() // 2):
                ranges *= 2
        if ranges > _MAX_RANGES:
            yield from self._map_sorted(table, views, step, where, advance)
            return

        def held(view: View, number: int) -> pa.RecordBatch:
            batches = _in_range(_filtered(table, view.columns, where), view.by[0], number, ranges)
            return step(schemas.one_batch(list(batches), _sub_schema(table, view.columns)))

        with ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[Future[pa.RecordBatch]] = deque()
            for done, (view, number) in enumerate(product(views, range(ranges))):
                waiting.append(pool.submit(held, view, number))
                if len(waiting) > self.threads:
                    yield waiting.popleft().result()
                advance(int((done + 1) % ranges == 0))
            while waiting:
                yield waiting.popleft().result()

    def _map_sorted(
        self, table: Table, views: Sequence[View], step: BatchStep, where: npt.NDArray[np.bool_], advance: Advance
    ) -> Iterator[pa.RecordBatch]:
        for view in views:
            keys = [(name, "ascending") for name in view.by + view.order]
            rows = self.sort(_filtered(table, view.columns, where), _sub_schema(table, view.columns), keys)
            yield from map(step, _whole_groups(rows, view.by))
            advance(1)

    def sort(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, by: Sequence[SortKey]
    ) -> Iterator[pa.RecordBatch]:
        """Sort in memory what fits there, on disk what does not."""
        held, size, rest = [], 0, iter(batches)
        room = None if self._memory is None else self._memory.room() // 2
        for batch in rest:
            held.append(batch)
            size += batch.nbytes
            if room is not None and self._workspace is not None and size * _GROUPING_COST > room:
                folder = self._workspace.folder / "sort"
                yield from sort_on_disk(chain(held, rest), schema, by, folder, 2 * room, self.threads)
                return
        yield from pa.Table.from_batches(held, schema=schema).sort_by(list(by)).combine_chunks().to_batches()

    def connected_components(self, links: Iterable[pa.RecordBatch], num_rows: int) -> pa.Table:
        """Union-find over links as they come: 8 bytes a row, however many links there are."""
        parents, is_linked = np.arange(num_rows), np.zeros(num_rows, np.bool_)
        for batch in links:
            rows, smallest = batch.column("row").to_numpy(), batch.column("smallest").to_numpy()
            is_linked[rows] = is_linked[smallest] = True
            components.union_links(rows, smallest, parents)
        linked = np.flatnonzero(is_linked)
        return pa.table([linked, parents[linked]], schema=schemas.COMPONENTS)

    def find_rows(self, table: Table, rows: I64, columns: Sequence[str]) -> pa.Table:
        """Pick the rows out of every batch."""
        found = []
        for batch in table.batches(columns) if rows.size else ():
            batch_rows = batch.column("row").to_numpy()
            at = np.minimum(np.searchsorted(rows, batch_rows), rows.size - 1)
            found.append(batch.filter(pa.array(rows[at] == batch_rows)))
        return pa.Table.from_batches(found, schema=_sub_schema(table, columns))

    def map_components(
        self,
        documents: Documents,
        members: pa.Table,
        step: BatchStep,
        block_step: BlockStep,
        schema: pa.Schema,
        advance: Advance,
    ) -> pa.Table:
        """Read the members again and hold them if they fit, else set them aside on disk; map a shelf at a time."""
        mapped = partial(self.map_batches, step=step, schema=schema, advance=advance)
        shelf_bytes, store = SHELF_BYTES * self.threads, Shelves()
        limit = None
        if self._workspace is not None and self._memory is not None:
            room = self._memory.room()
            limit = room // (self.threads + 2)
            shelf_bytes = min(shelf_bytes, limit)
            store = Shelves(self._workspace.folder / "texts", room // 3)
        shelves = self.once("shelves", lambda: plan_shelves(members, shelf_bytes, limit))
        return map_shelved(documents, shelves, mapped, block_step, self, store)

    def has(self, name: str) -> bool:
        """Whether an earlier start of the run finished a table."""
        return self._workspace is not None and self._workspace.has(f"{name}.arrow")

    def once(self, name: str, make: Callable[[], pa.Table]) -> pa.Table:
        """Keep a table on disk where there is a workspace."""
        if self._workspace is None:
            return make()

        def write(path: Path) -> None:
            table = make()
            write_batches(path, iter(table.to_batches()), table.schema)

        path = self._workspace.once(f"{name}.arrow", write)
        with pa.OSFile(str(path), "rb") as source:
            return pa.ipc.open_file(source).read_all()


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _sub_schema(table: Table, columns: Sequence[str]) -> pa.Schema:
    return pa.schema([table.schema.field(name) for name in columns])


def _filtered(table: Table, columns: Sequence[str], where: npt.NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
    for batch in table.batches(columns):
        is_wanted = where[batch.column("row").to_numpy()]
        yield batch if is_wanted.all() else batch.filter(pa.array(is_wanted))


def _in_range(batches: Iterable[pa.RecordBatch], column: str, number: int, ranges: int) -> Iterator[pa.RecordBatch]:
    """Pick the rows whose hash in `column` falls in one of `ranges` equal ranges; 1 range takes all."""
    if ranges == 1:
        yield from batches
        return
    shift = np.uint64(64 - ranges.bit_length() + 1)
    for batch in batches:
        hashes = batch.column(column).to_numpy().view(np.uint64)
        yield batch.filter(pa.array(hashes >> shift == np.uint64(number)))


def _whole_groups(batches: Iterable[pa.RecordBatch], by: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Let the first row of a group that a cut goes through stand at the head of the next batch too."""
    first: pa.RecordBatch | None = None
    for batch in batches:
        if not batch.num_rows:
            continue
        if first is not None and _key(first, by) == _key(batch, by):
            batch = schemas.one_batch([first, batch], batch.schema)
        yield batch
        is_last = np.ones(batch.num_rows, np.bool_)
        for name in by:
            values = batch.column(name).to_numpy()
            is_last &= values == values[-1]
        first = batch.slice(int(np.argmax(is_last)), 1)


def _key(batch: pa.RecordBatch, by: Sequence[str]) -> tuple[Any, ...]:
    return tuple(batch.column(name)[0].as_py() for name in by)
