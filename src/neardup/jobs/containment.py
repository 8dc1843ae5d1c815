"""Containment: pipelines that list pairs, or remove documents that contain a reference document.

    sketch -> containment

A small document can be contained in a large one without being similar to it, so banding cannot find
the pair. Instead, one machine keeps an inverted index of all sets in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import pipeline, schema
from neardup.config import Config
from neardup.engines.base import I64, BatchStep, Bools, Documents, Source, no_progress
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.tables import BatchTable, batches_of, filtered
from neardup.errors import ConfigError
from neardup.events import Watch
from neardup.measures import jaccard
from neardup.pipeline import Pipeline, PipelineOutcome
from neardup.theory.plan import Plan


def pipeline_for(config: Config) -> Pipeline:
    """Return the pipeline that finds pairs: by containment or by similarity."""
    if not config.asks_containment:
        return pipeline.run
    if config.engine == "local":
        return find_containment
    from neardup.jobs import containment_on_spark as on_spark

    return on_spark.find_containment


def removal_for(config: Config) -> tuple[Config, Pipeline]:
    """Return the settings and the pipeline of a run that removes documents.

    By containment, only documents that contain a document of `against` are removed; raises without
    `against`, because nothing says which document of a pair to keep.
    """
    if not config.asks_containment:
        return config, pipeline.run
    if not config.against:
        raise ConfigError(
            "the measure 'containment' lists pairs but cannot choose which document to keep",
            hint="use neardup.find_pairs, or `neardup pairs`, and choose by containment_a and containment_b; or pass "
            "against='benchmark.jsonl' to remove the documents that contain one of these",
        )
    chosen = Config.of(config, only_against=True)
    if config.engine == "local":
        return chosen, remove_containers
    from neardup.jobs import containment_on_spark as on_spark

    return chosen, on_spark.remove_containers


def find_containment(
    documents: Source, plan: Plan, config: Config, engine: LocalEngine, watch: Watch
) -> PipelineOutcome[pa.Table]:
    """List every pair in which one document contains at least `plan.threshold` of the other's shingles."""
    from neardup.search.containment import ContainmentIndex, collect_sets

    with watch.stage("sketch", documents.total, documents.unit) as advance:
        sketches = pipeline.sketch_documents(documents, plan, config, engine, advance)
        pipeline.warn_of_short(sketches, documents, config, engine, watch)
        only_ignored = pipeline.warn_of_ignored(sketches, documents, config, engine, watch)

    def make_step() -> BatchStep:
        columns = ["row", "num_shingles", "group", "shingles"]
        rows, groups, sets = collect_sets(batches_of(sketches, columns), engine.room())
        index = ContainmentIndex(
            rows,
            groups,
            sets,
            num_references=documents.num_references,
            threshold=plan.threshold,
        )
        return partial(index.find_containers, only_against=config.only_against)

    with watch.stage("containment"):
        where = engine.choose_rows(sketches, "num_shingles", documents.num_rows)
        found = engine.map_table(
            "containers", sketches, ["row"], where, make_step, schema.CONTAINMENT_BATCHES
        )
        row_pairs = sort_pairs(found, engine, watch)
    return PipelineOutcome(
        plan=plan,
        selection=schema.SELECTION.empty_table(),
        row_pairs=row_pairs,
        exact_duplicates=0,
        pairs_verified=total_of(found, "found"),
        comparisons=total_of(found, "compared"),
        only_ignored=only_ignored,
        selects=False,
        pair_columns=schema.CONTAINMENT_PAIRS,
    )


