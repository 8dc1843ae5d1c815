"""Containment on Spark: remove the documents that contain a reference document.

    sketch -> collect the reference documents -> find, on all workers -> select

The index of the reference documents is sent to every worker, so it must be small; the input is streamed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import pipeline, schema
from neardup.config import Config
from neardup.engines.base import I64, BatchStep
from neardup.errors import DataError
from neardup.events import Watch
from neardup.pipeline import Outcome
from neardup.questions.containment import count_equal, pairs_in, warn_of_short
from neardup.report import say_bytes
from neardup.searches.contained import Contained, choose_best
from neardup.searches.containers import collect_sets
from neardup.searches.set_index import BYTES_A_SHINGLE
from neardup.theory.plan import Plan

if TYPE_CHECKING:
    from neardup.engines.spark import FileSource, SparkEngine

# The largest index to send to workers: each Python worker holds a copy.
MOST_BYTES: Final = 1 << 30
_COLUMNS: Final = ("row", "num_shingles", "group", "shingles")


def remove_containing(documents: FileSource, plan: Plan, config: Config, engine: SparkEngine, watch: Watch) -> Outcome:
    """Remove every document that contains at least `plan.threshold` of the shingles of a reference document."""
    with watch.stage("sketch", documents.total, documents.unit) as advance:
        sketches = pipeline.sketch_documents(documents, plan, config, engine, advance)
        pipeline.warn_of_ignored(sketches, documents, config, engine, watch)
    num_ahead, num_bytes = documents.num_ahead, documents.counted["ahead_shingles"] * BYTES_A_SHINGLE
    if num_bytes > MOST_BYTES:
        raise DataError(
            f"the index of the documents of --against takes {say_bytes(num_bytes)}, more than the "
            f"{say_bytes(MOST_BYTES)} that are sent to every worker of Spark",
            hint="split --against over several runs, or use --engine local",
        )
    ahead = engine.collect_below(sketches, _COLUMNS, documents.num_ahead)
    long_rows = ahead.filter(pc.greater(ahead.column("num_shingles"), 1)).column("row").to_numpy()
    warn_of_short(documents.read_ahead(), lambda rows: np.isin(rows, long_rows), config, watch)

    def make_step() -> BatchStep:
        rows, _, sets = collect_sets(ahead.to_batches(), 0)
        index = Contained(rows, sets, threshold=plan.threshold)
        return lambda batch: index.find(_own(batch, num_ahead))

    with watch.stage("containment"):
        where = engine.choose_rows(sketches, "num_shingles", documents.num_rows)
        found = engine.map_table("contained", sketches, ["row", "shingles"], where, make_step, schema.CONTAINERS)
        best = engine.map_tables([found], lambda batch: choose_best(pairs_in(batch)), schema.CONTAINING)
        selection = engine.once("selection", lambda: best)
        row_pairs = engine.map_tables([found], pairs_in, schema.CONTAINED) if config.pairs else None
    equal = engine.map_tables([selection], _count_equal, schema.COUNTS)
    return Outcome(
        plan=plan,
        selection=selection,
        row_pairs=row_pairs,
        exact_duplicates=engine.total(equal, "count"),
        pairs_verified=engine.total(found, "compared"),
        pair_columns=schema.CONTAINED,
    )


def _own(batch: pa.RecordBatch, num_ahead: int) -> pa.RecordBatch:
    """Return the documents of the input alone."""
    rows: I64 = batch.column("row").to_numpy()
    return batch.filter(pa.array(rows >= num_ahead))


def _count_equal(selection: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([[count_equal(selection)]], schema=schema.COUNTS)
