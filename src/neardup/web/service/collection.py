"""A collection: one index behind the service, and what each of its routes does with it."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from neardup.config import Config
from neardup.errors import ConfigError, DataError, UnsyncedError
from neardup.index.idempotency import AlreadyMadeError, once
from neardup.index.index import Index
from neardup.index.result_types import Inserted, InsertNewResult, Match, PutResult
from neardup.web.served_index import MAX_ANSWER, TooManyMatchesError
from neardup.web.service import bodies
from neardup.web.service.bodies import Document, Documents, PutOutcome

SUFFIX: Final = ".index"
PAGE: Final = 100
MAX_PAGE: Final = 1_000
OK: Final = 200
CREATED: Final = 201
# Never the seed, which may be secret, nor the path.
_HIDDEN: Final = ("path", "seed")
_SEED: Final = re.compile(r" seed-\S+")
_WARMING: Final = {"text": "a text of more words than any shingle has " * 3, "items": ["a", "b"]}
# What an answer holds of a match besides its payload, about.
_MATCH_BYTES: Final = 100
# Documents that are read together, with texts of any size.
_GOT_AT_ONCE: Final = 32


class Answered(msgspec.Struct):
    """The answer of a route: its status, and its body as JSON; `is_replay`: that of an earlier request."""

    status: int
    body: bytes
    is_replay: bool = False


def name_of(path: str) -> str:
    """Return the name of the collection of an index: that of its folder, without .index."""
    return Path(path).resolve().name.removesuffix(SUFFIX)


class Collection:
    """An open index; `failure`: why it can no longer be written, None if it can."""

    def __init__(self, path: str, *, is_writable: bool) -> None:
        self.name = name_of(path)
        self.is_writable = is_writable
        self.failure: str | None = None
        self.index = Index.open(path, read_only=not is_writable)
        # Kernels are loaded by the first query, which takes a second: it should not be a client's.
        content = _WARMING.get(bodies.kind_of(self.config))
        if content is not None:
            with contextlib.suppress(DataError):  # of weighted items
                self.index.query(content, k=1)

    def close(self) -> None:
        """Close the index, after merges that are due."""
        self.index.close()

    # --- what routes that read do ---

    def info(self) -> Answered:
        """Return counts and settings."""
        found = self.index.info()
        found["settings"] = {
            name: value for name, value in found["settings"].items() if name not in _HIDDEN
        }
        shown = {name: value for name, value in found.items() if name not in _HIDDEN}
        shown["signature_format"] = _SEED.sub("", found["signature_format"])
        return answered({"collection": self.name, "is_writable": self.is_writable, **shown})

    def query(self, asked: bodies.Query) -> Answered:
        """Return the matches of a query, or of a batch of them."""
        options: dict[str, Any] = {
            "k": asked.k,
            "threshold": asked.threshold,
            "where": asked.where,
            "since": asked.since,
            "containment": asked.containment,
        }
        room = _Room()
        if asked.queries is None:
            content = bodies.content_of(asked, self.config)
            return answered({"matches": self._matches(content, options, room)})
        results = []
        source = bodies.contents_of(asked.queries, self.config)
        for matches in self.index.matches_each(source, **options) if asked.queries else ():
            found = [bodies.found_of(match) for match in matches]
            for one in found:
                room.take(one)
            results.append({"matches": found})
        return answered({"results": results})

    def _matches(self, content: Any, options: dict[str, Any], room: _Room) -> list[bodies.Found]:
        found: list[bodies.Found] = []
        with contextlib.closing(self.index.matches(content, **options)) as matches:
            for match in matches:
                one = bodies.found_of(match)
                room.take(one)
                found.append(one)
        return found

    def get(self, asked: bodies.Ids) -> Answered:
        """Return the documents that exist, by the ids or aliases that were asked for."""
        room = _Room()
        documents = {}
        for first in range(0, len(asked.ids), _GOT_AT_ONCE):
            part = self.index.get_many(asked.ids[first : first + _GOT_AT_ONCE])
            for doc_id, document in part.items():
                one = bodies.stored_document(document)
                room.take(one)
                documents[doc_id] = one
        return answered({"documents": documents})

    def get_one(self, doc_id: str) -> Answered:
        """Return one document."""
        return answered(bodies.stored_document(self.index.get(doc_id)))

    def page(self, cursor: str, limit: int) -> bodies.Page:
        """Return the documents after a cursor, in insertion order; fewer than `limit` if they are long."""
        documents, last = self.index.documents_after(
            number_of(cursor), most=limit, max_characters=MAX_ANSWER
        )
        following = None if last is None else f"n{last}"
        return bodies.Page([bodies.stored_document(one) for one in documents], following)

    def count(self, asked: bodies.Counting) -> Answered:
        """Count documents, or those whose payloads meet conditions."""
        return answered({"documents": self.index.count(where=asked.where)})

    def check(self, _: bodies.Nothing) -> Answered:
        """Read the whole index, and describe any damage."""
        return answered({"damage": self.index.check()})

    # --- what routes that write do ---

    def insert_new(self, given: Documents, key: str | None = None) -> Answered:
        """Store documents unless similar ones exist."""
        if given.documents is None:
            doc_id, content = self._single(given)
            return self._written(
                "insert_new",
                lambda index: index.insert_new(
                    doc_id,
                    content,
                    on_duplicate=given.on_duplicate,
                    payload=given.payload,
                    expires=given.expires,
                ),
                lambda result: _new_answer(doc_id, result),
                given,
                key,
            )
        source = self.batch_of(given.documents)
        return self._written(
            "insert_new",
            lambda index: index.insert_new_many(on_duplicate=given.on_duplicate, **source),
            lambda result: _new_answers(source["ids"], result),
            given,
            key,
        )

    def insert(self, given: Documents, key: str | None = None) -> Answered:
        """Store documents without looking for similar ones."""
        if given.documents is None:
            doc_id, content = self._single(given)
            return self._written(
                "insert",
                lambda index: index.insert(
                    doc_id, content, payload=given.payload, expires=given.expires
                ),
                lambda _: answered({"documents": 1}, CREATED),
                given,
                key,
            )
        source = self.batch_of(given.documents)
        num_documents = len(source["ids"])
        return self._written(
            "insert",
            lambda index: index.insert_many(**source),
            lambda _: answered({"documents": num_documents}, CREATED),
            given,
            key,
        )

    def put(self, given: Documents, key: str | None = None) -> Answered:
        """Insert documents, or replace those that have their ids."""
        if given.documents is None:
            doc_id, content = self._single(given)
            return self._written(
                "put",
                lambda index: index.put(
                    doc_id, content, payload=given.payload, expires=given.expires
                ),
                lambda outcome: _put_answer([PutOutcome(doc_id, outcome)], is_single=True),
                given,
                key,
            )
        source = self.batch_of(given.documents)
        return self._written(
            "put",
            lambda index: index.put_many(**source),
            lambda result: _put_answer(outcomes_of(source["ids"], result), is_single=False),
            given,
            key,
        )

    def replace(self, given: Document, key: str | None = None) -> Answered:
        """Replace a document."""
        doc_id, content = self._single(given)
        return self._written(
            "replace",
            lambda index: index.replace(
                doc_id, content, payload=given.payload, expires=given.expires
            ),
            lambda _: answered(PutOutcome(doc_id, "replaced")),
            given,
            key,
        )

    def delete(self, given: bodies.Removal, key: str | None = None) -> Answered:
        """Remove documents and aliases."""
        if given.ids is None and given.where is None:
            raise DataError('the request has neither "ids" nor "where"', hint="send one of them")
        return self._written(
            "delete",
            lambda index: index.remove(given.ids, where=given.where),
            lambda count: answered({"removed": count}),
            given,
            key if given.where is None else None,
        )

    def compact(self, _: bodies.Nothing) -> Answered:
        """Merge all segments, and free the space of removed documents."""
        self.index.compact()
        return answered({"compacted": True})

    def snapshot(self, _: bodies.Nothing) -> Answered:
        """Copy the index beside itself, under a name with the time."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        folder = self.index.path.resolve()
        name = f"{self.name}-{stamp}-{time.time_ns() % 1_000_000:06}{SUFFIX}"
        self.index.snapshot(folder.with_name(name))
        return answered({"snapshot": name}, CREATED)

    @property
    def config(self) -> Config:
        """The settings of the index."""
        return self.index.config

    def _written(
        self,
        operation: str,
        make: Callable[[Index], Any],
        answer: Callable[[Any], Answered],
        given: Any,
        key: str | None,
    ) -> Answered:
        """Make a change and return its answer; with a key, make it once."""
        try:
            if key is None:
                return answer(make(self.index))
            request = operation.encode() + msgspec.json.encode(given)
            return self._once(make, answer, request, key)
        except UnsyncedError as error:
            self.failure = error.message
            raise

    def _once(
        self,
        make: Callable[[Index], Any],
        answer: Callable[[Any], Answered],
        request: bytes,
        key: str,
    ) -> Answered:
        made: list[Answered] = []

        def encode(result: Any) -> str:
            made.append(answer(result))
            return msgspec.json.encode([made[-1].status, made[-1].body.decode()]).decode()

        try:
            make(once(self.index, key, request, encode))
        except AlreadyMadeError as already:
            status, body = msgspec.json.decode(already.answer, type=tuple[int, str])
            return Answered(status, body.encode(), is_replay=True)
        return made[-1]

    def _single(self, given: Document) -> tuple[str, Any]:
        if given.id is None:
            raise DataError('the document has no "id"', hint='send {"id": "...", ...}')
        return given.id, bodies.content_of(given, self.config, f"the document {given.id!r}")

    def batch_of(self, given: list[Document]) -> dict[str, Any]:
        """Return the arguments of a batch for the methods of an index."""
        ids = []
        for number, document in enumerate(given, 1):
            if document.id is None:
                raise DataError(f'document {number} has no "id"', hint="every document needs one")
            ids.append(document.id)
        if not ids:
            raise DataError("the batch has no documents", hint="send at least one")
        return {
            "source": bodies.contents_of(given, self.config),
            "ids": ids,
            "payload": [document.payload for document in given],
            "expires": [document.expires for document in given],
            # A batch is stored as a whole, so a row that cannot be used refuses it.
            "config": Config.of(self.config, strict=True),
        }


