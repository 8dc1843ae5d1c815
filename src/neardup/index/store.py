"""The protocol of a store for an index: put a batch, look up keys, fetch documents, remove, snapshot.

The folder store is for one machine; every store must pass tests/index/test_store.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from neardup.errors import IdExistsError
from neardup.index.sketches import Sketches
from neardup.kernels.similarity import Sets
from neardup.measures.base import I64

Result = TypeVar("Result")


class Document(NamedTuple):
    """What is stored of a document besides its sketch; times are seconds since 1970, payload is JSON."""

    number: int
    doc_id: str
    inserted: float
    expires: float | None = None
    payload: str | None = None
    times_matched: int = 0
    first_matched: float | None = None
    last_matched: float | None = None

    def is_expired(self, now: float) -> bool:
        """Whether the document has expired."""
        return is_expired(self.expires, now)


def is_expired(expires: float | None, now: float) -> bool:
    """Whether a time of expiry is over; the same rule as EXPIRED of the SQLite tables."""
    return expires is not None and expires <= now


class Candidates(NamedTuple):
    """Pairs that share a bucket: pair p is queries[p] and document docs[p] of `sketches`."""

    queries: I64
    docs: I64
    numbers: I64
    sketches: Sketches


class Shared(NamedTuple):
    """Pairs of queries and documents that share shingles: their numbers, shared shingles and sizes."""

    queries: I64
    numbers: I64
    counts: I64
    sizes: I64


class StoreView(Protocol):
    """The documents of one commit."""

    now: float

    def look_up(
        self, asked: Sketches, threshold: float, min_agreement: int
    ) -> Iterator[Candidates]:
        """Find the documents that share a band key with each query.

        Removed ones may be included. Those that fail the size filter (minimum ratio of two sizes),
        the signature filter (minimum agreement), or the bitmap filter (`threshold`: the least
        similarity of sets) may be omitted.
        """

    def count_shared(self, sets: Sets, threshold: float) -> Iterator[Shared]:
        """Find the documents that share at least `threshold` of the smaller set with each query; removed ones too."""

    def fetch(self, numbers: Iterable[int]) -> dict[int, Document]:
        """Return the documents of these numbers, by number; those that were removed or have expired are absent."""

    def numbers_of(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the number of every id, or alias, that is in the index."""

    def aliases_of(self, numbers: Iterable[int]) -> dict[int, list[str]]:
        """Return the aliases of documents, sorted; those without any are absent."""

    def text_of(self, number: int) -> str | None:
        """Return the text of a document, if texts are stored."""

    def numbers(self) -> I64:
        """Return the numbers of all documents, in insertion order."""

    def documents(self) -> Iterator[Document]:
        """Iterate over all documents, in insertion order."""

    def documents_after(self, number: int, most: int) -> list[Document]:
        """Return the first `most` documents above a number, in insertion order."""

    def sketches(self) -> Iterator[tuple[I64, Sketches]]:
        """Iterate over all sketches with their numbers, one batch at a time; removed documents may be among them."""

    def verify(self) -> None:
        """Raise if anything that `sketches` reads is damaged; called before documents are copied elsewhere."""

    def count(self) -> dict[str, int]:
        """Count documents, aliases, and where they are."""

    def has_tag(self, tag: str) -> bool:
        """Whether a change with this tag was made."""

    def tag_with(self, prefix: str) -> str | None:
        """Return the first tag that begins with a prefix of ASCII."""


class Change(StoreView, Protocol):
    """One change of the store, visible to others completely or not at all."""

    def put(
        self, documents: Sequence[Document], sketches: Sketches, texts: Sequence[str] | None
    ) -> None:
        """Store documents; raise if an id already exists.

        Their numbers must be new, and decide the insertion order: `next_number` becomes one more
        than the largest.
        """

    def remove(self, documents: Iterable[Document]) -> None:
        """Remove documents and their aliases."""

    def update(self, documents: Sequence[Document]) -> None:
        """Replace the stored facts of documents, except their sketches."""

    def link(self, doc_id: str, number: int) -> None:
        """Make an id an alias of a document; raise if it already exists."""

    def unlink(self, alias: str) -> None:
        """Remove an alias."""

    def tag(self, tag: str) -> None:
        """Remember that this change was made."""

    def drop_tags(self, first: str, stop: str, most: int) -> None:
        """Forget the first `most` tags from one up to, but not including, another."""

    @property
    def next_number(self) -> int:
        """The number of the next document."""


class Store(Protocol):
    """Stores the documents of an index."""

    def read(self, ask: Callable[[Any], Result]) -> Result:
        """Answer a question from one commit."""

    def change(self, make: Callable[[Any], Result]) -> Result:
        """Make one change; if `make` raises, nothing is changed."""

    def compact(self) -> None:
        """Drop removed and expired documents, and merge all segments."""

    def check(self) -> list[str]:
        """Read everything; describe any damage."""

    @property
    def num_merges(self) -> int:
        """How many times segments were merged since the store was opened."""

    def damage(self) -> list[str]:
        """Describe the damage that was found since the store was opened."""

    def repair(self, sketch_again: Callable[[Sequence[str]], Sketches] | None) -> Any:
        """Give up what is missing or damaged; sketch_again: how to sketch stored texts again, if texts are stored."""

    def snapshot(self, path: Path, *, copy: bool = False) -> None:
        """Write a copy of one commit, completely or not at all; copy: share no file with it."""

    def close(self) -> None:
        """Let others write."""


def already_exists(doc_id: str) -> IdExistsError:
    """Return the error for an id that already exists."""
    return IdExistsError(
        f"the id {doc_id!r} already exists in the index",
        hint="remove the stored document first, or choose another id",
    )
