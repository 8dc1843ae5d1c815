"""The common shingles of a run, those in many documents of a group: what is left of a document without them."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.kernels import common_shingles as kernel
from neardup.kernels.keys import draw_secret
from neardup.kernels.members import fill_table
from neardup.measures import jaccard
from neardup.measures.base import I64, U64, group_salts

# Groups of fewer documents have no common shingles: in them, a share says little.
MIN_DOCUMENTS: Final = 50
# Memory of the table for each common shingle.
BYTES_A_SHINGLE: Final = 24


def count_all(config: Config) -> Config:
    """Return the settings with which common shingles count, and repetitions do not."""
    return Config.of(config, ignore_common=None, common_by=None, multiset=False)


def least_common(share: float, num_documents: int) -> int:
    """Return in how many of the documents of a group a shingle is common; 0 if the group is too small.

    >>> least_common(0.05, 100), least_common(0.05, 99), least_common(0.05, 49)
    (6, 5, 0)
    """
    if num_documents < MIN_DOCUMENTS:
        return 0
    least = int(share * num_documents)
    while least <= share * num_documents:
        least += 1
    return least


def salts_of(groups: I64) -> U64:
    """Return the salt of the group of each document, zero for those of none."""
    return group_salts(np.ascontiguousarray(groups))


class CommonShingles:
    """Removes the common shingles of a run from its documents."""

    def __init__(self, table: pa.Table, config: Config) -> None:
        """Take the shingles, as schema.COMMON, and the settings of the run."""
        keys = np.unique(schema.one_array(table.column("shingle")).to_numpy().view(np.uint64))
        self.num_shingles = keys.size
        self._config = Config.of(config, ignore_common=None, common_by=None, multiset=False)
        # Nobody who writes documents can make shingles collide in the table.
        self._secret = np.frombuffer(draw_secret(), np.uint64)[0]
        self._capacity = 2 * keys.size + 8
        self._table = np.zeros(self._capacity + keys.size + 1, np.uint64)
        hidden = np.empty(keys.size, np.uint64)
        kernel.hide(keys, self._secret, hidden)
        fill_table(np.unique(hidden), self._capacity, self._table)

    def compared(self, documents: pa.RecordBatch) -> pa.RecordBatch:
        """Replace the texts of documents by the shingles that are not common, in their order, and drop their groups."""
        at = documents.schema.get_field_index("common")
        texts = documents.column("text")
        salts = salts_of(documents.column(at).to_numpy())
        contents = self.contents(texts, salts)
        left = documents.remove_column(at)
        kinds = schema.documents(contents.type)
        columns = [contents if name == "text" else left.column(name) for name in kinds.names]
        return pa.record_batch(columns, schema=kinds)

    def compared_table(self, documents: pa.Table) -> pa.Table:
        """Replace the texts of a table, as `compared` does."""
        batches = [self.compared(batch) for batch in documents.to_batches()]
        return pa.Table.from_batches(batches, schema=schema.documents(pa.large_binary()))

    def contents(self, texts: pa.Array, salts: U64) -> pa.Array:
        """Return the shingles of texts that are not common, as large_binary."""
        parts = [np.empty(0, np.uint64)]
        sizes: I64 = np.zeros(len(texts), np.int64)
        for start, raw, raw_ends in jaccard.shingle_runs(texts, self._config):
            stop = start + raw_ends.size - 1
            ends = raw_ends.copy()
            kernel.drop_common(
                raw, ends, salts[start:stop], self._secret, self._capacity, self._table
            )
            had_shingles = np.diff(raw_ends) > 0
            is_empty = np.diff(ends) == 0
            if self._config.ignore and not had_shingles.all():
                bare = np.flatnonzero(~had_shingles)
                had_shingles[bare] = jaccard.have_shingles(
                    texts.take(pa.array(start + bare)), self._config
                )
            shingles, ends = _marked(raw[: ends[-1]], ends, is_empty & had_shingles)
            parts.append(shingles.copy())
            sizes[start:stop] = np.diff(ends)
        offsets = np.cumsum(np.r_[0, sizes], dtype=np.int64) * np.dtype(np.uint64).itemsize
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.concatenate(parts))]
        return pa.Array.from_buffers(pa.large_binary(), len(texts), buffers)


def _marked(shingles: U64, ends: I64, is_marked: npt.NDArray[np.bool_]) -> tuple[U64, I64]:
    """Insert the mark of a document all of whose shingles are ignored."""
    if not is_marked.any():
        return shingles, ends
    at = ends[:-1][is_marked]
    marked = np.insert(shingles, at, jaccard.ONLY_IGNORED)
    return marked, ends + np.cumsum(np.r_[0, is_marked])
