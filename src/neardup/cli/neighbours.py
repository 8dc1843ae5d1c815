"""`neardup neighbours`: the documents most similar to each one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import click

from neardup.cli import options
from neardup.config import Config
from neardup.config.checks import ALL

if TYPE_CHECKING:
    from neardup.config.setting_types import Contained

_SETTINGS: Final = (
    *(
        "distance",
        "measure",
        "dimension",
        "packed",
        "unit",
        "size",
        "language",
        "code_names",
        "multiset",
        "fold_numbers",
        "html",
    ),
    "html_content",
    *("normalise", "fold_accents", "ignore"),
    *(
        *options.COLUMN_SETTINGS,
        "format",
        "encoding",
        "lines",
        "delimiter",
        "max_document",
        "include",
        "exclude",
        "overwrite",
        "strict",
        "engine",
        "master",
        "spark_conf",
        "memory",
        "threads",
    ),
)


@click.command(cls=options.Command, short_help="List the documents most similar to each one.")
@options.inputs()
@options.option(
    "--k",
    heading=options.SIMILAR,
    what="Maximum number of neighbours per document; all lists every one at or above --threshold.",
    type=options.NumberOrAll(),
    default=10,
    metavar="N",
)
@options.option(
    "--contained",
    heading=options.SIMILAR,
    what="With --measure containment: which of the two must be contained; either takes the larger share.",
    type=click.Choice(["query", "neighbour", "either"]),
    default="either",
)
@options.option(
    "--queries",
    heading=options.SIMILAR,
    what="Find the neighbours of these documents in INPUT instead; - is standard input; repeatable.",
    multiple=True,
    metavar="FILE",
)
@options.option(
    "-t",
    "--threshold",
    heading=options.SIMILAR,
    what="Minimum similarity of a neighbour; above 0, at most 1. By default, any above 0 counts.",
    type=float,
    metavar="NUMBER",
)
@options.output(
    "FILE", "File to write: .parquet, .jsonl or .csv; printed by default.", required=False
)
@options.settings(*_SETTINGS)
@options.as_json("the neighbours")
@options.quiet("Print errors only: no progress, warnings or summary.")
def neighbours(  # noqa: PLR0913 - click passes every option by name
    inputs: tuple[str, ...],
    k: int | Literal["all"],
    contained: Contained,
    queries: tuple[str, ...],
    threshold: float | None,
    out: str | None,
    config: Config,
    as_json: bool,
    quiet: bool,
) -> None:
    """List the documents most similar to each one, exactly: doc_id, neighbour_id, similarity, rank.

    INPUT is what `neardup dedup` takes; it must fit in memory, except on Spark with --queries. --threshold or
    --distance limits how far a neighbour may be; without them, every document with a similarity above 0 can be listed.

    \b
    Examples:
      neardup neighbours pages.jsonl
      neardup neighbours pages.jsonl --k 3 -o neighbours.parquet
      neardup neighbours pages.jsonl --threshold 0.5 -o close.csv
      neardup neighbours pages.jsonl --queries new.jsonl --k 1
      neardup neighbours pages.jsonl --k all --threshold 0.8
      neardup neighbours books.jsonl --queries quotes.jsonl --measure containment --contained query
      neardup neighbours baskets.csv --items-column products --json
      neardup neighbours images.parquet --measure cosine --vector-column embedding -o near.jsonl
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    if threshold is not None:
        config = Config.of(config, threshold=threshold, distance=config.distance)
    with render.progress(quiet=quiet) as progress:
        from neardup import api

        found = api.neighbours(
            options.as_paths(inputs),
            k=k,
            contained=contained,
            queries=options.as_paths(queries) or None,
            out=out,
            config=config,
            progress=progress,
        )
    if as_json:
        render.as_json({"k": None if k == ALL else k, "neighbours": found.to_pylist()})
    elif out is None or not quiet:
        render.neighbours(found, out)
