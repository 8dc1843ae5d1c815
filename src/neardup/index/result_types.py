"""What the methods of an index return: matches, documents, the outcome of inserts, and the columns of tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from neardup.index.facts import read_payload
from neardup.index.store import Document

if TYPE_CHECKING:  # few questions are about passages
    from neardup.align.shared_passages import Passage

MATCHES: Final = pa.schema(
    [
        ("query_id", pa.string()),
        ("doc_id", pa.string()),
        ("similarity", pa.float64()),
        ("rank", pa.int64()),
    ]
)
CONTAINED: Final = pa.schema(
    [*MATCHES, ("containment_query", pa.float64()), ("containment_doc", pa.float64())]
)
NEW_ROWS: Final = pa.schema(
    [
        ("doc_id", pa.string()),
        ("is_new", pa.bool_()),
        ("match_id", pa.string()),
        ("similarity", pa.float64()),
    ]
)
PAIRS: Final = pa.schema(
    [("doc_a", pa.string()), ("doc_b", pa.string()), ("similarity", pa.float64())]
)
EXPORTED: Final = pa.schema(
    [
        *(
            ("doc_id", pa.string()),
            ("inserted", pa.float64()),
            ("expires", pa.float64()),
            ("payload", pa.string()),
        ),
        *(
            ("times_matched", pa.int64()),
            ("first_matched", pa.float64()),
            ("last_matched", pa.float64()),
            ("text", pa.string()),
        ),
        ("aliases", pa.string()),
    ]
)
PUT_ROWS: Final = pa.schema([("doc_id", pa.string()), ("outcome", pa.string())])
# The outcomes of `put`.
INSERTED: Final = "inserted"
REPLACED: Final = "replaced"


@dataclasses.dataclass(frozen=True, slots=True)
class Match:
    """A document of the index that is similar to a query; `is_estimate`: the index stores signatures only.

    For a query with `containment`, `containment_query` is the share of the query's shingles that
    the document contains, `containment_doc` the share of the document's that the query contains,
    and `similarity` the larger of the two.
    """

    doc_id: str
    similarity: float
    is_estimate: bool = False
    payload: dict[str, Any] | None = None
    inserted: float = 0.0
    expires: float | None = None
    containment_query: float | None = None
    containment_doc: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class PassageMatch:
    """A document of the index that shares passages with a text.

    passages: as `neardup.passages` lists them, a being the text and b the document; share_text, share_doc: the share of
    the words of each that lie in a passage.
    """

    doc_id: str
    passages: tuple[Passage, ...]
    share_text: float
    share_doc: float
    payload: dict[str, Any] | None = None
    inserted: float = 0.0
    expires: float | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Inserted:
    """Whether a document was new, and otherwise the match that was already stored."""

    is_new: bool
    match: Match | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document of the index.

    times_matched, first_matched, last_matched: how often, and when, `insert_new` found it as a
    match. Times are seconds since 1970; text: None unless the index stores texts; aliases: the
    other ids that it is known by.
    """

    doc_id: str
    payload: dict[str, Any] | None
    inserted: float
    expires: float | None
    times_matched: int
    first_matched: float | None
    last_matched: float | None
    text: str | None = None
    aliases: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class InsertResult:
    """The result of `insert_many`: how many documents were stored, and the location and reason of each rejected row."""

    documents: int
    rejected: tuple[tuple[str, str], ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class InsertNewResult:
    """The result of `insert_new_many`.

    rows: every document in turn: `doc_id`, `is_new`, and of a known one `match_id` and
    `similarity`;
    rejected: the location and reason of every rejected row;
    matches: the match of every document in turn, None for a new one.
    """

    rows: pa.Table
    rejected: tuple[tuple[str, str], ...] = ()
    matches: tuple[Match | None, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class PutResult:
    """The result of `put_many`.

    rows: every document in turn: `doc_id`, and `outcome`, which is "inserted" or "replaced";
    rejected: the location and reason of every rejected row.
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


def match_of(
    document: Document, similarity: float, *shares: float | None, is_estimate: bool
) -> Match:
    """Return a document as a match."""
    payload = read_payload(document)
    return Match(
        document.doc_id,
        similarity,
        is_estimate,
        payload,
        document.inserted,
        document.expires,
        *shares,
    )


def stored_of(document: Document, text: str | None, aliases: Iterable[str]) -> StoredDocument:
    """Return a document with everything that is stored about it."""
    return StoredDocument(
        doc_id=document.doc_id,
        payload=read_payload(document),
        inserted=document.inserted,
        expires=document.expires,
        times_matched=document.times_matched,
        first_matched=document.first_matched,
        last_matched=document.last_matched,
        text=text,
        aliases=tuple(aliases),
    )


def summary_of_rejected(rejected: Sequence[Sequence[str]]) -> str:
    """Return how many rows were rejected, and the first of them."""
    location, reason = rejected[0]
    if len(rejected) == 1:
        return f"1 row was rejected: {location}: {reason}"
    return f"{len(rejected):,} rows were rejected; the first is {location}: {reason}"
