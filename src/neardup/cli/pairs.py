"""`neardup pairs`: list every pair of similar documents."""

from __future__ import annotations

import click

from neardup.cli import options
from neardup.config import Config


@click.command(cls=options.Command, short_help="List every pair of similar documents.")
@options.inputs()
@options.output(
    "FILE",
    "File to write: .parquet, .jsonl or .csv; also FILE.rejected.jsonl and FILE.report.json.",
)
@options.settings(
    *options.INPUT_SETTINGS,
    *options.RUN_SETTINGS,
    *options.PASSAGE_SETTINGS,
    "one_to_one",
    "long",
    "audit",
    "overwrite",
)
@options.option(
    "--sarif",
    what="Also write the pairs as SARIF, which code hosts show: .sarif.",
    type=click.Path(),
    metavar="FILE",
)
@options.option("--fail-if-found", what="Exit with code 1 if there is any pair.", is_flag=True)
@options.as_json("the report")
@options.quiet("Print errors only: no progress, warnings or summary.")
def pairs(
    inputs: tuple[str, ...],
    out: str,
    sarif: str | None,
    fail_if_found: bool,
    config: Config,
    as_json: bool,
    quiet: bool,
) -> None:
    """List every pair of similar documents: doc_a, doc_b, similarity.

    INPUT is what `neardup dedup` takes, or the folder of a finished run with stored pairs (dedup --pairs). With
    --passages and no --threshold, every pair that shares a passage is listed, however little of the documents it is.

    \b
    Examples:
      neardup pairs pages.jsonl -o pairs.parquet
      neardup pairs pages.jsonl -o pairs.csv --threshold 0.6 --recall 0.999
      neardup pairs pages.jsonl -o pairs.parquet --method exact    every pair, none missed
      neardup pairs new.jsonl -o pairs.jsonl --against old.jsonl   also pairs with old documents
      neardup pairs ours.csv -o links.csv --against theirs.csv --one-to-one
      neardup pairs baskets.csv -o pairs.csv --items-column products --threshold 0.5
      neardup pairs orders.csv -o pairs.csv --items-column item --id-column customer --long
      neardup pairs images.parquet -o pairs.parquet --measure cosine --vector-column embedding
      neardup pairs src/ -o copies.csv --unit code --min-words 50 --sarif copies.sarif --fail-if-found
      neardup pairs essays/ -o pairs.jsonl --passages --edits      who copied what from whom
      neardup pairs clean -o pairs.jsonl                           the pairs stored by a run with --pairs
      neardup pairs clean -o close.jsonl --threshold 0.9           only those with similarity >= 0.9
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    with render.progress(quiet=quiet) as progress:
        from neardup import api

        report = api.find_pairs(
            options.as_paths(inputs),
            out=out,
            config=config,
            progress=progress,
            engine=config.engine,
            sarif=sarif,
        )
    if as_json:
        render.as_json(report.as_dict())
    elif not quiet:
        render.pairs_summary(report, out)
    if fail_if_found and report.num_pairs:
        click.get_current_context().exit(1)
