"""What an index must hold after any sequence of operations, in plain Python."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

THRESHOLD = 0.5


class RefusedError(Exception):
    """The index must refuse this operation and change nothing."""


class Row(NamedTuple):
    """A document as it is given to an index."""

    doc_id: str
    text: str
    payload: dict[str, Any] | None = None
    expires: float | None = None


@dataclasses.dataclass
class Held:
    """A document as an index holds it."""

    text: str
    payload: dict[str, Any] | None
    expires: float | None
    met: int = 0


def similarity(one: str, two: str) -> float:
    """Return the Jaccard similarity of the words of two texts."""
    first = set(one.split())
    second = set(two.split())
    union = len(first | second)
    return len(first & second) / union if first and second else 0.0


class Model:
    """The documents of an index by id, in insertion order, and the document of every alias."""

    def __init__(self) -> None:
        self.documents: dict[str, Held] = {}
        self.aliases: dict[str, str] = {}
        self.tags: set[str] = set()
        self.now = 0.0

    def copied(self) -> Model:
        """Return an independent copy."""
        return copy.deepcopy(self)

    def content(self) -> tuple[Any, ...]:
        """Return what two models that hold the same have in common."""
        documents = [
            (doc_id, *dataclasses.astuple(held)) for doc_id, held in self.documents.items()
        ]
        return documents, self.aliases, self.tags

    def is_taken(self, doc_id: str) -> bool:
        """Whether an id is that of a document or an alias."""
        return doc_id in self.documents or doc_id in self.aliases

    def ranked(self, text: str) -> list[tuple[str, float]]:
        """Return the similar documents, best first; among equals, the one inserted first."""
        found = [(doc_id, similarity(text, held.text)) for doc_id, held in self.documents.items()]
        return sorted(
            (entry for entry in found if entry[1] >= THRESHOLD), key=lambda entry: -entry[1]
        )

    def pass_time(self, seconds: float) -> None:
        """Put the clock forward, and drop what expires."""
        self.now += seconds
        for doc_id, held in list(self.documents.items()):
            if held.expires is not None and held.expires <= self.now:
                self._drop(doc_id)

    def _store(self, row: Row) -> None:
        if row.expires is None or row.expires > self.now:
            self.documents[row.doc_id] = Held(*row[1:])

    def _drop(self, doc_id: str) -> None:
        del self.documents[doc_id]
        self.aliases = {alias: target for alias, target in self.aliases.items() if target != doc_id}

    # --- operations, named like those of Index; each returns what the index must return ---

    def insert_many(self, rows: Sequence[Row], tag: str | None = None) -> int:
        """Return the number of documents that are stored."""
        if tag is not None and tag in self.tags:
            return 0
        ids = [row.doc_id for row in rows]
        if len(set(ids)) < len(ids) or any(map(self.is_taken, ids)):
            raise RefusedError
        if tag is not None:
            self.tags.add(tag)
        for row in rows:
            self._store(row)
        return len(rows)

    def insert_new(self, row: Row, on_duplicate: str) -> tuple[str, bool, str | None, float | None]:
        """Return a row of the table that `insert_new_many` returns."""
        if self.is_taken(row.doc_id):
            raise RefusedError
        best = next(iter(self.ranked(row.text)), None)
        if best is None:
            self._store(row)
            return row.doc_id, True, None, None
        if on_duplicate == "replace":
            self._drop(best[0])
        else:
            self.documents[best[0]].met += 1
        if on_duplicate == "link":
            self.aliases[row.doc_id] = best[0]
        if on_duplicate in ("replace", "insert"):
            self._store(row)
        return row.doc_id, False, *best

    def put(self, row: Row) -> str:
        """Return whether the document was inserted or replaced."""
        outcome = "replaced" if self.is_taken(row.doc_id) else "inserted"
        self.aliases.pop(row.doc_id, None)
        if row.doc_id in self.documents:
            self._drop(row.doc_id)
        self._store(row)
        return outcome

    def replace(self, row: Row) -> None:
        """Replace a document, but not an alias."""
        if row.doc_id not in self.documents:
            raise RefusedError
        self._drop(row.doc_id)
        self._store(row)

    def remove(self, ids: Iterable[str]) -> int:
        """Return how many ids there were."""
        known = [doc_id for doc_id in ids if self.is_taken(doc_id)]
        for doc_id in known:
            self.aliases.pop(doc_id, None)
        for doc_id in known:
            if doc_id in self.documents:
                self._drop(doc_id)
        return len(known)

    def remove_where(self, where: dict[str, Any]) -> int:
        """Return the number of documents whose payload has these values."""
        chosen = [
            doc_id
            for doc_id, held in self.documents.items()
            if where.items() <= (held.payload or {}).items()
        ]
        for doc_id in chosen:
            self._drop(doc_id)
        return len(chosen)

    def merge(self, other: Model) -> int:
        """Return the number of documents of the other index."""
        ids = [*other.documents, *other.aliases]
        if any(map(self.is_taken, ids)):
            raise RefusedError
        self.documents |= copy.deepcopy(other.documents)
        self.aliases |= other.aliases
        return len(other.documents)
