"""Streams of JSON lines: each line of a request is answered by one line, in order."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from neardup.errors import DamageError, FullDiskError, NearDupError, UnsyncedError
from neardup.web.guard import MAX_BODY, RefusedError
from neardup.web.service import bodies
from neardup.web.service.collection import Collection, outcomes_of
from neardup.web.service.failures import as_line, refusal_of

MEDIA_TYPE: Final = "application/x-ndjson"
# Lines that are stored in one change, and their bytes.
LINES_AT_ONCE: Final = 1_000
BYTES_AT_ONCE: Final = 1 << 20
# Errors after which the next lines would fail too.
_FATAL: Final = (FullDiskError, DamageError, UnsyncedError)
_ENCODER: Final = msgspec.json.Encoder()
_WINDOW_BITS: Final = 16 + zlib.MAX_WBITS


class Splitter:
    """Cuts the bytes of a body into batches of lines; `is_gzip`: they are compressed."""

    def __init__(self, *, is_gzip: bool) -> None:
        self._unpacker = zlib.decompressobj(_WINDOW_BITS) if is_gzip else None
        self._rest = b""
        self._lines: list[bytes] = []
        self._num_bytes = 0

    def feed(self, part: bytes) -> Iterator[list[bytes]]:
        """Take bytes; yield the batches that are full, one by one, however far the bytes expand."""
        if self._unpacker is None:
            yield from self._add(part)
            return
        while part and not self._unpacker.eof:
            yield from self._add(_unpack(self._unpacker, part, BYTES_AT_ONCE))
            part = self._unpacker.unconsumed_tail
        if self._unpacker.unused_data:
            raise RefusedError(
                422, "encoding", "the body has bytes after its gzip", "send one member"
            )

    def finish(self) -> list[bytes]:
        """Return the lines that are left."""
        if self._unpacker is not None and not self._unpacker.eof:
            raise RefusedError(422, "encoding", "the body is not complete gzip", "send all of it")
        if self._rest:
            self._lines.append(self._rest)
        return [line for line in self._lines if line.strip()]

    def _add(self, part: bytes) -> Iterator[list[bytes]]:
        *whole, self._rest = (self._rest + part).split(b"\n")
        if len(self._rest) > MAX_BODY:
            raise _long_line()
        for line in whole:
            if len(line) > MAX_BODY:
                raise _long_line()
            self._num_bytes += len(line)
            if line.strip():
                self._lines.append(line)
            if len(self._lines) >= LINES_AT_ONCE or self._num_bytes >= BYTES_AT_ONCE:
                yield self._lines
                self._lines = []
                self._num_bytes = 0


def _long_line() -> RefusedError:
    message = f"a line must not exceed {MAX_BODY:,} bytes"
    return RefusedError(413, "too_large", message, "send shorter lines")


def unpacked(body: bytes) -> bytes:
    """Decompress the gzip body of a request; raise if it expands to more than a body may have."""
    unpacker = zlib.decompressobj(_WINDOW_BITS)
    content = _unpack(unpacker, body, MAX_BODY + 1)
    if len(content) > MAX_BODY:
        raise RefusedError(
            413,
            "too_large",
            f"the body expands to more than {MAX_BODY:,} bytes",
            "send a smaller batch, or a stream of lines",
        )
    if not unpacker.eof or unpacker.unused_data:
        raise RefusedError(422, "encoding", "the body is not one complete gzip member", "send one")
    return content


def _unpack(unpacker: Any, part: bytes, most: int) -> bytes:
    try:
        content: bytes = unpacker.decompress(part, most)
    except zlib.error as error:
        raise RefusedError(
            422, "encoding", f"the body is not gzip: {error}", "leave out Content-Encoding"
        ) from error
    return content


def write_lines(
    collection: Collection, operation: str, lines: Sequence[bytes], on_duplicate: str
) -> bytes:
    """Store the documents of some lines in one change, or one by one if any of them cannot be used."""
    write = _WRITERS[operation]

    def store(documents: list[bodies.Document]) -> list[Any]:
        try:
            return write(collection, documents, on_duplicate)
        except UnsyncedError as error:
            collection.failure = error.message
            raise

    return _each(collection, lines, bodies.Document, store)


def query_lines(collection: Collection, lines: Sequence[bytes], options: dict[str, Any]) -> bytes:
    """Answer the queries of some lines."""

    def ask(queries: list[bodies.Content]) -> list[Any]:
        matched = collection.index.matches_each(
            bodies.contents_of(queries, collection.config), **options
        )
        return [{"matches": [bodies.found_of(one) for one in found]} for found in matched]

    return _each(collection, lines, bodies.Content, ask)


def _each(
    collection: Collection,
    lines: Sequence[bytes],
    kind: Any,
    answer: Callable[[list[Any]], list[Any]],
) -> bytes:
    """Return one answer per line: together if all can be used, else each by itself."""
    answers: list[Any] = [None] * len(lines)
    given: dict[int, Any] = {}
    for at, line in enumerate(lines):
        try:
            given[at] = bodies.decode(line, kind)
        except NearDupError as error:
            answers[at] = _failure(collection, error)
    try:
        if given:
            for at, one in zip(given, answer(list(given.values())), strict=True):
                answers[at] = one
    except _FATAL:
        raise
    except NearDupError:
        for at, one in given.items():
            answers[at] = _alone(collection, one, answer)
    return b"".join(_ENCODER.encode(one) + b"\n" for one in answers)


def _alone(collection: Collection, one: Any, answer: Callable[[list[Any]], list[Any]]) -> Any:
    try:
        return answer([one])[0]
    except _FATAL:
        raise
    except NearDupError as error:
        return _failure(collection, error)


def _failure(collection: Collection, error: NearDupError) -> dict[str, Any]:
    return as_line(refusal_of(error, collection.index.path, collection.name))


def _new(collection: Collection, documents: list[bodies.Document], on_duplicate: str) -> list[Any]:
    source = collection.batch_of(documents)
    result = collection.index.insert_new_many(on_duplicate=on_duplicate, **source)
    return [
        bodies.new_result(doc_id, match)
        for doc_id, match in zip(source["ids"], result.matches, strict=True)
    ]


def _insert(collection: Collection, documents: list[bodies.Document], _: str) -> list[Any]:
    source = collection.batch_of(documents)
    collection.index.insert_many(**source)
    return [bodies.PutOutcome(doc_id, "inserted") for doc_id in source["ids"]]


def _put(collection: Collection, documents: list[bodies.Document], _: str) -> list[Any]:
    source = collection.batch_of(documents)
    return list(outcomes_of(source["ids"], collection.index.put_many(**source)))


_WRITERS: Final[dict[str, Callable[[Collection, list[bodies.Document], str], list[Any]]]] = {
    "documents": _new,
    "insert": _insert,
    "put": _put,
}
