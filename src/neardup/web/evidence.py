"""What shows why documents belong together, computed on whole texts: where two differ, and what a cluster shares.

A page shows long texts only in part, from which neither can be seen.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neardup.align.hunks import find_hunks
from neardup.align.words_in_text import words_of
from neardup.config import Config
from neardup.io.records import ITEM_END
from neardup.web.document_texts import ComparedTexts

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
# Makes the order of the words of a shingle count; odd, so that it can be undone.
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)


def hunks_of(content_a: bytes, content_b: bytes) -> dict[str, Any]:
    """Return what differs between two texts, as the page reads it: parts of both, and how much is not among them."""
    text_a = _shown(content_a)
    text_b = _shown(content_b)
    found = find_hunks(text_a, text_b)
    parts = [
        [hunk.skipped, text_a[hunk.start_a : hunk.stop_a], text_b[hunk.start_b : hunk.stop_b]]
        for hunk in found.hunks
    ]
    left_out = [found.left_out_a, found.left_out_b]
    return {"parts": parts, "skipped": found.skipped, "left_out": left_out}


def _shown(content: bytes) -> str:
    return content.decode().replace(ITEM_END, "\n")


def shared_by_all(
    contents: Sequence[bytes], groups: Sequence[int], compared: ComparedTexts, config: Config
) -> dict[str, Any]:
    """Return how many shingles of the first text all the others have too, and where these stand in it.

    `spans`: in characters; None where shingles are not of words.
    """
    sets = compared.items_of(contents, groups)
    own = [sets.shingles[start:stop] for start, stop in itertools.pairwise(sets.ends.tolist())]
    common = functools.reduce(np.intersect1d, own)
    spans = None
    if config.unit == "word" and config.items_column is None and config.ignore_common is None:
        spans = _shared_spans([content.decode() for content in contents], config)
    return {
        "shared": int(common.size),
        "shingles": int(own[0].size),
        "members": len(contents),
        "spans": spans,
    }


def _shared_spans(texts: Sequence[str], config: Config) -> list[list[int]]:
    """Where the shingles of the first text stand that every text has, in order, those that touch as one."""
    words = [words_of(text, config) for text in texts]
    size = min(config.size, min(own.hashes.size for own in words))
    if not size:
        return []
    keys = [_windows(own.hashes, size) for own in words]
    common = functools.reduce(np.intersect1d, keys)
    starts = np.flatnonzero(np.isin(keys[0], common))
    if not starts.size:
        return []
    bounds = words[0].characters
    breaks = np.flatnonzero(np.diff(starts) > size) + 1
    firsts = starts[np.r_[0, breaks]]
    lasts = starts[np.r_[breaks - 1, starts.size - 1]] + size - 1
    spans: list[list[int]] = np.stack([bounds[firsts, 0], bounds[lasts, 1]], axis=1).tolist()
    return spans


def _windows(hashes: U64, size: int) -> U64:
    """A hash of every `size` consecutive words."""
    keys = np.zeros(hashes.size - size + 1, np.uint64)
    for offset in range(size):
        keys = keys * _FACTOR + hashes[offset : offset + keys.size]
    return keys
