"""`neardup demo`: the main job on a small corpus that ships with the package."""

from __future__ import annotations

import importlib.resources
import json

import click

from neardup.cli import options
from neardup.config import Config


@click.command(cls=options.Command, short_help="Try it on a small built-in corpus.")
@options.settings(*options.TEXT_SETTINGS, "method", "keep", "cluster", "threads")
@options.as_json("the removed documents and the report")
@options.quiet("Print errors only: no progress, warnings or summary.")
def demo(config: Config, as_json: bool, quiet: bool) -> None:
    """Find near-duplicates in a small built-in corpus, in seconds.

    \b
    Examples:
      neardup demo
      neardup demo --threshold 0.6          finds looser duplicates
      neardup demo --unit char --size 8     character shingles
      neardup demo --cluster components     what goes wrong with transitive closure
      neardup demo --json
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    with render.progress(quiet=quiet) as progress:
        import neardup

        report = neardup.deduplicate(
            _documents(), config=Config.of(config, pairs=True), progress=progress
        )
    if as_json:
        render.as_json({"removed": report.removed.to_pylist(), "report": report.as_dict()})
    elif not quiet:
        render.clusters(report, has_compiled=_has_compiled())


def _has_compiled() -> bool:
    """Whether this run found no compiled kernels in the cache."""
    from neardup.kernels.sketch import fast_sketch

    return bool(sum(fast_sketch.stats.cache_misses.values()))


def _documents() -> dict[str, str]:
    lines = (
        importlib.resources.files("neardup")
        .joinpath("demo/documents.jsonl")
        .read_text("utf-8")
        .splitlines()
    )
    return {document["id"]: document["text"] for document in map(json.loads, lines)}
