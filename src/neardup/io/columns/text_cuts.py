"""The spans of texts that a run leaves out of the rows that it writes."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.kernels import cuts as kernel
from neardup.kernels import sections
from neardup.kernels.unicode import load_table

I64 = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TextCuts:
    """Spans in the texts of rows, in bytes: ascending by row and start, without overlaps.

    mends: whether they are spans of words, around which white space is mended; else exactly these bytes go.
    """

    rows: I64
    starts: I64
    stops: I64
    mends: bool = True

    def of(self, first: int, stop: int) -> TextCuts:
        """Return the spans of the rows from `first` to `stop`, counted from `first`."""
        begin, end = np.searchsorted(self.rows, [first, stop]).tolist()
        own = slice(begin, end)
        return dataclasses.replace(
            self, rows=self.rows[own] - first, starts=self.starts[own], stops=self.stops[own]
        )

    def among(self, rows: I64) -> TextCuts:
        """Return the spans of some rows, which ascend, counted by their position among them."""
        at = np.searchsorted(rows, self.rows)
        is_chosen = at < rows.size
        is_chosen[is_chosen] = rows[at[is_chosen]] == self.rows[is_chosen]
        return dataclasses.replace(
            self, rows=at[is_chosen], starts=self.starts[is_chosen], stops=self.stops[is_chosen]
        )

    def apply(self, texts: pa.Array) -> pa.Array:
        """Return texts without the spans; texts are large_string, and rows count them from 0. A null stays null."""
        filled = texts.fill_null("") if texts.null_count else texts
        _, buffer, data = filled.buffers()
        offsets = np.frombuffer(buffer, np.int64)[filled.offset : filled.offset + len(filled) + 1]
        source = np.frombuffer(data or b"", np.uint8)
        source.flags.writeable = False
        out = pa.allocate_buffer(int(offsets[-1] - offsets[0]) + self.rows.size, resizable=True)
        out_offsets = np.empty(offsets.size, np.int64)
        ends = np.searchsorted(self.rows, np.arange(offsets.size))
        spans = offsets.astype(np.int64), self.starts, self.stops, ends
        written = np.frombuffer(out, np.uint8), out_offsets
        if self.mends:
            kernel.cut_texts(source, *spans, tuple(load_table()), *written)
        else:
            sections.drop_spans(source, *spans, *written)
        out.resize(int(out_offsets[-1]), shrink_to_fit=True)
        cut = pa.LargeStringArray.from_buffers(len(filled), pa.py_buffer(out_offsets), out)
        if not texts.null_count:
            return cut
        return pc.if_else(texts.is_null(), pa.scalar(None, pa.large_string()), cut)


def in_rows(texts: pa.Array, rows: I64, num_rows: int) -> pa.Array:
    """Return the texts of some rows as a column of all rows, null for the others."""
    at = np.full(num_rows, -1)
    at[rows] = np.arange(rows.size)
    return texts.cast(pa.large_string()).take(pa.array(at, mask=at < 0))
