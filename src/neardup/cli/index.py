"""`neardup index`: store documents on disk, and look up similar ones."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from neardup.cli import options
from neardup.cli.count_words import counted
from neardup.config import Config
from neardup.errors import ConfigError

if TYPE_CHECKING:
    from neardup.index.index import Index

_READING: Final = (
    *("text_column", "id_column", "items_column", "vector_column", "format", "encoding", "lines", "delimiter"),
    *("max_document", "strict"),
)
_SETTINGS: Final = (
    *("threshold", "distance", "recall", "measure", "dimension", "packed", "unit", "size", "multiset", "fold_numbers"),
    *("normalise", "fold_accents"),
    *("html", "html_content", "sketch", "num_perm", "bands", "rows", "seed", "signature_filter"),
)
_FOLDER: Final = click.argument("folder", metavar="INDEX", type=click.Path())
_ON_DUPLICATE: Final = ("skip", "replace", "link", "insert")


@click.group(short_help="Store documents on disk, and look up similar ones.")
def index() -> None:
    """Store documents in an index on disk, and look up similar ones.

    \b
    Examples:
      neardup index create pages.index --threshold 0.7
      neardup index insert pages.index pages.jsonl
      neardup index insert pages.index new.jsonl --on-duplicate skip
      neardup index query pages.index new.jsonl --k 3 -o found.parquet
      neardup index query pages.index --jsonl < questions.jsonl
      neardup index remove pages.index page-1 page-2
      neardup index info pages.index
      neardup index check pages.index
      neardup index repair pages.index
      neardup index compact pages.index
      neardup index snapshot pages.index copy.index
      neardup index export pages.index documents.parquet
    """  # noqa: D301 - click reads the backspace


_AS_LINES: Final = options.option(
    "--jsonl",
    "as_lines",
    heading=options.WORK,
    what="Read one JSON object per line from standard input, and answer each line immediately.",
    is_flag=True,
)


@index.command(cls=options.Command, short_help="Create an empty index.")
@_FOLDER
@options.option(
    "--store",
    heading=options.OUTPUT,
    what="What to store: shingles (exact scores), text (also the texts) or signature (smallest, estimated scores).",
    type=click.Choice(("shingles", "text", "signature")),
    default="shingles",
)
@options.option(
    "--containment",
    heading=options.OUTPUT,
    what="Also store postings of every shingle, for `neardup index query --containment`.",
    is_flag=True,
)
@options.settings(*_SETTINGS, *_READING)
@options.as_json("the new index")
@options.quiet("Print errors only, no summary.")
def create(folder: str, store: str, containment: bool, config: Config, as_json: bool, quiet: bool) -> None:
    """Create an empty index in a new folder; its settings are fixed from then on."""
    from neardup.index.index import Index

    with Index.create(folder, store=store, containment=containment, config=config) as made:
        _print_answer(made.info(), [f"Created {folder}. {made.plan.judgement()}."], as_json=as_json, quiet=quiet)


@index.command(cls=options.Command, short_help="Store documents.")
@_FOLDER
@options.inputs(required=False)
@options.option(
    "--on-duplicate",
    heading=options.STAYS,
    what="What to do with a document that is similar to a stored one; by default, every document is stored.",
    type=click.Choice(_ON_DUPLICATE),
)
@_AS_LINES
@options.settings(*_READING)
@options.as_json("the counts")
@options.quiet("Print errors only: no progress, warnings or summary.")
def insert(
    folder: str,
    inputs: tuple[str, ...],
    on_duplicate: str | None,
    as_lines: bool,
    config: Config,
    as_json: bool,
    quiet: bool,
) -> None:
    """Store the documents of INPUT, all or none; an id that is already in the index is an error.

    INPUT is what `neardup dedup` takes, or the folder of a finished run; "-" is standard input.
    """
    from neardup.cli import render
    from neardup.index.batches import rejected_of

    with _open(folder) as opened:
        if as_lines:
            from neardup.index.pipe import insert_lines

            _check_no_inputs(inputs)
            _answer(insert_lines(opened, sys.stdin.buffer, on_duplicate))
            return
        with render.progress(quiet=quiet) as progress, _paths(inputs, config) as paths:
            if on_duplicate is None:
                stored = opened.insert_many(paths, progress=progress, config=config)
                facts: dict[str, Any] = {"stored": stored.documents, "rejected": [*map(list, stored.rejected)]}
            else:
                table = opened.insert_new_many(paths, on_duplicate, progress=progress, config=config)
                num_new = sum(table.column("is_new").to_pylist())
                facts = {"new": num_new, "known": table.num_rows - num_new, "documents": table.to_pylist()}
                facts["rejected"] = rejected_of(table)
        facts["total"] = len(opened)
    _print_answer(facts, _stored_lines(facts, folder), as_json=as_json, quiet=quiet)


@index.command(cls=options.Command, short_help="List the stored documents similar to each input.")
@_FOLDER
@options.inputs(required=False)
@options.option(
    "--k",
    heading=options.SIMILAR,
    what="Maximum number of matches per document; 0 lists all.",
    type=click.IntRange(0),
    default=10,
    metavar="N",
)
@options.option(
    "--least",
    heading=options.SIMILAR,
    what="Minimum similarity of a match; at least the threshold of the index.",
    type=float,
    metavar="NUMBER",
)
@options.option(
    "--containment",
    heading=options.SIMILAR,
    what="Find documents that contain at least this share of the text, or the reverse, instead of similar ones.",
    type=float,
    metavar="SHARE",
)
@options.option(
    "--where",
    heading=options.SIMILAR,
    what="Filter on the payload, as NAME=VALUE or a JSON object; repeatable.",
    multiple=True,
    metavar="CONDITION",
)
@options.option(
    "--since",
    heading=options.SIMILAR,
    what="Only documents inserted after this time, such as 2026-01-31T12:00.",
    metavar="TIME",
)
@_AS_LINES
@options.output("FILE", "File to write: .parquet, .jsonl or .csv; printed by default.", required=False)
@options.settings(*_READING, "overwrite")
@options.as_json("the matches")
@options.quiet("Print errors only, no summary.")
def query(folder: str, inputs: tuple[str, ...], as_lines: bool, out: str | None, config: Config, **rest: Any) -> None:
    """List the stored documents that are similar to each document of INPUT: query_id, doc_id, similarity, rank.

    With --containment also containment_query and containment_doc; the index must have been created with it.
    """
    from neardup.cli import render
    from neardup.index.batches import rejected_of

    asked = {"k": rest["k"] or None, "threshold": rest["least"], "since": rest["since"]}
    asked |= {"where": _conditions(rest["where"]), "containment": rest["containment"]}
    with _open(folder, read_only=True) as opened:
        if as_lines:
            from neardup.index.pipe import query_lines

            _check_no_inputs(inputs)
            with _naming_least():
                _answer(query_lines(opened, sys.stdin.buffer, **asked))
            return
        with _written(out, config) as write, _paths(inputs, config) as paths, _naming_least():
            found = opened.query_many(paths, **asked, config=config)
            write(found.replace_schema_metadata(None))
    rejected = rejected_of(found)
    if rest["as_json"]:
        render.as_json({"matches": found.to_pylist(), "rejected": rejected})
    elif out is None:
        render.lines(_match_lines(found))
    elif not rest["quiet"]:
        render.lines([f"{counted(found.num_rows, 'match', 'matches')}. Written to {out}"])
    for line in () if rest["as_json"] or rest["quiet"] else _rejected_lines(rejected):
        render.text(f"warning: {line}", is_error=True)


@index.command(cls=options.Command, short_help="Remove documents by their ids.")
@_FOLDER
@click.argument("ids", nargs=-1, required=True, metavar="DOC_ID...")
@options.as_json("the counts")
@options.quiet("Print errors only, no summary.")
def remove(folder: str, ids: tuple[str, ...], as_json: bool, quiet: bool) -> None:
    """Remove documents by their ids; "-" reads them from standard input, one per line."""
    wanted = [line.rstrip("\n") for line in sys.stdin] if ids == ("-",) else list(ids)
    with _open(folder) as opened:
        removed, total = opened.remove(wanted), len(opened)
    facts = {"removed": removed, "absent": len(wanted) - removed, "total": total}
    summary = f"Removed {removed:,} of {counted(len(wanted), 'id')}. {folder} holds {counted(total, 'document')}."
    _print_answer(facts, [summary], as_json=as_json, quiet=quiet)


@index.command(cls=options.Command, short_help="Show what an index contains.")
@_FOLDER
@options.as_json("the information")
def info(folder: str, as_json: bool) -> None:
    """Show what an index contains, and its settings."""
    with _open(folder, read_only=True) as opened:
        facts, judgement = opened.info(), opened.plan.judgement()
    summary = [
        f"{counted(facts['documents'], 'document')}, {counted(facts['aliases'], 'alias', 'aliases')}, "
        f"{facts['bytes']:,} bytes",
        f"{counted(facts['runs'], 'run')}, {counted(facts['fresh'], 'document')} not yet in a run; "
        f"stores {facts['store']}",
        f"{judgement}; {facts['signature_format']}",
    ]
    _print_answer(facts, summary, as_json=as_json)


@index.command(cls=options.Command, short_help="Check an index for damage.")
@_FOLDER
@options.as_json("the damage found")
def check(folder: str, as_json: bool) -> None:
    """Read the whole index, verify its checksums, and list any damage; exit 1 if there is any."""
    with _open(folder, read_only=True) as opened:
        damage = opened.check()
    _print_answer({"damage": damage}, damage or [f"{folder} is intact."], as_json=as_json)
    if damage:
        raise click.exceptions.Exit(1)


@index.command(cls=options.Command, short_help="Give up damaged or missing files of an index.")
@_FOLDER
@options.as_json("what was given up, and the lost ids,")
@options.quiet("Print errors only, no summary.")
def repair(folder: str, as_json: bool, quiet: bool) -> None:
    """Give up files of an index that are missing or damaged, so that the rest can be used again.

    Documents whose text is stored (--store text) are stored again; the ids of the others are listed.
    """
    with _open(folder) as opened:
        done = opened.repair()
    facts = {"dropped": done.dropped, "lost": done.lost, "restored": done.restored}
    lines = [*done.dropped, *(f"lost: {doc_id}" for doc_id in done.lost)]
    if done.dropped:
        lines.append(
            f"Repaired {folder}: {counted(len(done.lost), 'document')} lost,"
            f" {counted(done.restored, 'document')} stored again from their texts."
        )
    else:
        lines.append(f"{folder} needs no repair.")
    _print_answer(facts, lines, as_json=as_json, quiet=quiet)


@index.command(cls=options.Command, short_help="Free the space of removed documents, and merge files.")
@_FOLDER
@options.as_json("the new size of the index")
@options.quiet("Print errors only, no summary.")
def compact(folder: str, as_json: bool, quiet: bool) -> None:
    """Free the space of removed and expired documents, and merge all runs into one."""
    with _open(folder) as opened:
        before = opened.info()["bytes"]
        opened.compact()
    with _open(folder, read_only=True) as opened:
        facts = opened.info()
    _print_answer(
        facts, [f"Compacted {folder} from {before:,} to {facts['bytes']:,} bytes."], as_json=as_json, quiet=quiet
    )


@index.command(cls=options.Command, short_help="Copy an index.")
@_FOLDER
@click.argument("target", type=click.Path())
@options.option(
    "--copy",
    heading=options.OUTPUT,
    what="Copy every file; by default, files that never change are shared by hard links, which takes no space.",
    is_flag=True,
)
@options.quiet("Print errors only, no summary.")
def snapshot(folder: str, target: str, copy: bool, quiet: bool) -> None:
    """Copy an index to the new folder TARGET, completely or not at all, even while it is in use."""
    with _open(folder, read_only=True) as opened:
        opened.snapshot(target, copy=copy)
    _print_answer({}, [f"Copied {folder} to {target}."], quiet=quiet)


@index.command(cls=options.Command, short_help="Write all documents to a file.")
@_FOLDER
@click.argument("file", type=click.Path())
@options.quiet("Print errors only, no summary.")
def export(folder: str, file: str, quiet: bool) -> None:
    """Write id, times, payload and text (if stored) of every document to FILE: .parquet, .jsonl or .csv."""
    with _open(folder, read_only=True) as opened:
        count = opened.export(file)
    _print_answer({}, [f"{counted(count, 'document')}. Written to {file}"], quiet=quiet)


def _print_answer(facts: dict[str, Any], lines: Iterable[str], *, as_json: bool = False, quiet: bool = False) -> None:
    """Print facts as JSON, or lines of text unless --quiet is given."""
    from neardup.cli import render

    if as_json:
        render.as_json(facts)
    elif not quiet:
        render.lines(lines)


def _open(folder: str, *, read_only: bool = False) -> Index:
    from neardup.index.index import Index

    return Index.open(folder, read_only=read_only)


@contextlib.contextmanager
def _paths(inputs: Sequence[str], config: Config) -> Iterator[list[Path] | str]:
    """The inputs as paths; standard input is stored in a temporary file while it is read."""
    from neardup.io.documents.stdin import spool

    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        paths, _ = spool(inputs, Path(folder) / "stdin", config)
        yield paths[0] if len(paths) == 1 else [Path(path) for path in paths]


@contextlib.contextmanager
def _naming_least() -> Iterator[None]:
    """Name the threshold of a query by its option, --least, in errors."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(error.message.replace("`threshold`", "--least"), hint=error.hint) from error


