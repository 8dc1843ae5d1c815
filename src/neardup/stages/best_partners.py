"""After stage 6 of 6, with `one_to_one`: of the pairs found, those of two documents that are each other's best partner.

Pairs are a stream that may be far larger than memory; what is held is one pair per document and side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from neardup import schema
from neardup.io.columns.sorted_search import find_sorted

# Pairs that are collected before the best ones are chosen again.
COLLECTED: int = 1 << 18


def best_partners(
    row_pairs: Iterable[pa.RecordBatch], columns: pa.Schema, collected: int = COLLECTED
) -> Iterator[pa.RecordBatch]:
    """Yield the pairs of which each document is the most similar partner of the other; ties by row, the smallest first.

    columns: the schema of the pairs; collected: how many are collected before the best are chosen.
    """
    of_a = _Best("row_a", "row_b", columns, collected)
    of_b = _Best("row_b", "row_a", columns, collected)
    for batch in row_pairs:
        of_a.add(batch)
        of_b.add(batch)
    best_of_a = of_a.table()
    best_of_b = of_b.table()
    rows = best_of_b.column("row_b").to_numpy()
    is_there, at = find_sorted(rows, best_of_a.column("row_b").to_numpy())
    partners = best_of_b.column("row_a").to_numpy()
    is_mutual = is_there.copy()
    own = best_of_a.column("row_a").to_numpy()
    is_mutual[is_there] = partners[at[is_there]] == own[is_there]
    yield schema.one_batch(best_of_a.filter(pa.array(is_mutual)).to_batches(), columns)


class _Best:
    """The most similar partner of every document on one side of the pairs."""

    def __init__(self, own: str, partner: str, columns: pa.Schema, collected: int) -> None:
        self._own = own
        self._partner = partner
        self._columns = columns
        self._collected = collected
        self._batches: list[pa.RecordBatch] = []
        self._num_rows = 0
        self._num_chosen = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add pairs; the best are chosen when there are twice as many as after the last time."""
        self._batches.append(batch)
        self._num_rows += batch.num_rows
        if self._num_rows > 2 * self._num_chosen + self._collected:
            self._choose()

    def table(self) -> pa.Table:
        """Return the best pair of every document, ascending by its row."""
        self._choose()
        return pa.Table.from_batches(self._batches, self._columns)

    def _choose(self) -> None:
        pairs = pa.Table.from_batches(self._batches, self._columns)
        own = pairs.column(self._own).to_numpy()
        partners = pairs.column(self._partner).to_numpy()
        order = np.lexsort((partners, -pairs.column("similarity").to_numpy(), own))
        is_first = np.ones(order.size, np.bool_)
        is_first[1:] = own[order[1:]] != own[order[:-1]]
        chosen = pairs.take(pa.array(order[is_first]))
        self._batches = chosen.to_batches()
        self._num_rows = self._num_chosen = chosen.num_rows
