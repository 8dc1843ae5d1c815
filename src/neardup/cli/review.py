"""`neardup review`: judge a sample of the removals of a finished run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from neardup.cli import options
from neardup.config import REVIEW_SAMPLE

if TYPE_CHECKING:
    from neardup.jobs.review import Review


@click.command(cls=options.Command, short_help="Judge a sample of removals: is the run right?")
@click.argument("out", type=click.Path(), metavar="OUT")
@options.option("--sample", what="Number of removals to draw.", default=REVIEW_SAMPLE, metavar="N")
@options.option(
    "-o",
    "--output",
    "target",
    what="File for the decisions and the estimate, for `dedup --decisions`.",
    type=click.Path(),
    metavar="FILE",
)
@options.as_json("the removals, the judgements and the estimate")
@options.quiet("Show only how similar two documents are, not their texts.")
def review(out: str, sample: int, target: str | None, as_json: bool, quiet: bool) -> None:
    """Judge a sample of the removals of a finished run, for its precision with a 95 % interval.

    OUT is the folder that `neardup dedup` wrote. Each removal is shown with what differs; answer with one key: y if the
    two are the same, n if they are not, space to skip, u to go back, q to stop. Answers can also come from standard
    input, one character each. Identical documents are not drawn; half of the sample comes from the weakest tenth of
    the others, and the estimate weights both parts by their sizes.

    \b
    Examples:
      neardup review clean
      neardup review clean --sample 60 -o decisions.json
      echo yynyy | neardup review clean --sample 5 --json
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    with render.working("draw removals", quiet=True):
        from neardup import api

        drawn = api.review(out, sample=sample)
    judged = _ask(drawn, is_shown=not as_json, has_texts=not quiet)
    num_written = None if target is None else judged.save(target)
    if as_json:
        render.as_json(judged.as_dict())
        return
    render.lines([f"{judged}."])
    if target is not None:
        render.lines([f"Written to {target}: {num_written} to keep."])


def _ask(review: Review, *, is_shown: bool, has_texts: bool) -> Review:
    """Ask for a judgement of each removal, until the last one, `q` or the end of standard input."""
    from neardup.cli import render
    from neardup.jobs.review import texts_of

    at = 0
    shown = None
    while at < len(review.removals):
        if is_shown and shown != at:
            texts = texts_of(review, at) if has_texts else []
            render.removal_to_judge(review, at, texts)
            shown = at
        key = _read_key()
        if key in ("y", "n", " "):
            is_right = {"y": True, "n": False}.get(key)
            review = review.judge(at, is_right)
            at += 1
        elif key == "u" and at:
            at -= 1
            review = review.judge(at, None)
        elif key in ("q", ""):
            break
    return review


def _read_key() -> str:
    """Return one key, "" at the end of standard input."""
    return click.getchar() if sys.stdin.isatty() else sys.stdin.read(1)
