"""Stage 6 of 6: turn matches and classes into kept and removed documents."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.kernels import select as kernel
from neardup.kernels import similarity
from neardup.kernels import union_find as components_kernel
from neardup.measures.base import are_empty
from neardup.measures.registry import measure_of

I64 = npt.NDArray[np.int64]


def select(
    found: pa.RecordBatch, num_references: int, *, only_against: bool = False
) -> pa.RecordBatch:
    """Return the kept row for every removed row, with their similarity.

    `found` holds verified documents, or copies with the result of their representatives. A copy
    follows its representative: it points to the kept document of the representative, or to the
    representative itself, even if a document that was kept later is more similar. Rows below
    `num_references` are never removed; with `only_against` other rows are removed for these alone,
    so copies of each other stay.
    """
    rows = found.column("row")
    if "representative" in found.schema.names:
        itself = found.column("representative")
    else:
        itself = rows
    kept_rows = pc.coalesce(found.column("kept_row"), itself)
    similarities = pc.coalesce(found.column("similarity"), 1.0)
    is_own = pc.greater_equal(rows, num_references)
    is_removed = pc.and_(pc.not_equal(rows, kept_rows), is_own)
    if only_against:
        is_removed = pc.and_(is_removed, pc.less(kept_rows, num_references))
    columns = [column.filter(is_removed) for column in (rows, kept_rows, similarities)]
    return pa.record_batch(columns, schema=schema.SELECTION)


def thin(members: pa.RecordBatch, per_cluster: int) -> pa.RecordBatch:
    """Return the members of clusters to remove: all but the first `per_cluster` - 1 in keep order, as schema.SELECTION.

    The kept document is not a member but counts towards `per_cluster`. `members` has whole
    clusters, with priorities.
    """
    rows = members.column("row").to_numpy()
    kept_rows = members.column("kept_row").to_numpy()
    priority = members.column("priority").to_numpy()
    order = np.lexsort((rows, priority, kept_rows))
    clusters = kept_rows[order]
    is_first = np.ones(rows.size, np.bool_)
    is_first[1:] = clusters[1:] != clusters[:-1]
    positions = np.arange(rows.size)
    starts = np.maximum.accumulate(np.where(is_first, positions, 0))
    is_removed = positions - starts >= per_cluster - 1
    removed = pa.array(np.sort(order[is_removed]))
    columns = [members.column(name).take(removed) for name in schema.SELECTION.names]
    return pa.record_batch(columns, schema=schema.SELECTION)


def thin_table(members: pa.Table, priority: I64, per_cluster: int) -> pa.Table:
    """Return the rows of a selection that `thin` removes; `priority` is theirs."""
    if per_cluster == 1:
        return members
    whole = members.append_column("priority", pa.array(priority, pa.int64()))
    batch = schema.one_batch(whole.to_batches(), whole.schema)
    return pa.Table.from_batches([thin(batch, per_cluster)])


def of_references(batch: pa.RecordBatch, column: str, num_references: int) -> pa.RecordBatch:
    """Return the rows that name a reference document in a column."""
    return batch.filter(pc.less(batch.column(column), num_references))


def select_again(documents: pa.Table, pairs: pa.Table, config: Config) -> pa.Table:
    """Select among stored pairs, as a run at a higher threshold selects among the pairs it finds."""
    rows = documents.column("row").to_numpy()
    priority = documents.column("priority").to_numpy()
    if config.cluster == "leader":
        chosen = lead_pairs(rows, priority, pairs)
        return chosen.filter(pc.not_equal(chosen.column("row"), chosen.column("kept_row")))
    kept_rows = close_pairs(rows, priority, pairs)
    kept_at = np.searchsorted(rows, kept_rows)
    removed = np.flatnonzero(kept_at != np.arange(rows.size))
    values = _similarities(documents, removed, kept_at[removed], config)
    columns = [rows[removed], kept_rows[removed], values]
    return pa.table(columns, schema=schema.SELECTION)


def _similarities(
    documents: pa.Table, left: I64, right: I64, config: Config
) -> npt.NDArray[np.float64]:
    """Exact similarity of documents given by position; 1 for two without shingles, which were collapsed."""
    needed, numbers = np.unique(np.r_[left, right], return_inverse=True)
    texts = documents.column("text").take(pa.array(needed))
    items = measure_of(config).items(schema.one_array(texts), config)
    own_left = numbers[: left.size]
    own_right = numbers[left.size :]
    values = np.empty(left.size, np.float64)
    similarity.similarities(items, own_left, own_right, values)
    is_empty = are_empty(items)
    values[is_empty[own_left] & is_empty[own_right]] = 1.0
    return values


def lead_pairs(rows: I64, priority: I64, pairs: pa.Table) -> pa.Table:
    """Select leaders among stored pairs."""
    left = np.searchsorted(rows, pairs.column("row_a").to_numpy())
    right = np.searchsorted(rows, pairs.column("row_b").to_numpy())
    similarities = pairs.column("similarity").to_numpy()
    # Every pair from both sides, in the order of documents.
    ends = np.r_[left, right]
    partners = np.r_[right, left]
    order = np.lexsort((partners, ends))
    partners = partners[order]
    similarities = np.tile(similarities, 2)[order]
    starts = np.searchsorted(ends[order], np.arange(rows.size + 1))

    by_priority = np.argsort(priority, kind="stable")
    matches = np.empty(rows.size, np.int64)
    values = np.empty(rows.size, np.float64)
    kernel.lead(by_priority, starts, partners, similarities, matches, values)
    kept_rows = np.where(matches == similarity.NOBODY, rows, rows[matches])
    return pa.table([rows, kept_rows, values], schema=schema.SELECTION)


def close_pairs(rows: I64, priority: I64, pairs: pa.Table) -> I64:
    """Return for every row the row with the best priority in its transitive closure."""
    order = np.argsort(priority, kind="stable")
    ranks = np.argsort(order)
    left = ranks[np.searchsorted(rows, pairs.column("row_a").to_numpy())]
    right = ranks[np.searchsorted(rows, pairs.column("row_b").to_numpy())]
    parents = np.arange(rows.size)
    components_kernel.union_links(left, right, parents)
    components_kernel.find_roots(parents)
    kept: I64 = rows[order][parents[ranks]]
    return kept
