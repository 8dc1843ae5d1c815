"""`neardup audit`: the measured recall of a finished run."""

from __future__ import annotations

import click

from neardup.cli import options
from neardup.config import Config


@click.command(cls=options.Command, short_help="Measure the recall of a finished run.")
@click.argument("out", type=click.Path(), metavar="OUT")
@options.option(
    "--sample",
    heading=options.WORK,
    what="Number of documents to sample.",
    type=int,
    default=1000,
    metavar="N",
)
@options.settings("memory", "threads")
@options.as_json("the audit")
@options.quiet("Show no progress and no warnings.")
def audit(out: str, sample: int, config: Config, as_json: bool, quiet: bool) -> None:
    """Measure the recall of a finished run, and list the true pairs it missed.

    OUT is the folder that `neardup dedup` wrote, or the file that `neardup pairs` wrote. The input files are read
    again: an exact search finds all true pairs of a sample of documents, which are compared with those of the run.

    \b
    Examples:
      neardup audit clean
      neardup audit clean --sample 10000            a narrower interval
      neardup audit pairs.parquet                   a list written by neardup pairs
      neardup audit clean --json
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    with render.progress(quiet=quiet) as progress:
        from neardup import api

        answer = api.audit(
            out, sample=sample, threads=config.threads, memory=config.memory, progress=progress
        )
    if as_json:
        render.as_json(answer.as_dict())
    else:
        render.audit(answer)
