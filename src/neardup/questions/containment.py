"""Which documents contain which: a pipeline of its own, which lists pairs and removes no document.

    sketch -> containment

A small document can be contained in a large one without being similar to it, so banding cannot find the pair. Instead,
one machine keeps an inverted index of all sets in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from neardup import pipeline, schema
from neardup.config import Config
from neardup.engines.base import BatchStep, Source
from neardup.engines.local.engine import LocalEngine
from neardup.errors import ConfigError
from neardup.events import Watch
from neardup.pipeline import Outcome, Pipeline
from neardup.searches.containers import Containment, collect_sets
from neardup.theory.plan import Plan


def pipeline_for(config: Config) -> Pipeline:
    """Return the pipeline that the settings ask for: containment, or near-duplicates."""
    if config.measure != "containment":
        return pipeline.run
    if config.engine != "local":
        raise ConfigError(
            "the measure 'containment' does not run on Spark: its index must fit in the memory of one machine",
            hint="use engine='local'",
        )
    return find_containing


def check_selects(config: Config) -> None:
    """Raise if the measure does not say which document of a pair to keep."""
    if config.measure == "containment":
        raise ConfigError(
            "the measure 'containment' lists pairs, it does not say which document stays",
            hint="use neardup.find_pairs, or `neardup pairs`, and choose from containment_a and containment_b",
        )


def find_containing(documents: Source, plan: Plan, config: Config, engine: LocalEngine, watch: Watch) -> Outcome:
    """List every pair of documents of which one has at least a share `plan.threshold` of its shingles in the other."""
    with watch.stage("sketch", documents.total, documents.unit) as advance:
        sketches = pipeline.sketch_documents(documents, plan, config, engine, advance)
        pipeline.warn_of_short(sketches, documents, config, engine, watch)

    def make_step() -> BatchStep:
        sets = collect_sets(sketches.batches(["row", "num_shingles", "group", "shingles"]), engine.room())
        return Containment(*sets, num_ahead=documents.num_ahead, threshold=plan.threshold).find_containers

    def pairs() -> Iterator[pa.RecordBatch]:
        for batch in found.batches(["pairs"]):
            yield pa.RecordBatch.from_struct_array(batch.column("pairs").flatten()).cast(schema.CONTAINED)

    with watch.stage("containment"):
        where = engine.choose_rows(sketches, "num_shingles", documents.num_rows)
        found = engine.map_table("containers", sketches, ["row"], where, make_step, schema.CONTAINERS)
        num_pairs = sum(len(batch.column("pairs").flatten()) for batch in found.batches(["pairs"]))
        pipeline.warn_of_many(num_pairs, watch)
        row_pairs = engine.sort(pairs(), schema.CONTAINED, schema.row_order(schema.CONTAINED))
    return Outcome(
        plan=plan,
        selection=schema.SELECTION.empty_table(),
        row_pairs=row_pairs,
        exact_duplicates=0,
        pairs_verified=sum(batch.column("compared")[0].as_py() for batch in found.batches(["compared"])),
        selects=False,
        pair_columns=schema.CONTAINED,
    )
