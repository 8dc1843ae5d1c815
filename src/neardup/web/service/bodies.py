"""The bodies of requests and answers of the service."""

from __future__ import annotations

import math
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from neardup.config import Config
from neardup.config.checks import VECTOR_MEASURES
from neardup.errors import DataError, NearDupError
from neardup.index.result_types import Match, StoredDocument
from neardup.io.documents.in_memory import ItemSets

MAX_TEXT: Final = 1_000_000
MAX_BATCH: Final = 1_000
MAX_K: Final = 1_000
OnDuplicate = Literal["skip", "replace", "link", "insert", "error"]
_CONTENTS: Final = ("text", "items", "vector")


class TooLargeError(NearDupError):
    """A text or a batch is larger than the service takes."""


class MalformedError(NearDupError):
    """A body is not of the form that its route takes; `status` is that of the answer."""

    def __init__(self, status: int, code: str, message: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.code = code


class Content(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What is compared: a text, a set of items, or a vector, as the collection was created for."""

    text: str | None = None
    items: list[Any] | dict[str, float] | None = None
    vector: list[float] | None = None


class Document(Content, forbid_unknown_fields=True, omit_defaults=True):
    """A document to store; `expires`: seconds since 1970, or a time such as 2031-01-31T12:00."""

    id: str | None = None
    payload: dict[str, Any] | None = None
    expires: float | str | None = None


class Documents(Document, forbid_unknown_fields=True, omit_defaults=True):
    """One document, or a batch of them, stored all or none."""

    documents: Annotated[list[Document], Meta(max_length=MAX_BATCH)] | None = None
    on_duplicate: OnDuplicate = "skip"


class Query(Content, forbid_unknown_fields=True, omit_defaults=True):
    """One query, or a batch of them."""

    queries: Annotated[list[Content], Meta(max_length=MAX_BATCH)] | None = None
    k: Annotated[int, Meta(ge=1, le=MAX_K)] | None = 10
    threshold: float | None = None
    where: dict[str, Any] | None = None
    since: float | str | None = None
    containment: float | None = None


class Ids(msgspec.Struct, forbid_unknown_fields=True):
    """Ids of documents or aliases."""

    ids: Annotated[list[str], Meta(max_length=MAX_BATCH)]


class Removal(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Documents to remove: by their ids, or by conditions on their payloads."""

    ids: Annotated[list[str], Meta(max_length=MAX_BATCH)] | None = None
    where: dict[str, Any] | None = None


class Counting(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Conditions on payloads."""

    where: dict[str, Any] | None = None


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """No arguments: an empty object, or no body at all."""


class Found(msgspec.Struct, omit_defaults=True):
    """A document of the collection that is similar; `score` is its exact similarity unless `is_estimate`."""

    id: str
    score: float
    payload: dict[str, Any] | None
    inserted: float
    expires: float | None = None
    is_estimate: bool = False
    containment_query: float | None = None
    containment_doc: float | None = None


class NewResult(msgspec.Struct):
    """Whether a document was new, and otherwise its match."""

    id: str
    is_new: bool
    match: Found | None


class PutOutcome(msgspec.Struct):
    """What happened to a document: inserted or replaced."""

    id: str
    outcome: str


class Stored(msgspec.Struct):
    """A document of the collection; times are seconds since 1970, `text` is null unless texts are stored."""

    id: str
    payload: dict[str, Any] | None
    inserted: float
    expires: float | None
    times_matched: int
    first_matched: float | None
    last_matched: float | None
    text: str | None
    aliases: list[str]


class Page(msgspec.Struct):
    """Some documents in insertion order; `next` is the cursor of the page that follows, null after the last."""

    documents: list[Stored]
    next: str | None


def found_of(match: Match) -> Found:
    """Return a match as the service answers it."""
    return Found(
        id=match.doc_id,
        score=match.similarity,
        payload=match.payload,
        inserted=match.inserted,
        expires=match.expires,
        is_estimate=match.is_estimate,
        containment_query=match.containment_query,
        containment_doc=match.containment_doc,
    )


def new_result(doc_id: str, match: Match | None) -> NewResult:
    """Return what happened to a document of `insert_new`."""
    return NewResult(doc_id, match is None, None if match is None else found_of(match))


def stored_document(document: StoredDocument) -> Stored:
    """Return a stored document as the service answers it."""
    return Stored(
        id=document.doc_id,
        payload=document.payload,
        inserted=document.inserted,
        expires=document.expires,
        times_matched=document.times_matched,
        first_matched=document.first_matched,
        last_matched=document.last_matched,
        text=document.text,
        aliases=list(document.aliases),
    )


def decode(body: bytes, kind: Any) -> Any:
    """Decode a JSON body; raise MalformedError if it is not one of its kind."""
    hint = "/docs describes the body of every route"
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except RecursionError:
        raise MalformedError(400, "nested", "the request is nested too deeply", hint) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedError(422, "invalid", str(error), hint) from error


def content_of(given: Content, config: Config, what: str = "the request") -> Any:
    """Return the one content of a request, which must be of the kind that the collection compares."""
    wanted = kind_of(config)
    named = [name for name in _CONTENTS if getattr(given, name) is not None]
    if named != [wanted]:
        raise DataError(
            f"this collection compares {_WORDS[wanted]}, but {what} has {' and '.join(named) or 'none'}",
            hint=f'send "{wanted}", and neither of the others',
        )
    content = getattr(given, wanted)
    if isinstance(content, str) and len(content) > MAX_TEXT:
        raise TooLargeError(
            f"a text must not exceed {MAX_TEXT:,} characters, got {len(content):,}",
            hint="send a part of it, or insert the file with `neardup index insert`",
        )
    if wanted == "vector" and not all(map(math.isfinite, content)):
        raise DataError(f"the vector of {what} has a value that is not finite")
    return content


def contents_of(given: list[Any], config: Config) -> Any:
    """Return the contents of a batch as a source that an index reads."""
    contents = [content_of(one, config, f"number {number}") for number, one in enumerate(given, 1)]
    return ItemSets(contents) if kind_of(config) == "items" else contents


def kind_of(config: Config) -> str:
    """Return what a collection compares: "text", "items" or "vector"."""
    if config.measure in VECTOR_MEASURES:
        return "vector"
    return "text" if config.items_column is None else "items"


_WORDS: Final = {"text": "texts", "items": "sets of items", "vector": "vectors"}
