"""Stage 3 of 6 in the exact join, before the links: shingles are counted, and every document shows its rarest ones."""

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
# Two places a shingle keep most shingles apart. More than 128 MB would not fit in the least memory a run may be given;
# the size depends on the documents alone, as does what is compared.
PLACES_A_SHINGLE: Final = 2
MIN_PLACES: Final = 1 << 10
MAX_PLACES: Final = 1 << 27


def num_places(num_shingles: int) -> int:
    """Return how many places to count so many shingles in, a power of two."""
    wanted = max(1, PLACES_A_SHINGLE * num_shingles)
    return min(max(1 << (wanted - 1).bit_length(), MIN_PLACES), MAX_PLACES)


def collect(documents: pa.RecordBatch, config: Config) -> pa.RecordBatch:
    """Turn texts, or the sets that were held, into sets as the first pass of the exact join leaves them."""
    sets = jaccard.sets_of(documents.column("text"), config)
    groups = documents.column("group").to_numpy()
    shingles = sets.shingles
    if groups.any():
        shingles = shingles ^ np.repeat(group_salts(groups), np.diff(sets.ends))
    lists = pa.LargeListArray.from_arrays(pa.array(sets.ends), pa.array(shingles.view(np.int64)))
    return pa.record_batch([documents.column("row"), lists], schema=schema.SETS)


def count(sketches: pa.RecordBatch, counts: U8) -> None:
    """Add the shingles of documents to the counts; a count is never too low, and ends at 255."""
    shingles, ends = _sets(sketches)
    kernel.count_shingles(shingles[ends[0] : ends[-1]], counts)


def prefix(sketches: pa.RecordBatch, counts: U8, threshold: float) -> pa.RecordBatch:
    """Turn documents into their prefixes; one that shares too little with all others together gives nothing."""
    shingles, ends = _sets(sketches)
    room = int(ends[-1] - ends[0])
    docs, places = np.empty(room, np.int64), np.empty(room, np.int64)
    keys = np.empty(room, np.uint64)
    taken = kernel.take_prefixes(shingles, ends, counts, threshold, docs, keys, places)
    docs = docs[:taken]
    columns = [
        sketches.column("row").to_numpy()[docs],
        np.diff(ends)[docs],
        places[:taken].copy(),
        keys[:taken].view(np.int64).copy(),
    ]
    return pa.record_batch([pa.array(column) for column in columns], schema=schema.POSTINGS)


def _sets(sketches: pa.RecordBatch) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    lists = sketches.column("shingles")
    return lists.values.to_numpy().view(np.uint64), lists.offsets.to_numpy()
