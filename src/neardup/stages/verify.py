"""Stage 5 of 6: compare the documents of whole components exactly; every pair is true from here on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.events import Tally
from neardup.kernels import verify as kernel
from neardup.kernels.similarity import NOBODY, similarities
from neardup.measures import jaccard
from neardup.measures.base import Signatures, band_keys
from neardup.measures.registry import measure_of
from neardup.stages.match import initial_state, match_components
from neardup.theory.plan import Plan

Bools = npt.NDArray[np.bool_]
U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
PutPairs = Callable[[pa.RecordBatch], None]


def verify(
    batch: pa.RecordBatch,
    plan: Plan,
    config: Config,
    tally: Tally | None = None,
    put: PutPairs | None = None,
) -> pa.RecordBatch:
    """Match every document with the kept documents before it; find its partners if pairs are wanted.

    `batch` has the columns component, row, text (or the set kept in memory), priority and group;
    the documents of a component are contiguous, best priority first, ties by row. `tally` counts
    the documents that are done. `put` takes the pairs as they are found, as schema.PARTNERED;
    without it they are lists of the result.
    """
    collected: list[pa.RecordBatch] = []
    documents = prepare(batch, plan, config)
    docs = np.arange(batch.num_rows)
    components = batch.column("component").to_numpy()
    is_first = np.ones(docs.size, np.bool_)
    is_first[1:] = components[1:] != components[:-1]
    component_ends = np.r_[np.flatnonzero(is_first), docs.size].astype(np.int64)
    is_reference = are_references(batch)
    initial = initial_state(roles_within(is_reference, config))
    with (tally or Tally()).counter(batch.num_rows) as walked:
        outcome, num_pairs = compare(
            documents, component_ends, plan, config, initial, walked, put or collected.append
        )
    matches = outcome.matches
    values = outcome.values
    if config.cluster == "components":
        is_first_of_closure = outcome.parents == docs
        matches = np.where(is_first_of_closure | is_reference, NOBODY, outcome.parents)
        similarities(documents.items, docs, outcome.parents, values)
    is_kept = matches == NOBODY
    return verified(
        rows=documents.rows,
        kept_rows=documents.rows[matches],
        values=values,
        is_kept=is_kept,
        compared=outcome.compared,
        num_found=num_pairs if config.pairs else ~is_kept,
        pairs=collected,
    )


def prepare(batch: pa.RecordBatch, plan: Plan, config: Config) -> kernel.ComparedDocuments:
    """Compute items, signatures and keys of the documents of a batch."""
    measure = measure_of(config)
    items = measure.items(batch.column("text"), config)
    groups = batch.column("group").to_numpy()
    if plan.is_exact:
        # All documents of a component and group are compared, without a signature filter.
        signatures: Signatures = np.empty((batch.num_rows, 0), np.uint32)
        keys = jaccard.component_keys(batch.column("component").to_numpy(), groups)
    else:
        signatures, slots = measure.sign(items, plan, config)
        keys = band_keys(slots, plan, groups)
    # A copy, because Numba compiles the kernel a second time for read-only arrays.
    rows = batch.column("row").to_numpy().copy()
    return kernel.ComparedDocuments(items, signatures, keys, rows)


def are_references(batch: pa.RecordBatch) -> Bools:
    """Return which documents of a batch are reference documents, ahead of all input."""
    is_reference: Bools = batch.column("priority").to_numpy() == schema.REFERENCE_PRIORITY
    return is_reference


def roles_within(is_reference: Bools, config: Config) -> U8:
    """Return roles: input documents are compared with earlier ones; reference documents only serve as targets.

    With `only_against` input documents are compared with reference documents alone.
    """
    if config.only_against:
        own = kernel.COMPARED
    else:
        own = kernel.COMPARED | kernel.ENTERED
    return np.where(is_reference, kernel.ENTERED, own).astype(np.uint8)


def compare(
    documents: kernel.ComparedDocuments,
    component_ends: I64,
    plan: Plan,
    config: Config,
    initial: kernel.InitialState,
    walked: I64,
    put: PutPairs,
) -> tuple[kernel.MatchOutcome, I64]:
    """Compare the documents of whole components; also return how many pairs each of them has with earlier ones.

    `put` takes the pairs as schema.PARTNERED.
    """
    rule = kernel.Rule(float(config.threshold), int(plan.min_agreement), _mode(config))
    rows = documents.rows
    num_pairs = np.zeros(rows.size, np.int64)

    def put_rows(left: I64, right: I64, similarities: F64) -> None:
        first = int(left.min())
        counts = np.bincount(left - first)
        num_pairs[first : first + counts.size] += counts
        put(schema.batch_of(schema.PARTNERED, rows[left], rows[right], similarities))

    outcome = match_components(documents, component_ends, rule, initial, walked, put_rows)
    return outcome, num_pairs


def verified(
    rows: I64,
    kept_rows: I64,
    values: F64,
    is_kept: Bools,
    compared: I64,
    num_found: I64 | Bools,
    pairs: list[pa.RecordBatch],
) -> pa.RecordBatch:
    """Return the results as schema.VERIFIED; `pairs`, as schema.PARTNERED, become lists."""
    found = schema.one_batch(pairs, schema.PARTNERED)
    by_row = np.argsort(rows)
    owners = found.column("row").to_numpy()
    docs = by_row[np.searchsorted(rows, owners, sorter=by_row)]
    order = np.argsort(docs, kind="stable")
    ends = pa.array(np.searchsorted(docs[order], np.arange(rows.size + 1)))
    in_order = found.take(pa.array(order))
    partners = in_order.column("partner")
    similarities = in_order.column("similarity")
    return pa.record_batch(
        [
            pa.array(rows),
            pa.array(kept_rows, mask=is_kept),
            pa.array(values, mask=is_kept),
            pa.array(compared),
            pa.array(num_found.astype(np.int64)),
            pa.LargeListArray.from_arrays(ends, partners),
            pa.LargeListArray.from_arrays(ends, similarities),
        ],
        schema=schema.VERIFIED,
    )


def _mode(config: Config) -> int:
    if config.pairs:
        return kernel.PAIRS
    return kernel.CLOSURE if config.cluster == "components" else kernel.LEADERS
