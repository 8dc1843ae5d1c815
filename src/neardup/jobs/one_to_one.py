"""Linking two collections: each document of one with its best partner in the other."""

from __future__ import annotations

import dataclasses
from typing import Any

from neardup.config import Config
from neardup.errors import ConfigError
from neardup.events import Watch
from neardup.jobs.containment import pipeline_for
from neardup.jobs.idf_weights import weighed
from neardup.jobs.sharing import asks_sharing, find_sharing, sharing_settings
from neardup.pipeline import Pipeline, PipelineOutcome
from neardup.stages.best_partners import best_partners
from neardup.theory.plan import Plan


def pairs_pipeline(config: Config) -> tuple[Config, Pipeline]:
    """Return the settings and the pipeline of a run that lists pairs.

    All similar ones, those of best partners, or those that share a passage.
    """
    if asks_sharing(config):
        return sharing_settings(config), find_sharing
    find = weighed(pipeline_for(config), config)
    if not config.one_to_one:
        return config, find

    def find_best(
        documents: Any, plan: Plan, config: Config, engine: Any, watch: Watch
    ) -> PipelineOutcome[Any]:
        outcome = find(documents, plan, config, engine, watch)
        row_pairs: Any = outcome.row_pairs
        columns = outcome.pair_columns
        if config.engine == "spark":
            from neardup.engines.spark.results import mutual_pairs

            chosen: Any = mutual_pairs(row_pairs, columns)
        else:
            chosen = best_partners(row_pairs, columns)
        # What a run removes follows from all pairs, so nothing can be selected again from these.
        return dataclasses.replace(outcome, row_pairs=chosen, selects=False)

    return Config.of(config, only_against=True), find_best


def check_lists_pairs(config: Config) -> None:
    """Raise if a job that lists no pairs is asked for the best of them."""
    if config.one_to_one:
        raise ConfigError(
            "`one_to_one` is for lists of pairs",
            hint="call neardup.find_pairs, or use `neardup pairs`",
        )