def remove_containers(
    documents: Documents, plan: Plan, config: Config, engine: LocalEngine, watch: Watch
) -> PipelineOutcome[pa.Table]:
    """Remove every document that contains at least `plan.threshold` of the shingles of a reference document.

    Only the reference documents are held in memory; the documents of the input are streamed.
    """
    from neardup.search.containment import ReferenceIndex, choose_best, collect_sets

    with watch.stage("sketch", documents.total, documents.unit) as advance:
        sketches = pipeline.sketch_documents(documents, plan, config, engine, advance)
        only_ignored = pipeline.warn_of_ignored(sketches, documents, config, engine, watch)
    is_input = engine.choose_rows(sketches, "num_shingles", documents.num_rows)
    is_reference = is_input.copy()
    is_input[: documents.num_references] = is_reference[documents.num_references :] = False
    is_long = np.zeros(documents.num_rows, np.bool_)
    for batch in batches_of(sketches, ["row", "num_shingles"]):
        is_long[batch.column("row").to_numpy()] = batch.column("num_shingles").to_numpy() > 1

    def references() -> Iterator[pa.RecordBatch]:
        for part in range(documents.num_reference_parts):
            yield from documents.read(part, no_progress)

    warn_of_short(references(), is_long.__getitem__, config, watch)

    def make_step() -> BatchStep:
        columns = ["row", "num_shingles", "group", "shingles"]
        rows, _, sets = collect_sets(filtered(sketches, columns, is_reference), engine.room())
        return ReferenceIndex(rows, sets, threshold=plan.threshold).find_contained

    with watch.stage("containment"):
        found = engine.map_table(
            "contained",
            sketches,
            ["row", "shingles"],
            is_input,
            make_step,
            schema.CONTAINMENT_BATCHES,
        )
        chosen = [choose_best(pairs) for pairs in _pairs_of(found)]
        selection = pa.Table.from_batches(chosen, schema=schema.CONTAINMENT_SELECTION).sort_by(
            "row"
        )
        row_pairs = sort_pairs(found, engine, watch) if config.pairs else None
    return PipelineOutcome(
        plan=plan,
        selection=selection,
        row_pairs=row_pairs,
        exact_duplicates=count_equal(selection),
        pairs_verified=total_of(found, "found"),
        comparisons=total_of(found, "compared"),
        only_ignored=only_ignored,
        pair_columns=schema.CONTAINMENT_PAIRS,
        sketches=sketches,
    )


def total_of(found: BatchTable, name: str) -> int:
    """Add up a column of a table of schema.CONTAINMENT_BATCHES."""
    return sum(batch.column(name)[0].as_py() for batch in found.batches([name]))


def _pairs_of(found: BatchTable) -> Iterator[pa.RecordBatch]:
    """Iterate over the pairs in a table of schema.CONTAINMENT_BATCHES."""
    return map(pairs_in, found.batches(["pairs"]))


def pairs_in(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the pairs in a batch of schema.CONTAINMENT_BATCHES."""
    return pa.RecordBatch.from_struct_array(batch.column("pairs").flatten()).cast(
        schema.CONTAINMENT_PAIRS
    )


def sort_pairs(found: BatchTable, engine: LocalEngine, watch: Watch) -> Iterator[pa.RecordBatch]:
    """Return the pairs in a table of schema.CONTAINMENT_BATCHES, in input order; warn if there are very many."""
    pipeline.warn_of_many(sum(pairs.num_rows for pairs in _pairs_of(found)), watch)
    return engine.sort(
        _pairs_of(found), schema.CONTAINMENT_PAIRS, schema.row_order(schema.CONTAINMENT_PAIRS)
    )


def count_equal(selection: pa.Table | pa.RecordBatch) -> int:
    """Count the documents that have exactly the shingles of a reference document."""
    return (
        pc.sum(
            pc.equal(selection.column("containment_removed"), selection.column("containment_kept"))
        ).as_py()
        or 0
    )


def warn_of_short(
    references: Iterable[pa.RecordBatch],
    is_long: Callable[[I64], Bools],
    config: Config,
    watch: Watch,
) -> None:
    """Warn about reference documents that are too short to be found inside others: they are a single short shingle.

    references: the reference documents; is_long: returns which rows have more than one shingle.
    """
    if config.items_column is not None or config.ignore_common is not None:
        return
    by_unit = Config.of(config, size=1, multiset=True)
    num_short = num_documents = 0
    for batch in references:
        num_documents += batch.num_rows
        texts = batch.column("text").filter(pa.array(~is_long(batch.column("row").to_numpy())))
        num_short += int((np.diff(jaccard.text_sets(texts, by_unit).ends) < config.size).sum())
    if num_short:
        units = {"word": "words", "char": "characters", "code": "tokens"}[config.unit]
        watch.warn(
            f"{num_short:,} of {num_documents:,} documents of `against` have fewer than {config.size} {units}, the "
            "size of a shingle: a document that equals one of them is removed, but one that quotes it is not; a "
            "smaller `size` finds shorter quotes"
        )
