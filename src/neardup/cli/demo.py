"""`neardup demo`: the main job on a small corpus that ships with the package."""

from __future__ import annotations

import importlib.resources
import json

import click

from neardup.config import CHOICES, Config


@click.command()
@click.option(
    "--threshold", default=Config().threshold, show_default=True, help="Similarity from which two are a pair."
)
@click.option(
    "--cluster",
    type=click.Choice(CHOICES["cluster"]),
    default=Config().cluster,
    show_default=True,
    help="leader: a removed document is similar to the kept one. components: chains count too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the removed documents and the report as JSON.")
def demo(threshold: float, cluster: str, as_json: bool) -> None:
    """Find the near-duplicates of a small built-in corpus, in seconds.

    \b
    Examples:
      neardup demo
      neardup demo --threshold 0.6          more is a duplicate
      neardup demo --cluster components     what goes wrong when chains count
    """  # noqa: D301 - click reads the backspace
    from neardup.cli import render

    config = Config.of(threshold=threshold, cluster=cluster, pairs=True)
    with render.progress(quiet=as_json) as progress:
        import neardup

        report = neardup.deduplicate(_documents(), config=config, progress=progress)
    if as_json:
        render.as_json({"removed": report.removed.to_pylist(), "report": report.as_dict()})
    else:
        render.clusters(report, has_compiled=_has_compiled())


def _has_compiled() -> bool:
    """Whether this run found no compiled kernels in the cache."""
    from neardup.kernels.sketch import fast_sketch

    return bool(sum(fast_sketch.stats.cache_misses.values()))


def _documents() -> dict[str, str]:
    lines = importlib.resources.files("neardup").joinpath("demo/documents.jsonl").read_text("utf-8").splitlines()
    return {document["id"]: document["text"] for document in map(json.loads, lines)}
