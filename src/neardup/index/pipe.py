"""An index in a pipe: one JSON object per line in and out, each answered before the next is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from neardup.errors import DataError, NearDupError
from neardup.index.index import Index
from neardup.index.result_types import Match

Answer = dict[str, Any]
_INSERTED: Final = ("id", "text", "payload", "expires")
_ASKED: Final = ("id", "text", "k", "threshold", "where", "since", "containment")


def insert_lines(
    index: Index, lines: Iterable[bytes], on_duplicate: str | None, *, replace: bool = False
) -> Iterator[Answer]:
    """Insert the document of every line, with `on_duplicate` only new ones. A bad line is answered with an error.

    replace: put each document instead; a known id is then no error.
    """

    def insert(given: Answer) -> Answer:
        doc_id = given.get("id")
        text = given.get("text")
        if not isinstance(doc_id, str):
            raise DataError(
                f"the id must be a string, got {doc_id!r}", hint='write {"id": "a", "text": "..."}'
            )
        rest = {"payload": given.get("payload"), "expires": given.get("expires")}
        if replace:
            return {"id": doc_id, "outcome": index.put(doc_id, text, **rest)}
        if on_duplicate is None:
            index.insert(doc_id, text, **rest)
            return {"id": doc_id, "is_new": True}
        answer = index.insert_new(doc_id, text, on_duplicate=on_duplicate, **rest)
        match = None if answer.match is None else as_answer(answer.match)
        return {"id": doc_id, "is_new": answer.is_new, "match": match}

    return _answers(lines, insert, _INSERTED)


def query_lines(index: Index, lines: Iterable[bytes], **asked: Any) -> Iterator[Answer]:
    """Answer the query of every line; `asked` holds the defaults for the arguments of `Index.query`."""

    def query(given: Answer) -> Answer:
        chosen = asked | {name: given[name] for name in _ASKED[2:] if name in given}
        return {
            "id": given.get("id"),
            "matches": [as_answer(match) for match in index.query(given["text"], **chosen)],
        }

    return _answers(lines, query, _ASKED)


def as_answer(match: Match) -> Answer:
    """Return a match as JSON values, without missing fields."""
    return {name: value for name, value in dataclasses.asdict(match).items() if value is not None}


def _answers(
    lines: Iterable[bytes], answer: Callable[[Answer], Answer], names: tuple[str, ...]
) -> Iterator[Answer]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            given = _object(line, names)
            response = answer(given)
        except NearDupError as error:
            response = {"line": number, "error": error.message, "hint": error.hint}
        yield response


def _object(line: bytes, names: tuple[str, ...]) -> Answer:
    try:
        given = msgspec.json.decode(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"the line is not valid JSON: {error}") from error
    if not isinstance(given, dict) or "text" not in given:
        raise DataError(
            "the line is not a JSON object with a text", hint='write {"id": "a", "text": "..."}'
        )
    if unknown := sorted(set(given) - set(names)):
        raise DataError(
            f"the line has the unknown key {unknown[0]!r}", hint=f"the keys are {', '.join(names)}"
        )
    return given