@contextlib.contextmanager
def _written(out: str | None, config: Config) -> Iterator[Callable[[Any], None]]:
    """A writer of a table to a file, completely or not at all; without a file, it does nothing."""
    if out is None:
        yield lambda _: None
        return
    from neardup.io.storage.table_writer import known_ending, reserved_table

    known_ending(out)
    with reserved_table(Path(out), overwrite=config.overwrite) as write:
        yield write


def _check_no_inputs(inputs: Sequence[str]) -> None:
    if inputs:
        raise ConfigError(
            f"--jsonl reads standard input, but the input {inputs[0]} was given too", hint="leave out one of the two"
        )


def _answer(answers: Iterator[dict[str, Any]]) -> None:
    """Print every answer as soon as it is available; fail at the end if one was an error."""
    from neardup.cli import render

    has_failed = False
    for answer in answers:
        render.as_json(answer, indent=None)
        has_failed = has_failed or "error" in answer
    if has_failed:
        raise click.exceptions.Exit(1)


def _conditions(given: Sequence[str]) -> dict[str, Any] | None:
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
            raise ConfigError(f"--where must be NAME=VALUE or a JSON object, got {text!r}", hint="--where lang=de")
        with contextlib.suppress(ValueError):
            value = json.loads(value)
        conditions[name] = value
    return conditions or None


