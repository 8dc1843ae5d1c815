"""The size of the cluster of each document."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.io.columns.sorted_search import find_sorted

I64 = npt.NDArray[np.int64]


class ClusterSizes:
    """The sizes of clusters, from the selection of all their members other than the kept document."""

    def __init__(self, members: pa.Table) -> None:
        self._rows, self._kept_rows = (
            members.column(name).to_numpy() for name in ("row", "kept_row")
        )
        self._leaders, counts = np.unique(self._kept_rows, return_counts=True)
        self._sizes = counts + 1

    def of(self, rows: I64) -> I64:
        """Return the size of the cluster of each row; 1 for a document without duplicates."""
        leaders = rows.copy()
        sizes = np.ones(rows.size, np.int64)
        is_member, at = find_sorted(self._rows, rows)
        leaders[is_member] = self._kept_rows[at[is_member]]
        is_known, at = find_sorted(self._leaders, leaders)
        sizes[is_known] = self._sizes[at[is_known]]
        return sizes
