"""`neardup audit`: the measured recall of a finished run."""

from __future__ import annotations

import click

from neardup.cli import options
from neardup.config import Config


@click.command(cls=options.Command, short_help="Measure the recall of a finished run.")
@click.argument("out", type=click.Path(), metavar="OUT")
@click.option(
    "--sample",
    cls=options.Option,
    heading=options.WORK,
    type=int,
    default=1000,
    show_default=True,
    metavar="N",
    help="How many documents to sample.",
)
@options.settings("memory", "threads")
@options.as_json("the audit")
@options.quiet("No progress and no warnings.")
def audit(out: str, sample: int, config: Config, as_json: bool, quiet: bool) -> None:
    """Measure how many of the true pairs a finished run has found, and list those it missed.

    OUT is the folder that `neardup dedup` wrote, or the file that `neardup pairs` wrote. The input files are read
    again: all true pairs of the sampled documents are found, exactly, and compared with what the run finds.

    \b
    Examples:
      neardup audit clean
      neardup audit clean --sample 10000            a narrower interval
      neardup audit pairs.parquet                   of a run of neardup pairs
      neardup audit clean --json
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    with render.progress(quiet=quiet) as progress:
        from neardup import api

        answer = api.audit(out, sample=sample, threads=config.threads, memory=config.memory, progress=progress)
    if as_json:
        render.as_json(answer.as_dict())
    else:
        render.audit(answer)
