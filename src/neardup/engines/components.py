"""The second reading: the documents of components, held in memory where they fit, else on shelves on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema as schemas
from neardup.engines.base import BlockStep, Documents
from neardup.io.records import runs, text_bytes
from neardup.io.spill import Shelves

if TYPE_CHECKING:
    from neardup.engines.local import LocalEngine

I64 = npt.NDArray[np.int64]
_BLOCK_COLUMNS: Final = ["component", "row", "text", "priority", "group"]
_SHELVES: Final = pa.schema(
    [*schemas.COMPONENTS, ("priority", pa.int64()), ("shelf", pa.int64()), ("is_large", pa.bool_())]
)

Mapped = Callable[[Iterable[pa.RecordBatch]], pa.Table]


def map_held(documents: Documents, members: pa.Table, mapped: Mapped, engine: LocalEngine) -> pa.Table:
    """Hold the members of all components and map them."""
    held = _gather(documents, members.column("row").to_numpy(), engine)
    return mapped(cut_components(held, members))


def plan_shelves(members: pa.Table, limit: int) -> pa.Table:
    """Put components on shelves of about `limit` bytes of text each; one that takes more to verify goes on several."""
    rows, labels, priority, text_bytes, cost = (
        members.column(name).to_numpy() for name in ("row", "component", "priority", "text_bytes", "verify_bytes")
    )
    order = np.lexsort((rows, priority, labels))
    firsts = np.flatnonzero(np.r_[True, np.diff(labels[order]) != 0]) if rows.size else np.empty(0, np.int64)
    component = np.cumsum(np.isin(np.arange(rows.size), firsts)) - 1
    costs = np.add.reduceat(cost[order], firsts) if rows.size else np.empty(0, np.int64)
    is_large = (costs > limit)[component]
    texts = np.where(is_large, 0, text_bytes[order])
    shelf = (np.cumsum(texts) - texts)[firsts][component] // limit
    spent = np.cumsum(cost[order]) - cost[order]
    block = (spent - spent[firsts][component]) // max(limit // 2, 1)
    # Large components come behind the others, their blocks one after the other.
    numbers = np.unique(
        np.stack([is_large, np.where(is_large, component, shelf), block * is_large]), axis=1, return_inverse=True
    )[1]
    back = np.argsort(order)
    return pa.table([rows, labels, priority, numbers.ravel()[back], is_large[back]], schema=_SHELVES)


def map_shelved(
    documents: Documents, shelves: pa.Table, mapped: Mapped, block_step: BlockStep, engine: LocalEngine
) -> pa.Table:
    """Map the components of one shelf after the other."""
    numbers, is_large = shelves.column("shelf").to_numpy(), shelves.column("is_large").to_numpy()
    if not is_large.any() and not numbers.any():
        return engine.once("verified", lambda: map_held(documents, shelves, mapped, engine))
    name = f"verified/{_tag(shelves)}-{{:06}}"
    store = Shelves(engine.folder("texts"))
    units = _units(shelves)
    waiting = [unit for unit in units if not engine.has(name.format(unit[0]))]
    _set_aside(
        documents,
        shelves,
        np.concatenate([np.arange(first, stop) for first, stop, _ in waiting] or [np.empty(0, int)]),
        store,
        engine,
    )
    results = []
    for unit in units:
        step = partial(_map_unit, *unit, shelves, store, mapped, block_step)
        results.append(engine.once(name.format(unit[0]), step))
    return pa.concat_tables(results)


def _tag(shelves: pa.Table) -> str:
    """Name a plan of shelves: the number of a shelf means nothing under another plan."""
    digest = hashlib.blake2b(digest_size=8)
    for name in ("row", "shelf"):
        digest.update(shelves.column(name).to_numpy())
    return digest.hexdigest()


def _units(shelves: pa.Table) -> list[tuple[int, int, bool]]:
    """(first shelf, end, is it one large component) of what is mapped at once."""
    numbers, is_large, labels = (shelves.column(name).to_numpy() for name in ("shelf", "is_large", "component"))
    units = [(number, number + 1, False) for number in np.unique(numbers[~is_large]).tolist()]
    for label in np.unique(labels[is_large]):
        own = numbers[is_large & (labels == label)]
        units.append((int(own.min()), int(own.max()) + 1, True))
    return units


def _map_unit(
    first: int, stop: int, large: bool, shelves: pa.Table, store: Shelves, mapped: Mapped, block_step: BlockStep
) -> pa.Table:
    numbers = shelves.column("shelf").to_numpy()
    if large:
        result = block_step(_ShelvedBlocks(store, shelves, first, stop))
    else:
        held = pa.Table.from_batches(store.batches(first), schema=schemas.DOCUMENTS).sort_by("row")
        result = mapped(cut_components(held, shelves.filter(pa.array(numbers == first))))
    for number in range(first, stop):
        store.clear(number)
    return result


class _ShelvedBlocks:
    """The blocks of one large component; a shelf is a block."""

    def __init__(self, store: Shelves, shelves: pa.Table, first: int, stop: int) -> None:
        self._store = store
        self._shelves = range(first, stop)
        self._aside = -1 - first
        numbers = shelves.column("shelf").to_numpy()
        self._component = shelves.column("component")[int(np.flatnonzero(numbers == first)[0])].as_py()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for shelf in self._shelves:
            block = pa.Table.from_batches(self._store.batches(shelf), schema=schemas.DOCUMENTS)
            block = block.sort_by([("priority", "ascending"), ("row", "ascending")])
            block = block.append_column("component", pa.array(np.full(block.num_rows, self._component)))
            yield from block.select(_BLOCK_COLUMNS).combine_chunks().to_batches()

    def put(self, documents: pa.RecordBatch) -> None:
        self._store.put(self._aside, documents)

    def stored(self) -> Iterator[pa.RecordBatch]:
        return self._store.batches(self._aside)


def _set_aside(documents: Documents, shelves: pa.Table, wanted: I64, store: Shelves, engine: LocalEngine) -> None:
    numbers = shelves.column("shelf").to_numpy()
    chosen = np.isin(numbers, wanted)
    rows, numbers = shelves.column("row").to_numpy()[chosen], numbers[chosen]

    def read(part: int) -> None:
        for batch in _wanted_of(documents, part, rows):
            batch_numbers = numbers[np.searchsorted(rows, batch.column("row").to_numpy())]
            for number in np.unique(batch_numbers).tolist():
                store.put(number, batch.filter(pa.array(batch_numbers == number)))

    engine.side_by_side(read, _parts_with(documents, rows))
    store.flush()


def _gather(documents: Documents, rows: I64, engine: LocalEngine) -> pa.Table:
    def read(part: int) -> list[pa.RecordBatch]:
        return list(_wanted_of(documents, part, rows))

    parts = engine.side_by_side(read, _parts_with(documents, rows))
    return pa.Table.from_batches([batch for part in parts for batch in part], schema=schemas.DOCUMENTS)


def _parts_with(documents: Documents, rows: I64) -> list[int]:
    """The parts that hold some of the rows."""
    ends = np.searchsorted(rows, documents.first_rows)
    found: list[int] = np.flatnonzero(np.diff(ends)).tolist()
    return found


def _wanted_of(documents: Documents, part: int, rows: I64) -> Iterator[pa.RecordBatch]:
    for batch in documents.read(part, _unheard):
        batch_rows = batch.column("row").to_numpy()
        at = np.minimum(np.searchsorted(rows, batch_rows), rows.size - 1)
        is_wanted = rows[at] == batch_rows
        if is_wanted.any():
            yield batch if is_wanted.all() else batch.filter(pa.array(is_wanted))


def _unheard(steps: int) -> None:
    del steps


def cut_components(documents: pa.Table, members: pa.Table) -> Iterator[pa.RecordBatch]:
    """Gather whole components, a batch of them at a time, best priority first in each."""
    rows, member_rows = documents.column("row").to_numpy(), members.column("row").to_numpy()
    labels = members.column("component").to_numpy()
    at = np.searchsorted(rows, member_rows)
    order = np.lexsort((member_rows, documents.column("priority").to_numpy()[at], labels))
    at, labels = at[order], labels[order]
    sizes = np.concatenate([text_bytes(chunk) for chunk in documents.column("text").chunks] or [np.empty(0, int)])
    lasts = np.flatnonzero(np.r_[labels[1:] != labels[:-1], True]) if labels.size else np.empty(0, int)
    starts = np.r_[0, lasts + 1]
    for first, stop in runs(np.cumsum(sizes[at])[lasts]):
        chosen = slice(starts[first], starts[stop])
        taken = documents.take(pa.array(at[chosen])).combine_chunks()
        yield from taken.append_column("component", pa.array(labels[chosen])).to_batches()
