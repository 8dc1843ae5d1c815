"""The tables of a run on documents in memory: ids of any type instead of rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.io.documents import in_memory
from neardup.io.documents.cluster_sizes import ClusterSizes


class MemoryTables:
    """The tables of a report by name; those as large as the source are made on first use."""

    def __init__(
        self,
        read: in_memory.InMemorySource,
        common: pa.Table | None,
        selection: pa.Table,
        clustered: pa.Table,
        row_pairs: pa.Table | None,
    ) -> None:
        """Take the tables of a run by row; common: as schema.COMMON."""
        self._read = read
        rows = read.documents.column("row").to_numpy()
        self._kept_rows: npt.NDArray[np.int64] = rows[
            ~np.isin(rows, selection.column("row").to_numpy(), assume_unique=True)
        ]
        self._tables = {
            "selection": selection,
            "removed": self._removed(selection),
            "clusters": self._clusters(rows, clustered),
            "rejected": read.rejected,
        }
        if common is not None:
            self._tables["common"] = common
        if row_pairs is not None:
            self._tables["pairs"] = name_pairs(read, row_pairs)

    def load(self, name: str) -> pa.Table | None:
        """Return a table by name, None if it does not exist."""
        read = self._read
        if name == "kept":
            return in_memory.with_ids(read).take(pa.array(self._kept_rows))
        if name == "mask":
            is_kept = np.zeros(read.original.num_rows, np.bool_)
            is_kept[self._kept_rows] = True
            return pa.table({"is_kept": is_kept})
        if name == "texts":
            rows = read.documents.column("row")
            texts = {"doc_id": _ids(read, rows), "row": rows}
            texts |= {
                name: read.documents.column(name)
                for name in ("text", "common")
                if name in read.documents.column_names
            }
            return pa.table(texts)
        return self._tables.get(name)

    def _removed(self, selection: pa.Table) -> pa.Table:
        ends = [selection.column(name) for name in ("row", "kept_row")]
        columns = schema.removed(self._read.ids.type)
        removed = [*(_ids(self._read, rows) for rows in ends), selection.column("similarity")]
        if self._read.has_repeated_ids:
            removed += ends
            columns = schema.with_rows(columns, "row", "kept_row")
        return pa.table(removed, schema=columns).combine_chunks()

    def _clusters(self, rows: npt.NDArray[np.int64], clustered: pa.Table) -> pa.Table:
        kept_rows = rows.copy()
        ids = self._read.ids
        kept_rows[np.searchsorted(rows, clustered.column("row").to_numpy())] = clustered.column(
            "kept_row"
        ).to_numpy()
        columns = [
            ids.take(pa.array(rows)),
            ids.take(pa.array(kept_rows)),
            pa.array(ClusterSizes(clustered).of(rows)),
        ]
        return pa.table(columns, schema=schema.clusters(ids.type))


def name_pairs(read: in_memory.InMemorySource, row_pairs: pa.Table) -> pa.Table:
    """Return pairs with ids; if ids repeat, rows distinguish the documents."""
    ends = row_pairs.columns[:2]
    named = [*(_ids(read, rows) for rows in ends), *row_pairs.columns[2:]]
    columns = schema.with_shares(schema.pairs(read.ids.type), row_pairs.schema)
    if read.has_repeated_ids:
        named += ends
        columns = schema.with_rows(columns, "row_a", "row_b")
    return pa.table(named, schema=columns)


def _ids(read: in_memory.InMemorySource, rows: pa.ChunkedArray) -> pa.Array:
    return read.ids.take(schema.one_array(rows))
