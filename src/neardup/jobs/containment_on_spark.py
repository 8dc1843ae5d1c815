"""Containment on Spark: list pairs, or remove the documents that contain a reference document.

    sketch -> collect one side -> find, on all workers -> select

The index of one side is sent to every worker, so it must be small: that of the reference documents,
or, where documents of the input are compared with each other, that of all. The other side is
streamed.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import pipeline, schema
from neardup.config import Config
from neardup.engines.base import I64, BatchStep
from neardup.errors import DataError
from neardup.events import Watch
from neardup.jobs.containment import count_equal, pairs_in, warn_of_short
from neardup.kernels import neighbours as kernel
from neardup.pipeline import PipelineOutcome
from neardup.report import format_bytes
from neardup.search.containment import ContainmentIndex, ReferenceIndex, choose_best, collect_sets
from neardup.search.inverted_index import BYTES_A_SHINGLE, Compared
from neardup.search.neighbours import SearchOptions, SetFinder
from neardup.theory.plan import Plan

if TYPE_CHECKING:
    from neardup.engines.spark import FileSource, SparkEngine
    from neardup.engines.spark.documents import SparkSource
    from neardup.engines.spark.storage import SparkTable

# The largest index to send to workers: each Python worker holds a copy.
MAX_BYTES: Final = 1 << 30
_COLUMNS: Final = ("row", "num_shingles", "group", "shingles")
# More than any row.
_NO_ROW: Final = (1 << 63) - 1


def find_containment(
    documents: SparkSource, plan: Plan, config: Config, engine: SparkEngine, watch: Watch
) -> PipelineOutcome[SparkTable]:
    """List every pair in which one document contains at least `plan.threshold` of the other's shingles."""
    with watch.stage("sketch", documents.total, documents.unit) as advance:
        sketches = pipeline.sketch_documents(documents, plan, config, engine, advance)
        pipeline.warn_of_short(sketches, documents, config, engine, watch)
        pipeline.warn_of_ignored(sketches, documents, config, engine, watch)
    where = engine.choose_rows(sketches, "num_shingles", documents.num_rows)
    only_against = config.only_against
    num_references = documents.num_references
    if only_against:
        _check_size(documents.counted["reference_shingles"], "the documents of `against`")
    else:
        _check_size(engine.total(sketches, "num_shingles", where), "all documents")

    def make_step() -> BatchStep:
        collected = engine.collect_below(
            sketches, _COLUMNS, num_references if only_against else _NO_ROW
        )
        rows, groups, sets = collect_sets(collected.to_batches(), 0)
        if only_against:
            return partial(
                _find_either,
                Reference(rows, Compared(sets, groups)),
                num_references,
                plan.threshold,
            )
        return ContainmentIndex(
            rows, groups, sets, num_references=num_references, threshold=plan.threshold
        ).find_containers

    with watch.stage("containment"):
        found = engine.map_table(
            "containers", sketches, list(_COLUMNS), where, make_step, schema.CONTAINMENT_BATCHES
        )
        row_pairs = engine.checkpoint(
            "row_pairs", lambda: engine.map_tables([found], pairs_in, schema.CONTAINMENT_PAIRS)
        )
        pipeline.warn_of_many(engine.total(row_pairs), watch)
    return PipelineOutcome(
        plan=plan,
        selection=engine.empty(schema.SELECTION),
        row_pairs=row_pairs,
        exact_duplicates=0,
        pairs_verified=engine.total(found, "found"),
        comparisons=engine.total(found, "compared"),
        selects=False,
        pair_columns=schema.CONTAINMENT_PAIRS,
    )


class Reference(NamedTuple):
    """The reference documents: their rows, ascending, and sets."""

    rows: I64
    compared: Compared


