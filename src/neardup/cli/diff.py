"""A word-by-word diff of two texts, in time about linear in their size.

Long runs of words that occur once in each text are anchors; only the short gaps between anchors are
compared word by word. Texts of 10 MB take seconds; comparing every word with every other would take
hours.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from neardup.kernels.unicode import drop_invisible

Numbers = npt.NDArray[np.int64]

# Scripts written without spaces, where a character counts as a word (docs/decisions/0002).
_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD: Final = re.compile(f"(?:[{_UNSPACED}]|[^ {_UNSPACED}]+) ?")
_BARE_WORD: Final = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
_BREAK: Final = re.compile("\n")
# Longest first: a long run of words is an anchor even where every word is frequent.
_ANCHOR_WORDS: Final = (16, 4, 1)
# A gap of more cells (words x words) is split by anchors first; all gaps together may take this
# many cells, about 5 s.
_GAP_CELLS: Final = 40_000
_ALL_CELLS: Final = 20_000_000


@dataclasses.dataclass(frozen=True, slots=True)
class Passage:
    """Consecutive words; both sides are the same list if the texts are equal there."""

    is_equal: bool
    words_a: list[str]
    words_b: list[str]


@dataclasses.dataclass(frozen=True, slots=True)
class _Gap:
    """Words [start_a, stop_a) of one text and [start_b, stop_b) of the other, not matched yet."""

    start_a: int
    stop_a: int
    start_b: int
    stop_b: int

    @property
    def cells(self) -> int:
        return (self.stop_a - self.start_a) * (self.stop_b - self.start_b)


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class _Block:
    """`length` equal words from `at_a` and `at_b` on."""

    at_a: int
    at_b: int
    length: int


def split_words(text: str) -> list[str]:
    """Cut a text into words, each with the one space that follows it; other white space counts as a space.

    >>> split_words("to be,  or 灯台")
    ['to ', 'be, ', 'or ', '灯', '台']
    """
    return _WORD.findall(" ".join(text.split()))


def word_lines(text: str) -> Numbers:
    r"""Return the number of the line, from 1, of each word of `split_words`.

    >>> word_lines("to be\n\nor 灯台").tolist()
    [1, 1, 3, 3, 3]
    """
    breaks = np.array([found.start() for found in _BREAK.finditer(text)], np.int64)
    starts = np.array([found.start() for found in _BARE_WORD.finditer(text)], np.int64)
    return np.searchsorted(breaks, starts).astype(np.int64) + 1


def number_words(words_a: list[str], words_b: list[str]) -> tuple[Numbers, Numbers]:
    """Give equal words of two texts equal numbers; the space after a word and invisible characters do not count."""
    numbers: dict[str, int] = {}
    return _number(words_a, numbers), _number(words_b, numbers)


def differ(text_a: str, text_b: str) -> list[Passage]:
    """Return the passages of two texts in order, equal ones and different ones in turn.

    >>> [(p.is_equal, "".join(p.words_a), "".join(p.words_b)) for p in differ("to be or not", "to see or not")]
    [(True, 'to ', 'to '), (False, 'be ', 'see '), (True, 'or not', 'or not')]
    """
    words_a, words_b = split_words(text_a), split_words(text_b)
    ids_a, ids_b = number_words(words_a, words_b)
    passages: list[Passage] = []
    end_a = end_b = 0
    for block in [*_join(sorted(_match(ids_a, ids_b))), _Block(len(words_a), len(words_b), 0)]:
        if end_a < block.at_a or end_b < block.at_b:
            passages.append(
                Passage(False, words_a[end_a : block.at_a], words_b[end_b : block.at_b])
            )
        end_a, end_b = block.at_a + block.length, block.at_b + block.length
        if block.length:
            passages.append(Passage(True, words_a[block.at_a : end_a], words_b[block.at_b : end_b]))
    return passages


def _number(words: list[str], numbers: dict[str, int]) -> Numbers:
    bare = (drop_invisible(word.rstrip()) for word in words)
    return np.array([numbers.setdefault(word, len(numbers)) for word in bare], np.int64)


def _match(ids_a: Numbers, ids_b: Numbers) -> Iterator[_Block]:
    gaps = [_Gap(0, ids_a.size, 0, ids_b.size)]
    for num_words in _ANCHOR_WORDS:
        left: list[_Gap] = []
        for gap in gaps:
            rest, *blocks = _trim(ids_a, ids_b, gap)
            yield from blocks
            if rest.cells <= _GAP_CELLS:
                left.append(rest)
                continue
            anchors = _anchors(ids_a, ids_b, rest, num_words)
            yield from anchors
            left += _between(rest, anchors)
        gaps = left
    cells_left = _ALL_CELLS
    for gap in gaps:
        rest, *blocks = _trim(ids_a, ids_b, gap)
        yield from blocks
        if 0 < rest.cells <= min(_GAP_CELLS, cells_left):
            cells_left -= rest.cells
            yield from _match_all(ids_a, ids_b, rest)


def _trim(ids_a: Numbers, ids_b: Numbers, gap: _Gap) -> tuple[_Gap, *tuple[_Block, ...]]:
    """Strip equal words from both ends of a gap."""
    if not gap.cells:
        return (gap,)
    size = min(gap.stop_a - gap.start_a, gap.stop_b - gap.start_b)
    before = _num_equal(
        ids_a[gap.start_a : gap.start_a + size], ids_b[gap.start_b : gap.start_b + size]
    )
    size -= before
    after = _num_equal(
        ids_a[gap.stop_a - size : gap.stop_a][::-1],
        ids_b[gap.stop_b - size : gap.stop_b][::-1],
    )
    rest = _Gap(gap.start_a + before, gap.stop_a - after, gap.start_b + before, gap.stop_b - after)
    blocks = (_Block(gap.start_a, gap.start_b, before), _Block(rest.stop_a, rest.stop_b, after))
    return (rest, *(block for block in blocks if block.length))


def _num_equal(ids_a: Numbers, ids_b: Numbers) -> int:
    """The number of equal words at the start."""
    different = ids_a != ids_b
    return int(different.argmax()) if different.any() else different.size


def _anchors(ids_a: Numbers, ids_b: Numbers, gap: _Gap, num_words: int) -> list[_Block]:
    """The heaviest chain of runs that occur once on each side of a gap, in the same order on both."""
    at_a, keys_a = _single_runs(ids_a[gap.start_a : gap.stop_a], num_words)
    at_b, keys_b = _single_runs(ids_b[gap.start_b : gap.stop_b], num_words)
    _, from_a, from_b = np.intersect1d(keys_a, keys_b, assume_unique=True, return_indices=True)
    order = np.argsort(at_a[from_a])
    at_a, at_b = at_a[from_a][order] + gap.start_a, at_b[from_b][order] + gap.start_b
    if not at_a.size:
        return []
    breaks = np.flatnonzero((np.diff(at_a) != 1) | (np.diff(at_b) != 1)) + 1
    starts, stops = np.r_[0, breaks], np.r_[breaks, at_a.size]
    lengths = stops - starts + num_words - 1
    runs = zip(at_a[starts].tolist(), at_b[starts].tolist(), lengths.tolist(), strict=True)
    return _without_overlap(_heaviest_chain([_Block(*run) for run in runs]), ids_a, ids_b)


def _single_runs(ids: Numbers, num_words: int) -> tuple[Numbers, npt.NDArray[np.uint64]]:
    """The positions of runs of `num_words` words that occur once, and a hash of each."""
    if ids.size < num_words:
        return np.empty(0, np.int64), np.empty(0, np.uint64)
    keys = np.zeros(ids.size - num_words + 1, np.uint64)
    for offset in range(num_words):
        keys = (
            keys * np.uint64(0x9E3779B97F4A7C15)
            + ids[offset : offset + keys.size].astype(np.uint64)
            + np.uint64(1)
        )
    single, at, counts = np.unique(keys, return_index=True, return_counts=True)
    return at[counts == 1].astype(np.int64), single[counts == 1]


def _heaviest_chain(runs: list[_Block]) -> list[_Block]:
    """Of runs ordered by a, choose the increasing subsequence in b with the most words in total."""
    ends: list[int] = []  # at_b of chains worth continuing; both at_b and the weights increase
    weights: list[int] = []
    tails: list[int] = []
    before: list[int] = []
    for number, run in enumerate(runs):
        at = bisect_left(ends, run.at_b)
        weight = run.length + (weights[at - 1] if at else 0)
        before.append(tails[at - 1] if at else -1)
        stop = at
        while stop < len(ends) and weights[stop] <= weight:
            stop += 1
        ends[at:stop] = [run.at_b]
        weights[at:stop] = [weight]
        tails[at:stop] = [number]
    chain = []
    number = tails[-1]
    while number >= 0:
        chain.append(runs[number])
        number = before[number]
    return chain[::-1]


def _without_overlap(chain: list[_Block], ids_a: Numbers, ids_b: Numbers) -> list[_Block]:
    """Cut runs that begin inside the previous one; drop those whose hashes merely collide."""
    blocks: list[_Block] = []
    end_a = end_b = 0
    for run in chain:
        skip = max(0, end_a - run.at_a, end_b - run.at_b)
        block = _Block(run.at_a + skip, run.at_b + skip, run.length - skip)
        end = (block.at_a + block.length, block.at_b + block.length)
        if block.length > 0 and np.array_equal(
            ids_a[block.at_a : end[0]], ids_b[block.at_b : end[1]]
        ):
            blocks.append(block)
            end_a, end_b = end
    return blocks


def _between(gap: _Gap, blocks: list[_Block]) -> Iterator[_Gap]:
    start_a, start_b = gap.start_a, gap.start_b
    for block in [*blocks, _Block(gap.stop_a, gap.stop_b, 0)]:
        yield _Gap(start_a, block.at_a, start_b, block.at_b)
        start_a, start_b = block.at_a + block.length, block.at_b + block.length


def _match_all(ids_a: Numbers, ids_b: Numbers, gap: _Gap) -> Iterator[_Block]:
    """Compare every word of one text with every word of the other."""
    words_a, words_b = (
        ids_a[gap.start_a : gap.stop_a].tolist(),
        ids_b[gap.start_b : gap.stop_b].tolist(),
    )
    for match in difflib.SequenceMatcher(
        None, words_a, words_b, autojunk=False
    ).get_matching_blocks():
        if match.size:
            yield _Block(gap.start_a + match.a, gap.start_b + match.b, match.size)


def _join(blocks: list[_Block]) -> list[_Block]:
    """Join blocks that touch in both texts."""
    joined: list[_Block] = []
    for block in blocks:
        last = joined[-1] if joined else None
        if last and (last.at_a + last.length, last.at_b + last.length) == (block.at_a, block.at_b):
            joined[-1] = _Block(last.at_a, last.at_b, last.length + block.length)
        else:
            joined.append(block)
    return joined
