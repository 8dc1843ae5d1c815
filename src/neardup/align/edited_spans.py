"""Passages with edits: stretches that one text copies from another, though words were changed, left out or moved."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.align.words_in_text import I64, WordsInText
from neardup.kernels.align_edits import edited_spans
from neardup.kernels.align_exact import shared_runs


class EditedSpans(NamedTuple):
    """Spans of words of two texts, in the order of a.

    Attributes:
        spans: start and end in a, start and end in b.
        matches: the words that agree, one of a and one of b, span after span.
        ends: span s owns matches[ends[s]:ends[s + 1]].
    """

    spans: I64
    matches: I64
    ends: I64


def find_spans(a: WordsInText, b: WordsInText, min_words: int) -> EditedSpans:
    """Return the spans in which at least `min_words` words agree; each word agrees with one other at most."""
    words = np.concatenate([a.hashes, b.hashes])
    num_a = a.hashes.size
    runs = np.empty((num_a, 3), np.int64)
    num_runs = shared_runs(words, num_a, min_words, runs)
    return EditedSpans(*edited_spans(words, num_a, min_words, runs[:num_runs]))
