"""Part of stage 6 of 6: the list of pairs, from the pairs that verification found and the classes of copies.

There may be far more pairs than memory: they are read as a stream, sorted by the engine, and
yielded as a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.io.storage.spill import SortKey

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
# The most pairs in one batch.
LISTED_AT_ONCE: Final = 1 << 17
# A link of a document to a part, as one number that sorts by document, then by part.
_LINKS: Final = pa.schema([("link", pa.int64()), ("similarity", pa.float64())])


class FoundPairs(Protocol):
    """The pairs that verification found, of documents that stand for their classes."""

    @property
    def rows(self) -> I64:
        """The rows of all verified documents."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Iterate over the pairs, as schema.PARTNERED, in any order; from the start each time."""

    def sort(
        self, batches: Iterable[pa.RecordBatch], schema: pa.Schema, by: Sequence[SortKey]
    ) -> Iterator[pa.RecordBatch]:
        """Sort rows within the memory of the engine."""


def count_pairs(
    classes: pa.Table, found: FoundPairs | None, *, num_references: int, only_against: bool = False
) -> int:
    """Return how many pairs `list_pairs` would list; without `found`, those of exact copies alone."""
    num_pairs = _count_copies(classes, num_references, only_against=only_against)
    if found is None:
        return num_pairs
    rows, representatives = _listed(classes, found.rows)
    class_of = np.searchsorted(rows, representatives)
    sizes = np.bincount(class_of, minlength=rows.size)
    for batch in found.batches():
        left = np.searchsorted(rows, batch.column("row").to_numpy())
        right = np.searchsorted(rows, batch.column("partner").to_numpy())
        num_pairs += int(sizes[left] @ sizes[right])
    return num_pairs


def _count_copies(classes: pa.Table, num_references: int, *, only_against: bool) -> int:
    """Count the pairs of exact copies, except those of two reference documents, or of two input documents."""
    copies = classes.column("row").to_numpy()
    representatives = classes.column("representative").to_numpy()
    firsts, class_of = np.unique(representatives, return_inverse=True)
    num_copies = np.bincount(class_of, minlength=firsts.size)
    num_own_copies = np.bincount(class_of[copies >= num_references], minlength=firsts.size)
    num_own = num_own_copies + (firsts >= num_references)
    num_others = num_copies + 1 - num_own
    num_pairs = num_own * num_others
    if not only_against:
        num_pairs += num_own * (num_own - 1) // 2
    return int(num_pairs.sum())


def list_pairs(
    classes: pa.Table,
    found: FoundPairs,
    *,
    num_references: int,
    only_against: bool = False,
    listed_at_once: int = LISTED_AT_ONCE,
) -> Iterator[pa.RecordBatch]:
    """List every pair found, including those between members of classes, by row_a, then row_b.

    `separate` has made sure that no verified pair consists of two reference documents; no other
    pair does. With `only_against` no pair has two input rows either. A batch has at most
    `listed_at_once` rows.
    """
    rows, representatives = _listed(classes, found.rows)
    # Each class has two parts: an even key for its reference documents, an odd one for those of the
    # input.
    keys = 2 * np.searchsorted(rows, representatives) + (rows >= num_references)
    parts = _Parts(rows, keys)
    links = _link(parts, found, listed_at_once, only_against=only_against)
    ordered = found.sort(links, _LINKS, [("link", "ascending")])
    for pairs in _expand(parts, ordered, listed_at_once):
        # A single row may have more partners.
        for begin in range(0, pairs.left.size, listed_at_once):
            chosen = slice(begin, begin + listed_at_once)
            left = rows[pairs.left[chosen]]
            right = rows[pairs.right[chosen]]
            yield schema.batch_of(schema.ROW_PAIRS, left, right, pairs.similarities[chosen])


class _Pairs(NamedTuple):
    """Pairs of documents, or of parts."""

    left: I64
    right: I64
    similarities: F64


