"""The words of one text as hashes, with their bounds in the text as it was given.

The hashes are of the folded and normalised text, as in shingles. The bounds are of the original:
where normalisation changes characters, they are mapped back.
"""

from __future__ import annotations

import dataclasses
import unicodedata
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from neardup.config import Config
from neardup.kernels.folding import INVISIBLE
from neardup.kernels.keys import shingle_key
from neardup.kernels.text_words import text_words
from neardup.kernels.unicode import (
    BLOCK_SHIFT,
    BLOCK_SIZE,
    NFC_MAYBE,
    fold_accents,
    load_table,
    normalise,
)

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]
_LINE_FEED: Final = 0x0A


@dataclasses.dataclass(frozen=True)
class WordsInText:
    """The words of a text.

    Attributes:
        source: the UTF-8 bytes of the text.
        hashes: one hash a word; equal words have equal hashes.
        bounds: first byte of each word in `source`, and the byte behind it.
    """

    source: U8
    hashes: U64
    bounds: I64

    @property
    def num_bytes(self) -> int:
        """The memory that the words take."""
        return self.source.nbytes + self.hashes.nbytes + 2 * self.bounds.nbytes

    @cached_property
    def characters(self) -> I64:
        """The bounds of the words in code points instead of bytes."""
        continues = (self.source & 0xC0) == 0x80
        if not continues.any():
            return self.bounds
        before = np.cumsum(np.r_[0, ~continues], dtype=np.int64)
        return before[self.bounds]

    def lines_of(self, words: I64) -> I64:
        """Return the line, from 1, that each of these words stands in."""
        breaks = np.flatnonzero(self.source == _LINE_FEED)
        lines: I64 = np.searchsorted(breaks, self.bounds[words, 0]) + 1
        return lines


def words_of(text: str, config: Config) -> WordsInText:
    """Return the words of a text, cut and folded as the words of shingles are.

    >>> words_of("To be, or", Config()).bounds.tolist()
    [[0, 2], [3, 5], [7, 9]]
    """
    source = _readonly(text.encode())
    rewrites = config.normalise != "nfc" or config.fold_accents
    if not rewrites or text.isascii():
        hashes, bounds, is_normal = _find_words(source, config)
        if is_normal:
            return WordsInText(source, hashes, bounds)
    rewritten, old_edges, new_edges = _rewrite(text, config)
    hashes, bounds, _ = _find_words(_readonly(rewritten), config)
    # A word that begins or ends within rewritten characters takes all of them.
    first = old_edges[np.searchsorted(new_edges, bounds[:, 0], side="right") - 1]
    stop = old_edges[np.searchsorted(new_edges, bounds[:, 1], side="left")]
    return WordsInText(source, hashes, np.stack([first, stop], axis=1))


def _find_words(source: U8, config: Config) -> tuple[U64, I64, bool]:
    hashes = np.empty(source.size + 1, np.uint64)
    bounds = np.empty((source.size + 1, 2), np.int64)
    ends = np.empty(2, np.int64)
    is_normal = np.empty(1, np.bool_)
    text_words(
        source,
        np.array([0, source.size], np.int64),
        tuple(load_table(separates_invisible=config.separates_invisible)),
        shingle_key(config.seed),
        config.fold_numbers,
        hashes,
        bounds,
        ends,
        is_normal,
    )
    # Copies: the room is several times what most texts fill.
    return hashes[: ends[1]].copy(), bounds[: ends[1]].copy(), bool(is_normal[0])


def _rewrite(text: str, config: Config) -> tuple[bytes, I64, I64]:
    """Return the normalised text, and the edges of its pieces in bytes of the original and of the result.

    No character before a piece changes how the piece is normalised.
    """
    points = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    distinct, numbers = np.unique(points, return_inverse=True)
    starts_piece = np.array([_starts_piece(chr(point), config) for point in distinct.tolist()])
    starts_piece = starts_piece[numbers]
    starts_piece[:1] = True
    starts = np.flatnonzero(starts_piece).tolist()
    rewritten: list[bytes] = []
    sizes: list[int] = []
    known: dict[str, bytes] = {}
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        piece = text[start:stop]
        if piece not in known:
            known[piece] = _normal_form(piece, config).encode()
        rewritten.append(known[piece])
        sizes.append(len(piece.encode()))
    old_edges = np.cumsum([0, *sizes], dtype=np.int64)
    new_edges = np.cumsum([0, *map(len, rewritten)], dtype=np.int64)
    return b"".join(rewritten), old_edges, new_edges


def _starts_piece(character: str, config: Config) -> bool:
    """Whether normalisation never joins a character with what stands before it."""
    if _entry(character) & INVISIBLE and not config.separates_invisible:
        return False
    first = unicodedata.normalize("NFKD" if config.normalise == "nfkc" else "NFD", character)[0]
    return not unicodedata.combining(first) and not _entry(first) & NFC_MAYBE


def _entry(character: str) -> int:
    table = load_table()
    point = ord(character)
    block = int(table.index[point >> BLOCK_SHIFT])
    return int(table.entries[block * BLOCK_SIZE + point % BLOCK_SIZE])


def _normal_form(text: str, config: Config) -> str:
    normal = normalise(text, config.normalise, separates_invisible=config.separates_invisible)
    return fold_accents(normal) if config.fold_accents else normal


def _readonly(data: bytes) -> U8:
    """Return a read-only view: Numba compiles kernels for writable and read-only arrays separately."""
    view = np.frombuffer(data, np.uint8)
    view.flags.writeable = False
    return view