class _Room:
    """The bytes that are left for an answer."""

    def __init__(self) -> None:
        self._left = MAX_ANSWER
        self._num_taken = 0

    def take(self, one: Any) -> None:
        """Count what is answered; raise if there is too much."""
        size = _MATCH_BYTES + len(one.id)
        if one.payload:
            size += len(msgspec.json.encode(one.payload))
        size += len(getattr(one, "text", None) or "")
        self._left -= size
        if self._left < 0:
            raise TooManyMatchesError(self._num_taken)
        self._num_taken += 1


def answered(body: Any, status: int = OK) -> Answered:
    """Return an answer."""
    return Answered(status, msgspec.json.encode(body))


def number_of(cursor: str) -> int:
    """Return the number in a cursor."""
    if not cursor:
        return 0
    digits = cursor[1:]
    if (
        not cursor.startswith("n")
        or not digits.isascii()
        or not digits.isdigit()
        or len(digits) > 18
    ):
        raise ConfigError(f"`cursor` is not one of this service: {cursor[:40]!r}")
    return int(digits)


def _new_answer(doc_id: str, result: Inserted) -> Answered:
    return answered(bodies.new_result(doc_id, result.match), CREATED if result.is_new else OK)


def _new_answers(ids: list[str], result: InsertNewResult) -> Answered:
    """201 if any document is new."""
    matches: tuple[Match | None, ...] = result.matches
    results = [bodies.new_result(doc_id, match) for doc_id, match in zip(ids, matches, strict=True)]
    status = CREATED if None in matches else OK
    return answered({"results": results}, status)


def outcomes_of(ids: list[str], result: PutResult) -> list[PutOutcome]:
    """Return what happened to every document of `put_many`."""
    outcomes = result.rows.column("outcome").to_pylist()
    return [PutOutcome(doc_id, outcome) for doc_id, outcome in zip(ids, outcomes, strict=True)]


def _put_answer(outcomes: list[PutOutcome], *, is_single: bool) -> Answered:
    is_new = any(one.outcome == "inserted" for one in outcomes)
    status = CREATED if is_new else OK
    if is_single:
        return answered(outcomes[0], status)
    return answered({"results": outcomes}, status)
