"""Stage 5 of 6: the documents of whole components are compared; what is said from here on is true."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.kernels import verify as kernel
from neardup.measures import jaccard
from neardup.planner import Plan


def verify(batch: pa.RecordBatch, plan: Plan, config: Config) -> pa.RecordBatch:
    """Match every document with the kept documents before it; list its partners where pairs are wanted.

    `batch` has the columns component, row, text; the documents of a component stand together, best priority first.
    """
    sets = jaccard.text_sets(batch.column("text"), config)
    signatures = jaccard.set_signatures(sets, config)
    rows = batch.column("row").to_numpy()
    components = batch.column("component").to_numpy()
    starts = np.flatnonzero(np.r_[True, components[1:] != components[:-1]]) if rows.size else np.empty(0, np.int64)
    matches, parents, compared = (np.empty(rows.size, np.int64) for _ in range(3))
    values = np.empty(rows.size, np.float64)
    left, right, pair_values = kernel.match_components(
        sets.shingles,
        sets.ends,
        signatures,
        jaccard.signature_keys(signatures, plan.bands, plan.rows),
        rows,
        np.r_[starts, rows.size].astype(np.int64),
        config.threshold,
        plan.min_agreement,
        _mode(config),
        matches,
        values,
        parents,
        compared,
    )
    if config.cluster == "components":
        matches = np.where(parents == np.arange(rows.size), kernel.NOBODY, parents)
        kernel.similarities(sets.shingles, sets.ends, np.arange(rows.size), parents, values)
    is_kept = matches == kernel.NOBODY
    ends = pa.array(np.searchsorted(left, np.arange(rows.size + 1)))
    return pa.record_batch(
        [
            batch.column("row"),
            pa.array(rows[matches], mask=is_kept),
            pa.array(values, mask=is_kept),
            pa.array(compared),
            pa.LargeListArray.from_arrays(ends, pa.array(rows[right])),
            pa.LargeListArray.from_arrays(ends, pa.array(pair_values)),
        ],
        schema=schema.VERIFIED,
    )


def _mode(config: Config) -> int:
    if config.pairs:
        return kernel.PAIRS
    return kernel.CLOSURE if config.cluster == "components" else kernel.LEADERS
