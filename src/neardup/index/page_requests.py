"""Requesting pages of memory-mapped files before they are read, so that a query or batch waits for all of them at once.

A page that is not in memory costs a wait for the disk, and by default the kernel reads its
surroundings too (up to 8 MB). An index larger than memory spends nearly all its time on both;
docs/decisions/0031 has the figures.
"""

from __future__ import annotations

import mmap
import resource
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, Final

import numpy as np

from neardup.measures.base import I64

# Reading 16 KB takes as long as reading 4 KB, so pages that are this close are read together.
_GAP_PAGES: Final = 4
# Linux reads no more of one request than its window for reading ahead, 128 KB by default, and
# ignores the rest.
_MAX_BYTES: Final = 128 << 10
# After this many queries without a read from disk, pages are no longer requested ahead, which takes
# time too.
_QUERIES_IN_MEMORY: Final = 64
_THREAD: Final[Any] = getattr(resource, "RUSAGE_THREAD", None)


def expect_random_reads(mapped: mmap.mmap) -> None:
    """Tell the kernel to read only the pages that are used, not their surroundings."""
    if hasattr(mmap, "MADV_RANDOM"):
        mapped.madvise(mmap.MADV_RANDOM)


def request(mapped: mmap.mmap, starts: I64, stops: I64) -> None:
    """Start to read byte ranges of a file, without waiting for them; empty ranges are left out."""
    if not hasattr(mmap, "MADV_WILLNEED"):
        return
    for first, stop in page_ranges(starts, stops):
        for at in range(first, stop, _MAX_BYTES):
            mapped.madvise(mmap.MADV_WILLNEED, at, min(_MAX_BYTES, stop - at))


def page_ranges(starts: I64, stops: I64) -> Iterator[tuple[int, int]]:
    """Return the page-aligned ranges that contain byte ranges, in order; close ones are merged."""
    is_used = stops > starts
    firsts = starts[is_used] // mmap.PAGESIZE
    lasts = (stops[is_used] - 1) // mmap.PAGESIZE
    if not firsts.size:
        return iter(())
    order = np.argsort(firsts)
    firsts = firsts[order]
    lasts = np.maximum.accumulate(lasts[order])
    is_new = np.r_[True, firsts[1:] > lasts[:-1] + _GAP_PAGES]
    ends = lasts[np.r_[np.flatnonzero(is_new)[1:] - 1, lasts.size - 1]]
    return zip(
        (firsts[is_new] * mmap.PAGESIZE).tolist(),
        ((ends + 1) * mmap.PAGESIZE).tolist(),
        strict=True,
    )


def request_in_turn(files: Iterable[Iterator[None]]) -> None:
    """Run the steps of several files side by side: each step starts reads that the next one of that file waits for."""
    deque(zip_longest(*files), 0)


class DiskReads:
    """Notices whether queries wait for the disk; as long as some do, their pages are requested ahead.

    What a thread reads from disk is counted by the kernel, whether it was requested or not. Threads
    may disagree for a query or two; answers do not depend on it.
    """

    def __init__(self) -> None:
        # An index that was just opened may not be in memory.
        self._queries_left = _QUERIES_IN_MEMORY

    def are_expected(self) -> bool:
        """Whether one of the last queries read from disk."""
        return self._queries_left > 0

    def note(self, num_queries: int, blocks_before: int) -> None:
        """Note that queries were answered; blocks_before: the blocks read before them."""
        if blocks_read() > blocks_before:
            self._queries_left = _QUERIES_IN_MEMORY
        elif self._queries_left > 0:
            self._queries_left -= num_queries


def blocks_read() -> int:
    """Return how many blocks this thread has read from disk so far; 0 where the system does not count them."""
    return 0 if _THREAD is None else resource.getrusage(_THREAD).ru_inblock
