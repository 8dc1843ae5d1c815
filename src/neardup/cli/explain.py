"""`neardup explain`: why a document of a finished run was removed, or which ones were removed in its favour."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import click

from neardup.cli import options


@click.command(cls=options.Command, short_help="Explain why a finished run removed a document.")
@click.argument("out", type=click.Path(), metavar="OUT")
@click.argument("doc_id")
@click.argument("other_id", required=False)
@options.option(
    "--file",
    heading=options.COLUMNS,
    what="File of the document, if its id is not unique.",
    metavar="NAME",
)
@options.option(
    "--row",
    heading=options.COLUMNS,
    what="Row of the document, if its id is not unique.",
    type=int,
    metavar="N",
)
@options.as_json("the explanation")
@options.quiet("Show only the reason, not the texts.")
def explain(
    out: str,
    doc_id: str,
    other_id: str | None,
    file: str | None,
    row: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Explain why a document was removed: the kept document, the similarity, the shared shingles, and a diff.

    OUT is the folder that `neardup dedup` wrote, or the file that `neardup pairs` wrote; the texts are read again from
    the inputs. A kept document is shown with the documents removed in its favour. For a list of pairs, the pairs of
    the document are listed. With OTHER_ID, one pair is shown.

    \b
    Examples:
      neardup explain clean page-17
      neardup explain clean pages.jsonl:204             a document without an id: file:row
      neardup explain clean page-17 --quiet             without the texts
      neardup explain clean page-17 --file b.jsonl      an id that occurs in several files
      neardup explain clean page-17 --json
      neardup explain pairs.parquet page-1              all its pairs
      neardup explain pairs.parquet page-1 page-17      one pair, and what differs
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    if other_id is not None or Path(out).is_file():
        _explain_pairs(out, doc_id, other_id, as_json=as_json, quiet=quiet)
        return
    with render.working("explain", quiet=quiet):
        from neardup import api

        answer = api.explain(out, doc_id, file=file, row=row)
    if as_json:
        render.as_json(dataclasses.asdict(answer))
    else:
        render.explanation(answer, has_texts=not quiet)


def _explain_pairs(
    out: str, doc_id: str, other_id: str | None, *, as_json: bool, quiet: bool
) -> None:
    from neardup.cli import render

    with render.working("explain", quiet=quiet):
        from neardup.jobs import explain as job

        pairs = job.find_pairs_of(Path(out), doc_id, other_id)
        texts = comparison = None
        if other_id is not None and not as_json:
            texts, comparison = job.compare_pair(Path(out), pairs[0])
    if as_json:
        render.as_json({"pairs": [dataclasses.asdict(pair) for pair in pairs]})
    elif texts is None or comparison is None:
        render.pairs_of(pairs)
    else:
        render.pair(pairs[0], comparison)
        if not quiet:
            render.texts(texts[0], texts[1], (pairs[0].doc_a, pairs[0].doc_b))
