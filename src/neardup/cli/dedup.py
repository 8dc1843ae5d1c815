"""`neardup dedup`: remove near-duplicates from files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import click

from neardup.cli import options
from neardup.config import Config

if TYPE_CHECKING:
    from neardup.report import PartsReport

# The page of a run, in its output folder.
PAGE: Final = "report.html"


@click.command(cls=options.Command, short_help="Remove near-duplicates from files.")
@options.inputs()
@options.output("FOLDER", "Folder to write: kept/, removed.parquet, rejected.jsonl, report.json.")
@options.settings(
    *options.INPUT_SETTINGS,
    *options.RUN_SETTINGS,
    *options.PASSAGE_SETTINGS,
    "keep",
    "cluster",
    "per_cluster",
    "level",
    "min_count",
    "min_left",
    "decisions",
    "mark",
    "pairs",
    "dry_run",
    "audit",
    "overwrite",
)
@options.option(
    "--update",
    what="Insert what was kept into the index of --against, once the output is written.",
    is_flag=True,
)
@options.option("--report", what="Also write the run as one HTML file, report.html.", is_flag=True)
@options.as_json("the report")
@options.quiet("Print errors only: no progress, warnings or summary.")
def dedup(
    inputs: tuple[str, ...],
    out: str,
    update: bool,
    report: bool,
    config: Config,
    as_json: bool,
    quiet: bool,
) -> None:
    """Remove near-duplicates from files; every removed document is similar to a kept one.

    INPUT is a file, a folder, a glob or an address such as s3://bucket/key; "-" is standard input (JSON Lines).
    Files are JSON Lines, Parquet, Arrow, CSV, TSV or plain text, also as .gz and .zst. Kept rows are written
    unchanged to OUTPUT/kept. To resume an interrupted run, repeat the command.

    \b
    Examples:
      neardup dedup pages.jsonl -o clean
      neardup dedup crawl/ -o clean --threshold 0.7 --keep longest
      neardup dedup 'part-*.parquet' -o clean --text-column body --id-column url
      neardup dedup new.jsonl -o fresh --against clean        only new documents
      neardup dedup new.jsonl -o fresh --against pages.index --update
      neardup dedup pages.jsonl -o look --dry-run             what would be removed, and why
      neardup dedup pages.jsonl -o clean --audit              with the measured recall
      neardup dedup pages.jsonl -o clean --pairs --report     with a page to look at
      neardup dedup pages.jsonl -o clean --decisions decisions.json
      neardup dedup src/ -o clean --level line                repeated lines instead of documents
      zcat pages.jsonl.gz | neardup dedup - -o clean --json
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    with render.progress(quiet=quiet) as progress:
        from neardup import api

        done = api.deduplicate(
            options.as_paths(inputs),
            out=out,
            config=config,
            progress=progress,
            update=update,
            report=PAGE if report else None,
        )
    if as_json:
        render.as_json(done.as_dict())
    elif quiet:
        return
    elif config.level is not None:
        render.parts_summary(cast("PartsReport", done), out)
    else:
        render.summary(done, out)
