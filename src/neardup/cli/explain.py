"""`neardup explain`: why a document of a finished run was removed, or for whom it stands."""

from __future__ import annotations

import dataclasses

import click

from neardup.cli import options


@click.command(cls=options.Command, short_help="Say why a document of a finished run was removed.")
@click.argument("out", type=click.Path(), metavar="OUT")
@click.argument("doc_id")
@click.option(
    "--file", cls=options.Option, heading=options.COLUMNS, metavar="NAME", help="File of an id that is there twice."
)
@click.option(
    "--row",
    cls=options.Option,
    heading=options.COLUMNS,
    type=int,
    metavar="N",
    help="Row of an id that is there twice.",
)
@options.as_json("the explanation")
@options.quiet("Only the reason, not the texts.")
def explain(out: str, doc_id: str, file: str | None, row: int | None, as_json: bool, quiet: bool) -> None:
    """Say why a document was removed: the kept one, the similarity, the shared shingles, and what differs.

    OUT is the folder that `neardup dedup` wrote; the texts are read again from the inputs. For a kept document it
    lists the removed ones that it stands for.

    \b
    Examples:
      neardup explain clean page-17
      neardup explain clean pages.jsonl:204             a document without an id is named file:row
      neardup explain clean page-17 --quiet             without the texts
      neardup explain clean page-17 --file b.jsonl      an id that several files have
      neardup explain clean page-17 --json
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    with render.working("explain", quiet=quiet):
        from neardup import api

        answer = api.explain(out, doc_id, file=file, row=row)
    if as_json:
        render.as_json(dataclasses.asdict(answer))
    else:
        render.explanation(answer, has_texts=not quiet)