def _find_either(
    reference: Reference, num_references: int, threshold: float, batch: pa.RecordBatch
) -> pa.RecordBatch:
    """Find the pairs of a reference document and a document of the batch of which one contains the other."""
    own = _own(batch, num_references)
    compared = 0
    listed = schema.CONTAINMENT_PAIRS.empty_table().to_struct_array().combine_chunks()
    if own.num_rows and reference.rows.size:
        rows, groups, sets = collect_sets([own], 0)
        # More than the number just below the threshold is at least the threshold.
        options = SearchOptions(
            k=1, above=math.nextafter(threshold, 0.0), share=int(kernel.OF_SMALLER)
        )
        finder = SetFinder(reference.compared, Compared(sets, groups), options)
        at, docs_at, values = finder.find_all(0, rows.size)
        of_own, of_reference = finder.shares(at, docs_at)
        columns = [reference.rows[docs_at], rows[at], values, of_reference, of_own]
        compared = at.size
        listed = pa.record_batch(
            [pa.array(column) for column in columns], schema=schema.CONTAINMENT_PAIRS
        ).to_struct_array()
    pairs = pa.LargeListArray.from_arrays([0, len(listed)], listed)
    return pa.record_batch(
        [pa.array([compared]), pa.array([len(listed)]), pairs], schema=schema.CONTAINMENT_BATCHES
    )


def _check_size(num_shingles: int, what: str) -> None:
    """Raise if the index of one side is too large to send it to every worker."""
    num_bytes = num_shingles * BYTES_A_SHINGLE
    if num_bytes > MAX_BYTES:
        raise DataError(
            f"the index of {what}, which is sent to every Spark worker, takes {format_bytes(num_bytes)}, more than the "
            f"limit of {format_bytes(MAX_BYTES)}",
            hint="split `against` over several runs, compare with only_against=True, or use engine='local'",
        )


def remove_containers(
    documents: FileSource, plan: Plan, config: Config, engine: SparkEngine, watch: Watch
) -> PipelineOutcome[SparkTable]:
    """Remove every document that contains at least `plan.threshold` of the shingles of a reference document."""
    with watch.stage("sketch", documents.total, documents.unit) as advance:
        sketches = pipeline.sketch_documents(documents, plan, config, engine, advance)
        pipeline.warn_of_ignored(sketches, documents, config, engine, watch)
    num_references = documents.num_references
    _check_size(documents.counted["reference_shingles"], "the documents of `against`")
    references = engine.collect_below(sketches, _COLUMNS, documents.num_references)
    long_rows = (
        references.filter(pc.greater(references.column("num_shingles"), 1)).column("row").to_numpy()
    )
    warn_of_short(documents.read_ahead(), lambda rows: np.isin(rows, long_rows), config, watch)

    def make_step() -> BatchStep:
        rows, _, sets = collect_sets(references.to_batches(), 0)
        index = ReferenceIndex(rows, sets, threshold=plan.threshold)
        return lambda batch: index.find_contained(_own(batch, num_references))

    with watch.stage("containment"):
        where = engine.choose_rows(sketches, "num_shingles", documents.num_rows)
        found = engine.map_table(
            "contained", sketches, ["row", "shingles"], where, make_step, schema.CONTAINMENT_BATCHES
        )
        best = engine.map_tables(
            [found], lambda batch: choose_best(pairs_in(batch)), schema.CONTAINMENT_SELECTION
        )
        selection = engine.checkpoint("selection", lambda: best)
        if config.pairs:
            row_pairs = engine.map_tables([found], pairs_in, schema.CONTAINMENT_PAIRS)
        else:
            row_pairs = None
    equal = engine.map_tables([selection], _count_equal, schema.COUNTS)
    return PipelineOutcome(
        plan=plan,
        selection=selection,
        row_pairs=row_pairs,
        exact_duplicates=engine.total(equal, "count"),
        pairs_verified=engine.total(found, "found"),
        comparisons=engine.total(found, "compared"),
        pair_columns=schema.CONTAINMENT_PAIRS,
    )


def _own(batch: pa.RecordBatch, num_references: int) -> pa.RecordBatch:
    """Return the documents of the input alone."""
    rows: I64 = batch.column("row").to_numpy()
    return batch.filter(pa.array(rows >= num_references))


def _count_equal(selection: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([[count_equal(selection)]], schema=schema.COUNTS)
