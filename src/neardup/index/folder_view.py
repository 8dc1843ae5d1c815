"""Views of one commit of a folder store, and changes to it."""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from neardup.errors import DataError
from neardup.index.candidates import CandidateSearch
from neardup.index.page_requests import DiskReads, blocks_read, request_in_turn
from neardup.index.segment import (
    BAND_POSTINGS,
    SET_POSTINGS,
    Segment,
    SegmentPostings,
    directory_of,
    set_postings,
)
from neardup.index.sketches import (
    GrowingSketches,
    Layout,
    Sketches,
    bytes_of,
    damaged,
    from_bytes,
    take_sketches,
    to_bytes,
)
from neardup.index.sqlite import Tables
from neardup.index.store import Candidates, Document, Shared, already_exists
from neardup.kernels import lookup
from neardup.kernels.similarity import Sets
from neardup.measures.base import I64, U64

# Documents in SQLite, and bytes of their sketches, that are flushed to a segment; a query compares
# its keys with all of theirs. A change that adds as many writes a segment itself.
UNFLUSHED_DOCS: Final = 2048
UNFLUSHED_BYTES: Final = 8 << 20
# The most documents of a segment that a change writes, and bytes of their sketches; a larger batch
# is split.
SEGMENT_DOCS: Final = 1 << 17
SEGMENT_BYTES: Final = 64 << 20
_TAKEN_AT_ONCE: Final = 1 << 11
# How many expired documents a change removes, besides two for each document that it stores: fewer
# stay than are stored, and no change waits for the removal of all that have expired since the last
# one.
_SWEPT_AT_ONCE: Final = 64


class Files(Protocol):
    """What views read: the open files of an index."""

    layout: Layout
    disk_reads: DiskReads

    def segments_of(self, view: FolderView) -> list[Segment]:
        """Return the segments that a commit names."""

    def unflushed_of(self, view: FolderView) -> Unflushed:
        """Return the unflushed documents of a commit."""


class SegmentMaker(Protocol):
    """What writes the segments of a change."""

    def new_segment(self) -> Path:
        """Return the path of the next segment."""

    def write_segment(self, path: Path, numbers: I64, sketches: Sketches) -> bytes:
        """Write a segment; return the digest of its header."""


class SegmentVanishedError(Exception):
    """A segment that a commit names no longer exists, because a later commit merged it with others."""


class Unflushed:
    """The unflushed documents of one generation of an index, held in memory; grows as they are inserted.

    previous: those of an earlier generation, which are copied instead of being read again.
    """

    def __init__(self, index_id: str, generation: int, previous: Unflushed | None = None) -> None:
        self.index_id = index_id
        self.generation = generation
        self._lock = threading.Lock()
        self._clear()
        self._previous: Unflushed | None = previous

    def _clear(self) -> None:
        self._previous = None
        self._sketches = GrowingSketches()
        self._numbers: list[int] = []
        self._last = -1
        self._is_whole = True

    def refresh(self, tables: Tables, before: int, layout: Layout) -> tuple[I64, Sketches | None]:
        """Read the documents inserted since, with numbers below `before`; return numbers and sketches."""
        with self._lock:
            if not self._is_whole:  # an interrupt came between two of the lines below
                self._clear()
            if self._previous is not None:
                self._is_whole = False
                self._copy(self._previous, tables, layout)
                self._previous = None
                self._is_whole = True
            if before - 1 > self._last:
                numbers, blobs = tables.unflushed(self._last, before)
                self._is_whole = False
                if blobs:
                    self._sketches.append(from_bytes(numbers, blobs, layout))
                    self._numbers += numbers
                self._last = before - 1
                self._is_whole = True
            return np.array(self._numbers, np.int64), self._sketches.view(layout.config)

    def _copy(self, previous: Unflushed, tables: Tables, layout: Layout) -> None:
        """Copy what is still unflushed."""
        rows = tables.connection.execute("SELECT number FROM fresh").fetchall()
        still_unflushed = np.array([number for (number,) in rows], np.int64)
        with previous._lock:
            if not previous._is_whole:
                return
            self._last = previous._last
            sketches = previous._sketches.view(layout.config)
            docs = np.flatnonzero(np.isin(np.array(previous._numbers, np.int64), still_unflushed))
            if docs.size and sketches is not None:
                self._sketches.append(take_sketches(sketches, docs, layout.config))
                self._numbers = [previous._numbers[doc] for doc in docs.tolist()]


