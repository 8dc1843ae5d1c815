"""Texts as streams of words, folded as in shingles; and where the words stand in texts that are normalised first."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.config import Config
from neardup.kernels import words as kernel
from neardup.kernels.keys import shingle_key
from neardup.kernels.unicode import (
    BLOCK_SHIFT,
    BLOCK_SIZE,
    INVISIBLE_CHARACTERS,
    NFC_MAYBE,
    drop_invisible,
    fold_accents,
    load_table,
    normalise,
)
from neardup.measures.base import I64, U8, U64
from neardup.measures.jaccard import cache_sized, fold_run, normalise_run, text_buffers


class WordRun(NamedTuple):
    """The words of consecutive texts: the number of the first text, hashes, and the end of each text among them."""

    start: int
    words: U64
    ends: I64


class LocatedRun(NamedTuple):
    """Where the words of consecutive texts stand, in bytes of each text.

    source, offsets: the bytes of the texts; starts, stops: of every word; ends: of each text among them.
    """

    start: int
    source: U8
    offsets: I64
    starts: I64
    stops: I64
    ends: I64


def word_runs(texts: pa.Array, config: Config) -> Iterator[WordRun]:
    """Iterate over the hashes of all words, for runs of texts that fit in the cache of a core."""
    source, offsets = text_buffers(texts)
    folds = config.normalise != "nfc" or config.fold_accents
    for start, stop in cache_sized(offsets):
        run = source, offsets[start : stop + 1]
        if folds:
            run = fold_run(*run, config)
        words, ends, is_normal = _hashed(*run, config)
        if not is_normal.all():
            words, ends, _ = _hashed(*normalise_run(*run, is_normal, config), config)
        yield WordRun(start, words, ends)


def _hashed(source: U8, offsets: I64, config: Config) -> tuple[U64, I64, npt.NDArray[np.bool_]]:
    num_docs = offsets.size - 1
    words = np.empty(int(offsets[-1] - offsets[0]) // 2 + num_docs + 1, np.uint64)
    ends = np.empty(num_docs + 1, np.int64)
    is_normal = np.empty(num_docs, np.bool_)
    key = shingle_key(config.seed)
    kernel.hash_words(
        source, offsets, tuple(load_table()), key, config.fold_numbers, words, ends, is_normal
    )
    return words[: ends[-1]], ends, is_normal


def located_runs(texts: pa.Array, config: Config) -> Iterator[LocatedRun]:
    """Iterate over the bounds of all words, in the same order as `word_runs`."""
    source, offsets = text_buffers(texts)
    for start, stop in cache_sized(offsets):
        run = offsets[start : stop + 1]
        rewritten = _rewritten_texts(source, run, config)
        if rewritten:
            starts, stops, ends = _located_rewritten(source, run, rewritten)
        else:
            starts, stops, ends = _located(source, run)
        yield LocatedRun(start, source, run, starts, stops, ends)


def _located(source: U8, offsets: I64) -> tuple[I64, I64, I64]:
    num_bytes = int(offsets[-1] - offsets[0])
    # A word takes at least two bytes, its separator included.
    edges = np.empty(num_bytes + 2 * offsets.size, np.int64)
    ends = np.empty(offsets.size, np.int64)
    kernel.locate_words(source, offsets, tuple(load_table()), edges, ends)
    found = edges[: 2 * ends[-1]]
    return found[0::2], found[1::2], ends


def _rewritten_texts(source: U8, offsets: I64, config: Config) -> dict[int, RewrittenText]:
    """Return the texts of a run whose words are those of a normalised copy, by number."""
    run = source[offsets[0] : offsets[-1]]
    if not run.size or run.max() < 0x80:
        return {}
    folds = config.normalise != "nfc" or config.fold_accents
    found = {}
    for doc in range(offsets.size - 1):
        content = source[offsets[doc] : offsets[doc + 1]].tobytes()
        if content.isascii():
            continue
        text = content.decode("utf-8", "replace")
        if folds or not _is_normal(text):
            found[doc] = RewrittenText(text, config)
    return found


def _is_normal(text: str) -> bool:
    """Whether a text is in normal form C, without its invisible characters, too."""
    if not unicodedata.is_normalized("NFC", text):
        return False
    # Dropping them takes 40 ns a character, so that it is only done where there are some.
    if not any(character in text for character in INVISIBLE_CHARACTERS):
        return True
    return unicodedata.is_normalized("NFC", drop_invisible(text))


def _located_rewritten(
    source: U8, offsets: I64, rewritten: dict[int, RewrittenText]
) -> tuple[I64, I64, I64]:
    parts = []
    for doc in range(offsets.size - 1):
        if doc in rewritten:
            parts.append(rewritten[doc].locate())
        else:
            parts.append(_located(source, offsets[doc : doc + 2])[:2])
    ends = np.cumsum([0, *(starts.size for starts, _ in parts)], dtype=np.int64)
    starts, stops = (np.concatenate(side) for side in zip(*parts, strict=True))
    return starts, stops, ends


class RewrittenText:
    """A text and its normalised copy, cluster by cluster: characters that normalisation may join.

    Neighbouring clusters that stay as they are form one segment, as any other cluster does.
    """

    def __init__(self, text: str, config: Config) -> None:
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")
        known, of_point = np.unique(points, return_inverse=True)
        characters = list(map(chr, known.tolist()))
        begins = np.array([_begins_cluster(character) for character in characters], np.bool_)
        stays = np.array([_rewrite(each, config) == each for each in characters], np.bool_)
        starts = np.flatnonzero(begins[of_point])
        starts = np.union1d(starts, [0])
        stays_alone = (np.diff(starts, append=points.size) == 1) & stays[of_point[starts]]
        is_joined = stays_alone[1:] & stays_alone[:-1]
        firsts = np.flatnonzero(np.append(True, ~is_joined))
        cuts = [*starts[firsts].tolist(), len(text)]
        segments = [text[begin:end] for begin, end in itertools.pairwise(cuts)]
        self._stays = stays_alone[firsts]
        copies = [
            segment if is_same else _rewrite(segment, config)
            for segment, is_same in zip(segments, self._stays.tolist(), strict=True)
        ]
        self.copy = "".join(copies).encode("utf-8", "replace")
        self._ends = _ends_of(segments)
        self._copy_ends = _ends_of(copies)

    def locate(self) -> tuple[I64, I64]:
        """Return where the words of the copy stand in the text: whole clusters, if a word is part of one."""
        source = np.frombuffer(self.copy, np.uint8)
        source.flags.writeable = False
        starts, stops, _ = _located(source, np.array([0, source.size], np.int64))
        first = np.searchsorted(self._copy_ends, starts, side="right")
        last = np.searchsorted(self._copy_ends, stops, side="left")
        begins = np.concatenate([np.zeros(1, np.int64), self._ends])
        copy_begins = np.concatenate([np.zeros(1, np.int64), self._copy_ends])
        inside = np.where(self._stays[first], starts - copy_begins[first], 0)
        behind = np.where(self._stays[last], copy_begins[last + 1] - stops, 0)
        return begins[first] + inside, self._ends[last] - behind


def _ends_of(pieces: list[str]) -> I64:
    sizes = [len(piece.encode("utf-8", "replace")) for piece in pieces]
    return np.cumsum(sizes, dtype=np.int64)


def _rewrite(cluster: str, config: Config) -> str:
    if cluster.isascii():
        return cluster
    copy = normalise(cluster, config.normalise)
    if config.fold_accents:
        copy = normalise(fold_accents(copy))
    return copy


@lru_cache(maxsize=1 << 16)
def _begins_cluster(character: str) -> bool:
    """Whether no normal form joins a character with the one before it."""
    if character < "\x80":
        return True
    if character in INVISIBLE_CHARACTERS:
        return False
    first = unicodedata.normalize("NFD", character)[0]
    table = load_table()
    point = ord(first)
    entry = table.entries[
        int(table.index[point >> BLOCK_SHIFT]) * BLOCK_SIZE + (point & (BLOCK_SIZE - 1))
    ]
    return not unicodedata.combining(first) and not entry & NFC_MAYBE
