"""`neardup report`: a finished run as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from neardup.cli import options


@click.command(
    cls=options.Command, short_help="Write a finished run, or a list of pairs, as one HTML file."
)
@click.argument("out", type=click.Path(), metavar="OUT|PAIRS")
@options.option(
    "-o",
    "--output",
    "target",
    what="HTML file to write.",
    required=True,
    type=click.Path(),
    metavar="FILE",
)
@options.option(
    "--limit",
    what="Maximum size of the file; what does not fit is counted on the page.",
    default="3MB",
    metavar="SIZE",
)
@options.option(
    "--by",
    what="Count sources first by this column, or by file or id.",
    metavar="COLUMN",
)
@options.option("--no-text", what="Leave the texts of the documents out.", is_flag=True)
@options.option("--overwrite", what="Replace an existing file.", is_flag=True)
@options.quiet("Show no progress and no summary.")
def report(
    out: str,
    target: str,
    limit: str,
    by: str | None,
    no_text: bool,
    overwrite: bool,
    quiet: bool,
) -> None:
    """Write a finished run as one HTML file: what was removed and why, or which pairs, with the texts side by side.

    OUT is the folder that `neardup dedup` wrote, PAIRS the file that `neardup pairs` wrote, with FILE.report.json
    beside it. The file is self-contained and opens in any browser. The texts are
    read again from the inputs, if these are unchanged.

    \b
    Examples:
      neardup report clean -o report.html
      neardup report pairs.csv -o pairs.html                  all pairs, most similar first
      neardup report clean -o report.html --by source         where duplicates come from, by a column
      neardup report clean -o report.html --limit 20MB        more clusters and longer texts
      neardup report clean -o report.html --no-text           to share without the documents
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    with render.working("report", quiet=quiet):
        from neardup import api
        from neardup.cli.visible import visible
        from neardup.report import format_bytes
        from neardup.web.report_file import check_limit, write_html

        check_limit(limit)
        loaded = api.load(out)
        size = write_html(
            loaded, Path(target), limit=limit, text=not no_text, by=by, overwrite=overwrite
        )
        told = [] if by is None else [visible(str(loaded.sources(by=by)))]
    if not quiet:
        render.lines([*told, f"Written to {visible(target)}: {format_bytes(size)}."])