class FolderView:
    """The documents of one commit of a folder store."""

    def __init__(self, files: Files, tables: Tables) -> None:
        self._files = files
        self.tables = tables
        self.now = time.time()
        state = tables.state()
        self.index_id = state.index_id
        self.next_number = state.next_number
        self.generation = state.generation
        self.num_documents = state.documents
        self._first_own = self.next_number

    def look_up(
        self, asked: Sketches, threshold: float, min_agreement: int
    ) -> Iterator[Candidates]:
        """Find the documents that share a band key with each query."""
        reads = self._files.disk_reads
        blocks = blocks_read()
        request_pages = reads.are_expected()
        for segment in self._segments_for(asked.keys, BAND_POSTINGS, request_pages=request_pages):
            queries, docs = CandidateSearch(
                segment, asked, threshold, min_agreement, request_pages=request_pages
            ).find()
            for first in range(0, docs.size, _TAKEN_AT_ONCE):
                chosen, docs_at = np.unique(
                    docs[first : first + _TAKEN_AT_ONCE], return_inverse=True
                )
                if request_pages:
                    segment.request_documents(chosen)
                yield Candidates(
                    queries[first : first + _TAKEN_AT_ONCE],
                    docs_at,
                    segment.arrays["numbers"][chosen],
                    segment.take(chosen),
                )
        reads.note(asked.sizes.size, blocks)
        for numbers, stored in self._unsorted():
            queries, docs = lookup.scan(
                asked.keys, asked.sizes, stored.keys, stored.sizes, threshold
            )
            if docs.size:
                yield Candidates(queries, docs, numbers, stored)

    def count_shared(self, sets: Sets, threshold: float) -> Iterator[Shared]:
        """Find the documents that share at least `threshold` of the smaller set with each query."""
        reads = self._files.disk_reads
        blocks = blocks_read()
        for segment in self._segments_for(
            sets.shingles, SET_POSTINGS, request_pages=reads.are_expected()
        ):
            queries, docs, counts = segment.count_shared(sets, threshold)
            yield Shared(
                queries, segment.arrays["numbers"][docs], counts, segment.arrays["sizes"][docs]
            )
        reads.note(sets.ends.size - 1, blocks)
        keys, owners = set_postings(sets)
        directory = directory_of([keys], keys.size)
        sizes = np.diff(sets.ends)
        for numbers, stored in self._unsorted():
            docs, queries, counts, _ = lookup.count_shared(
                stored.items, keys, owners, directory, sizes, threshold
            )
            yield Shared(queries, numbers[docs], counts, stored.sizes[docs])

    def _segments(self) -> list[Segment]:
        return self._files.segments_of(self)

    def _segments_for(
        self, keys: U64, names: SegmentPostings, *, request_pages: bool
    ) -> list[Segment]:
        """Return the segments.

        request_pages: request the pages of the postings of these keys, in all segments at once.
        """
        segments = self._segments()
        if request_pages:
            request_in_turn(segment.request_postings(keys, names) for segment in segments)
        return segments

    def _unsorted(self) -> Iterator[tuple[I64, Sketches]]:
        """The documents that are not yet in a segment."""
        unflushed = self._files.unflushed_of(self)
        numbers, stored = unflushed.refresh(self.tables, self._first_own, self._files.layout)
        if stored is not None:
            yield numbers, stored

    def fetch(self, numbers: Iterable[int]) -> dict[int, Document]:
        """Return the documents of these numbers."""
        return self.tables.fetch(numbers, self.now)

    def numbers_of(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the number of every id or alias."""
        found = self.tables.numbers_of(ids)
        live = self.fetch({number for number, _ in found.values()})
        return {doc_id: number for doc_id, (number, _) in found.items() if number in live}

    def aliases_of(self, numbers: Iterable[int]) -> dict[int, list[str]]:
        """Return the aliases of documents, sorted; those without any are absent."""
        return self.tables.aliases_of(numbers)

    def text_of(self, number: int) -> str | None:
        """Return the text of a document, if texts are stored."""
        if self._files.layout.has_texts:
            return self.tables.text_of(number)
        return None

    def numbers(self) -> I64:
        """Return the numbers of all documents that have not expired, in insertion order."""
        return np.array(self.tables.live_numbers(self.now), np.int64)

    def documents(self) -> Iterator[Document]:
        """Iterate over all documents that have not expired."""
        for document in self.tables.all_documents():
            if not document.is_expired(self.now):
                yield document

    def documents_after(self, number: int, most: int) -> list[Document]:
        """Return the first `most` documents above a number, in insertion order."""
        return self.tables.documents_after(number, most, self.now)

    def sketches(self) -> Iterator[tuple[I64, Sketches]]:
        """Iterate over all sketches; band keys are empty for documents of a segment."""
        for segment in self._segments():
            for first in range(0, segment.num_docs, _TAKEN_AT_ONCE):
                docs = np.arange(first, min(first + _TAKEN_AT_ONCE, segment.num_docs))
                segment.request_documents(docs)
                yield segment.arrays["numbers"][docs], segment.take(docs)
        yield from self._unsorted()

    def verify(self) -> None:
        """Compare every segment with its digests; raise if one is damaged, so that damage is not copied."""
        for segment in self._segments():
            damage = segment.check()
            if damage is not None:
                raise damaged(damage)

    def count(self) -> dict[str, int]:
        """Count documents, aliases, and where they are."""
        aliases = self.tables.connection.execute(
            "SELECT COUNT(*) FROM names WHERE is_alias"
        ).fetchone()[0]
        expired_documents, expired_aliases = self.tables.count_expired(self.now)
        return {
            "documents": self.num_documents - expired_documents,
            "aliases": aliases - expired_aliases,
            "segments": self.tables.count("runs"),
            "unflushed": self.tables.count("fresh"),
        }

    def has_tag(self, tag: str) -> bool:
        """Whether a change with this tag was made."""
        found = self.tables.connection.execute(
            "SELECT 1 FROM tags WHERE tag = ?", (tag,)
        ).fetchone()
        return found is not None

    def tag_with(self, prefix: str) -> str | None:
        """Return the first tag that begins with a prefix of ASCII."""
        found = self.tables.connection.execute(
            "SELECT tag FROM tags WHERE tag >= ? AND tag < ? ORDER BY tag LIMIT 1",
            (prefix, prefix + "\x7f"),
        ).fetchone()
        return None if found is None else str(found[0])


class FolderChange(FolderView):
    """One change of a folder store."""

    def __init__(self, files: Files, tables: Tables, maker: SegmentMaker) -> None:
        super().__init__(files, tables)
        self._maker = maker
        self._waiting = GrowingSketches()
        self._waiting_numbers = list[int]()
        self._waiting_bytes = 0
        self._drops_sketches = False
        self.new_segments: list[Path] = []
        self.unflushed_docs = 0
        self.unflushed_bytes = 0
        self._to_sweep = _SWEPT_AT_ONCE

    def put(
        self, documents: Sequence[Document], sketches: Sketches, texts: Sequence[str] | None
    ) -> None:
        """Store documents; their sketches wait for the end of the change, or become a segment if there are many."""
        if not documents:
            return
        self._to_sweep += 2 * len(documents)
        if self._sweep():
            self._free_names([document.doc_id for document in documents])
        try:
            self.tables.add_documents(documents)
        except sqlite3.IntegrityError as error:
            raise _exists(documents, self.tables) from error
        numbers = [document.number for document in documents]
        if texts is not None:
            self.tables.add_texts(numbers, texts)
        self._waiting.append(sketches)
        self._waiting_numbers += numbers
        self._waiting_bytes += bytes_of(sketches)
        if self._waits_for(SEGMENT_DOCS, SEGMENT_BYTES):
            self._write_segment()
        self.next_number = max(self.next_number, max(numbers) + 1)
        self.num_documents += len(numbers)

    def finish(self) -> None:
        """Store the sketches that still wait, and the state of the index after this change."""
        self._store_waiting()
        generation = self.generation + bool(self.new_segments or self._drops_sketches)
        self.tables.set_state(self.next_number, generation, self.num_documents)

    def _store_waiting(self) -> None:
        """Store the sketches that still wait: as a segment if there are many, else with the unflushed documents."""
        if self._waits_for(UNFLUSHED_DOCS, UNFLUSHED_BYTES):
            self._write_segment()
        sketches = self._waiting.view(self._files.layout.config)
        if sketches is not None:
            rows = (
                (number, to_bytes(sketches, at)) for at, number in enumerate(self._waiting_numbers)
            )
            self.tables.add_unflushed(rows)
            self.unflushed_docs = len(self._waiting_numbers)
            self.unflushed_bytes = self._waiting_bytes

    @property
    def num_added(self) -> int:
        """The number of documents that this change has stored."""
        return self.next_number - self._first_own

    def _waits_for(self, num_docs: int, num_bytes: int) -> bool:
        return len(self._waiting_numbers) >= num_docs or self._waiting_bytes >= num_bytes

    def _write_segment(self) -> None:
        """Write the waiting documents as a segment."""
        sketches = self._waiting.view(self._files.layout.config)
        if sketches is None:
            return
        path = self._maker.new_segment()
        self.new_segments.append(path)
        digest = self._maker.write_segment(
            path, np.array(self._waiting_numbers, np.int64), sketches
        )
        self.tables.add_segment(path.name, len(self._waiting_numbers), digest)
        self._waiting = GrowingSketches()
        self._waiting_numbers = []
        self._waiting_bytes = 0

    def drop_segments(self, names: Iterable[Any]) -> None:
        """Forget segments, whose documents the caller stores again or removes."""
        for name in names:
            self.tables.connection.execute("DELETE FROM runs WHERE name = ?", (name,))
            self._drops_sketches = True

    def drop_unflushed(self, numbers: Iterable[int]) -> None:
        """Forget sketches of unflushed documents, as `drop_segments` forgets segments."""
        for number in numbers:
            self.tables.connection.execute("DELETE FROM fresh WHERE number = ?", (number,))
            self._drops_sketches = True

    def put_sketches(self, numbers: Sequence[int], sketches: Sketches) -> None:
        """Store sketches again, as a segment, for documents that lost theirs."""
        self._waiting.append(sketches)
        self._waiting_numbers += numbers
        self._write_segment()

    def _unsorted(self) -> Iterator[tuple[I64, Sketches]]:
        yield from super()._unsorted()
        own = self._waiting.view(self._files.layout.config)
        if own is not None:
            yield np.array(self._waiting_numbers, np.int64), own

    def _segments(self) -> list[Segment]:
        return super()._segments() + [
            Segment(path, self._files.layout) for path in self.new_segments
        ]

    def _sweep(self) -> bool:
        """Remove some of the expired documents, so that they go by themselves; return whether more may be left."""
        if not self._to_sweep:
            return True
        expired = self.tables.expired(self.now, self._to_sweep)
        may_be_more = len(expired) == self._to_sweep
        self._to_sweep = 0
        self._remove_expired(expired)
        return may_be_more

    def _free_names(self, ids: Sequence[str]) -> None:
        """Remove the expired documents that have one of these ids, or an alias among them."""
        self._remove_expired({number for number, _ in self.tables.numbers_of(ids).values()})

    def _remove_expired(self, numbers: Iterable[int]) -> None:
        fetched = self.tables.fetch(numbers, -math.inf).values()
        self.num_documents -= self.tables.remove(
            document for document in fetched if document.is_expired(self.now)
        )

    def remove(self, documents: Iterable[Document]) -> None:
        """Remove documents and their aliases; their sketches go when segments are merged."""
        self._sweep()
        self.num_documents -= self.tables.remove(documents)

    def update(self, documents: Sequence[Document]) -> None:
        """Replace the rows of documents."""
        self._sweep()
        self.tables.update_documents(documents)

    def link(self, doc_id: str, number: int) -> None:
        """Make an id an alias of a document."""
        self._free_names([doc_id])
        try:
            self.tables.connection.execute("INSERT INTO names VALUES (?, ?, 1)", (doc_id, number))
        except sqlite3.IntegrityError as error:
            raise already_exists(doc_id) from error

    def unlink(self, alias: str) -> None:
        """Remove an alias."""
        self.tables.connection.execute("DELETE FROM names WHERE doc_id = ? AND is_alias", (alias,))

    def tag(self, tag: str) -> None:
        """Remember that this change was made."""
        self.tables.connection.execute("INSERT INTO tags VALUES (?, ?)", (tag, self.now))

    def drop_tags(self, first: str, stop: str, most: int) -> None:
        """Forget the first `most` tags from one up to, but not including, another."""
        self.tables.connection.execute(
            "DELETE FROM tags WHERE tag IN"
            " (SELECT tag FROM tags WHERE tag >= ? AND tag < ? ORDER BY tag LIMIT ?)",
            (first, stop, most),
        )


def _exists(documents: Sequence[Document], tables: Tables) -> DataError:
    """Return the error for an id that already exists, or is in the batch twice."""
    ids = [document.doc_id for document in documents]
    numbers = {document.number for document in documents}
    taken = {
        doc_id for doc_id, (number, _) in tables.numbers_of(ids).items() if number not in numbers
    }
    if first := next((doc_id for doc_id in ids if doc_id in taken), None):
        return already_exists(first)
    twice, _ = Counter(ids).most_common(1)[0]
    return DataError(
        f"the id {twice!r} occurs twice in the batch", hint="give every document a unique id"
    )
