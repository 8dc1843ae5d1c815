"""Stage 6 of 6: matches and classes become kept and removed documents, and the list of pairs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.kernels import components as components_kernel
from neardup.kernels import select as kernel
from neardup.kernels import verify as verify_kernel
from neardup.measures import jaccard

I64 = npt.NDArray[np.int64]


def select(classes: pa.Table, verified: pa.Table) -> pa.Table:
    """Say for every row which row is kept for it, and how similar the two are.

    A copy goes where its representative goes: to the kept document of the representative, or to the representative.
    """
    rows = classes.column("row").to_numpy()
    kept_rows, similarities = rows.copy(), np.ones(rows.size)
    removed = verified.filter(verified.column("kept_row").is_valid())
    at = np.searchsorted(rows, removed.column("row").to_numpy())
    kept_rows[at] = removed.column("kept_row").to_numpy()
    similarities[at] = removed.column("similarity").to_numpy()
    representatives = np.searchsorted(rows, classes.column("representative").to_numpy())
    return pa.table(
        [classes.column("row"), pa.array(kept_rows[representatives]), pa.array(similarities[representatives])],
        schema=schema.SELECTION,
    )


def count_copies(classes: pa.Table) -> int:
    """Return how many pairs of exact copies there are."""
    sizes = _class_sizes(classes)
    return int((sizes * (sizes - 1) // 2).sum())


def count_pairs(classes: pa.Table, verified: pa.Table) -> int:
    """Return how many pairs `list_pairs` would list, without listing them."""
    sizes = _class_sizes(classes)
    left, right, _ = _verified_pairs(classes, verified)
    return count_copies(classes) + int((sizes[left] * sizes[right]).sum())


def list_pairs(classes: pa.Table, verified: pa.Table) -> pa.Table:
    """List every found pair, those between the members of classes included, in input order."""
    rows = classes.column("row").to_numpy()
    members = np.argsort(np.searchsorted(rows, classes.column("representative").to_numpy()), kind="stable")
    sizes = _class_sizes(classes)
    starts = np.cumsum(sizes) - sizes
    left, right, values = _verified_pairs(classes, verified)
    pairs_a, pairs_b = _cross(members, starts, sizes, left, right)
    within = np.flatnonzero(sizes > 1)
    twins_a, twins_b = _cross(members, starts, sizes, within, within)
    is_ordered = twins_a < twins_b
    row_a = np.concatenate([pairs_a, twins_a[is_ordered]])
    row_b = np.concatenate([pairs_b, twins_b[is_ordered]])
    similarity = np.concatenate([np.repeat(values, sizes[left] * sizes[right]), np.ones(int(is_ordered.sum()))])
    row_a, row_b = rows[np.minimum(row_a, row_b)], rows[np.maximum(row_a, row_b)]
    order = np.lexsort((row_b, row_a))
    return pa.table([row_a[order], row_b[order], similarity[order]], schema=schema.ROW_PAIRS)


def select_again(documents: pa.Table, pairs: pa.Table, config: Config) -> pa.Table:
    """Select over listed pairs, as a run at a higher threshold would over what it finds."""
    rows, priority = documents.column("row").to_numpy(), documents.column("priority").to_numpy()
    if config.cluster == "leader":
        return lead_pairs(rows, priority, pairs)
    kept_rows = close_pairs(rows, priority, pairs)
    at, kept_at = np.arange(rows.size), np.searchsorted(rows, kept_rows)
    values = np.ones(rows.size)
    is_removed = at != kept_at
    values[is_removed] = _similarities(documents, at[is_removed], kept_at[is_removed], config)
    return pa.table([rows, kept_rows, values], schema=schema.SELECTION)


def _similarities(documents: pa.Table, left: I64, right: I64, config: Config) -> npt.NDArray[np.float64]:
    """Exact similarity of documents of one cluster, given by position; two without shingles were collapsed: 1."""
    needed, ends = np.unique(np.r_[left, right], return_inverse=True)
    sets = jaccard.text_sets(schema.one_array(documents.column("text").take(pa.array(needed))), config)
    left, right = ends[: left.size], ends[left.size :]
    values = np.empty(left.size, np.float64)
    verify_kernel.similarities(sets.shingles, sets.ends, left, right, values)
    is_empty = np.diff(sets.ends) == 0
    values[is_empty[left] & is_empty[right]] = 1.0
    return values


def lead_pairs(rows: I64, priority: I64, pairs: pa.Table) -> pa.Table:
    """Select leaders over listed pairs."""
    left, right = (np.searchsorted(rows, pairs.column(name).to_numpy()) for name in ("row_a", "row_b"))
    ends, partners = np.r_[left, right], np.r_[right, left]
    order = np.lexsort((partners, ends))
    starts = np.searchsorted(ends[order], np.arange(rows.size + 1))
    similarities = np.tile(pairs.column("similarity").to_numpy(), 2)[order]
    matches, values = np.empty(rows.size, np.int64), np.empty(rows.size, np.float64)
    kernel.lead(np.argsort(priority), starts, partners[order], similarities, matches, values)
    kept_rows = np.where(matches == kernel.NOBODY, rows, rows[matches])
    return pa.table([rows, kept_rows, values], schema=schema.SELECTION)


def close_pairs(rows: I64, priority: I64, pairs: pa.Table) -> I64:
    """Return for every row the row of best priority in its transitive closure."""
    order = np.argsort(priority)
    ranks = np.argsort(order)
    left, right = (ranks[np.searchsorted(rows, pairs.column(name).to_numpy())] for name in ("row_a", "row_b"))
    parents = np.arange(rows.size)
    components_kernel.union_links(left, right, parents)
    kept: I64 = rows[order][parents[ranks]]
    return kept


def _class_sizes(classes: pa.Table) -> I64:
    """Members of the class of each representative; 0 for the other members."""
    rows = classes.column("row").to_numpy()
    return np.bincount(np.searchsorted(rows, classes.column("representative").to_numpy()), minlength=rows.size)


def _verified_pairs(classes: pa.Table, verified: pa.Table) -> tuple[I64, I64, npt.NDArray[np.float64]]:
    """The verified pairs of representatives, as positions in `classes`."""
    rows = classes.column("row").to_numpy()
    partners = schema.one_array(verified.column("partners"))
    left = np.repeat(verified.column("row").to_numpy(), partners.value_lengths().to_numpy())
    right = partners.flatten().to_numpy()
    values = schema.one_array(verified.column("partner_similarities")).flatten().to_numpy()
    return np.searchsorted(rows, left), np.searchsorted(rows, right), values


def _cross(members: I64, starts: I64, sizes: I64, left: I64, right: I64) -> tuple[I64, I64]:
    """All members of the left class with all of the right one, for every pair of classes."""
    counts = sizes[left] * sizes[right]
    number = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    widths = np.repeat(sizes[right], counts)
    from_left = np.repeat(starts[left], counts) + number // np.maximum(widths, 1)
    from_right = np.repeat(starts[right], counts) + number % np.maximum(widths, 1)
    return members[from_left], members[from_right]
