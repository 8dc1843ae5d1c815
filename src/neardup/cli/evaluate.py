"""`neardup evaluate`: precision and recall of a finished run against labels."""

from __future__ import annotations

import click

from neardup.cli import options


@click.command(cls=options.Command, short_help="Compare a finished run with known pairs.")
@click.argument("out", type=click.Path(), metavar="OUT")
@options.option(
    "--labels",
    heading=options.COLUMNS,
    what="File with doc_a, doc_b, same, or doc_id, cluster, or a review's decisions.",
    required=True,
    type=click.Path(),
    metavar="FILE",
)
@options.as_json("the numbers, the curve and every wrong or missed pair")
@options.quiet("Show no progress and no warnings.")
def evaluate(out: str, labels: str, as_json: bool, quiet: bool) -> None:
    """Measure precision, recall and F1 of a finished run against labels, with 95 % intervals.

    OUT is the folder that `neardup dedup` wrote, or the file that `neardup pairs` wrote; the texts are read again from
    the inputs. Labelled pairs are compared exactly, so the curve goes below the threshold of the run. Only pairs with
    a label count; with doc_id, cluster, every pair of labelled documents has one. Two documents count as found if they
    are in one cluster of OUT, or a pair that OUT lists.

    \b
    Examples:
      neardup evaluate clean --labels truth.csv
      neardup evaluate pairs.parquet --labels known.jsonl
      neardup evaluate clean --labels decisions.json    judged on the page of the run
      neardup evaluate clean --labels truth.csv --json
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    with render.progress(quiet=quiet) as progress:
        from neardup import api

        answer = api.evaluate(out, labels, progress=progress)
    if as_json:
        render.as_json(answer.as_dict())
    else:
        render.evaluation(answer, out)
