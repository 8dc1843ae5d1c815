"""The question which documents lie in which: a run with stages of its own, that lists pairs and removes nobody.

    sketch -> contain

A small document may lie in a large one without being similar to it, so that none of the stages that find
near-duplicates finds the pair. One machine holds an index of all sets, in memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from neardup import pipeline, schema
from neardup.config import Config
from neardup.engines.base import BatchStep, Engine, Source
from neardup.engines.local.engine import LocalEngine
from neardup.errors import ConfigError
from neardup.pipeline import Outcome
from neardup.report import Watch
from neardup.searches.containers import Containment, gather
from neardup.theory.plan import Plan


def answer(documents: Source, plan: Plan, config: Config, engine: Engine, watch: Watch) -> Outcome:
    """Answer what the settings ask: which documents lie in which, or which are near-duplicates."""
    ask = find_containing if config.measure == "containment" else pipeline.run
    return ask(documents, plan, config, engine, watch)


def check_selects(config: Config) -> None:
    """Raise where nothing says which document of a pair stays."""
    if config.measure == "containment":
        raise ConfigError(
            "the measure 'containment' lists pairs, it does not say which document stays",
            hint="use neardup.find_pairs, or `neardup pairs`, and choose from containment_a and containment_b",
        )


def find_containing(documents: Source, plan: Plan, config: Config, engine: Engine, watch: Watch) -> Outcome:
    """List every pair of documents of which at least a share `plan.threshold` of the one lies in the other."""
    if not isinstance(engine, LocalEngine):
        raise ConfigError("containment is found in the memory of one machine", hint="use engine='local'")
    with watch.stage("sketch", documents.total, documents.unit) as advance:
        sketches = pipeline.sketch_documents(documents, plan, config, engine, advance)

    def make_step() -> BatchStep:
        sets = gather(sketches.batches(["row", "num_shingles", "group", "shingles"]), engine.room())
        return Containment(*sets, num_ahead=documents.num_ahead, threshold=plan.threshold).contain

    def pairs() -> Iterator[pa.RecordBatch]:
        for batch in found.batches(["pairs"]):
            yield pa.RecordBatch.from_struct_array(batch.column("pairs").flatten()).cast(schema.CONTAINED)

    with watch.stage("contain"):
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
