"""`neardup index`: store documents on disk, and look up similar ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from neardup.cli import options
from neardup.cli.count_words import counted
from neardup.cli.index_answers import (
    check_no_inputs,
    conditions_of,
    match_lines,
    naming,
    open_index,
    paths_of,
    print_answer,
    print_lines,
    rejected_lines,
    stored_lines,
    written,
)
from neardup.config import Config
from neardup.config.checks import ALL
from neardup.errors import ConfigError

if TYPE_CHECKING:
    from neardup.index.index import Index

_READING: Final = (
    *(
        "text_column",
        "id_column",
        "items_column",
        "vector_column",
        "format",
        "encoding",
        "lines",
        "delimiter",
    ),
    *("max_document", "strict"),
)
_FILES: Final = ("include", "exclude")
_SETTINGS: Final = (
    *(
        "threshold",
        "distance",
        "recall",
        "measure",
        "dimension",
        "packed",
        "unit",
        "size",
        "language",
        "code_names",
        "multiset",
        "fold_numbers",
    ),
    *("normalise", "fold_accents"),
    *("html", "html_content", "sketch", "num_perm", "bands", "rows", "seed", "signature_filter"),
)
_FOLDER: Final = click.argument("folder", metavar="INDEX", type=click.Path())
_ON_DUPLICATE: Final = ("skip", "replace", "link", "insert", "error")


@click.group(short_help="Store documents on disk, and look up similar ones.")
def index() -> None:
    """Store documents in an index on disk, and look up similar ones.

    \b
    Examples:
      neardup index create pages.index --threshold 0.7
      neardup index insert pages.index pages.jsonl
      neardup index insert pages.index new.jsonl --on-duplicate skip
      neardup index insert pages.index changed.jsonl --replace
      neardup index query pages.index new.jsonl --k 3 -o found.parquet
      neardup index query pages.index --jsonl < questions.jsonl
      neardup index remove pages.index page-1 page-2
      neardup index remove pages.index --where lang=de
      neardup index count pages.index --where lang=de
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
_WHERE: Final = options.option(
    "--where",
    heading=options.SIMILAR,
    what="Filter on the payload, as NAME=VALUE or a JSON object; repeatable.",
    multiple=True,
    metavar="CONDITION",
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
def create(
    folder: str, store: str, containment: bool, config: Config, as_json: bool, quiet: bool
) -> None:
    """Create an empty index in a new folder; its settings are fixed from then on."""
    from neardup.index.index import Index

    with Index.create(folder, store=store, containment=containment, config=config) as made:
        print_answer(
            made.info(),
            [f"Created {folder}. {made.plan.judgement()}."],
            as_json=as_json,
            quiet=quiet,
        )


@index.command(cls=options.Command, short_help="Store documents.")
@_FOLDER
@options.inputs(required=False)
@options.option(
    "--on-duplicate",
    heading=options.STAYS,
    what="What to do with a document that is similar to a stored one; by default, every document is stored.",
    type=click.Choice(_ON_DUPLICATE),
)
@options.option(
    "--replace",
    heading=options.STAYS,
    what="Replace the stored document if its id is already in the index, instead of failing.",
    is_flag=True,
)
@options.option(
    "--payload-column",
    heading=options.COLUMNS,
    what="Column with the payload, a JSON object. Default: payload; '' stores none.",
    metavar="NAME",
)
@options.option(
    "--expires-column",
    heading=options.COLUMNS,
    what="Column with the time when a document disappears. Default: expires; '' stores none.",
    metavar="NAME",
)
@_AS_LINES
@options.settings(*_READING, *_FILES)
@options.as_json("the counts")
@options.quiet("Print errors only: no progress, warnings or summary.")
def insert(
    folder: str,
    inputs: tuple[str, ...],
    on_duplicate: str | None,
    replace: bool,
    config: Config,
    **rest: Any,
) -> None:
    """Store the documents of INPUT, all or none; an id that is already in the index is an error.

    INPUT is what `neardup dedup` takes, or the folder of a finished run; "-" is standard input.
    """
    from neardup.cli import render

    if replace and on_duplicate is not None:
        raise ConfigError(
            "--replace and --on-duplicate cannot be combined", hint="leave out one of the two"
        )
    with open_index(folder) as opened:
        if rest["as_lines"]:
            from neardup.index.pipe import insert_lines

            check_no_inputs(inputs)
            print_lines(insert_lines(opened, sys.stdin.buffer, on_duplicate, replace=replace))
            return
        columns = {"payload": rest["payload_column"], "expires": rest["expires_column"]}
        quiet = rest["quiet"]
        with (
            render.progress(quiet=quiet) as progress,
            paths_of(inputs, config) as paths,
            naming(payload="--payload-column", expires="--expires-column"),
        ):
            source = {"progress": progress, "config": config, **columns}
            facts = _stored(opened, paths, on_duplicate, source, replace=replace)
        facts["total"] = len(opened)
    print_answer(facts, stored_lines(facts, folder), as_json=rest["as_json"], quiet=quiet)


def _stored(
    opened: Index,
    paths: list[Path] | str,
    on_duplicate: str | None,
    source: dict[str, Any],
    *,
    replace: bool,
) -> dict[str, Any]:
    """Store documents; return what --json prints."""
    if replace:
        put = opened.put_many(paths, **source)
        facts = {
            "inserted": put.inserted,
            "replaced": put.replaced,
            "documents": put.rows.to_pylist(),
        }
        return {**facts, "rejected": [*map(list, put.rejected)]}
    if on_duplicate is None:
        stored = opened.insert_many(paths, **source)
        return {"stored": stored.documents, "rejected": [*map(list, stored.rejected)]}
    result = opened.insert_new_many(paths, on_duplicate=on_duplicate, **source)
    num_new = sum(result.rows.column("is_new").to_pylist())
    facts = {
        "new": num_new,
        "known": result.rows.num_rows - num_new,
        "documents": result.rows.to_pylist(),
    }
    return {**facts, "rejected": [*map(list, result.rejected)]}


@index.command(cls=options.Command, short_help="List the stored documents similar to each input.")
@_FOLDER
@options.inputs(required=False)
@options.option(
    "--k",
    heading=options.SIMILAR,
    what="Maximum number of matches per document; all, or 0, lists all.",
    type=options.NumberOrAll(),
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
@_WHERE
@options.option(
    "--since",
    heading=options.SIMILAR,
    what="Only documents inserted after this time, such as 2026-01-31T12:00.",
    metavar="TIME",
)
@_AS_LINES
@options.output(
    "FILE", "File to write: .parquet, .jsonl or .csv; printed by default.", required=False
)
@options.settings(*_READING, *_FILES, "overwrite")
@options.as_json("the matches")
@options.quiet("Print errors only, no summary.")
def query(
    folder: str,
    inputs: tuple[str, ...],
    as_lines: bool,
    out: str | None,
    config: Config,
    **rest: Any,
) -> None:
    """List the stored documents that are similar to each document of INPUT: query_id, doc_id, similarity, rank.

    With --containment also containment_query and containment_doc; the index must have been created
    with it.
    """
    from neardup.cli import render

    asked = {"k": rest["k"] or ALL, "threshold": rest["least"], "since": rest["since"]}
    asked |= {"where": conditions_of(rest["where"]), "containment": rest["containment"]}
    rejected: list[tuple[str, str]] = []

    def note_rejected(location: str, reason: str) -> None:
        rejected.append((location, reason))

    with open_index(folder, read_only=True) as opened:
        if as_lines:
            from neardup.index.pipe import query_lines

            check_no_inputs(inputs)
            with naming(threshold="--least"):
                print_lines(query_lines(opened, sys.stdin.buffer, **asked))
            return
        with (
            written(out, config) as write,
            paths_of(inputs, config) as paths,
            naming(threshold="--least"),
        ):
            found = opened.query_many(paths, **asked, config=config, on_rejected=note_rejected)
            write(found)
    if rest["as_json"]:
        render.as_json({"matches": found.to_pylist(), "rejected": rejected})
    elif out is None:
        render.lines(match_lines(found))
    elif not rest["quiet"]:
        render.lines([f"{counted(found.num_rows, 'match', 'matches')}. Written to {out}"])
    for line in () if rest["as_json"] or rest["quiet"] else rejected_lines(rejected):
        render.text(f"warning: {line}", is_error=True)


@index.command(cls=options.Command, short_help="Remove documents by their ids or payloads.")
@_FOLDER
@click.argument("ids", nargs=-1, metavar="[DOC_ID...]")
@_WHERE
@options.as_json("the counts")
@options.quiet("Print errors only, no summary.")
def remove(
    folder: str, ids: tuple[str, ...], where: tuple[str, ...], as_json: bool, quiet: bool
) -> None:
    """Remove documents by their ids, or by their payloads; "-" reads ids from standard input, one per line."""
    conditions = conditions_of(where)
    if bool(ids) == bool(conditions):
        raise ConfigError("`neardup index remove` takes ids or --where", hint="pass one of the two")
    if ids == ("-",):
        wanted = [line.rstrip("\n") for line in sys.stdin]
    else:
        wanted = list(ids)
    with open_index(folder) as opened:
        if conditions:
            removed = opened.remove(where=conditions)
        else:
            removed = opened.remove(wanted)
        total = len(opened)
    facts = {"removed": removed, "total": total}
    what = counted(removed, "document")
    if not conditions:
        facts["absent"] = len(wanted) - removed
        what = f"{removed:,} of {counted(len(wanted), 'id')}"
    summary = f"Removed {what}. {folder} holds {counted(total, 'document')}."
    print_answer(facts, [summary], as_json=as_json, quiet=quiet)


@index.command(cls=options.Command, short_help="Count the documents.")
@_FOLDER
@_WHERE
@options.as_json("the count")
def count(folder: str, where: tuple[str, ...], as_json: bool) -> None:
    """Count the documents, or those whose payloads meet conditions."""
    conditions = conditions_of(where)
    with open_index(folder, read_only=True) as opened:
        documents = opened.count(where=conditions)
    print_answer({"documents": documents}, [counted(documents, "document")], as_json=as_json)


@index.command(cls=options.Command, short_help="Show what an index contains.")
@_FOLDER
@options.as_json("the information")
def info(folder: str, as_json: bool) -> None:
    """Show what an index contains, and its settings."""
    with open_index(folder, read_only=True) as opened:
        facts = opened.info()
        judgement = opened.plan.judgement()
    summary = [
        f"{counted(facts['documents'], 'document')}, {counted(facts['aliases'], 'alias', 'aliases')}, "
        f"{facts['bytes']:,} bytes",
        f"{counted(facts['segments'], 'segment')}, {counted(facts['unflushed'], 'document')} not yet in one; "
        f"stores {facts['store']}",
        f"{judgement}; {facts['signature_format']}",
    ]
    print_answer(facts, summary, as_json=as_json)


@index.command(cls=options.Command, short_help="Check an index for damage.")
@_FOLDER
@options.as_json("the damage found")
def check(folder: str, as_json: bool) -> None:
    """Read the whole index, verify its checksums, and list any damage; exit 1 if there is any."""
    with open_index(folder, read_only=True) as opened:
        damage = opened.check()
    print_answer({"damage": damage}, damage or [f"{folder} is intact."], as_json=as_json)
    if damage:
        raise click.exceptions.Exit(1)


@index.command(cls=options.Command, short_help="Give up damaged or missing files of an index.")
@_FOLDER
@options.as_json("what was given up, and the lost ids,")
@options.quiet("Print errors only, no summary.")
def repair(folder: str, as_json: bool, quiet: bool) -> None:
    """Give up files of an index that are missing or damaged, so that the rest can be used again.

    Documents whose text is stored (--store text) are stored again; the ids of the others are
    listed.
    """
    with open_index(folder) as opened:
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
    print_answer(facts, lines, as_json=as_json, quiet=quiet)


@index.command(
    cls=options.Command, short_help="Free the space of removed documents, and merge files."
)
@_FOLDER
@options.as_json("the new size of the index")
@options.quiet("Print errors only, no summary.")
def compact(folder: str, as_json: bool, quiet: bool) -> None:
    """Free the space of removed and expired documents, and merge all segments into one."""
    with open_index(folder) as opened:
        before = opened.info()["bytes"]
        opened.compact()
    with open_index(folder, read_only=True) as opened:
        facts = opened.info()
    print_answer(
        facts,
        [f"Compacted {folder} from {before:,} to {facts['bytes']:,} bytes."],
        as_json=as_json,
        quiet=quiet,
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
    with open_index(folder, read_only=True) as opened:
        opened.snapshot(target, copy=copy)
    print_answer({}, [f"Copied {folder} to {target}."], quiet=quiet)


@index.command(cls=options.Command, short_help="Write all documents to a file.")
@_FOLDER
@click.argument("file", type=click.Path())
@options.quiet("Print errors only, no summary.")
def export(folder: str, file: str, quiet: bool) -> None:
    """Write id, times, payload, text (if stored) and aliases of every document to FILE: .parquet, .jsonl or .csv."""
    with open_index(folder, read_only=True) as opened:
        count = opened.export(file)
    print_answer({}, [f"{counted(count, 'document')}. Written to {file}"], quiet=quiet)
