"""Stage 5 of 6: the documents of whole components are compared; what is said from here on is true."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.kernels import verify as kernel
from neardup.measures import jaccard
from neardup.measures.base import U64, Signatures, band_keys
from neardup.measures.registry import measure_of
from neardup.stages.match import match_components
from neardup.theory.plan import Plan

Bools = npt.NDArray[np.bool_]
U8 = npt.NDArray[np.uint8]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


class Documents(NamedTuple):
    """The documents of a batch as they are compared."""

    rows: I64
    is_ahead: Bools
    items: kernel.Items
    signatures: Signatures
    keys: U64


class Found(NamedTuple):
    """What a comparison says, as `match_components` of the kernel writes it; documents by their place."""

    matches: I64
    values: F64
    parents: I64
    compared: I64
    left: I64
    right: I64
    similarities: F64


def verify(batch: pa.RecordBatch, plan: Plan, config: Config) -> pa.RecordBatch:
    """Match every document with the kept documents before it; list its partners where pairs are wanted.

    `batch` has the columns component, row, text (or the set that was held), priority, group; the documents of a
    component stand together, best priority first, ties by row.
    """
    documents = prepare(batch, plan, config)
    places = np.arange(batch.num_rows)
    components = batch.column("component").to_numpy()
    starts = np.flatnonzero(np.r_[True, components[1:] != components[:-1]]) if places.size else np.empty(0, np.int64)
    component_ends = np.r_[starts, places.size].astype(np.int64)
    found = compare(documents, component_ends, plan, config, roles_within(documents.is_ahead))
    matches, values = found.matches, found.values
    if config.cluster == "components":
        matches = np.where((found.parents == places) | documents.is_ahead, kernel.NOBODY, found.parents)
        kernel.similarities(documents.items, places, found.parents, values)
    return verified(
        documents.rows,
        documents.rows[matches],
        values,
        matches == kernel.NOBODY,
        found.compared,
        (found.left, documents.rows[found.right], found.similarities),
    )


def prepare(batch: pa.RecordBatch, plan: Plan, config: Config) -> Documents:
    """Compute what the documents of a batch are compared by."""
    measure = measure_of(config)
    items = measure.items(batch.column("text"), config)
    groups = batch.column("group").to_numpy()
    if plan.is_exact:  # every two documents of a component and group are compared, and nothing rules a pair out
        signatures: Signatures = np.empty((batch.num_rows, 0), np.uint32)
        keys = jaccard.component_keys(batch.column("component").to_numpy(), groups)
    else:
        signatures, slots = measure.sign(items, plan, config)
        keys = band_keys(slots, plan, groups)
    return Documents(
        rows=batch.column("row").to_numpy(),
        is_ahead=batch.column("priority").to_numpy() == schema.AHEAD,
        items=items,
        signatures=signatures,
        keys=keys,
    )


def roles_within(is_ahead: Bools) -> U8:
    """Say that all documents are compared with those before them, but for those ahead, which are only met."""
    return np.where(is_ahead, kernel.ENTERED, kernel.COMPARED | kernel.ENTERED).astype(np.uint8)


def compare(
    documents: Documents,
    component_ends: I64,
    plan: Plan,
    config: Config,
    roles: U8,
    **given: I64 | F64,
) -> Found:
    """Compare the documents of whole components; `given` is what `match_components` of the kernel may be given."""
    num_docs = documents.rows.size
    matches, parents, compared = (np.empty(num_docs, np.int64) for _ in range(3))
    values = np.empty(num_docs, np.float64)
    left, right, similarities = match_components(
        documents.items,
        documents.signatures,
        documents.keys,
        documents.rows,
        component_ends,
        config.threshold,
        plan.min_agreement,
        _mode(config),
        matches,
        values,
        parents,
        compared,
        roles=roles,
        **given,
    )
    return Found(matches, values, parents, compared, left, right, similarities)


def verified(
    rows: I64, kept_rows: I64, values: F64, is_kept: Bools, compared: I64, pairs: tuple[I64, I64, F64]
) -> pa.RecordBatch:
    """Write what was found of documents as a table; `pairs`: place, ascending, row of the partner, similarity."""
    places, partners, similarities = pairs
    ends = pa.array(np.searchsorted(places, np.arange(rows.size + 1)))
    return pa.record_batch(
        [
            pa.array(rows),
            pa.array(kept_rows, mask=is_kept),
            pa.array(values, mask=is_kept),
            pa.array(compared),
            pa.LargeListArray.from_arrays(ends, pa.array(partners)),
            pa.LargeListArray.from_arrays(ends, pa.array(similarities)),
        ],
        schema=schema.VERIFIED,
    )


def _mode(config: Config) -> int:
    if config.pairs:
        return kernel.PAIRS
    return kernel.CLOSURE if config.cluster == "components" else kernel.LEADERS
