"""Passages without edits: the maximal runs of equal words."""

from __future__ import annotations

import numpy as np

from neardup.align.words_in_text import I64, WordsInText
from neardup.kernels.align_exact import shared_runs


def find_runs(a: WordsInText, b: WordsInText, min_words: int) -> I64:
    """Return first word in a, first word in b, and number of words of every shared run, in the order of a.

    A run in b is the leftmost of those that are equal; no run of a lies within a longer one.
    """
    runs = np.empty((a.hashes.size, 3), np.int64)
    count = shared_runs(np.concatenate([a.hashes, b.hashes]), a.hashes.size, min_words, runs)
    return runs[:count].copy()
