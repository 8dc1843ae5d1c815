"""`neardup decontaminate`: which documents contain items of benchmarks, and the documents without them."""

from __future__ import annotations

from typing import Final

import click

from neardup.cli import options
from neardup.config import Config

_SETTINGS: Final = (
    *("against", "item_column", "rule", "threshold", "weights_from"),
    *("fold_numbers", "normalise", "fold_accents", "html", "html_content", "seed"),
    *(
        "text_column",
        "id_column",
        "format",
        "encoding",
        "lines",
        "delimiter",
        "max_document",
        "include",
        "exclude",
    ),
    *("remove", "cut", "around", "min_left", "mark"),
    *("dry_run", "overwrite", "strict", "engine", "master", "spark_conf", "memory", "threads"),
)


@click.command(cls=options.Command, short_help="Find test questions in documents.")
@options.inputs()
@options.output(
    "FOLDER",
    "Folder to write: contaminated.parquet, items.parquet, benchmarks.parquet, rejected.jsonl, report.json.",
)
@options.settings(*_SETTINGS)
@options.option("--fail-if-found", what="Exit with code 1 if there is any item.", is_flag=True)
@options.as_json("the report")
@options.quiet("Print errors only: no progress, warnings or summary.")
def decontaminate(
    inputs: tuple[str, ...],
    out: str,
    fail_if_found: bool,
    config: Config,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find the items of benchmarks, such as test questions, that documents contain, also with small edits.

    INPUT is what `neardup dedup` takes; --against names files with one item a row. An item of 20 words and more is
    found if a span of a document has --threshold of its words in order, rare words counting more; a shorter one must
    be complete, and one below 8 words is not searched. Nothing is removed without --remove, --cut or --mark.

    \b
    Examples:
      neardup decontaminate train.jsonl --against gsm8k.jsonl --item-column question -o found
      neardup decontaminate train/ --against benchmarks/ -o clean --remove
      neardup decontaminate train.parquet --against qa.csv --item-column question --item-column answer -o found
      neardup decontaminate train.jsonl --against tests.jsonl -o clean --cut --around 20
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    with render.progress(quiet=quiet) as progress:
        from neardup import api

        report = api.decontaminate(
            options.as_paths(inputs), out=out, config=config, progress=progress
        )
    if as_json:
        render.as_json(report.as_dict())
    elif not quiet:
        render.contamination_summary(report, out)
    if fail_if_found and report.num_contaminated:
        click.get_current_context().exit(1)
