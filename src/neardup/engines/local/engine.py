"""The local engine: threads of one process; tables in memory or, with a workspace, on disk, within a memory limit."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema as schemas
from neardup.engines.base import (
    Advance,
    BatchStep,
    Bools,
    ClassStep,
    ComponentSteps,
    Counts,
    CountStep,
    Documents,
    DocumentStep,
    Engine,
    PairSteps,
    Parts,
    PartScan,
    TableView,
    no_progress,
)
from neardup.engines.local.arena import Arena, ArenaTable
from neardup.engines.local.block_pairs import BLOCK_BYTES, map_block_pairs
from neardup.engines.local.groups import headed_groups, in_range, whole_groups
from neardup.engines.local.limits import Memory
from neardup.engines.local.shelves import (
    SHELF_BYTES,
    Verifier,
    cut_in_arena,
    map_shelved,
    plan_shelves,
)
from neardup.engines.local.tables import (
    BatchTable,
    FileTable,
    InMemoryTable,
    LocalTable,
    WrittenParts,
    batches_of,
    chosen,
    filtered,
    num_rows_of,
    part_file,
    read_views,
    sub_schema,
    table_in_memory,
)
from neardup.engines.local.threads import Threads
from neardup.engines.local.verified import (
    Verification,
    VerifiedTable,
    found_pairs,
    has_verified,
    verified_checkpoint,
)
from neardup.events import Tally
from neardup.io.columns.sorted_search import find_sorted
from neardup.io.storage.spill import Shelves, SortKey, drained, sort_in_memory, sort_on_disk
from neardup.io.storage.workspace import Workspace, write_batches
from neardup.kernels import union_find as components
from neardup.kernels.keys import own_secret

I64 = npt.NDArray[np.int64]
R = TypeVar("R")
# Sorting or hashing in memory takes about this many times the size of the columns.
_GROUPING_COST: Final = 6
# Of a block of documents that is compared with all others, its copies and its approximation.
_BLOCK_COST: Final = 8
# Every block takes a pass over the documents, so it is never smaller, however little memory is left.
_MIN_BLOCK_BYTES: Final = 8 << 20
# Reading a column of 10 million rows takes 0.1 s, sorting it on disk 4 s: with more ranges than
# this, it is sorted.
_MAX_RANGES: Final = 32
# The tables of the first pass, and of verification with all sets in memory.
_SKETCHES: Final = "sketch"
_VERIFIED_IN_MEMORY: Final = "verified/held"


class LocalEngine(Threads, Engine[LocalTable, Bools]):
    """Runs stages on the threads of this process."""

    def __init__(
        self,
        threads: int | None = None,
        workspace: Workspace | None = None,
        memory: int | None = None,
    ) -> None:
        super().__init__(threads)
        self._workspace = workspace
        self.secret = own_secret() if workspace is None else workspace.secret
        self._memory = Memory(memory) if workspace is not None else None
        self._arena = Arena(None if self._memory is None else self._memory.room)

    def map_documents(
        self,
        documents: Documents,
        step: DocumentStep,
        schema: pa.Schema,
        advance: Advance,
        name: str = _SKETCHES,
        gather: PartScan | None = None,
    ) -> BatchTable:
        """Apply a step to every document, then number the rows and compute their keep order.

        Args:
            documents: to be read.
            step: maps a batch.
            schema: of what the step returns.
            advance: reports the progress.
            name: of the checkpoint; a job that maps documents twice needs another one.
            gather: the scan whose `look` the step calls, for engines whose steps run elsewhere.
        """
        del gather
        self._skip_parts(name, documents, advance)
        done = 0

        def advance_and_expect(steps: int) -> None:
            nonlocal done
            done += steps
            advance(steps)
            self._arena.expect(done / max(documents.total, 1))

        def read(part: int) -> Iterator[pa.RecordBatch]:
            return documents.read(part, advance_and_expect)

        def sketch(batch: pa.RecordBatch) -> pa.RecordBatch:
            return step(batch, self._arena.put)

        table = self._map_parts(name, documents, read, sketch, schema, is_first=True)
        documents.finish_reading(self.sort)
        return table

    def _skip_parts(self, first_pass: str, documents: Documents, advance: Advance) -> None:
        """Skip the parts that an interrupted run has already read; their sets are no longer in memory."""
        workspace = self._workspace
        if workspace is None:
            return

        def skip(part: int) -> None:
            name = part_file(first_pass, part)
            if workspace.has(name) and documents.has_read(part):
                documents.skip(part, advance)
                self._arena.give_up()
            else:
                workspace.forget(name)

        self.side_by_side(skip, range(documents.num_parts))

    def map_read(
        self,
        name: str,
        documents: Documents,
        sketches: LocalTable,
        where: Bools,
        step: BatchStep,
        schema: pa.Schema,
    ) -> BatchTable:
        """Map the sets in memory lazily; if some are missing, read all parts again and store the results."""
        if self._holds_all:

            def stored() -> Iterator[pa.RecordBatch]:
                return filtered(sketches, ["row", "group", "num_shingles", "held_at"], where)

            return ArenaTable(stored, self._arena, step, schema)

        def read(part: int) -> Iterator[pa.RecordBatch]:
            return chosen(documents.read(part, no_progress), where)

        return self._map_parts(name, documents, read, step, schema)

    def map_block_pairs(
        self, table: LocalTable, steps: PairSteps, schema: pa.Schema, advance: Advance
    ) -> Iterator[pa.RecordBatch]:
        """Compare blocks that fit in memory, in parallel; each takes a pass over the rows after it."""
        del schema
        if self._memory is None:
            block_bytes = BLOCK_BYTES
        else:
            block_bytes = min(BLOCK_BYTES, max(_MIN_BLOCK_BYTES, self.room() // _BLOCK_COST))
        return map_block_pairs(lambda: batches_of(table), steps, self.threads, block_bytes, advance)

    @property
    def _holds_all(self) -> bool:
        """Whether the sets of all documents are in memory."""
        return self._arena.is_whole and not self._arena.is_empty

    def _map_parts(
        self,
        name: str,
        documents: Documents,
        read: Callable[[int], Iterator[pa.RecordBatch]],
        step: BatchStep,
        schema: pa.Schema,
        *,
        is_first: bool = False,
    ) -> BatchTable:
        """Read parts in parallel, and process their batches in parallel; each part is a file of the workspace."""
        slots = threading.Semaphore(2 * self.threads + 1)
        workspace = self._workspace
        written = WrittenParts(self.room() // 16)
        with ThreadPoolExecutor(self.threads) as workers:

            def results(part: int) -> Iterator[pa.RecordBatch]:
                return written.keep(
                    part, (done for _, done in self.in_order(read(part), step, workers, slots))
                )

            if workspace is None:
                return InMemoryTable(
                    [batch for part in range(documents.num_parts) for batch in results(part)],
                    schema,
                )

            def store(part: int) -> Path:
                file = part_file(name, part)
                return workspace.checkpoint(
                    file, lambda path: write_batches(path, results(part), schema)
                )

            paths = self.side_by_side(
                store, range(documents.num_parts), in_order=documents.stops_at_first
            )
        # In the first pass, rows and priorities are still local to the part.
        return FileTable(paths, schema, self.room() // 16, documents if is_first else None, written)

    def scan_documents(
        self, documents: Parts, step: BatchStep, schema: pa.Schema, advance: Advance
    ) -> pa.Table:
        """Apply a step to every document and return the results in memory, in the order of parts and batches."""
        slots = threading.Semaphore(2 * self.threads + 1)
        with ThreadPoolExecutor(self.threads) as workers:

            def results(part: int) -> list[pa.RecordBatch]:
                found = self.in_order(documents.read(part, advance), step, workers, slots)
                return [result for _, result in found if result.num_rows]

            parts = self.side_by_side(
                results, range(documents.num_parts), in_order=documents.stops_at_first
            )
        return pa.Table.from_batches(chain.from_iterable(parts), schema=schema)

    def scan_parts(
        self,
        documents: Parts,
        scan: PartScan,
        advance: Advance,
        schema: pa.Schema = schemas.COUNTS,
    ) -> None:
        """Let a scan look at every document again; `schema` is that of what `look` returns."""
        self.scan_documents(documents, scan.look, schema, advance)

    def room(self) -> int:
        """Return the bytes of memory still available; 0 for an engine without a limit."""
        return 0 if self._memory is None else self._memory.room()

    def choose_rows(
        self,
        table: LocalTable,
        column: str | None,
        num_rows: int,
        without: pa.Table | None = None,
        *,
        below: int | None = None,
    ) -> Bools:
        """Return a mask with one byte per row."""
        chosen = np.zeros(num_rows, np.bool_)
        for batch in batches_of(table, ["row"] if column is None else ["row", column]):
            rows = batch.column("row").to_numpy()
            if column is None:
                chosen[rows] = True
                continue
            values = batch.column(column).to_numpy()
            if below is None:
                chosen[rows] = values > 0
            else:
                chosen[rows] = (values > 0) & (values < below)
        if without is not None:
            chosen[without.column("row").to_numpy()] = False
        return chosen

    def map_table(
        self,
        name: str,
        table: LocalTable,
        columns: Sequence[str],
        where: Bools,
        make_step: Callable[[], BatchStep],
        schema: pa.Schema,
    ) -> BatchTable:
        """Process batches in parallel; the result stays in memory or, with a workspace, in one file."""

        def results() -> Iterator[pa.RecordBatch]:
            slots = threading.Semaphore(2 * self.threads + 1)
            step = make_step()
            with ThreadPoolExecutor(self.threads) as pool:
                for _, result in self.in_order(filtered(table, columns, where), step, pool, slots):
                    yield result

        if self._workspace is None:
            return InMemoryTable(list(results()), schema)
        path = self._workspace.checkpoint(
            f"{name}.arrow", lambda path: write_batches(path, results(), schema)
        )
        return FileTable([path], schema, self.room() // 16)

    def count(
        self,
        table: LocalTable,
        columns: Sequence[str],
        where: Bools,
        step: CountStep,
        num_counters: int,
    ) -> Counts:
        """Count on one thread, because concurrent increments of a counter would be lost; another one reads ahead."""
        counts = np.zeros(num_counters, np.uint8)
        for batch in self.read_ahead(filtered(table, columns, where)):
            step(batch, counts)
        return counts

    def counting(self, step: Callable[..., R], tally: Tally) -> Callable[..., R]:
        """Count the rows of the batches that are done."""

        def counted(batch: pa.RecordBatch, *rest: Counts) -> R:
            result = step(batch, *rest)
            tally.add(batch.num_rows)
            return result

        return counted

    def map_groups(
        self,
        table: LocalTable,
        views: Sequence[TableView],
        step: BatchStep,
        where: Bools | None,
        advance: Advance,
    ) -> Iterator[pa.RecordBatch]:
        """Group a view in memory if it fits, else by ranges of its keys; with too many ranges, sort it on disk."""
        if where is None:
            num_rows = num_rows_of(table)
        else:
            num_rows = int(np.count_nonzero(where))
        ranges = self._num_ranges(num_rows * 8 * max(len(view.columns) for view in views))
        if ranges > _MAX_RANGES:
            yield from self._map_sorted(table, views, step, where, advance)
            return

        # The columns may fit in memory even if grouping them does not.
        if self._memory is None:
            most = float("inf")
        else:
            most = self._memory.room() // 6

        def mapped(
            view: TableView, number: int, cached: Sequence[pa.RecordBatch] | None
        ) -> pa.RecordBatch:
            batches: Iterable[pa.RecordBatch]
            if cached is None:
                batches = filtered(table, view.columns, where)
            else:
                batches = cached
            # No variable holds the batches of the range, so that they are freed before the step
            # begins.
            return step(
                schemas.one_batch(
                    list(in_range(batches, view.by[0], number, ranges)),
                    sub_schema(table, view.columns),
                )
            )

        with ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[Future[pa.RecordBatch]] = deque()
            for view, cached in read_views(table, views, where, num_rows, most):
                for number in range(ranges):
                    waiting.append(pool.submit(mapped, view, number, cached))
                    if len(waiting) > self.threads:
                        yield waiting.popleft().result()
                advance(1)
            while waiting:
                yield waiting.popleft().result()

    def _num_ranges(self, num_bytes: int) -> int:
        """Return into how many ranges to cut keys, so that the groups of all threads fit in memory."""
        ranges = 1
        if self._memory is None:
            return ranges
        cost = self.threads * num_bytes * _GROUPING_COST
        while ranges <= _MAX_RANGES and cost > ranges * (self._memory.room() // 2):
            ranges *= 2
        return ranges

    def _map_sorted(
        self,
        table: LocalTable,
        views: Sequence[TableView],
        step: BatchStep,
        where: Bools | None,
        advance: Advance,
    ) -> Iterator[pa.RecordBatch]:
        for view in views:
            keys = [(name, "ascending") for name in view.by + view.order]
            rows = self.sort(
                filtered(table, view.columns, where), sub_schema(table, view.columns), keys
            )
            yield from map(
                step, whole_groups(rows, view.by) if view.is_whole else headed_groups(rows, view.by)
            )
            advance(1)

    def sort(
        self, table: pa.Table | Iterable[pa.RecordBatch], schema: pa.Schema, by: Sequence[SortKey]
    ) -> Iterator[pa.RecordBatch]:
        """Sort in memory if the rows fit, else on disk."""
        collected = deque[pa.RecordBatch]()
        size = 0
        rest = iter(table.to_batches() if isinstance(table, pa.Table) else table)
        room = None if self._memory is None else self._memory.room() // 2
        for batch in rest:
            collected.append(batch)
            size += batch.nbytes
            if room is not None and self._workspace is not None and size * _GROUPING_COST > room:
                folder = self._workspace.folder / "sort"
                yield from sort_on_disk(
                    chain(drained(collected), rest), schema, by, folder, 2 * room
                )
                return
        yield from sort_in_memory(collected, schema, by)

    def connected_components(self, links: LocalTable, num_rows: int) -> pa.Table:
        """Run union-find over the stream of links: 8 bytes per row, however many links there are."""
        parents = np.arange(num_rows)
        is_linked = np.zeros(num_rows, np.bool_)
        for batch in batches_of(links):
            rows = batch.column("row").to_numpy()
            smallest = batch.column("smallest").to_numpy()
            is_linked[rows] = is_linked[smallest] = True
            components.union_links(rows, smallest, parents)
        components.find_roots(parents)
        linked = np.flatnonzero(is_linked)
        return pa.table([linked, parents[linked]], schema=schemas.COMPONENTS)

    def lookup(
        self, table: pa.Table, key: str, other: LocalTable, columns: Sequence[str]
    ) -> pa.Table:
        """Select the matching rows from every batch of the other table, then align them with the keys."""
        keys = table.column(key).to_numpy()
        wanted = keys if (keys[1:] > keys[:-1]).all() else np.unique(keys)
        found = self.find_rows(other, wanted, ["row", *columns]).sort_by("row")
        rows = found.column("row").to_numpy()
        is_found, at = find_sorted(rows, keys)
        indexes = pa.array(at, mask=~is_found)
        for name in columns:
            table = table.append_column(name, found.column(name).take(indexes))
        return table

    def find_rows(self, table: LocalTable, rows: I64, columns: Sequence[str]) -> pa.Table:
        """Return the given rows of a table; `rows` ascend."""
        batches = batches_of(table, columns) if rows.size else ()
        found = [
            batch.filter(pa.array(find_sorted(rows, batch.column("row").to_numpy())[0]))
            for batch in batches
        ]
        return pa.Table.from_batches(found, schema=sub_schema(table, columns))

    def map_tables(
        self, tables: Sequence[LocalTable], step: BatchStep, schema: pa.Schema
    ) -> pa.Table:
        """Map tables in memory on this thread: the steps cost less than passing batches between threads."""
        results = [step(batch) for table in tables for batch in batches_of(table)]
        return pa.Table.from_batches(results, schema=schema)

    def map_components(
        self,
        documents: Documents,
        components: pa.Table,
        sketches: LocalTable,
        steps: ComponentSteps,
        schema: pa.Schema,
        advance: Advance,
    ) -> VerifiedTable:
        """Map the sets in memory; otherwise read the members again, into memory or spilled to disk, shelf by shelf."""
        members = self._members(components, sketches, steps)
        tally = Tally(advance)
        verifier = Verifier(self, steps, schema, tally)
        shelf_bytes = SHELF_BYTES * self.threads
        store = Shelves()
        limit = None
        if self._workspace is not None and self._memory is not None:
            room = self._memory.room()
            limit = room // (self.threads + 2)
            shelf_bytes = min(shelf_bytes, limit)
            store = Shelves(self._workspace.folder / "texts", room // 3)
        shelves = self.checkpoint("shelves", lambda: plan_shelves(members, shelf_bytes, limit))
        is_in_memory = self._holds_all and not pc.any(shelves.column("is_large")).as_py()
        if is_in_memory or self.has_verified(_VERIFIED_IN_MEMORY):
            with tally.polled():
                verified = self.verified_checkpoint(
                    _VERIFIED_IN_MEMORY,
                    lambda put: verifier.verify_whole(cut_in_arena(members, self._arena), put),
                )
            self._arena.give_up()
            return verified
        self._arena.give_up()
        with tally.polled():
            return map_shelved(documents, shelves, verifier, self, store)

    def _members(
        self, components: pa.Table, sketches: LocalTable, steps: ComponentSteps
    ) -> pa.Table:
        """The rows of components, with the columns needed to read or look up and to verify each."""
        columns = ["priority", "text_bytes", "num_shingles"]
        if self._holds_all:
            columns += ["group", "held_at"]
        members = self.lookup(components, "row", sketches, columns)
        text_bytes = members.column("text_bytes").to_numpy()
        num_shingles = members.column("num_shingles").to_numpy()
        cost = steps.cost(text_bytes, num_shingles)
        return members.append_column("verify_bytes", pa.array(cost))

    def map_classes(
        self, classes: pa.Table, verified: LocalTable | None, step: ClassStep, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Apply the step once: it sees all components, so its order is that of the whole table."""
        found = None if verified is None else found_pairs(verified, self.sort)
        return (batch.cast(schema) for batch in step(classes, found))

    def _in_row_order(
        self, table: pa.Table | Iterable[pa.RecordBatch], schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        by = schemas.row_order(schema)
        return self.sort(table, schema, by) if by else iter(table)

    def total(
        self,
        table: LocalTable,
        column: str | None = None,
        where: Bools | None = None,
        first_row: int = 0,
    ) -> int:
        """Sum batch by batch."""
        columns = ["row"] if column is None else ["row", column]
        batches = filtered(table, columns, where)
        if first_row:
            batches = (
                batch.filter(pc.greater_equal(batch.column("row"), first_row)) for batch in batches
            )
        if column is None:
            return sum(batch.num_rows for batch in batches)
        return sum(pc.sum(batch.column(column)).as_py() or 0 for batch in batches)

    def has_verified(self, name: str) -> bool:
        """Whether an interrupted run has finished a table of verified documents."""
        return self._workspace is not None and has_verified(self._workspace, name)

    def verified_checkpoint(self, name: str, verify: Verification) -> VerifiedTable:
        """Verify documents, with their pairs, unless an interrupted run has."""
        return verified_checkpoint(self._workspace, self.checkpoint, name, verify)

    def checkpoint(
        self,
        name: str,
        make: Callable[[], pa.Table | Iterable[pa.RecordBatch]],
        schema: pa.Schema | None = None,
    ) -> pa.Table:
        """Materialise a table, on disk if there is a workspace."""

        def make_in_memory() -> pa.Table:
            table = make()
            return table_in_memory(
                table if schema is None else self._in_row_order(table, schema), schema
            )

        if self._workspace is None:
            return make_in_memory()

        def write(path: Path) -> None:
            table = make_in_memory()
            write_batches(path, iter(table.to_batches()), table.schema)

        path = self._workspace.checkpoint(f"{name}.arrow", write)
        with pa.OSFile(str(path), "rb") as source:
            return pa.ipc.open_file(source).read_all()
