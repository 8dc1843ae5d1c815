"""A run on files: begin it, and run it with the adapter that fits; only that one is imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from neardup.config import Config
from neardup.events import Watch
from neardup.jobs.files import LocalFiles
from neardup.jobs.output import Output
from neardup.jobs.run import Adapter, run
from neardup.jobs.start import RunSetup, begin
from neardup.jobs.stored_pairs import load_run
from neardup.pipeline import Pipeline
from neardup.report import Report


def check_against_index(config: Config) -> None:
    """Raise if `against` names an index that a run with these settings cannot use."""
    if config.against:
        from neardup.jobs import against_index

        against_index.check_against_index(config)


def adapter_for(setup: RunSetup, engine: Any) -> Adapter[Any, Any]:
    """Return the adapter of a run on files: with an index in `against`, on Spark, or on this machine."""
    if setup.config.against:
        from neardup.jobs import against_index

        if against_index.indexes_of(setup.config):
            return against_index.IndexedFiles(setup)
    if setup.config.engine == "spark":
        from neardup.jobs.spark import SparkFiles

        return SparkFiles(setup, engine)
    return LocalFiles(setup)


def run_files(
    output: Output,
    paths: Sequence[str],
    config: Config,
    pipeline: Pipeline,
    watch: Watch,
    *,
    engine: Any = None,
    check: Callable[[RunSetup], None] | None = None,
) -> Report:
    """Run a pipeline on files; `check` may refuse them once they are found.

    A run that an earlier start has already published is loaded.
    """
    with begin(output, paths, config, watch) as setup:
        if setup is None:
            return load_run(output.target)
        if check is not None:
            check(setup)
        adapter = adapter_for(setup, engine)
        if config.ignore_common is not None and isinstance(adapter, LocalFiles):
            adapter.ignore_common(watch)
        if config.weights is not None and isinstance(adapter, LocalFiles):
            adapter.weigh(watch)
        return run(adapter, watch, pipeline)
