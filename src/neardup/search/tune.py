"""How similar the documents of a corpus are to those of a sample: counted exactly, pair by pair.

An index holds all shingles of the sampled sets, and the corpus is streamed through it. Results do
not depend on batch size or threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels import tune as kernel
from neardup.kernels.similarity import Sets
from neardup.search.inverted_index import I64, U64
from neardup.search.prefix_index import PrefixIndex

# Seconds to shingle and to filter a shingle, to look up one that passes, and to count a posting.
SHINGLE_SECONDS: Final = 50e-9
LOOKUP_SECONDS: Final = 200e-9
HIT_SECONDS: Final = 5e-9
F64 = npt.NDArray[np.float64]


class Streamed(NamedTuple):
    """Documents to compare with a sample: distinct shingles, and row, owner and group of each."""

    shingles: U64
    ends: I64
    rows: I64
    owners: I64
    groups: I64


class Example(NamedTuple):
    """A pair of a bin: its key, the row of the document and the number of the set."""

    key: int
    row: int
    number: int
    similarity: float
    text: str


def _no_text(doc: int) -> str:
    del doc
    return ""


class SimilarityCounts:
    """Counts the documents in every bin of similarity to each set of a sample; thread-safe.

    sets: sorted and distinct; rows, owners, groups: of each set; edges: where the bins begin; room:
    how many examples each bin keeps. counts: int64[num_sets, num_bins].
    """

    def __init__(
        self,
        sets: Sets,
        rows: I64,
        owners: I64,
        groups: I64,
        *,
        edges: F64,
        is_share: bool = False,
        room: int = 0,
    ) -> None:
        sizes = np.diff(sets.ends)
        one = np.ones(sizes.size, np.int64)
        self._index = PrefixIndex(sets, one, one, groups).arrays
        self._sampled = kernel.Sampled(sizes, owners, rows)
        self._edges = edges
        self._is_share = is_share
        self._room = room
        self._lock = threading.Lock()
        self.median_size = float(np.median(sizes)) if sizes.size else 0.0
        self.counts = np.zeros((sizes.size, edges.size), np.int64)
        self.examples: list[list[Example]] = [[] for _ in range(edges.size)]

    def add(self, documents: Streamed, text_of: Callable[[int], str] = _no_text) -> None:
        """Compare documents with all sets; `text_of` returns what to store of a document in an example."""
        counts = np.zeros_like(self.counts)
        found = kernel.Examples(
            np.full((self._edges.size, self._room), kernel.NO_KEY),
            np.zeros((self._edges.size, self._room, 2), np.int64),
            np.zeros((self._edges.size, self._room)),
        )
        kernel.count_similarities(
            documents.shingles,
            documents.ends,
            (documents.rows, documents.owners, documents.groups),
            self._index,
            self._sampled,
            self._is_share,
            self._edges,
            counts,
            found,
        )
        with self._lock:
            self.counts += counts
            for bin_ in np.flatnonzero((found.keys != kernel.NO_KEY).any(axis=1)).tolist():
                self._merge(bin_, found, documents, text_of)

    def _merge(
        self,
        bin_: int,
        found: kernel.Examples,
        documents: Streamed,
        text_of: Callable[[int], str],
    ) -> None:
        merged = self.examples[bin_]
        for at in np.flatnonzero(found.keys[bin_] != kernel.NO_KEY).tolist():
            doc, number = found.pairs[bin_, at].tolist()
            merged.append(
                Example(
                    key=int(found.keys[bin_, at]),
                    row=int(documents.rows[doc]),
                    number=number,
                    similarity=float(found.similarities[bin_, at]),
                    text=text_of(doc),
                )
            )
        self.examples[bin_] = sorted(merged)[: self._room]


def seconds_per_document(sets: Sets) -> float:
    """Return about how many seconds of one core it takes to compare a document like these sets with them.

    A constant model, so that what is compared depends on documents and settings alone
    (docs/decisions/0042).
    """
    num_sets = max(sets.ends.size - 1, 1)
    _, counts = np.unique(sets.shingles, return_counts=True)
    hits = float((counts.astype(np.float64) ** 2).sum() - sets.shingles.size)
    num_shared = int(counts[counts > 1].sum())
    total = sets.shingles.size * SHINGLE_SECONDS + num_shared * LOOKUP_SECONDS + hits * HIT_SECONDS
    return total / num_sets
