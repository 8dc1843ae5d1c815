"""`neardup tune`: where the threshold of a corpus lies, and which unit and size separate best."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, Final

import click

from neardup.cli import options
from neardup.config import Config

_SETTINGS: Final = (
    *(
        "measure",
        "unit",
        "size",
        "language",
        "code_names",
        "multiset",
        "fold_numbers",
        "normalise",
        "fold_accents",
    ),
    *("ignore", "html", "html_content", "seed"),
    *("text_column", "id_column", "items_column", "group_column"),
    *(
        "format",
        "encoding",
        "lines",
        "delimiter",
        "max_document",
        "include",
        "exclude",
        "strict",
        "memory",
        "threads",
    ),
)


@click.command(cls=options.Command, short_help="Find the threshold, the unit and the size.")
@options.inputs()
@options.option(
    "--sample",
    heading=options.WORK,
    what="Most documents to sample.",
    type=int,
    default=1000,
    metavar="N",
)
@options.settings(*_SETTINGS)
@options.option(
    "-o",
    "--output",
    "target",
    what="HTML page to write as well.",
    type=click.Path(),
    metavar="FILE",
)
@options.option("--overwrite", what="Replace an existing file.", is_flag=True)
@options.as_json("the threshold, the histogram and the examples")
@options.quiet("Show no progress and no warnings.")
def tune(
    inputs: tuple[str, ...],
    sample: int,
    target: str | None,
    overwrite: bool,
    config: Config,
    as_json: bool,
    quiet: bool,
) -> None:
    """Find where pairs that are alike by chance end and copies begin; compare units and sizes.

    INPUT is what `neardup dedup` takes. Sampled documents are compared exactly with the whole input, from similarity
    0.1 up. The histogram, the valley between noise and copies, and pairs on both sides of it are shown, with the
    command to run next. A --unit or --size that is given is not varied.

    \b
    Examples:
      neardup tune pages.jsonl
      neardup tune contacts.csv --text-column name --text-column address
      neardup tune essays/ --measure containment
      neardup tune baskets.csv --items-column products
      neardup tune pages.jsonl --unit word --size 5 --sample 3000
      neardup tune pages.jsonl -o tuning.html
      neardup tune pages.jsonl --json
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    if target is not None:
        from neardup.web.report_file import check_target, write_page

        check_target(Path(target), overwrite=overwrite)
    with render.progress(quiet=quiet) as progress:
        from neardup import api

        found = api.tune(options.as_paths(inputs), sample=sample, config=config, progress=progress)
    if target is not None:
        write_page(Path(target), found.to_html())
    command = next_command(inputs, config, found.settings)
    if as_json:
        render.as_json(found.as_dict() | {"command": command})
    else:
        render.tuning(found, command)


def next_command(inputs: tuple[str, ...], config: Config, found: dict[str, Any]) -> str:
    """Return the command that lists the pairs at the suggested settings.

    >>> next_command(("a b.csv",), Config.of(text_column=["name", "town"], strict=True), {"unit": "char", "size": 3})
    "neardup pairs 'a b.csv' -o pairs.csv --unit char --size 3 --text-column name --text-column town --strict"
    """
    given = {name: getattr(config, name) for name in config.given if name not in found}
    chosen = found | {name: given[name] for name in options.SETTINGS if name in given}
    words = ["neardup", "pairs", *inputs, "-o", "pairs.csv"]
    for name, value in chosen.items():
        words += options.words_of(name, value)
    return shlex.join(words)
