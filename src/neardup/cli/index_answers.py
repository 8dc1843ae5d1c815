"""What the commands of `neardup index` share: how they open the index and its inputs, and print their answers."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neardup.cli.count_words import counted
from neardup.config import Config
from neardup.errors import ConfigError, NearDupError

if TYPE_CHECKING:
    from neardup.index.index import Index


def print_answer(
    facts: dict[str, Any], lines: Iterable[str], *, as_json: bool = False, quiet: bool = False
) -> None:
    """Print facts as JSON, or lines of text unless --quiet is given."""
    from neardup.cli import render

    if as_json:
        render.as_json(facts)
    elif not quiet:
        render.lines(lines)


def open_index(folder: str, *, read_only: bool = False) -> Index:
    """Open an index; importing it takes a while, so only commands that need it do."""
    from neardup.index.index import Index

    return Index.open(folder, read_only=read_only)


@contextlib.contextmanager
def paths_of(inputs: Sequence[str], config: Config) -> Iterator[list[Path] | str]:
    """The inputs as paths; standard input is stored in a temporary file while it is read."""
    from neardup.io.documents.stdin import spool

    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        paths, _ = spool(inputs, Path(folder) / "stdin", config)
        yield paths[0] if len(paths) == 1 else [Path(path) for path in paths]


@contextlib.contextmanager
def naming(**named: str) -> Iterator[None]:
    """Name arguments of the library by the options that they come from, in errors."""
    try:
        yield
    except NearDupError as error:
        message = error.message
        for argument, option in named.items():
            message = message.replace(f"`{argument}`", option)
        raise type(error)(message, hint=error.hint) from error


@contextlib.contextmanager
def written(out: str | None, config: Config) -> Iterator[Callable[[Any], None]]:
    """A writer of a table to a file, completely or not at all; without a file, it does nothing."""
    if out is None:
        yield lambda _: None
        return
    from neardup.io.storage.table_writer import known_ending, reserved_table

    known_ending(out)
    with reserved_table(Path(out), overwrite=config.overwrite) as write:
        yield write


def check_no_inputs(inputs: Sequence[str]) -> None:
    """Raise for inputs beside --jsonl."""
    if inputs:
        raise ConfigError(
            f"--jsonl reads standard input, but the input {inputs[0]} was given too",
            hint="leave out one of the two",
        )


def print_lines(answers: Iterator[dict[str, Any]]) -> None:
    """Print every answer as soon as it is available; fail at the end if one was an error."""
    from neardup.cli import render

    has_failed = False
    for answer in answers:
        render.as_json(answer, indent=None)
        has_failed = has_failed or "error" in answer
    if has_failed:
        raise click.exceptions.Exit(1)


def conditions_of(given: Sequence[str]) -> dict[str, Any] | None:
    """Return conditions on payloads, from NAME=VALUE, where the value may be JSON, or from JSON objects."""
    conditions: dict[str, Any] = {}
    for text in given:
        try:
            if text.lstrip().startswith("{"):
                conditions |= json.loads(text)
                continue
        except ValueError as error:
            raise ConfigError(f"--where {text!r} is not a JSON object: {error}") from error
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ConfigError(
                f"--where must be NAME=VALUE or a JSON object, got {text!r}", hint="--where lang=de"
            )
        with contextlib.suppress(ValueError):
            value = json.loads(value)
        conditions[name] = value
    return conditions or None


def stored_lines(facts: dict[str, Any], folder: str) -> Iterator[str]:
    """The counts of an insert as text."""
    if "stored" in facts:
        yield f"Stored {counted(facts['stored'], 'document')}. {folder} holds {facts['total']:,}."
    elif "replaced" in facts:
        inserted = counted(facts["inserted"], "new document")
        yield f"{inserted}, {facts['replaced']:,} replaced. {folder} holds {facts['total']:,}."
    else:
        known = counted(facts["known"], "known document")
        yield f"{facts['new']:,} new and {known}. {folder} holds {facts['total']:,}."
    yield from rejected_lines(facts["rejected"])


def rejected_lines(rejected: Sequence[Sequence[str]]) -> Iterator[str]:
    """How many rows were rejected, and the first of them."""
    from neardup.index.result_types import summary_of_rejected

    if rejected:
        yield summary_of_rejected(rejected)


def match_lines(found: Any) -> Iterator[str]:
    """The matches as text; with --containment also the share of the document in the match, and of the match in it."""
    if not found.num_rows:
        yield "No matches."
        return
    shares = [
        name for name in ("containment_query", "containment_doc") if name in found.column_names
    ]
    yield "  ".join(["similarity", "rank", *shares, "document", "match"])
    for batch in found.to_batches(max_chunksize=1 << 16):
        for row in batch.to_pylist():
            own = "".join(f"{row[name]:{len(name)}.4f}  " for name in shares)
            yield f"{row['similarity']:10.4f}  {row['rank']:4}  {own}{row['query_id']}  {row['doc_id']}"
