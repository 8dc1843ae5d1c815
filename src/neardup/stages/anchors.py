"""Passages, stage 1: words, and the anchors by which equal windows of words meet."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.kernels import anchors as kernel
from neardup.kernels.keys import shingle_key
from neardup.measures.base import group_salts
from neardup.measures.words import word_runs

I64 = npt.NDArray[np.int64]
# Shorter grams are more often equal by chance, longer ones leave fewer grams in a window, and so more anchors.
MAX_GRAM_WORDS = 16


class WindowShape(NamedTuple):
    """The words of a window, and of the grams that can be its anchor."""

    words: int
    gram: int

    @property
    def num_grams(self) -> int:
        """The number of grams in a window."""
        return self.words - self.gram + 1


def window_shape(min_words: int) -> WindowShape:
    """Return the shape of windows of `min_words` words."""
    return WindowShape(min_words, min(MAX_GRAM_WORDS, (min_words + 1) // 2))


def anchors(batch: pa.RecordBatch, shape: WindowShape, config: Config) -> pa.RecordBatch:
    """Return the anchors of documents, as schema.ANCHORS."""
    groups: I64 = batch.column("group").to_numpy()
    salts = group_salts(groups)
    num_words = np.zeros(batch.num_rows, np.int64)
    ends = np.zeros(batch.num_rows + 1, np.int64)
    parts: list[tuple[npt.NDArray[Any], ...]] = []
    for run in word_runs(batch.column("text"), config):
        stop = run.start + run.ends.size - 1
        found, own_ends = _winnow(run.words, run.ends, salts[run.start : stop], shape, config)
        parts.append(found)
        num_words[run.start : stop] = np.diff(run.ends)
        ends[run.start + 1 : stop + 1] = ends[run.start] + own_ends[1:]
    nothing = tuple(np.empty(0, kind) for kind in (np.int64, np.int32, np.int32, np.int32))
    columns = [np.concatenate(side) for side in zip(nothing, *parts, strict=True)]
    lists = [pa.LargeListArray.from_arrays(pa.array(ends), pa.array(column)) for column in columns]
    return pa.record_batch(
        [batch.column("row"), pa.array(groups), pa.array(num_words), *lists],
        schema=schema.ANCHORS,
    )


def _winnow(
    words: npt.NDArray[np.uint64],
    ends: I64,
    salts: npt.NDArray[np.uint64],
    shape: WindowShape,
    config: Config,
) -> tuple[tuple[npt.NDArray[Any], ...], I64]:
    keys = np.empty(words.size, np.uint64)
    numbers = [np.empty(words.size, np.int32) for _ in range(3)]
    own_ends: I64 = np.empty(ends.size, np.int64)
    key = shingle_key(config.seed)
    kernel.winnow(words, ends, key, shape.gram, shape.num_grams, salts, (keys, *numbers), own_ends)
    count = int(own_ends[-1])
    found: list[npt.NDArray[Any]] = [keys.view(np.int64), *numbers]
    return tuple(column[:count].copy() for column in found), own_ends
