"""`neardup plan`: what the settings promise and, with inputs, what a run will cost."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from neardup.cli import options
from neardup.config import Config
from neardup.config.checks import check_int
from neardup.errors import ConfigError, DataError
from neardup.io.storage.work_folder import check_writable, unwritable

if TYPE_CHECKING:
    from neardup.theory.plan import Plan

_CHANCE_STEPS: Final = 20
_MOST: Final = 1024


@click.command(
    cls=options.Command, short_help="Show what the settings find, and what a run will cost."
)
@options.inputs(required=False)
@options.settings(*options.INPUT_SETTINGS, "keep", "cluster", "pairs", "overwrite")
@options.option(
    "--plot",
    "picture",
    what="Draw the S-curve to this .svg or .png file.",
    type=click.Path(),
    metavar="FILE",
)
@options.option(
    "--compare-bands", what="Also draw the S-curve for this number of bands.", type=int, metavar="N"
)
@options.option("--compare-rows", what="Rows per band of that second curve.", type=int, metavar="N")
@options.as_json("the plan")
@options.quiet("Show no progress and no warnings.")
def plan(
    inputs: tuple[str, ...],
    config: Config,
    picture: str | None,
    compare_bands: int | None,
    compare_rows: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Show bands, rows and the S-curve: the probability of finding a pair, by similarity.

    With INPUT, also estimate the number of documents, and the memory, disk and time that a run takes.

    \b
    Examples:
      neardup plan
      neardup plan --threshold 0.7 --recall 0.999 --num-perm 256
      neardup plan --bands 9 --rows 13                  how another tool's choice performs
      neardup plan --threshold 0.9 --plot curve.svg
      neardup plan --plot both.svg --compare-bands 9 --compare-rows 13
      neardup plan --measure cosine --distance 0.1      for vectors
      neardup plan crawl/*.jsonl --memory 4GB           before a long run
      neardup plan --json
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render
    from neardup.theory import plot

    _check_comparison(config, picture, compare_bands, compare_rows)
    if picture is not None:
        plot.format_of(picture)
        check_writable(Path(picture), "--plot")
        if os.path.lexists(picture) and not config.overwrite:
            raise DataError(
                f"the plot {picture} already exists",
                hint="choose another --plot, or pass --overwrite",
            )
    if inputs:
        with render.progress(quiet=quiet) as progress:
            from neardup import api

            chosen = api.plan(options.as_paths(inputs), config=config, progress=progress)
    else:  # without importing Arrow and Numba, this answers at once
        from neardup.theory.plan import plan_for

        chosen = plan_for(config)
    if picture is not None:
        other = _with_bands(chosen, compare_bands, compare_rows)
        try:
            plot.plot(chosen, picture, other=other, by_distance=config.distance is not None)
        except OSError as error:
            raise unwritable(Path(picture), error, "--plot") from error
    if as_json:
        chances = [
            [step / _CHANCE_STEPS, chosen.chance(step / _CHANCE_STEPS)]
            for step in range(_CHANCE_STEPS + 1)
        ]
        render.as_json(chosen.as_dict() | {"chances": chances})
    else:
        render.plan(chosen)


def _check_comparison(
    config: Config, picture: str | None, bands: int | None, rows: int | None
) -> None:
    if bands is None and rows is None:
        return
    if bands is None or rows is None:
        missing = "--compare-bands" if bands is None else "--compare-rows"
        raise ConfigError(
            f"a second curve needs bands and rows, but `{missing}` is missing",
            hint=f"add {missing}",
        )
    check_int("compare_bands", bands, 1, _MOST)
    check_int("compare_rows", rows, 1, _MOST)
    if picture is None:
        raise ConfigError(
            "`--compare-bands` adds a curve to the picture of --plot, which was not given",
            hint="add --plot curve.svg",
        )
    if config.asks_containment:
        raise ConfigError(
            "banding cannot find containment, so there is no curve to draw", hint="leave --plot out"
        )


def _with_bands(plan: Plan, bands: int | None, rows: int | None) -> Plan | None:
    """Return the plan with other bands and rows, however many slots these would take."""
    if bands is None or rows is None:
        return None
    return dataclasses.replace(plan, method="lsh", bands=bands, rows=rows)
