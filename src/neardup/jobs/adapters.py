"""Which adapter fits a run on files; only that one is imported."""

from __future__ import annotations

from typing import Any

from neardup.config import Config
from neardup.jobs.files import LocalFiles
from neardup.jobs.run import Adapter
from neardup.jobs.start import RunSetup


def check_against_index(config: Config) -> None:
    """Raise if `against` names an index that a run with these settings cannot use."""
    if config.against:
        from neardup.jobs import against_index

        against_index.check_against_index(config)


def adapter_for(setup: RunSetup, engine: Any) -> Adapter:
    """Return the adapter of a run on files: with an index in `against`, on Spark, or on this machine."""
    if setup.config.against:
        from neardup.jobs import against_index

        if against_index.indexes_of(setup.config):
            return against_index.IndexedFiles(setup)
    if setup.config.engine == "spark":
        from neardup.jobs.spark import SparkFiles

        return SparkFiles(setup, engine)
    return LocalFiles(setup)
