"""Repeated sections, stage 2: which go, because an earlier one with the same words stays; and the spans to cut."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.io.storage.big_arrays import BigArrays
from neardup.search.places import SideBySide

I64 = npt.NDArray[np.int64]
Batches = Callable[[list[str]], Iterable[pa.RecordBatch]]
# Sorting digests takes about this many bytes each.
_SORT_BYTES: Final = 160
_CHUNK: Final = 1 << 20
_MAX_RANGES: Final = 64
# A digest is a remainder of so many bits; see kernels/digests.py.
_DIGEST_BITS: Final = 61
# A section that stays.
STAYS: Final = -1


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """Which of equal sections go.

    keeps_first: whether the first `per_cluster` stay; min_count: they go if there are so many; num_references:
    documents below this never lose any; only_against: those go that such a document has, too.
    """

    keeps_first: bool
    per_cluster: int
    min_count: int
    num_references: int
    only_against: bool


class SectionList(NamedTuple):
    """All sections in input order: the row of the document, and the first code point there."""

    docs: I64
    starts: npt.NDArray[np.int32]


class Gone(NamedTuple):
    """For every section the number of the first one like it if it goes, else STAYS; and how similar they are.

    similarities: None for equal words.
    """

    leaders: I64
    similarities: npt.NDArray[np.float64] | None


class RemovedSections(NamedTuple):
    """Removed sections of some documents, in input order: the documents they are of, and columns of schema.SECTIONS."""

    docs: I64
    columns: dict[str, I64]
    num_sections: I64
    leaders: I64
    similarities: npt.NDArray[np.float64] | None


def list_sections(batches: Batches, arrays: BigArrays) -> SectionList:
    """Return where all sections stand."""
    size = sum(len(batch.column("start").flatten()) for batch in batches(["row", "start"]))
    found = SectionList(
        arrays.empty("section_docs", size, np.int64), arrays.empty("section_starts", size, np.int32)
    )
    at = 0
    for batch in batches(["row", "start"]):
        starts = batch.column("start").flatten().to_numpy()
        counts = batch.column("start").value_lengths().to_numpy()
        found.starts[at : at + starts.size] = starts
        found.docs[at : at + starts.size] = np.repeat(batch.column("row").to_numpy(), counts)
        at += starts.size
        arrays.drop_pages()
    return found


def equal_ones(
    batches: Batches,
    docs: I64,
    rule: Rule,
    arrays: BigArrays,
    side_by_side: SideBySide,
    room: int = 0,
) -> Gone:
    """Return which sections go because of others with equal digests.

    Args:
        batches: returns batches with some columns of schema.SECTIONS, in input order, each time.
        docs: the row of every section.
        rule: which of equal sections go.
        arrays: allocates arrays.
        side_by_side: sorts ranges of digests in parallel.
        room: the memory for sorting; 0 for no limit.
    """
    size = docs.size
    digests = [arrays.empty(f"section_{half}", size, np.int64) for half in ("low", "high")]
    at = 0
    for batch in batches(["row", "low", "high"]):
        stop = at + len(batch.column("low").flatten())
        for half, name in zip(digests, ("low", "high"), strict=True):
            half[at:stop] = batch.column(name).flatten().to_numpy()
        at = stop
        arrays.drop_pages()
    leaders = _none_gone(size, arrays)
    bits = 0
    while room and size * _SORT_BYTES > (room << bits) and 1 << bits < _MAX_RANGES:
        bits += 1
    bits = max(bits, 2 if size > _CHUNK else 0)
    choose = partial(_choose_range, digests, docs, leaders, rule, bits)
    for first in range(0, 1 << bits, 4):
        side_by_side(choose, range(first, min(first + 4, 1 << bits)))
        arrays.drop_pages()
    return Gone(leaders, None)


def _none_gone(size: int, arrays: BigArrays) -> I64:
    leaders: I64 = arrays.empty("section_leaders", size, np.int64)
    for start in range(0, size, _CHUNK):
        leaders[start : start + _CHUNK] = STAYS
    return leaders


def _choose_range(
    digests: list[I64], docs: I64, leaders: I64, rule: Rule, bits: int, number: int
) -> None:
    """Write the leaders of the sections whose digests begin with the bits of a number."""
    low, high = digests
    found = []
    for start in range(0, low.size, _CHUNK):
        part = low[start : start + _CHUNK] >> (_DIGEST_BITS - bits)
        found.append(start + np.flatnonzero(part == number))
    numbers = np.concatenate([np.empty(0, np.int64), *found])
    del found
    own_low = low[numbers]
    own_high = high[numbers]
    # The sort is stable, so that equal sections stay in input order.
    order = np.lexsort((own_high, own_low))
    is_first = np.ones(order.size, np.bool_)
    is_first[1:] = (np.diff(own_low[order]) != 0) | (np.diff(own_high[order]) != 0)
    del own_low, own_high
    starts = np.flatnonzero(is_first)
    group = np.cumsum(is_first) - 1
    numbers = numbers[order]
    rank = np.arange(order.size) - starts[group]
    count = np.diff(np.append(starts, order.size))[group]
    first = numbers[starts][group]
    is_gone = count >= rule.min_count
    if rule.keeps_first:
        is_gone &= rank >= rule.per_cluster
    at = np.flatnonzero(is_gone)
    is_own = docs[numbers[at]] >= rule.num_references
    if rule.only_against:
        is_own &= docs[first[at]] < rule.num_references
    at = at[is_own]
    leaders[numbers[at]] = first[at]


def similar_ones(
    selection: pa.Table, members: pa.Table, docs: I64, rule: Rule, arrays: BigArrays
) -> Gone:
    """Return which sections go because of similar ones.

    Args:
        selection: what a run on the sections removes, as schema.SELECTION.
        members: all sections of clusters but the kept ones.
        docs: the row of every section.
        rule: which of them go.
        arrays: allocates arrays.
    """
    leaders = _none_gone(docs.size, arrays)
    similarities = arrays.empty("section_similarities", docs.size, np.float64)
    kept, counts = np.unique(members.column("kept_row").to_numpy(), return_counts=True)
    kept = kept[counts + 1 >= rule.min_count]
    chosen = selection if rule.keeps_first else members
    rows = chosen.column("row").to_numpy()
    of = chosen.column("kept_row").to_numpy()
    is_gone = np.isin(of, kept)
    leaders[rows[is_gone]] = of[is_gone]
    similarities[rows[is_gone]] = chosen.column("similarity").to_numpy()[is_gone]
    if not rule.keeps_first:
        own = kept[docs[kept] >= rule.num_references]
        leaders[own] = own
    return Gone(leaders, similarities)


def removed_of(batches: Batches, columns: list[str], gone: Gone) -> Iterator[RemovedSections]:
    """Iterate over the removed sections, with some columns of schema.SECTIONS."""
    at = 0
    for batch in batches(["row", "num_sections", *columns]):
        lists = {name: batch.column(name) for name in columns}
        counts = lists[columns[0]].value_lengths().to_numpy()
        own = slice(at, at + int(counts.sum()))
        at = own.stop
        leaders = gone.leaders[own]
        chosen = np.flatnonzero(leaders != STAYS)
        of_doc = np.repeat(np.arange(batch.num_rows), counts)[chosen]
        similarities = None if gone.similarities is None else gone.similarities[own][chosen]
        yield RemovedSections(
            docs=batch.column("row").to_numpy()[of_doc],
            columns={
                name: column.flatten().to_numpy()[chosen].astype(np.int64)
                for name, column in lists.items()
            },
            num_sections=batch.column("num_sections").to_numpy()[of_doc],
            leaders=leaders[chosen],
            similarities=similarities,
        )


# The columns that `spans_of` needs.
SPAN_COLUMNS: Final = ("number", "start_byte", "end_byte", "before", "behind")


def spans_of(removed: RemovedSections) -> tuple[I64, I64, I64]:
    """Return the spans to cut: rows, first bytes, and the bytes behind.

    With removed sections goes the gap behind them; with the last ones of a text the gap ahead of them, so that it ends
    as it did.
    """
    docs = removed.docs
    column: dict[str, Any] = removed.columns
    is_next = np.zeros(docs.size, np.bool_)
    is_next[1:] = (np.diff(docs) == 0) & (np.diff(column["number"]) == 1)
    firsts = np.flatnonzero(~is_next)
    lasts = np.append(firsts[1:], docs.size)[: firsts.size] - 1
    is_end = column["number"][lasts] + 1 == removed.num_sections[lasts]
    starts = column["start_byte"][firsts] - np.where(is_end, column["before"][firsts], 0)
    stops = column["end_byte"][lasts] + np.where(is_end, 0, column["behind"][lasts])
    return docs[firsts], starts, stops
