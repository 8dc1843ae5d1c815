"""The names of rows: the id of a document, or else its file and row number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.io.columns.sorted_search import find_sorted
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.notes import Notes

I64 = npt.NDArray[np.int64]
# Pairs that are named in one batch, at a few hundred bytes each.
_NAMED_AT_ONCE: Final = 1 << 15
# Bytes per id beyond its characters; a document without an id is named by file and row.
_ID_OVERHEAD: Final = 48


class RowNames:
    """Looks up the names of rows, once all rows are numbered."""

    def __init__(self, layout: FileLayout, notes: Notes) -> None:
        self._layout = layout
        self._notes = notes

    def locate(self, rows: I64) -> tuple[pa.Array, I64]:
        """Return the name of the file of each row, and its row number there, from 1."""
        return self._layout.locate(rows)

    def of_input(self) -> Iterator[pa.RecordBatch]:
        """Iterate over row and doc_id of every document of the input."""
        for rows, ids in self._notes.ids_of_input():
            yield pa.record_batch({"row": rows, "doc_id": self._completed(ids, rows)})

    def texts_of_input(self, notes: Notes) -> Iterator[tuple[pa.Array, pa.Array, I64, pa.Array]]:
        """Iterate over doc_id, file, row number and text of every document of the input."""
        for rows, ids, texts in notes.texts_of_input():
            yield self._completed(ids, rows), *self.locate(rows), texts

    def _completed(self, ids: pa.Array, rows: I64) -> pa.Array:
        """Return ids, with names in place of missing ones."""
        if not ids.null_count:
            return ids
        return pc.coalesce(ids, name_rows(self._layout, rows))

    def num_ids_within(self, room: int) -> int:
        """Return how many ids fit in about `room` bytes."""
        facts = self._notes.facts()
        num_documents = sum(part["documents"] for part in facts)
        id_bytes = sum(part["id_bytes"] for part in facts)
        bytes_an_id = id_bytes // max(num_documents, 1) + _ID_OVERHEAD
        return int(max(1, room // bytes_an_id))

    def ids_of(self, rows: I64) -> pa.Array:
        """Return the doc_id of some rows, which must be ascending and distinct."""
        ends = np.searchsorted(rows, self._layout.first_rows)
        found = [pa.array([], pa.string())]
        for part in np.flatnonzero(np.diff(ends)).tolist():
            wanted = rows[ends[part] : ends[part + 1]]
            for own, ids in self._notes.ids(part):
                is_wanted, at = find_sorted(own, wanted)
                found_ids = ids.take(pa.array(at[is_wanted]))
                found.append(self._completed(found_ids, wanted[is_wanted]))
        return pa.concat_arrays(found)

    def name_pairs(self, pairs: pa.RecordBatch, num_ids: int) -> Iterator[pa.RecordBatch]:
        """Replace the rows of pairs by ids, files and row numbers, with at most `num_ids` ids in memory."""
        sides = [pairs.column("row_a").to_numpy(), pairs.column("row_b").to_numpy()]
        ends = np.stack(sides, axis=1)
        first = 0
        while first < pairs.num_rows:
            rows = np.unique(ends[first:])
            stop = pairs.num_rows
            if rows.size > num_ids:
                stop = first + max(1, num_ids // 2)
                rows = np.unique(ends[first:stop])
            ids = self.ids_of(rows)
            for begin in range(first, stop, _NAMED_AT_ONCE):
                end = min(begin + _NAMED_AT_ONCE, stop)
                yield self._named(pairs.slice(begin, end - begin), ends[begin:end], rows, ids)
            first = stop

    def _named(self, pairs: pa.RecordBatch, ends: I64, rows: I64, ids: pa.Array) -> pa.RecordBatch:
        """Return pairs with names; `ids` are those of `rows`, among which are all `ends`."""
        names: list[pa.Array] = []
        locations: list[Any] = []
        for side in ends.T:
            names.append(ids.take(pa.array(np.searchsorted(rows, side))))
            locations += self.locate(side)
        columns = [*names, pairs.column("similarity"), *locations, *pairs.columns[3:]]
        named = schema.with_shares(schema.PAIRS_FROM_FILES, pairs.schema)
        return pa.record_batch(columns, schema=named)


def name_rows(layout: FileLayout, rows: I64) -> pa.Array:
    """Return the name of each row without an id: file and row number, or the file alone if it is one document."""
    files, numbers = layout.locate(rows)
    is_whole = layout.is_text[layout.files_at(rows)]
    numbered = pc.binary_join_element_wise(files, pa.array(numbers).cast(pa.string()), ":")
    return pc.if_else(pa.array(is_whole), files, numbered)
