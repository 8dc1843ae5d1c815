"""Shingles weighted by how rare they are: what `weights="idf"` compares, by weighted Jaccard similarity.

A shingle that `n` of `N` documents have weighs log(1 + N / n), rounded to a whole number of 65,536ths: sums of whole
numbers are exact, so that similarities do not depend on the order in which they are added.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.measures import jaccard

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
# The weight of 1 as a whole number.
UNIT: Final = 1 << 16
# Bytes of a counted shingle in memory: its hash and its weight, twice while they are loaded.
BYTES_A_SHINGLE: Final = 32
# Where a table of counts says how many documents were counted.
NUM_DOCUMENTS: Final = b"documents"
_WORD_BYTES: Final = 8


def weight_of(num_documents: int, num_with: int) -> int:
    """Return the weight of a shingle that `num_with` of all documents with shingles have.

    >>> weight_of(100, 1), weight_of(100, 50), weight_of(100, 100)
    (302457, 71999, 45426)
    """
    return round(math.log(1 + num_documents / num_with) * UNIT)


class IdfWeights:
    """Replaces the texts of documents by their weighted shingles."""

    def __init__(self, counts: pa.Table, config: Config) -> None:
        """Take the shingles in more than one document, as schema.COMMON, and the settings of the run."""
        self.num_documents = int((counts.schema.metadata or {})[NUM_DOCUMENTS])
        hashes = schema.one_array(counts.column("shingle")).to_numpy().view(np.uint64)
        order = np.argsort(hashes)
        self._hashes = hashes[order]
        counted: I64 = schema.one_array(counts.column("documents")).to_numpy()[order]
        distinct, at = np.unique(counted, return_inverse=True)
        weights = [weight_of(self.num_documents, number) for number in distinct.tolist()]
        self._weights: F64 = np.array(weights, np.float64)[at]
        self._weight_of_one = float(weight_of(self.num_documents, 1) if self.num_documents else 0)
        self._config = config

    @property
    def num_shingles(self) -> int:
        """The number of shingles in more than one document."""
        return int(self._hashes.size)

    def counts(self) -> dict[str, int]:
        """Return what the report says of the weights."""
        return {"documents": self.num_documents, "shingles": self.num_shingles}

    def compared(self, documents: pa.RecordBatch) -> pa.RecordBatch:
        """Replace the texts of documents by their shingles with weights."""
        contents = self.contents(documents.column("text"))
        kinds = schema.documents(contents.type)
        columns = [contents if name == "text" else documents.column(name) for name in kinds.names]
        return pa.record_batch(columns, schema=kinds)

    def compared_table(self, documents: pa.Table) -> pa.Table:
        """Replace the texts of a table, as `compared` does."""
        batches = [self.compared(batch) for batch in documents.to_batches()]
        return pa.Table.from_batches(batches, schema=schema.documents(pa.large_binary()))

    def contents(self, texts: pa.Array) -> pa.Array:
        """Return the shingles of texts with their weights, as contents of the measure "weighted"."""
        sets = jaccard.text_sets(texts, self._config)
        weights = np.full(sets.shingles.size, self._weight_of_one)
        if self._hashes.size:
            at = np.searchsorted(self._hashes, sets.shingles)
            at[at == self._hashes.size] = 0
            is_counted = self._hashes[at] == sets.shingles
            weights[is_counted] = self._weights[at[is_counted]]
        words = np.stack([sets.shingles, weights.view(np.uint64)], axis=1)
        offsets = sets.ends * 2 * _WORD_BYTES
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(words))]
        return pa.Array.from_buffers(pa.large_binary(), len(texts), buffers)
