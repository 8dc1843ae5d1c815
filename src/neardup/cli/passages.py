"""`neardup passages`: what is repeated in parts of documents, where, and the documents without it."""

from __future__ import annotations

from typing import Final

import click

from neardup.cli import options
from neardup.config import DEFAULT_MIN_WORDS, Config

_SETTINGS: Final = (
    *("fold_numbers", "normalise", "fold_accents", "html", "html_content", "seed"),
    *("text_column", "id_column", "group_column", "format", "encoding", "lines", "delimiter"),
    *(
        "max_document",
        "include",
        "exclude",
        "against",
        "only_against",
        "against_text_column",
        "against_id_column",
        "min_count",
        "min_left",
        "cut",
        "mark",
    ),
    *("dry_run", "overwrite", "strict", "engine", "master", "spark_conf"),
    *("memory", "threads"),
)


@click.command(cls=options.Command, short_help="Find repeated parts of documents.")
@options.inputs()
@options.output(
    "FOLDER", "Folder to write: passages.parquet, repeated.parquet, rejected.jsonl, report.json."
)
@options.settings(*_SETTINGS)
@options.option(
    "--min-words",
    heading=options.SIMILAR,
    what="Fewest words of a repeated passage.",
    default=DEFAULT_MIN_WORDS,
    metavar="N",
    type=int,
)
@options.option(
    "--keep",
    heading=options.STAYS,
    what="Which places of a passage stay with --cut or --mark: the first, or none.",
    default="first",
    metavar="first|none",
)
@options.option("--fail-if-found", what="Exit with code 1 if there is any passage.", is_flag=True)
@options.as_json("the report")
@options.quiet("Print errors only: no progress, warnings or summary.")
def passages(  # noqa: PLR0913 - one for every option
    inputs: tuple[str, ...],
    out: str,
    min_words: int,
    keep: str,
    fail_if_found: bool,
    config: Config,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find every place where at least --min-words words of a document also stand in an earlier one.

    INPUT is what `neardup dedup` takes. passages.parquet lists the places with their offsets, repeated.parquet the
    passages, most words times places first. Documents are written only with --cut or --mark, to FOLDER/kept.

    \b
    Examples:
      neardup passages pages.jsonl -o parts
      neardup passages crawl/ -o parts --min-words 20 --group-column domain
      neardup passages pages.jsonl -o clean --cut                      one copy of every passage stays
      neardup passages pages.jsonl -o clean --cut --keep none --min-count 100
      neardup passages train.jsonl -o leaks --against test.jsonl --only-against --fail-if-found
      neardup passages pages.jsonl -o marked --mark                    spans and shares as columns
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    with render.progress(quiet=quiet) as progress:
        from neardup import api

        report = api.find_passages(
            options.as_paths(inputs),
            out=out,
            config=Config.of(config, keep=keep, min_words=min_words),
            progress=progress,
        )
    if as_json:
        render.as_json(report.as_dict())
    elif not quiet:
        render.passages_summary(report, out)
    if fail_if_found and report.num_places:
        click.get_current_context().exit(1)
