"""Before stage 3 of 6, in the exact join: count the shingles, and reduce every document to its rarest ones."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.kernels import prefix as kernel
from neardup.measures import jaccard
from neardup.measures.base import group_salts

U8 = npt.NDArray[np.uint8]
# Two counters per shingle avoid most collisions. More than 128 MB would not fit in the smallest
# `memory` setting. The size depends on the documents alone, so the pairs that are compared do, too.
PLACES_A_SHINGLE: Final = 2
MIN_COUNTERS: Final = 1 << 10
MAX_COUNTERS: Final = 1 << 27


def num_counters(num_shingles: int) -> int:
    """Return how many counters to use for this many shingles, a power of two."""
    wanted = max(1, PLACES_A_SHINGLE * num_shingles)
    power_of_two = 1 << (wanted - 1).bit_length()
    return min(max(power_of_two, MIN_COUNTERS), MAX_COUNTERS)


def collect(documents: pa.RecordBatch, config: Config) -> pa.RecordBatch:
    """Turn texts, or sets kept in memory, into the sets that the first pass of the exact join writes."""
    sets = jaccard.items(documents.column("text"), config)
    groups = documents.column("group").to_numpy()
    shingles = sets.shingles
    if groups.any():
        shingles = shingles ^ np.repeat(group_salts(groups), np.diff(sets.ends))
    lists = pa.LargeListArray.from_arrays(pa.array(sets.ends), pa.array(shingles.view(np.int64)))
    return pa.record_batch([documents.column("row"), lists], schema=schema.SETS)


def count(sketches: pa.RecordBatch, counts: U8) -> None:
    """Add the shingles of documents to the counts, which saturate at 255 and are never too low."""
    shingles, ends = _sets(sketches)
    kernel.count_shingles(shingles[ends[0] : ends[-1]], counts)


def prefix(sketches: pa.RecordBatch, counts: U8, threshold: float) -> pa.RecordBatch:
    """Turn documents into their prefixes; one with too few shared shingles to have a partner has none (mass filter)."""
    shingles, ends = _sets(sketches)
    room = int(ends[-1] - ends[0])
    docs = np.empty(room, np.int64)
    positions = np.empty(room, np.int64)
    keys = np.empty(room, np.uint64)
    taken = kernel.take_prefixes(shingles, ends, counts, threshold, docs, keys, positions)
    docs = docs[:taken]
    rows = sketches.column("row").to_numpy()[docs]
    sizes = np.diff(ends)[docs]
    # Copies, because the arrays have room for more.
    own_positions = positions[:taken].copy()
    own_keys = keys[:taken].view(np.int64).copy()
    return schema.batch_of(schema.POSTINGS, rows, sizes, own_positions, own_keys)


def _sets(sketches: pa.RecordBatch) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    lists = sketches.column("shingles")
    return lists.values.to_numpy().view(np.uint64), lists.offsets.to_numpy()
