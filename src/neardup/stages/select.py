"""Stage 6 of 6: turn matches and classes into kept and removed documents, and into the list of pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

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
# The most pairs in one batch.
LISTED_AT_ONCE: Final = 1 << 17


def select(found: pa.RecordBatch, num_ahead: int, *, only_against: bool = False) -> pa.RecordBatch:
    """Return the kept row for every removed row, with their similarity.

    `found` holds verified documents, or copies with the result of their representatives. A copy follows its
    representative: it points to the kept document of the representative, or to the representative itself, even if a
    document that was kept later is more similar. Rows below `num_ahead` are never removed; with `only_against` other
    rows are removed for these alone, so copies of each other stay.
    """
    rows = found.column("row")
    itself = found.column("representative" if "representative" in found.schema.names else "row")
    kept_rows = pc.coalesce(found.column("kept_row"), itself)
    is_removed = pc.and_(pc.not_equal(rows, kept_rows), pc.greater_equal(rows, num_ahead))
    if only_against:
        is_removed = pc.and_(is_removed, pc.less(kept_rows, num_ahead))
    columns = [rows, kept_rows, pc.coalesce(found.column("similarity"), 1.0)]
    return pa.record_batch([column.filter(is_removed) for column in columns], schema=schema.SELECTION)


def thin(members: pa.RecordBatch, per_cluster: int) -> pa.RecordBatch:
    """Return the members of clusters to remove: all but the first `per_cluster` - 1 in keep order, as schema.SELECTION.

    The kept document is not a member but counts towards `per_cluster`. `members` has whole clusters, with priorities.
    """
    rows, kept_rows, priority = (members.column(name).to_numpy() for name in ("row", "kept_row", "priority"))
    order = np.lexsort((rows, priority, kept_rows))
    clusters = kept_rows[order]
    is_first = np.ones(rows.size, np.bool_)
    is_first[1:] = clusters[1:] != clusters[:-1]
    places = np.arange(rows.size)
    ranks = places - np.maximum.accumulate(np.where(is_first, places, 0))
    removed = pa.array(np.sort(order[ranks >= per_cluster - 1]))
    columns = [members.column(name).take(removed) for name in schema.SELECTION.names]
    return pa.record_batch(columns, schema=schema.SELECTION)


def thin_table(members: pa.Table, priority: I64, per_cluster: int) -> pa.Table:
    """Return the rows of a selection that `thin` removes; `priority` is theirs."""
    if per_cluster == 1:
        return members
    whole = members.append_column("priority", pa.array(priority, pa.int64()))
    return pa.Table.from_batches([thin(schema.one_batch(whole.to_batches(), whole.schema), per_cluster)])


def of_ahead(batch: pa.RecordBatch, column: str, num_ahead: int) -> pa.RecordBatch:
    """Return the rows that name a reference document in a column."""
    return batch.filter(pc.less(batch.column(column), num_ahead))


def count_pairs(classes: pa.Table, verified: pa.Table | None, *, num_ahead: int, only_against: bool = False) -> int:
    """Return how many pairs `list_pairs` would list; without `verified`, those of exact copies alone."""
    num_copies = _count_copies(classes, num_ahead, only_against=only_against)
    if verified is None:
        return num_copies
    left, right, _ = _verified_pairs(verified)
    rows, representatives = _listed(classes, left, right)
    sizes = np.bincount(np.searchsorted(rows, representatives), minlength=rows.size)
    num_near = (sizes[np.searchsorted(rows, left)] * sizes[np.searchsorted(rows, right)]).sum()
    return num_copies + int(num_near)


def _count_copies(classes: pa.Table, num_ahead: int, *, only_against: bool) -> int:
    """Count the pairs of exact copies, except those of two reference documents, or of two input documents."""
    copies, representatives = (classes.column(name).to_numpy() for name in ("row", "representative"))
    firsts, class_of = np.unique(representatives, return_inverse=True)
    sizes = np.bincount(class_of, minlength=firsts.size) + 1
    num_own = np.bincount(class_of[copies >= num_ahead], minlength=firsts.size) + (firsts >= num_ahead)
    num_twins = 0 if only_against else num_own * (num_own - 1) // 2
    return int((num_twins + num_own * (sizes - num_own)).sum())


def list_pairs(
    classes: pa.Table,
    verified: pa.Table,
    *,
    num_ahead: int,
    only_against: bool = False,
    listed_at_once: int = LISTED_AT_ONCE,
) -> Iterator[pa.RecordBatch]:
    """List every pair found, including those between members of classes, by row_a, then row_b.

    `separate` has made sure that no verified pair consists of two reference documents; no other pair does. With
    `only_against` no pair has two input rows either. A batch has at most `listed_at_once` rows.
    """
    left, right, values = _verified_pairs(verified)
    rows, representatives = _listed(classes, left, right)
    # Each class has two parts: an even key for its reference documents, an odd one for those of the input.
    keys = 2 * np.searchsorted(rows, representatives) + (rows >= num_ahead)
    parts, part_of = np.unique(keys, return_inverse=True)
    sizes = np.bincount(part_of, minlength=parts.size)
    own = np.flatnonzero(parts % 2)
    twins = own[:0] if only_against else own[sizes[own] > 1]
    behind = own[np.isin(parts[own] - 1, parts)]  # the reference part of a class comes right before its own part
    left = np.r_[part_of[np.searchsorted(rows, left)], twins, behind - 1]
    right = np.r_[part_of[np.searchsorted(rows, right)], twins, behind]
    values = np.r_[values, np.ones(twins.size + behind.size)]
    linked = _LinkedParts(part_of, sizes, left, right, values)
    for first, stop in linked.blocks(listed_at_once):
        a, b, similarities = linked.pairs(first, stop)
        for begin in range(0, a.size, listed_at_once):  # a single row may have more partners
            chosen = slice(begin, begin + listed_at_once)
            columns = [rows[a[chosen]], rows[b[chosen]], similarities[chosen]]
            yield pa.record_batch([pa.array(column) for column in columns], schema=schema.ROW_PAIRS)


class _LinkedParts:
    """Documents by part, and the parts whose members are all similar to those of another part, or of the same.

    Pairs come in order without being sorted on disk: every row lists its partners that come after it.
    """

    def __init__(self, part_of: I64, sizes: I64, left: I64, right: I64, values: npt.NDArray[np.float64]) -> None:
        is_other = left != right
        heads = np.r_[left, right[is_other]]
        order = np.argsort(heads, kind="stable")
        self._part_of, self._members = part_of, np.argsort(part_of, kind="stable")
        self._ends = np.cumsum(sizes)
        self._tails = np.r_[right, left[is_other]][order]
        self._values = np.r_[values, values[is_other]][order]
        self._tail_ends = np.searchsorted(heads[order], np.arange(sizes.size + 1))
        # Ascending, because members are ordered by part, then by place.
        self._keys = part_of[self._members] * part_of.size + self._members
        self._reach = np.diff(np.r_[0, np.cumsum(sizes[self._tails])][self._tail_ends])

    def blocks(self, most: int) -> Iterator[tuple[int, int]]:
        """Cut the places into blocks with at most `most` pairs, at least one place each."""
        ends, first = np.cumsum(self._reach[self._part_of]), 0
        while first < ends.size:
            before = int(ends[first - 1]) if first else 0
            stop = max(first + 1, int(np.searchsorted(ends, before + most, side="right")))
            yield first, stop
            first = stop

    def pairs(self, first: int, stop: int) -> tuple[I64, I64, npt.NDArray[np.float64]]:
        """Return the places of every pair whose first one is in a block, ascending, and the similarities."""
        own = self._part_of[first:stop]
        starts, counts = self._tail_ends[own], np.diff(self._tail_ends)[own]
        a, links = np.repeat(np.arange(first, stop), counts), _ranges(starts, counts)
        tails = self._tails[links]
        starts = np.searchsorted(self._keys, tails * self._part_of.size + a, side="right")
        counts = self._ends[tails] - starts
        a, b = np.repeat(a, counts), self._members[_ranges(starts, counts)]
        values = np.repeat(self._values[links], counts)
        keys = a * self._part_of.size + b
        if (keys[1:] < keys[:-1]).any():  # several parts are linked to the same one
            order = np.argsort(keys, kind="stable")
            a, b, values = a[order], b[order], values[order]
        return a, b, values


def _ranges(starts: I64, counts: I64) -> I64:
    """Return the numbers of all ranges, one range after the other."""
    firsts = np.cumsum(counts) - counts
    numbers: I64 = np.repeat(starts - firsts, counts) + np.arange(counts.sum())
    return numbers


def select_again(documents: pa.Table, pairs: pa.Table, config: Config) -> pa.Table:
    """Select among stored pairs, as a run at a higher threshold selects among the pairs it finds."""
    rows, priority = documents.column("row").to_numpy(), documents.column("priority").to_numpy()
    if config.cluster == "leader":
        chosen = lead_pairs(rows, priority, pairs)
        return chosen.filter(pc.not_equal(chosen.column("row"), chosen.column("kept_row")))
    kept_rows = close_pairs(rows, priority, pairs)
    at, kept_at = np.arange(rows.size), np.searchsorted(rows, kept_rows)
    values = np.ones(rows.size)
    is_removed = at != kept_at
    values[is_removed] = _similarities(documents, at[is_removed], kept_at[is_removed], config)
    columns = [rows[is_removed], kept_rows[is_removed], values[is_removed]]
    return pa.table(columns, schema=schema.SELECTION)


def _similarities(documents: pa.Table, left: I64, right: I64, config: Config) -> npt.NDArray[np.float64]:
    """Exact similarity of documents given by position; 1 for two without shingles, which were collapsed."""
    needed, ends = np.unique(np.r_[left, right], return_inverse=True)
    items = measure_of(config).items(schema.one_array(documents.column("text").take(pa.array(needed))), config)
    left, right = ends[: left.size], ends[left.size :]
    values = np.empty(left.size, np.float64)
    similarity.similarities(items, left, right, values)
    is_empty = are_empty(items)
    values[is_empty[left] & is_empty[right]] = 1.0
    return values


def lead_pairs(rows: I64, priority: I64, pairs: pa.Table) -> pa.Table:
    """Select leaders among stored pairs."""
    left, right = (np.searchsorted(rows, pairs.column(name).to_numpy()) for name in ("row_a", "row_b"))
    ends, partners = np.r_[left, right], np.r_[right, left]
    order = np.lexsort((partners, ends))
    starts = np.searchsorted(ends[order], np.arange(rows.size + 1))
    similarities = np.tile(pairs.column("similarity").to_numpy(), 2)[order]
    matches, values = np.empty(rows.size, np.int64), np.empty(rows.size, np.float64)
    kernel.lead(np.argsort(priority, kind="stable"), starts, partners[order], similarities, matches, values)
    kept_rows = np.where(matches == similarity.NOBODY, rows, rows[matches])
    return pa.table([rows, kept_rows, values], schema=schema.SELECTION)


def close_pairs(rows: I64, priority: I64, pairs: pa.Table) -> I64:
    """Return for every row the row with the best priority in its transitive closure."""
    order = np.argsort(priority, kind="stable")
    ranks = np.argsort(order)
    left, right = (ranks[np.searchsorted(rows, pairs.column(name).to_numpy())] for name in ("row_a", "row_b"))
    parents = np.arange(rows.size)
    components_kernel.union_links(left, right, parents)
    components_kernel.find_roots(parents)
    kept: I64 = rows[order][parents[ranks]]
    return kept


def _listed(classes: pa.Table, left: I64, right: I64) -> tuple[I64, I64]:
    """The rows that occur in a pair, ascending, and the representative of each."""
    copies = classes.column("row").to_numpy()
    rows = np.unique(np.concatenate([copies, classes.column("representative").to_numpy(), left, right]))
    representatives = rows.copy()
    representatives[np.searchsorted(rows, copies)] = classes.column("representative").to_numpy()
    return rows, representatives


def _verified_pairs(verified: pa.Table) -> tuple[I64, I64, npt.NDArray[np.float64]]:
    """The verified pairs of representatives, by row."""
    partners = schema.one_array(verified.column("partners"))
    left = np.repeat(verified.column("row").to_numpy(), partners.value_lengths().to_numpy())
    right = partners.flatten().to_numpy()
    values = schema.one_array(verified.column("partner_similarities")).flatten().to_numpy()
    return left, right, values
