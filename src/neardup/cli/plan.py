"""`neardup plan`: what the settings promise, and with inputs what a run will take."""

from __future__ import annotations

from typing import Final

import click

from neardup.cli import options
from neardup.config import Config

_CHANCE_STEPS: Final = 20


@click.command(cls=options.Command, short_help="Show what the settings promise, and what a run will take.")
@options.inputs(required=False)
@options.settings(*options.INPUT_SETTINGS, "keep", "cluster", "pairs")
@click.option(
    "--plot", "picture", cls=options.Option, type=click.Path(), metavar="FILE", help="Draw the curve: .svg or .png."
)
@options.as_json("the plan")
@options.quiet("No progress and no warnings.")
def plan(inputs: tuple[str, ...], config: Config, picture: str | None, as_json: bool, quiet: bool) -> None:
    """Show bands, rows and the S-curve: the chance to find a pair at every similarity.

    With INPUT also how many documents there are, and the memory, disk and time a run on them will take.

    \b
    Examples:
      neardup plan
      neardup plan --threshold 0.7 --recall 0.999 --num-perm 256
      neardup plan --bands 9 --rows 13                  what another tool's choice finds
      neardup plan --threshold 0.9 --plot curve.svg
      neardup plan --measure cosine --distance 0.1      for vectors
      neardup plan crawl/*.jsonl --memory 4GB           before a long run
      neardup plan --json
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import plot, render

    if picture is not None:
        plot.format_of(picture)
    if inputs:
        with render.progress(quiet=quiet) as progress:
            from neardup import api

            chosen = api.plan_files(list(inputs), config, progress)
    else:  # without the library's Arrow and Numba this answers at once
        from neardup.planner import plan_for

        chosen = plan_for(config)
    if picture is not None:
        plot.plot(chosen, picture)
    if as_json:
        chances = [[step / _CHANCE_STEPS, chosen.chance(step / _CHANCE_STEPS)] for step in range(_CHANCE_STEPS + 1)]
        render.as_json(chosen.as_dict() | {"chances": chances})
    else:
        render.plan(chosen)