class _Parts:
    """Documents by part; the members of a part are similar to all members of any part that it is linked to.

    A document is given by its index among all listed ones, and linked to the parts that have a
    member behind it. So the links of a document, sorted, give its pairs, and there are never more
    links than pairs.
    """

    def __init__(self, rows: I64, keys: I64) -> None:
        self._rows = rows
        self.keys, self.part_of = np.unique(keys, return_inverse=True)
        self.sizes = np.bincount(self.part_of, minlength=self.keys.size)
        self._members = np.argsort(self.part_of, kind="stable")
        self._ends = np.cumsum(self.sizes)
        # Ascending, because members are ordered by part, then by index.
        self._ranks = self.part_of[self._members] * rows.size + self._members

    def of(self, rows: I64) -> I64:
        """Return the parts of documents by row."""
        return self.part_of[np.searchsorted(self._rows, rows)]

    def links(self, pairs: _Pairs) -> pa.RecordBatch:
        """Return the links of the members of linked parts, as _LINKS."""
        is_other = pairs.left != pairs.right
        heads = np.r_[pairs.left, pairs.right[is_other]]
        tails = np.r_[pairs.right, pairs.left[is_other]]
        values = np.r_[pairs.similarities, pairs.similarities[is_other]]
        counts = self.sizes[heads]
        docs = self._members[_ranges(self._ends[heads] - counts, counts)]
        tails = np.repeat(tails, counts)
        values = np.repeat(values, counts)
        last_members = self._members[self._ends[tails] - 1]
        is_needed = last_members > docs
        links = docs[is_needed] * self.keys.size + tails[is_needed]
        return schema.batch_of(_LINKS, links, values[is_needed])

    def split(self, links: I64) -> tuple[I64, I64, I64]:
        """Return the index and the part of each link, and how many pairs it stands for."""
        docs, tails = np.divmod(links, self.keys.size)
        counts = self._ends[tails] - self._starts(docs, tails)
        return docs, tails, counts

    def _starts(self, docs: I64, tails: I64) -> I64:
        """Return where the members of parts that come after documents start."""
        starts: I64 = np.searchsorted(self._ranks, tails * self._rows.size + docs, side="right")
        return starts

    def pairs(self, links: I64, similarities: F64) -> _Pairs:
        """Return the pairs of all links of some documents, by both."""
        docs, tails, counts = self.split(links)
        left = np.repeat(docs, counts)
        right = self._members[_ranges(self._starts(docs, tails), counts)]
        values = np.repeat(similarities, counts)
        order = left * self._rows.size + right
        if (order[1:] < order[:-1]).any():  # several parts are linked to the same document
            by_order = np.argsort(order, kind="stable")
            return _Pairs(left[by_order], right[by_order], values[by_order])
        return _Pairs(left, right, values)


def _link(
    parts: _Parts, found: FoundPairs, most: int, *, only_against: bool
) -> Iterator[pa.RecordBatch]:
    """Link documents to parts: those of exact copies, and those of the pairs found, about `most` links a batch."""
    own = np.flatnonzero(parts.keys % 2)
    if only_against:
        twins = own[:0]
    else:
        twins = own[parts.sizes[own] > 1]
    # The reference part of a class comes right before its own.
    has_references = np.isin(parts.keys[own] - 1, parts.keys)
    behind = own[has_references]
    left = np.r_[twins, behind - 1]
    right = np.r_[twins, behind]
    yield parts.links(_Pairs(left, right, np.ones(left.size)))
    for batch in found.batches():
        left = parts.of(batch.column("row").to_numpy())
        right = parts.of(batch.column("partner").to_numpy())
        similarities = batch.column("similarity").to_numpy()
        num_links = np.cumsum(parts.sizes[left] + parts.sizes[right])
        for chosen in _cut(num_links, most):
            yield parts.links(_Pairs(left[chosen], right[chosen], similarities[chosen]))


def _expand(parts: _Parts, ordered: Iterable[pa.RecordBatch], most: int) -> Iterator[_Pairs]:
    """Turn sorted links into pairs, at most `most` at once or those of one document."""
    num_parts = parts.keys.size
    links = np.empty(0, np.int64)
    similarities = np.empty(0)
    for batch in ordered:
        for begin in range(0, batch.num_rows, most):
            piece = batch.slice(begin, most)
            links = np.r_[links, piece.column("link").to_numpy()]
            similarities = np.r_[similarities, piece.column("similarity").to_numpy()]
            # The last document may have more links.
            last_document = links[-1] // num_parts
            end = int(np.searchsorted(links, last_document * num_parts))
            yield from _expand_whole(parts, links[:end], similarities[:end], most)
            links = links[end:]
            similarities = similarities[end:]
    yield from _expand_whole(parts, links, similarities, most)


def _expand_whole(parts: _Parts, links: I64, similarities: F64, most: int) -> Iterator[_Pairs]:
    """Turn all links of some documents into pairs."""
    if not links.size:
        return
    docs, _, counts = parts.split(links)
    is_last = np.r_[docs[1:] != docs[:-1], True]
    stops = np.flatnonzero(is_last) + 1
    bounds = np.r_[0, stops]
    num_pairs = np.cumsum(counts)[stops - 1]
    for documents in _cut(num_pairs, most):
        chosen = slice(int(bounds[documents.start]), int(bounds[documents.stop]))
        yield parts.pairs(links[chosen], similarities[chosen])


def _cut(totals: I64, most: int) -> Iterator[slice]:
    """Cut entries with these cumulative counts into slices that count at most `most`, or of one entry."""
    first = 0
    while first < totals.size:
        before = int(totals[first - 1]) if first else 0
        stop = max(first + 1, int(np.searchsorted(totals, before + most, side="right")))
        yield slice(first, stop)
        first = stop


def _ranges(starts: I64, counts: I64) -> I64:
    """Return the numbers of all ranges, one range after the other."""
    firsts = np.cumsum(counts) - counts
    numbers: I64 = np.repeat(starts - firsts, counts) + np.arange(counts.sum())
    return numbers


def _listed(classes: pa.Table, verified: I64) -> tuple[I64, I64]:
    """The rows that may occur in a pair, ascending, and the representative of each."""
    copies = classes.column("row").to_numpy()
    leaders = classes.column("representative").to_numpy()
    rows = np.unique(np.concatenate([copies, leaders, verified]))
    representatives = rows.copy()
    representatives[np.searchsorted(rows, copies)] = leaders
    return rows, representatives
