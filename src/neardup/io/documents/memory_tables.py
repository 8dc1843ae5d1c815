"""The tables of a run on documents in memory: ids of any type instead of rows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
        rows = read.own_documents().column("row").to_numpy()
        self._kept_rows: npt.NDArray[np.int64] = rows[
            ~np.isin(rows, selection.column("row").to_numpy(), assume_unique=True)
        ]
        self._kept_rows -= read.num_references
        self._tables = {
            "selection": _by_position(selection, read),
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
        if name == "source":
            return in_memory.with_ids(read)
        if name == "mask":
            is_kept = np.zeros(read.original.num_rows, np.bool_)
            is_kept[self._kept_rows] = True
            return pa.table({"is_kept": is_kept})
        if name == "texts":
            rows = read.documents.column("row")
            positions = pc.subtract(rows, read.num_references)
            texts = {"doc_id": _ids(read, rows), "row": positions}
            texts |= {
                name: read.documents.column(name)
                for name in ("text", "common")
                if name in read.documents.column_names
            }
            return pa.table(texts)
        return self._tables.get(name)

    def _removed(self, selection: pa.Table) -> pa.Table:
        ends = [selection.column(name) for name in ("row", "kept_row")]
        columns = schema.with_shares(schema.removed(self._read.ids.type), selection.schema)
        removed = [*(_ids(self._read, rows) for rows in ends), *selection.columns[2:]]
        if self._read.has_repeated_ids:
            removed += _positions(ends, self._read)
            columns = schema.with_rows(columns, "row", "kept_row")
        if self._read.references is not None:
            removed.append(pc.less(ends[1], self._read.num_references))
            columns = columns.append(schema.IS_AGAINST)
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


def _by_position(selection: pa.Table, read: in_memory.InMemorySource) -> pa.Table:
    """Return a selection with positions in the source; those of reference documents are negative."""
    if not read.num_references:
        return selection
    columns = [pc.subtract(column, read.num_references) for column in selection.columns[:2]]
    return pa.table([*columns, *selection.columns[2:]], schema=selection.schema)


def _positions(
    ends: list[pa.ChunkedArray], read: in_memory.InMemorySource
) -> list[pa.ChunkedArray]:
    """Return the positions of rows, each in its own source."""
    first = read.num_references
    if not first:
        return ends
    return [pc.if_else(pc.less(rows, first), rows, pc.subtract(rows, first)) for rows in ends]


def name_pairs(read: in_memory.InMemorySource, row_pairs: pa.Table) -> pa.Table:
    """Return pairs with ids; if ids repeat, rows distinguish the documents."""
    ends = row_pairs.columns[:2]
    named = [*(_ids(read, rows) for rows in ends), *row_pairs.columns[2:]]
    columns = schema.with_shares(schema.pairs(read.ids.type), row_pairs.schema)
    if read.has_repeated_ids:
        named += _positions(ends, read)
        columns = schema.with_rows(columns, "row_a", "row_b")
    if read.references is not None:
        named.append(pc.less(ends[0], read.num_references))
        columns = columns.append(schema.IS_AGAINST)
    return pa.table(named, schema=columns)


def _ids(read: in_memory.InMemorySource, rows: pa.ChunkedArray) -> pa.Array:
    return read.ids.take(schema.one_array(rows))
