"""The second pass: read the documents of components again, one shelf of whole components at a time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema as schemas
from neardup.engines.base import Blocks, ComponentSteps, Documents, PutPairs, no_progress
from neardup.engines.local.arena import Arena
from neardup.engines.local.verified import VerifiedTable
from neardup.events import Tally
from neardup.io.columns.sorted_search import find_sorted
from neardup.io.records import runs, text_bytes
from neardup.io.storage.spill import Shelves

if TYPE_CHECKING:
    from neardup.engines.local.engine import LocalEngine

I64 = npt.NDArray[np.int64]
# Bytes of text per shelf and thread: several batches for each thread, and little to copy when it is
# loaded.
SHELF_BYTES: Final = 16 << 20
_BLOCK_COLUMNS: Final = ["component", "row", "text", "priority", "group"]
_SHELVES: Final = pa.schema(
    [*schemas.COMPONENTS, ("priority", pa.int64()), ("shelf", pa.int64()), ("is_large", pa.bool_())]
)


class Verifier:
    """Verifies components on the threads of an engine, and counts their documents in a tally."""

    def __init__(
        self, engine: LocalEngine, steps: ComponentSteps, columns: pa.Schema, tally: Tally
    ) -> None:
        self._engine = engine
        self._steps = steps
        self._columns = columns
        self._tally = tally

    def verify_whole(self, batches: Iterable[pa.RecordBatch], put: PutPairs) -> pa.Table:
        """Verify batches of whole components in parallel, and put their pairs."""

        def step(batch: pa.RecordBatch) -> pa.RecordBatch:
            return self._steps.whole(batch, tally=self._tally, put=put)

        return self._engine.map_batches(batches, step, self._columns)

    def verify_blocks(self, blocks: Blocks, put: PutPairs) -> pa.Table:
        """Verify one component too large for memory, and put its pairs."""
        return self._steps.blocks(blocks, tally=self._tally, put=put)


class _Unit(NamedTuple):
    """What is verified in one call: one shelf, or all shelves of one large component."""

    shelves: range
    is_large: bool

    @property
    def aside(self) -> int:
        """The shelf for the documents that a large component spills."""
        return -1 - self.shelves.start


def plan_shelves(members: pa.Table, shelf_bytes: int, limit: int | None) -> pa.Table:
    """Assign components to shelves of about `shelf_bytes` of text; split those that take over `limit` to verify."""
    rows, labels, priority, sizes, cost = (
        members.column(name).to_numpy()
        for name in ("row", "component", "priority", "text_bytes", "verify_bytes")
    )
    order = np.lexsort((rows, priority, labels))
    is_first = np.r_[True, np.diff(labels[order]) != 0][: rows.size]
    firsts = np.flatnonzero(is_first)
    component = np.cumsum(is_first) - 1
    if rows.size:
        costs = np.add.reduceat(cost[order], firsts)
    else:
        costs = np.empty(0, np.int64)
    if limit is not None:
        is_large = (costs > limit)[component]
    else:
        is_large = np.zeros(rows.size, np.bool_)
    texts = np.where(is_large, 0, sizes[order])
    shelf = (np.cumsum(texts) - texts)[firsts][component] // shelf_bytes
    spent = np.cumsum(cost[order]) - cost[order]
    # Verifying one block against another takes up to four times the memory of a block.
    block = (spent - spent[firsts][component]) // max((limit or 1) // 4, 1)
    # Large components come after the others, with consecutive blocks.
    numbers = np.empty(rows.size, np.int64)
    numbers[~is_large] = _number_runs(shelf[~is_large])
    numbers[is_large] = (
        _number_runs(component[is_large], block[is_large]) + numbers[~is_large].max(initial=-1) + 1
    )
    back = np.argsort(order)
    return pa.table([rows, labels, priority, numbers[back], is_large[back]], schema=_SHELVES)


def _number_runs(*columns: I64) -> I64:
    """Number the runs of equal values in all columns, from 0."""
    is_new = np.zeros(columns[0].size, np.bool_)
    for column in columns:
        is_new[1:] |= column[1:] != column[:-1]
    return np.cumsum(is_new)


def map_shelved(
    documents: Documents,
    shelves: pa.Table,
    verifier: Verifier,
    engine: LocalEngine,
    store: Shelves,
) -> VerifiedTable:
    """Read the members of components again, and verify shelf by shelf."""
    tag = _tag(shelves)
    units = {f"verified/{tag}-{unit.shelves.start:06}": unit for unit in _units(shelves)}
    waiting = [
        np.array(unit.shelves) for name, unit in units.items() if not engine.has_verified(name)
    ]
    _set_aside(documents, shelves, np.concatenate([*waiting, np.empty(0, np.int64)]), store, engine)
    numbers = shelves.column("shelf").to_numpy()
    order = np.argsort(numbers, kind="stable")
    by_shelf = shelves.take(pa.array(order))
    numbers = numbers[order]
    results = []
    for name, unit in units.items():
        begin, end = np.searchsorted(numbers, [unit.shelves.start, unit.shelves.stop]).tolist()
        members = by_shelf.slice(begin, end - begin)
        verify = partial(_verify_unit, unit, members, store, verifier)
        results.append(engine.verified_checkpoint(name, verify))
    return VerifiedTable.joined(results)


def _tag(shelves: pa.Table) -> str:
    """Return a digest of the assignment: the number of a shelf means nothing under another assignment."""
    digest = hashlib.blake2b(digest_size=8)
    for name in ("row", "shelf"):
        digest.update(shelves.column(name).to_numpy())
    return digest.hexdigest()


def _units(shelves: pa.Table) -> list[_Unit]:
    numbers, is_large, labels = (
        shelves.column(name).to_numpy() for name in ("shelf", "is_large", "component")
    )
    small = np.unique(numbers[~is_large]).tolist()
    units = [_Unit(range(number, number + 1), is_large=False) for number in small]
    for label in np.unique(labels[is_large]):
        own = numbers[is_large & (labels == label)]
        units.append(_Unit(range(int(own.min()), int(own.max()) + 1), is_large=True))
    return units


def _verify_unit(
    unit: _Unit, members: pa.Table, store: Shelves, verifier: Verifier, put: PutPairs
) -> pa.Table:
    if unit.is_large:
        component = members.column("component")[0].as_py()
        verified = verifier.verify_blocks(_ShelvedBlocks(store, unit, component), put)
    else:
        own_documents = schemas.documents_table(store.batches(unit.shelves.start))
        verified = verifier.verify_whole(cut_components(own_documents, members), put)
    for number in (*unit.shelves, unit.aside):
        store.clear(number)
    return verified


class _ShelvedBlocks:
    """The blocks of one large component; a shelf is a block."""

    def __init__(self, store: Shelves, unit: _Unit, component: int) -> None:
        self._store = store
        self._shelves = unit.shelves
        self._aside = unit.aside
        self._component = component

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for shelf in self._shelves:
            block = schemas.documents_table(self._store.batches(shelf))
            block = block.sort_by([("priority", "ascending"), ("row", "ascending")])
            block = block.append_column(
                "component", pa.array(np.full(block.num_rows, self._component))
            )
            yield from block.select(_BLOCK_COLUMNS).combine_chunks().to_batches()

    def put(self, documents: pa.RecordBatch) -> None:
        self._store.put(self._aside, documents)

    def stored(self) -> Iterator[pa.RecordBatch]:
        return self._store.batches(self._aside)


def _set_aside(
    documents: Documents, shelves: pa.Table, wanted: I64, store: Shelves, engine: LocalEngine
) -> None:
    """Read the documents of the wanted shelves, and put each on its shelf."""
    numbers = shelves.column("shelf").to_numpy()
    chosen = np.isin(numbers, wanted)
    rows = shelves.column("row").to_numpy()[chosen]
    numbers = numbers[chosen]

    def read(part: int) -> None:
        for batch in documents.read(part, no_progress):
            engine.check_going()
            is_wanted, at = find_sorted(rows, batch.column("row").to_numpy())
            own = np.flatnonzero(is_wanted)
            if own.size:
                _shelve(batch, own, numbers[at[own]], store)

    ends = np.searchsorted(rows, documents.first_rows)
    engine.side_by_side(read, np.flatnonzero(np.diff(ends)).tolist())


def _shelve(batch: pa.RecordBatch, own: I64, numbers: I64, store: Shelves) -> None:
    """Copy the wanted rows of a batch once, ordered by shelf, and slice them without a copy."""
    order = np.argsort(numbers, kind="stable")
    ordered = batch.take(pa.array(own[order]))
    numbers = numbers[order]
    cuts = np.flatnonzero(np.r_[True, np.diff(numbers) != 0, True])
    for start, stop in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        store.put(int(numbers[start]), ordered.slice(start, stop - start))


def cut_components(documents: pa.Table, members: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield whole components, many per batch, best priority first in each."""
    documents = documents.combine_chunks()  # otherwise Arrow concatenates all chunks in every take
    rows = documents.column("row").to_numpy()
    member_rows = members.column("row").to_numpy()
    by_row = np.argsort(rows)
    labels = members.column("component").to_numpy()
    at = by_row[np.searchsorted(rows, member_rows, sorter=by_row)]
    order = np.lexsort((member_rows, documents.column("priority").to_numpy()[at], labels))
    at = at[order]
    labels = labels[order]
    sizes = np.concatenate(
        [text_bytes(chunk) for chunk in documents.column("text").chunks] or [np.empty(0, int)]
    )
    for chosen in _whole_components(labels, sizes[at]):
        taken = documents.take(pa.array(at[chosen])).combine_chunks()
        yield from taken.append_column("component", pa.array(labels[chosen])).to_batches()


def cut_in_arena(members: pa.Table, arena: Arena) -> Iterator[pa.RecordBatch]:
    """Yield whole components as `cut_components` does, for documents whose sets are in the arena."""
    component, row, priority, group, sizes, starts = (
        members.column(name).to_numpy()
        for name in ("component", "row", "priority", "group", "num_shingles", "held_at")
    )
    order = np.lexsort((row, priority, component))
    for chosen in _whole_components(component[order], 8 * sizes[order]):
        at = order[chosen]
        columns = [
            component[at],
            row[at],
            arena.views(starts[at], sizes[at]),
            priority[at],
            group[at],
        ]
        yield pa.record_batch([pa.array(column) for column in columns], _BLOCK_COLUMNS)


def _whole_components(labels: I64, sizes: I64) -> Iterator[slice]:
    """Split contiguous components into runs of about one batch."""
    if labels.size:
        lasts = np.flatnonzero(np.r_[labels[1:] != labels[:-1], True])
    else:
        lasts = np.empty(0, int)
    starts = np.r_[0, lasts + 1]
    for first, stop in runs(np.cumsum(sizes)[lasts]):
        yield slice(starts[first], starts[stop])
