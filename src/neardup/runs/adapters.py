"""Which adapter fits a run on files; only that one is imported."""

from __future__ import annotations

from typing import Any

from neardup.config import Config
from neardup.runs.files import LocalFiles
from neardup.runs.run import Adapter
from neardup.runs.start import RunSetup


def check_against_index(config: Config) -> None:
    """Raise if `against` names an index that a run with these settings cannot use."""
    if config.against:
        from neardup.runs import indexed

        indexed.check_against_index(config)


def adapter_for(setup: RunSetup, engine: Any) -> Adapter:
    """Return the adapter of a run on files: with an index in `against`, on Spark, or on this machine."""
    if setup.config.against:
        from neardup.runs import indexed

        if indexed.indexes_of(setup.config):
            return indexed.IndexedFiles(setup)
    if setup.config.engine == "spark":
        from neardup.runs.spark import SparkFiles

        return SparkFiles(setup, engine)
    return LocalFiles(setup)
