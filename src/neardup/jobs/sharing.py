"""Pairs of documents that share a passage: what `find_pairs` lists with `passages` and without a threshold.

    sketch -> pairs that share shingles -> their passages; pairs without one are dropped

Essays that share a paragraph are far from similar, so no threshold finds them.
"""

from __future__ import annotations

import dataclasses
import sys
from functools import partial
from typing import Final

import pyarrow as pa

from neardup import pipeline, schema
from neardup.config import Config
from neardup.engines.base import BatchStep, Source
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.tables import batches_of
from neardup.events import Watch
from neardup.jobs.containment import sort_pairs, total_of
from neardup.pipeline import PipelineOutcome
from neardup.theory.plan import Plan

# Settings that choose how similar documents are found. Any of them means that similar ones are asked for.
_CHOOSES_SIMILARITY: Final = frozenset(
    (
        *("threshold", "distance", "recall", "measure", "method", "bands", "rows", "num_perm"),
        *("unit", "sketch", "audit", "one_to_one", "weights", "engine"),
    )
)
# Every pair that shares a shingle is a candidate.
_ANY: Final = 1e-9
# Of passages with edits, three runs of three words are left in nearly every one (docs/decisions/0052).
_SEED_WORDS: Final = 3
_MIN_SEEDS: Final = 3
# Of a run of words that more documents have, only pairs with one of the first so many are candidates.
_FIRST_DOCUMENTS: Final = 32


def asks_sharing(config: Config) -> bool:
    """Whether pairs that share a passage are asked for, not pairs that are similar and their passages."""
    given = {name for name in config.given if getattr(config, name) != getattr(Config(), name)}
    given |= config.given & {"threshold", "distance"}
    return config.passages and given.isdisjoint(_CHOOSES_SIMILARITY)


def sharing_settings(config: Config) -> Config:
    """Return the settings with which candidates are found."""
    from neardup.align.shared_passages import least_words  # it has kernels that few runs call

    size = min(_SEED_WORDS, least_words(config)) if config.edits else least_words(config)
    return Config.of(config, method="exact", threshold=_ANY, size=size)


def find_sharing(
    documents: Source, plan: Plan, config: Config, engine: LocalEngine, watch: Watch
) -> PipelineOutcome[pa.Table]:
    """List the pairs that may share a passage."""
    from neardup.align.shared_passages import least_words
    from neardup.search.containment import collect_sets
    from neardup.search.sharing import SharingIndex, SharingLimits

    with watch.stage("sketch", documents.total, documents.unit) as advance:
        sketches = pipeline.sketch_documents(documents, plan, config, engine, advance)
        only_ignored = pipeline.warn_of_ignored(sketches, documents, config, engine, watch)
    if config.edits:
        limits = SharingLimits(min(_MIN_SEEDS, max(1, least_words(config) - 2)), _FIRST_DOCUMENTS)
    else:
        limits = SharingLimits(1, sys.maxsize >> 1)

    def make_step() -> BatchStep:
        columns = ["row", "num_shingles", "group", "shingles"]
        rows, groups, sets = collect_sets(batches_of(sketches, columns), engine.room())
        index = SharingIndex(
            rows, groups, sets, num_references=documents.num_references, limits=limits
        )
        return partial(index.find_sharing, only_against=config.only_against)

    with watch.stage("sharing"):
        where = engine.choose_rows(sketches, "num_shingles", documents.num_rows)
        found = engine.map_table(
            "sharing", sketches, ["row"], where, make_step, schema.CONTAINMENT_BATCHES
        )
        row_pairs = sort_pairs(found, engine, watch)
    return PipelineOutcome(
        plan=dataclasses.replace(plan, shared_words=least_words(config)),
        selection=schema.SELECTION.empty_table(),
        row_pairs=row_pairs,
        exact_duplicates=0,
        pairs_verified=total_of(found, "found"),
        comparisons=total_of(found, "compared"),
        only_ignored=only_ignored,
        selects=False,
        pair_columns=schema.CONTAINMENT_PAIRS,
    )
