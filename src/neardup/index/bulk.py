"""Operations on many documents at once; each is one change, all or nothing."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.errors import DuplicateError, NearDupError
from neardup.events import Progress, Watch
from neardup.index.facts import Facts, read_payload
from neardup.index.input_batches import Batch
from neardup.index.result_types import (
    CONTAINED,
    EXPORTED,
    INSERTED,
    MATCHES,
    NEW_ROWS,
    PAIRS,
    PUT_ROWS,
    REPLACED,
    InsertNewResult,
    InsertResult,
    Match,
    PutResult,
    StoredDocument,
    match_of,
    stored_of,
)
from neardup.index.search import SPAN, FoundDocuments, Hit, QueryOptions, find, rank, search
from neardup.index.settings import IndexSettings, check_id
from neardup.index.sketches import Sketches, sketch_contents, take_sketches, with_keys
from neardup.index.store import Candidates, Change, Document, Store, StoreView, already_exists
from neardup.kernels import lookup
from neardup.measures.base import I64

ON_DUPLICATE: Final = ("skip", "replace", "link", "insert", "error")
Requested = Callable[[Document], bool]
# Documents exported, or removed by a condition, at once.
_AT_ONCE: Final = 4096
# Characters of their texts at once; a text may be larger.
_CHARACTERS_AT_ONCE: Final = 1 << 25
# The most documents compared with each other before insertion: the number of pairs of near-copies
# is quadratic.
_IN_TURN: Final = 128


class BestMatches(NamedTuple):
    """Indexes of contents, ascending, and the document of the index that each is most similar to."""

    queries: I64
    documents: list[Document]
    similarities: list[float]


def insert_many(
    store: Store,
    read: Iterator[Batch],
    settings: IndexSettings,
    progress: Progress | None,
    tag: str | None,
) -> InsertResult:
    """Store the documents of all batches in one change."""
    watch = Watch(progress)
    rejected = list[tuple[str, str]]()

    def make(change: Change) -> int:
        if tag is not None:
            if change.has_tag(tag):
                return 0
            change.tag(tag)
        before = change.next_number
        with watch.stage("insert") as advance:
            for batch in read:
                rejected.extend(batch.rejected)
                put_batch(change, batch, sketch_batch(batch.contents, settings), settings)
                advance(len(batch.ids))
        return change.next_number - before

    return InsertResult(store.change(make), tuple(rejected))


def sketch_batch(contents: pa.Array, settings: IndexSettings) -> Sketches:
    """Return the sketches of documents, as the index stores them."""
    sketches = sketch_contents(contents, settings.plan, settings.config)
    if settings.store == "signature":
        return sketches._replace(items=None)
    return sketches


def put_batch(change: Change, batch: Batch, sketches: Sketches, settings: IndexSettings) -> None:
    """Store the documents of a batch."""
    now = time.time()
    number = change.next_number
    documents = [
        Document(number + at, check_id(doc_id), now) for at, doc_id in enumerate(batch.ids)
    ]
    if batch.facts != Facts():
        documents = [batch.facts.of(document, at) for at, document in enumerate(documents)]
    texts = batch.contents.to_pylist() if settings.store == "text" else None
    change.put(documents, sketches, texts)


def query_many(
    store: Store,
    read: Iterator[Batch],
    settings: IndexSettings,
    options: QueryOptions,
    rejected: list[tuple[str, str]],
) -> pa.Table:
    """Answer every document of all batches, each batch from one commit; append the rejected rows to `rejected`."""
    shape = CONTAINED if options.is_containment else MATCHES
    tables = [shape.empty_table()]
    for batch in read:
        rejected += batch.rejected
        for first, chosen in _spans(sketch_batch(batch.contents, settings), settings):

            def ask(view: StoreView, chosen: Sketches = chosen) -> list[list[Hit]]:
                return search(view, chosen, options, settings)

            tables.append(_as_table(batch.ids[first : first + SPAN], store.read(ask), shape))
    return pa.concat_tables(tables).combine_chunks()


def query_each(
    store: Store, read: Iterator[Batch], settings: IndexSettings, options: QueryOptions
) -> Iterator[list[Hit]]:
    """Answer every document of all batches in turn, each span of them from one commit."""
    for batch in read:
        for _, chosen in _spans(sketch_batch(batch.contents, settings), settings):

            def ask(view: StoreView, chosen: Sketches = chosen) -> list[list[Hit]]:
                return search(view, chosen, options, settings)

            yield from store.read(ask)


def best_matches(
    view: StoreView, contents: pa.Array, threshold: float, settings: IndexSettings
) -> BestMatches:
    """Return the most similar document for each of `contents` that has one."""
    queries: list[int] = []
    documents: list[Document] = []
    similarities: list[float] = []
    for first, chosen in _spans(sketch_batch(contents, settings), settings):
        results = search(view, chosen, QueryOptions(1, threshold), settings)
        for query, hits in enumerate(results, first):
            for hit in hits:
                queries.append(query)
                documents.append(hit.document)
                similarities.append(hit.similarity)
    return BestMatches(np.array(queries, np.int64), documents, similarities)


def _spans(sketches: Sketches, settings: IndexSettings) -> Iterator[tuple[int, Sketches]]:
    """Cut queries into spans; yield each with the index of its first."""
    num_queries = sketches.sizes.size
    for first in range(0, num_queries, SPAN):
        own = np.arange(first, min(first + SPAN, num_queries))
        yield first, take_sketches(sketches, own, settings.config)


def _as_table(ids: Sequence[str], results: Sequence[Sequence[Hit]], shape: pa.Schema) -> pa.Table:
    rows = []
    for doc_id, hits in zip(ids, results, strict=True):
        for hit_rank, (document, similarity, *shares) in enumerate(hits, 1):
            row = (doc_id, document.doc_id, similarity, hit_rank, *shares)
            rows.append(row[: len(shape)])
    return _table(rows, shape)


def _table(rows: Sequence[tuple[Any, ...]], columns: pa.Schema) -> pa.Table:
    values = zip(*rows, strict=True) if rows else ([],) * len(columns)
    return pa.table(
        [pa.array(list(own), kind) for own, kind in zip(values, columns.types, strict=True)],
        columns,
    )


def handle_duplicate(change: Change, doc_id: str, match: Document, on_duplicate: str) -> None:
    """Count that a document was matched, and apply `on_duplicate`."""
    if on_duplicate == "replace":
        change.remove([match])
        return
    counted = match._replace(
        times_matched=match.times_matched + 1,
        first_matched=change.now if match.first_matched is None else match.first_matched,
        last_matched=change.now,
    )
    change.update([counted])
    if on_duplicate == "link":
        change.link(doc_id, match.number)


def duplicate_of(doc_id: str, match: Match) -> DuplicateError:
    """Return the error for a document that is refused because a similar one exists."""
    error = DuplicateError(
        f"the document {doc_id!r} has a similarity of {match.similarity:.4g} to {match.doc_id!r}",
        hint="nothing was stored; on_duplicate='skip' reports the match instead",
    )
    error.match = match
    return error


def insert_new_many(
    store: Store,
    read: Iterator[Batch],
    settings: IndexSettings,
    on_duplicate: str,
    progress: Progress | None,
) -> InsertNewResult:
    """Store the documents of all batches that are new, one after the other, in one change."""
    watch = Watch(progress)

    def make(change: Change) -> InsertNewResult:
        found: list[tuple[str, Match | None]] = []
        rejected: list[tuple[str, str]] = []
        with watch.stage("insert") as advance:
            for batch in read:
                rejected += batch.rejected
                sketches = sketch_batch(batch.contents, settings)
                for first in range(0, len(batch.ids), _IN_TURN):
                    chosen = np.arange(first, min(first + _IN_TURN, len(batch.ids)))
                    part = batch.slice(first, first + chosen.size)
                    taken = take_sketches(sketches, chosen, settings.config)
                    found += _InTurn(change, part, taken, settings).run(on_duplicate)
                    advance(chosen.size)
        rows = [
            (doc_id, True, None, None)
            if match is None
            else (doc_id, False, match.doc_id, match.similarity)
            for doc_id, match in found
        ]
        matches = tuple(match for _, match in found)
        return InsertNewResult(_table(rows, NEW_ROWS), tuple(rejected), matches)

    return store.change(make)


class _InTurn:
    """Documents inserted one after the other, each also compared with those before it."""

    def __init__(
        self, change: Change, batch: Batch, sketches: Sketches, settings: IndexSettings
    ) -> None:
        self._change = change
        self._batch = batch
        self._sketches = sketches
        self._settings = settings
        threshold = settings.config.threshold
        found_stored = find(change, sketches, threshold, settings)
        self._ranked = rank(change, found_stored, len(batch.ids), None, None)
        own = find(_InMemory(sketches), sketches, threshold, settings)
        self._own = _by_query(own, len(batch.ids))
        self._documents: dict[int, Document] = {}  # by index in the batch: stored so far
        self._gone: set[int] = set()  # numbers that were replaced

    def run(self, on_duplicate: str) -> list[tuple[str, Match | None]]:
        """Insert all new documents; return the id of each, and its match if it is not new."""
        rows: list[tuple[str, Match | None]] = []
        is_estimate = self._settings.store == "signature"
        for at, doc_id in enumerate(self._batch.ids):
            if self._change.numbers_of([check_id(doc_id)]):
                raise already_exists(doc_id)
            best = self._best(at)
            match = None
            if best is not None:
                match = match_of(*best, is_estimate=is_estimate)
                if on_duplicate == "error":
                    raise duplicate_of(doc_id, match)
                handle_duplicate(self._change, doc_id, self._latest(best[0]), on_duplicate)
                if on_duplicate == "replace":
                    self._gone.add(best[0].number)
            if best is None or on_duplicate in ("insert", "replace"):
                self._store(at, doc_id)
            rows.append((doc_id, match))
        return rows

    def _best(self, at: int) -> tuple[Document, float] | None:
        """The most similar document before this one; among equals, the one inserted first."""
        best = None
        for hit in self._ranked[at]:
            if hit.document.number not in self._gone:
                best = hit.document, hit.similarity
                break
        for earlier, similarity in self._own[at]:
            document = self._documents.get(earlier)
            if document is None or document.number in self._gone:
                continue
            if document.is_expired(self._change.now):
                continue
            if best is None or (similarity, -document.number) > (best[1], -best[0].number):
                best = document, similarity
        return best

    def _latest(self, document: Document) -> Document:
        return self._change.fetch([document.number])[document.number]

    def _store(self, at: int, doc_id: str) -> None:
        bare = Document(self._change.next_number, doc_id, time.time())
        document = self._batch.facts.of(bare, at)
        texts = None
        if self._settings.store == "text":
            texts = [self._batch.contents[at].as_py()]
        own = take_sketches(self._sketches, np.array([at]), self._settings.config)
        self._change.put([document], own, texts)
        self._documents[at] = document


class _InMemory:
    """Documents in memory, looked up like those of a store."""

    def __init__(self, sketches: Sketches) -> None:
        self._sketches = sketches

    def look_up(self, asked: Sketches, threshold: float, _: int) -> Iterator[Candidates]:
        """Find the documents that share a band key."""
        own_sketches = self._sketches
        queries, docs = lookup.scan(
            asked.keys, asked.sizes, own_sketches.keys, own_sketches.sizes, threshold
        )
        yield Candidates(queries, docs, np.arange(own_sketches.sizes.size), own_sketches)


def _by_query(found: FoundDocuments, num_queries: int) -> list[list[tuple[int, float]]]:
    """Return the earlier documents that each one is similar to."""
    pairs: list[list[tuple[int, float]]] = [[] for _ in range(num_queries)]
    for query, earlier, similarity in zip(
        found.queries.tolist(), found.numbers.tolist(), found.similarities.tolist(), strict=True
    ):
        if earlier < query:
            pairs[query].append((earlier, similarity))
    return pairs


def put_many(
    store: Store, read: Iterator[Batch], settings: IndexSettings, progress: Progress | None
) -> PutResult:
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
                last = _last_of_each(batch.ids)
                if len(last) == len(batch.ids):
                    stored = batch
                else:
                    stored = batch.take(last)
                put_batch(change, stored, sketch_batch(stored.contents, settings), settings)
                advance(len(batch.ids))
        rows = pa.table(
            [pa.array(ids, pa.string()), pa.array(outcomes, pa.string())], schema=PUT_ROWS
        )
        return PutResult(rows, tuple(rejected))

    return store.change(make)


def make_room(change: Change, ids: Sequence[str], facts: Facts) -> list[str]:
    """Remove the documents and aliases that have these ids; return the outcome of putting each id in turn."""
    numbers = change.numbers_of(ids)
    fetched = change.fetch(numbers.values())
    own = [document for document in fetched.values() if document.doc_id in numbers]
    aliases: dict[int, set[str]] = defaultdict(set)
    for doc_id, number in numbers.items():
        if fetched[number].doc_id != doc_id:
            aliases[number].add(doc_id)

    outcomes: list[str] = []
    known = set(numbers)
    for at, doc_id in enumerate(ids):
        outcomes.append(REPLACED if doc_id in known else INSERTED)
        if facts.is_expired(at, change.now):
            known.discard(doc_id)
        else:
            known.add(doc_id)
        number = numbers.get(doc_id, -1)
        if doc_id in aliases[number]:
            aliases[number].remove(doc_id)
        elif number >= 0:  # its other aliases are removed with it
            known -= aliases.pop(number)

    for doc_id, number in numbers.items():
        if fetched[number].doc_id != doc_id:
            change.unlink(doc_id)
    change.remove(own)
    return outcomes


def _with_usable_ids(batch: Batch) -> Batch:
    """Return a batch in which documents with ids that cannot be stored are rejected."""
    usable: list[int] = []
    rejected = list(batch.rejected)
    for at, doc_id in enumerate(batch.ids):
        try:
            check_id(doc_id)
        except NearDupError as error:
            rejected.append((repr(doc_id), error.message))
        else:
            usable.append(at)
    if len(usable) == len(batch.ids):
        return batch
    chosen = batch.take(usable)
    return Batch(chosen.ids, chosen.contents, rejected, chosen.facts)


def _last_of_each(ids: Sequence[str]) -> list[int]:
    """Return the last index of every id, ascending."""
    last = {doc_id: at for at, doc_id in enumerate(ids)}
    return sorted(last.values())


def remove(change: Change, ids: Sequence[str]) -> int:
    """Remove documents and aliases; return how many of the ids existed."""
    found = change.numbers_of(ids)
    fetched = change.fetch(found.values())
    own = [document for document in fetched.values() if document.doc_id in found]
    for doc_id, number in found.items():
        if fetched[number].doc_id != doc_id:
            change.unlink(doc_id)
    change.remove(own)
    return len(found)


def matching(view: StoreView, is_requested: Requested) -> Iterator[Document]:
    """Iterate over the documents that a filter accepts."""
    return (document for document in view.documents() if is_requested(document))


def remove_matching(store: Store, is_requested: Requested) -> int:
    """Remove the documents that a filter accepts; return their number.

    Those that match are listed before the change begins, because reading every payload would block
    other writers.
    """
    numbers = store.read(
        lambda view: [document.number for document in matching(view, is_requested)]
    )

    def make(change: Change) -> int:
        count = 0
        for first in range(0, len(numbers), _AT_ONCE):
            fetched = change.fetch(numbers[first : first + _AT_ONCE]).values()
            chosen = [document for document in fetched if is_requested(document)]
            change.remove(chosen)
            count += len(chosen)
        return count

    return store.change(make) if numbers else 0


def get_many(view: StoreView, ids: Sequence[str]) -> dict[str, StoredDocument]:
    """Return the documents that have these ids or aliases, by id or alias."""
    numbers = view.numbers_of(ids)
    fetched = view.fetch(set(numbers.values()))
    aliases = view.aliases_of(fetched)
    stored = {
        number: stored_of(document, view.text_of(number), aliases.get(number, ()))
        for number, document in fetched.items()
    }
    return {doc_id: stored[numbers[doc_id]] for doc_id in ids if doc_id in numbers}


def documents_after(
    view: StoreView, number: int, most: int, max_characters: int
) -> tuple[list[StoredDocument], int | None]:
    """Return the first documents above a number, and the number of the last unless it is the last of all."""
    documents = view.documents_after(number, most + 1)
    aliases_of = view.aliases_of(document.number for document in documents)
    stored: list[StoredDocument] = []
    num_characters = 0
    for document in documents[:most]:
        text = view.text_of(document.number)
        num_characters += len(text or "") + len(document.payload or "")
        if stored and num_characters > max_characters:
            break
        stored.append(stored_of(document, text, aliases_of.get(document.number, ())))
    has_more = len(stored) < len(documents)
    return stored, documents[len(stored) - 1].number if has_more else None


def aliases(view: StoreView) -> dict[str, str]:
    """Return the document of every alias, in insertion order of the documents."""
    found: dict[str, str] = {}
    for part in _parts(view.documents()):
        names = view.aliases_of(document.number for document in part)
        for document in part:
            found |= dict.fromkeys(names.get(document.number, ()), document.doc_id)
    return found


def export(view: StoreView, write: Callable[[pa.Table], None]) -> int:
    """Write all documents; return their number."""
    view.verify()
    count = 0
    write(_table([], EXPORTED))
    for part in _with_texts(view, view.documents()):
        names = view.aliases_of(document.number for document, _ in part)
        rows: list[tuple[Any, ...]] = []
        for document, text in part:
            read_payload(document)
            own = names.get(document.number)
            if own is None:
                as_json = None
            else:
                as_json = json.dumps(own, ensure_ascii=False)
            rows.append((*document[1:], text, as_json))
        write(_table(rows, EXPORTED))
        count += len(part)
    return count


def _with_texts(
    view: StoreView, documents: Iterable[Document]
) -> Iterator[list[tuple[Document, str | None]]]:
    """Split documents, with their texts if they are stored, into lists of bounded size."""
    part: list[tuple[Document, str | None]] = []
    num_characters = 0
    for document in documents:
        text = view.text_of(document.number)
        part.append((document, text))
        num_characters += len(text or "")
        if len(part) == _AT_ONCE or num_characters >= _CHARACTERS_AT_ONCE:
            yield part
            part = []
            num_characters = 0
    if part:
        yield part


def _parts(documents: Iterator[Document]) -> Iterator[list[Document]]:
    while part := list(islice(documents, _AT_ONCE)):
        yield part


def pairs(own: StoreView, theirs: StoreView, settings: IndexSettings) -> pa.Table:
    """List the similar documents of two stores, in insertion order of the first, best first."""
    found: list[tuple[int, str, str, float]] = []
    for numbers, part in own.sketches():
        live = own.fetch(numbers.tolist())
        for first in range(0, numbers.size, SPAN):
            chosen = np.arange(first, min(first + SPAN, numbers.size))
            asked = with_keys(
                take_sketches(part, chosen, settings.config), settings.plan, settings.config
            )
            results = search(theirs, asked, QueryOptions(None, settings.config.threshold), settings)
            for number, hits in zip(numbers[chosen].tolist(), results, strict=True):
                if number in live:
                    found += [
                        (number, live[number].doc_id, hit.document.doc_id, hit.similarity)
                        for hit in hits
                    ]
    found.sort(key=lambda row: row[0])
    return _table([row[1:] for row in found], PAIRS)


def merge(change: Change, theirs: StoreView, settings: IndexSettings) -> int:
    """Store all documents of another store with their aliases, in its insertion order; return their number.

    Raise for a payload that cannot be read, which would be copied with a valid digest.
    """
    theirs.verify()
    numbers = theirs.numbers()
    first = change.next_number
    for part_numbers, part in theirs.sketches():
        live = theirs.fetch(part_numbers.tolist())
        chosen = np.flatnonzero(np.isin(part_numbers, list(live)))
        begin = 0
        for loaded in _with_texts(
            theirs, (live[number] for number in part_numbers[chosen].tolist())
        ):
            own = chosen[begin : begin + len(loaded)]
            begin += len(loaded)
            # Segments are not in insertion order, so a document is numbered by its rank among all.
            new_numbers = first + np.searchsorted(numbers, part_numbers[own])
            sketches = with_keys(
                take_sketches(part, own, settings.config), settings.plan, settings.config
            )
            _put_renumbered(change, loaded, new_numbers.tolist(), sketches, settings)
        renumbered = first + np.searchsorted(numbers, part_numbers[chosen])
        _link_all(
            change,
            theirs.aliases_of(live),
            dict(zip(part_numbers[chosen].tolist(), renumbered.tolist(), strict=True)),
        )
    return numbers.size


def _put_renumbered(
    change: Change,
    loaded: Sequence[tuple[Document, str | None]],
    numbers: Sequence[int],
    sketches: Sketches,
    settings: IndexSettings,
) -> None:
    """Store documents of another store, and their texts, under new numbers."""
    documents = []
    for (document, _), number in zip(loaded, numbers, strict=True):
        read_payload(document)
        documents.append(document._replace(number=number))
    if settings.store == "text":
        texts = [text or "" for _, text in loaded]
    else:
        texts = None
    change.put(documents, sketches, texts)


def _link_all(
    change: Change, aliases: Mapping[int, Sequence[str]], renumbered: Mapping[int, int]
) -> None:
    for number, names in aliases.items():
        for alias in names:
            change.link(alias, renumbered[number])
