"""Putting documents: each is inserted, or replaces the document that has its id."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import NearDupError
from neardup.events import Progress, Watch
from neardup.index.bulk import put_batch, sketch_batch
from neardup.index.facts import Facts
from neardup.index.input_batches import Batch
from neardup.index.settings import Settings, check_id
from neardup.index.store import Change, Store

INSERTED: Final = "inserted"
REPLACED: Final = "replaced"
_ROWS: Final = pa.schema([("doc_id", pa.string()), ("outcome", pa.string())])


@dataclasses.dataclass(frozen=True, slots=True)
class PutResult:
    """The result of `put_many`.

    rows: every document in turn: `doc_id`, and `outcome`, which is "inserted" or "replaced";
    rejected: the place and reason of every rejected row.
    """

    rows: pa.Table
    rejected: tuple[tuple[str, str], ...] = ()

    @property
    def inserted(self) -> int:
        """How many ids were new."""
        return self._count(INSERTED)

    @property
    def replaced(self) -> int:
        """How many documents or aliases were replaced."""
        return self._count(REPLACED)

    def _count(self, outcome: str) -> int:
        count: int = pc.sum(pc.equal(self.rows.column("outcome"), outcome)).as_py() or 0
        return count


def put_many(store: Store, read: Iterator[Batch], settings: Settings, progress: Progress | None) -> PutResult:
    """Put the documents of all batches, one after the other, in one change."""
    watch = Watch(progress)

    def make(change: Change) -> PutResult:
        ids: list[str] = []
        outcomes: list[str] = []
        rejected: list[tuple[str, str]] = []
        with watch.stage("put") as advance:
            for given in read:
                batch = _with_usable_ids(given)
                rejected += batch.rejected
                ids += batch.ids
                outcomes += make_room(change, batch.ids, batch.facts)
                last = _last_places(batch.ids)
                stored = batch if len(last) == len(batch.ids) else batch.take(last)
                put_batch(change, stored, sketch_batch(stored.contents, settings), settings)
                advance(len(batch.ids))
        rows = pa.table([pa.array(ids, pa.string()), pa.array(outcomes, pa.string())], schema=_ROWS)
        return PutResult(rows, tuple(rejected))

    return store.change(make)


def make_room(change: Change, ids: Sequence[str], facts: Facts) -> list[str]:
    """Remove the documents and aliases that have these ids; return the outcome of putting each id in turn."""
    numbers = change.numbers_of(ids)
    held = change.fetch(numbers.values())
    own = [document for document in held.values() if document.doc_id in numbers]
    aliases: dict[int, set[str]] = defaultdict(set)
    for doc_id, number in numbers.items():
        if held[number].doc_id != doc_id:
            aliases[number].add(doc_id)

    outcomes: list[str] = []
    known = set(numbers)
    for place, doc_id in enumerate(ids):
        outcomes.append(REPLACED if doc_id in known else INSERTED)
        if facts.is_expired(place, change.now):
            known.discard(doc_id)
        else:
            known.add(doc_id)
        number = numbers.get(doc_id, -1)
        if doc_id in aliases[number]:
            aliases[number].remove(doc_id)
        elif number >= 0:  # its other aliases are removed with it
            known -= aliases.pop(number)

    for doc_id, number in numbers.items():
        if held[number].doc_id != doc_id:
            change.unlink(doc_id)
    change.remove(own)
    return outcomes


def _with_usable_ids(batch: Batch) -> Batch:
    """Return a batch in which documents with ids that cannot be stored are rejected."""
    usable: list[int] = []
    rejected = list(batch.rejected)
    for place, doc_id in enumerate(batch.ids):
        try:
            check_id(doc_id)
        except NearDupError as error:
            rejected.append((repr(doc_id), error.message))
        else:
            usable.append(place)
    if len(usable) == len(batch.ids):
        return batch
    return batch.take(usable)._replace(rejected=rejected)


def _last_places(ids: Sequence[str]) -> list[int]:
    """Return the last place of every id, ascending."""
    last = {doc_id: place for place, doc_id in enumerate(ids)}
    return sorted(last.values())