def _stored_lines(facts: dict[str, Any], folder: str) -> Iterator[str]:
    if "stored" in facts:
        yield f"Stored {counted(facts['stored'], 'document')}. {folder} holds {facts['total']:,}."
    else:
        known = counted(facts["known"], "known document")
        yield f"{facts['new']:,} new and {known}. {folder} holds {facts['total']:,}."
    yield from _rejected_lines(facts["rejected"])


def _rejected_lines(rejected: Sequence[Sequence[str]]) -> Iterator[str]:
    for place, reason in rejected[:1]:
        count = len(rejected)
        summary = "1 row was rejected:" if count == 1 else f"{count:,} rows were rejected; the first is"
        yield f"{summary} {place}: {reason}"


def _match_lines(found: Any) -> Iterator[str]:
    """The matches as text; with --containment also the share of the document in the match, and of the match in it."""
    if not found.num_rows:
        yield "No matches."
        return
    shares = [name for name in ("containment_query", "containment_doc") if name in found.column_names]
    yield "  ".join(["similarity", "rank", *shares, "document", "match"])
    for batch in found.to_batches(max_chunksize=1 << 16):
        for row in batch.to_pylist():
            own = "".join(f"{row[name]:{len(name)}.4f}  " for name in shares)
            yield f"{row['similarity']:10.4f}  {row['rank']:4}  {own}{row['query_id']}  {row['doc_id']}"
