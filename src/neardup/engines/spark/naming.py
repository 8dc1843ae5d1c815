"""The names of rows of files, which workers look up in the stored notes of a part instead of joining tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.engines.spark.reading import ROW_BITS
from neardup.engines.spark.storage import stored_batches
from neardup.io.columns.sorted_search import find_sorted
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.row_names import name_rows

I64 = npt.NDArray[np.int64]


# What names need of the notes.
_NOTED: Final = pa.schema([("row", pa.int64()), ("id", pa.string()), ("num_shingles", pa.int64())])


class End(NamedTuple):
    """A column of rows, and the columns that name them: id, file, and number in the file."""

    row: str
    doc_id: str
    file: str
    number: str

    @property
    def added(self) -> list[tuple[str, pa.DataType]]:
        """The columns that names add."""
        return [(self.doc_id, pa.string()), (self.file, pa.string()), (self.number, pa.int64())]


def dense_rows(layout: FileLayout, rows: I64) -> I64:
    """Return the positions in the input of rows that encode a part and the position there."""
    dense: I64 = layout.first_rows[rows >> ROW_BITS] + (rows & ((1 << ROW_BITS) - 1))
    return dense


class Names:
    """Looks up the names of rows.

    folder: the stored notes, which have one file for each of the `num_shares` tasks of a part.
    """

    def __init__(self, folder: str, num_shares: int, layout: FileLayout) -> None:
        self._folder = folder
        self._num_shares = num_shares
        self._layout = layout
        self._part = -1
        self._cached = (np.empty(0, np.int64), pa.array([], pa.string()))

    def documents(self, part: int) -> tuple[I64, pa.Array]:
        """Return the rows of the documents of a part, ascending, and their ids."""
        if part != self._part:
            batches: list[pa.RecordBatch] = []
            for task in range(part * self._num_shares, (part + 1) * self._num_shares):
                batches += stored_batches(self._folder, _NOTED.names, f"{task:05}-")
            table = pa.Table.from_batches(batches, _NOTED)
            table = table.filter(table.column("num_shingles").is_valid())
            if self._num_shares > 1:
                table = table.sort_by("row")
            rows = table.column("row").to_numpy()
            ids = table.column("id").combine_chunks()
            if ids.null_count:
                ids = pc.coalesce(ids, name_rows(self._layout, dense_rows(self._layout, rows)))
            self._part = part
            self._cached = (rows, ids)
        return self._cached

    def ids_of(self, rows: I64) -> pa.Array:
        """Return the ids of ascending rows."""
        cuts = np.flatnonzero(np.diff(rows >> ROW_BITS)) + 1
        found = []
        for own in np.split(rows, cuts) if rows.size else ():
            documents, ids = self.documents(int(own[0] >> ROW_BITS))
            found.append(ids.take(pa.array(find_sorted(documents, own)[1])))
        return pa.concat_arrays(found) if found else pa.array([], pa.string())

    def add(self, batches: Iterable[pa.RecordBatch], end: End) -> Iterator[pa.RecordBatch]:
        """Add the names of a column of rows to batches that are sorted by it."""
        for batch in batches:
            rows = batch.column(end.row).to_numpy()
            files, numbers = self._layout.locate(dense_rows(self._layout, rows))
            named = batch.append_column(end.doc_id, self.ids_of(rows))
            named = named.append_column(end.file, files)
            yield named.append_column(end.number, pa.array(numbers))

    def clustered(self, part: int, members: pa.Table) -> pa.RecordBatch:
        """Return every document of a part with its cluster, as CLUSTERED; `members`: those of larger clusters."""
        rows, ids = self.documents(part)
        member_rows = members.column("row").to_numpy()
        is_member, at = find_sorted(member_rows, rows)
        found_at = pa.array(at, mask=~is_member)
        found_ids = members.column("cluster_id").combine_chunks().take(found_at)
        found_sizes = members.column("cluster_size").combine_chunks().take(found_at)
        cluster_ids = pc.coalesce(found_ids, ids)
        sizes = pc.coalesce(found_sizes, pa.scalar(1, pa.int64()))
        return pa.record_batch([pa.array(rows), ids, cluster_ids, sizes], schema=CLUSTERED)


CLUSTERED = pa.schema(
    [
        ("row", pa.int64()),
        ("doc_id", pa.string()),
        ("cluster_id", pa.string()),
        ("cluster_size", pa.int64()),
    ]
)
# The documents of clusters of two or more; the id is null for the kept one itself.
MEMBERS = pa.schema(
    [("row", pa.int64()), ("cluster_id", pa.string()), ("cluster_size", pa.int64())]
)


def list_members(clusters: Iterable[pa.RecordBatch], names: Names) -> Iterator[pa.RecordBatch]:
    """Turn whole clusters, sorted by kept_row, into MEMBERS: all their documents, the kept one included."""
    for batch in clusters:
        kept = batch.column("kept_row").to_numpy()
        heads, cluster_at, counts = np.unique(kept, return_inverse=True, return_counts=True)
        ids = names.ids_of(heads)
        others = [
            batch.column("row"),
            ids.take(pa.array(cluster_at)),
            pa.array(counts[cluster_at] + 1),
        ]
        yield pa.record_batch(others, schema=MEMBERS)
        nameless = pa.nulls(heads.size, pa.string())
        yield pa.record_batch([heads, nameless, counts + 1], schema=MEMBERS)
