"""A word-by-word or line-by-line diff of two texts, in time about linear in their size.

Runs of words that occur once in each text are anchors; only the short gaps between anchors are
compared word by word. Texts of 10 MB take seconds; comparing every word with every other would take
hours.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

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
class DiffBlock:
    """Consecutive words, or lines; both sides are the same list if the texts are equal there."""

    is_equal: bool
    words_a: list[str]
    words_b: list[str]


class _Gap(NamedTuple):
    """Words [start_a, stop_a) of one text and [start_b, stop_b) of the other, not matched yet."""

    start_a: int
    stop_a: int
    start_b: int
    stop_b: int

    @property
    def cells(self) -> int:
        return (self.stop_a - self.start_a) * (self.stop_b - self.start_b)


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
    breaks = [found.start() for found in _BREAK.finditer(text)]
    starts = [found.start() for found in _BARE_WORD.finditer(text)]
    lines = np.searchsorted(np.array(breaks, np.int64), np.array(starts, np.int64))
    return lines.astype(np.int64) + 1


def number_words(words_a: list[str], words_b: list[str]) -> tuple[Numbers, Numbers]:
    """Give equal words, or lines, of two texts equal numbers.

    White space around and between words and invisible characters do not count.
    """
    numbers: dict[str, int] = {}
    return _number(words_a, numbers), _number(words_b, numbers)


def _number(words: list[str], numbers: dict[str, int]) -> Numbers:
    # Most words are frequent, so each is cleaned once.
    known: dict[str, int] = {}
    for word in set(words):
        plain = drop_invisible(" ".join(word.split()))
        known[word] = numbers.setdefault(plain, len(numbers))
    return np.fromiter(map(known.__getitem__, words), np.int64, len(words))


def differ(text_a: str, text_b: str) -> list[DiffBlock]:
    """Return the blocks of two texts in order, equal ones and different ones in turn.

    >>> [(p.is_equal, "".join(p.words_a), "".join(p.words_b)) for p in differ("to be or not", "to see or not")]
    [(True, 'to ', 'to '), (False, 'be ', 'see '), (True, 'or not', 'or not')]
    """
    return list(_blocks(split_words(text_a), split_words(text_b)))


def differ_by_lines(text_a: str, text_b: str) -> list[DiffBlock]:
    r"""Return the blocks of two texts as `differ` does, but of whole lines.

    >>> [(p.is_equal, p.words_a, p.words_b) for p in differ_by_lines("to\nbe", "to\nsee")]
    [(True, ['to'], ['to']), (False, ['be'], ['see'])]
    """
    return list(_blocks(text_a.split("\n"), text_b.split("\n")))


class Difference(NamedTuple):
    """Words [start_a, stop_a) of one text stand where the other has [start_b, stop_b)."""

    start_a: int
    stop_a: int
    start_b: int
    stop_b: int


def find_words(text: str) -> Numbers:
    """Return where each word of `split_words` starts and ends in a text, in characters.

    >>> find_words("to be,  or 灯台").tolist()
    [[0, 2], [3, 6], [8, 10], [11, 12], [12, 13]]
    """
    spans = [found.span() for found in _BARE_WORD.finditer(text)]
    return np.array(spans, np.int64).reshape(-1, 2)


def find_differences(words_a: list[str], words_b: list[str]) -> list[Difference]:
    """Return where two lists of words differ, in order; all between the differences is equal.

    >>> find_differences("to be or not".split(), "to see or not".split())
    [Difference(start_a=1, stop_a=2, start_b=1, stop_b=2)]
    """
    ids_a, ids_b = number_words(words_a, words_b)
    partners = _partners(ids_a, ids_b)
    matched = np.flatnonzero(partners >= 0)
    whole = _Gap(0, len(words_a), 0, len(words_b))
    return [Difference(*gap) for gap in _between(whole, matched, partners[matched])]


def _blocks(words_a: list[str], words_b: list[str]) -> Iterator[DiffBlock]:
    end_a = end_b = 0
    for gap in find_differences(words_a, words_b):
        if gap.start_a > end_a:
            yield DiffBlock(True, words_a[end_a : gap.start_a], words_b[end_b : gap.start_b])
        yield DiffBlock(False, words_a[gap.start_a : gap.stop_a], words_b[gap.start_b : gap.stop_b])
        end_a, end_b = gap.stop_a, gap.stop_b
    if end_a < len(words_a):
        yield DiffBlock(True, words_a[end_a:], words_b[end_b:])


def _partners(ids_a: Numbers, ids_b: Numbers) -> Numbers:
    """Match words of a with equal words of b, in the same order: their positions in b, -1 without a match."""
    partners = np.full(ids_a.size, -1, np.int64)
    gaps = [_Gap(0, ids_a.size, 0, ids_b.size)]
    for num_words in _ANCHOR_WORDS:
        left: list[_Gap] = []
        for gap in gaps:
            rest = _trim(ids_a, ids_b, gap, partners)
            if rest.cells <= _GAP_CELLS:
                left.append(rest)
                continue
            at_a, at_b = _anchors(ids_a, ids_b, rest, num_words)
            partners[at_a] = at_b
            left += _between(rest, at_a, at_b)
        gaps = left
    cells_left = _ALL_CELLS
    for gap in gaps:
        rest = _trim(ids_a, ids_b, gap, partners)
        if 0 < rest.cells <= min(_GAP_CELLS, cells_left):
            cells_left -= rest.cells
            _match_all(ids_a, ids_b, rest, partners)
    return partners


def _trim(ids_a: Numbers, ids_b: Numbers, gap: _Gap, partners: Numbers) -> _Gap:
    """Match equal words at both ends of a gap; return what is left of it."""
    start_a, stop_a, start_b, stop_b = gap
    size = min(stop_a - start_a, stop_b - start_b)
    before = _num_equal(ids_a[start_a : start_a + size], ids_b[start_b : start_b + size])
    partners[start_a : start_a + before] = np.arange(start_b, start_b + before)
    size -= before
    after = _num_equal(ids_a[stop_a - size : stop_a][::-1], ids_b[stop_b - size : stop_b][::-1])
    partners[stop_a - after : stop_a] = np.arange(stop_b - after, stop_b)
    return _Gap(start_a + before, stop_a - after, start_b + before, stop_b - after)


def _num_equal(ids_a: Numbers, ids_b: Numbers) -> int:
    """The number of equal words at the start."""
    different = ids_a != ids_b
    return int(different.argmax()) if different.any() else different.size


def _anchors(ids_a: Numbers, ids_b: Numbers, gap: _Gap, num_words: int) -> tuple[Numbers, Numbers]:
    """The starts of runs of words that occur once on each side of a gap, as many as have the same order on both."""
    at_a, keys_a = _single_runs(ids_a[gap.start_a : gap.stop_a], num_words)
    at_b, keys_b = _single_runs(ids_b[gap.start_b : gap.stop_b], num_words)
    _, from_a, from_b = np.intersect1d(keys_a, keys_b, assume_unique=True, return_indices=True)
    order = np.argsort(at_a[from_a])
    at_a = at_a[from_a][order] + gap.start_a
    at_b = at_b[from_b][order] + gap.start_b
    is_equal = ids_a[at_a] == ids_b[at_b]  # keys of different words may collide
    at_a, at_b = at_a[is_equal], at_b[is_equal]
    chosen = _longest_increasing(at_b.tolist())
    return at_a[chosen], at_b[chosen]


def _single_runs(ids: Numbers, num_words: int) -> tuple[Numbers, npt.NDArray[np.uint64]]:
    """The positions of runs of `num_words` words that occur once, and a hash of each."""
    if ids.size < num_words:
        return np.empty(0, np.int64), np.empty(0, np.uint64)
    keys = np.zeros(ids.size - num_words + 1, np.uint64)
    for offset in range(num_words):
        added = ids[offset : offset + keys.size].astype(np.uint64)
        keys = keys * np.uint64(0x9E3779B97F4A7C15) + added + np.uint64(1)
    single, at, counts = np.unique(keys, return_index=True, return_counts=True)
    return at[counts == 1].astype(np.int64), single[counts == 1]


def _longest_increasing(values: list[int]) -> Numbers:
    """The positions of a longest increasing subsequence."""
    ends: list[
        int
    ] = []  # of the subsequences of each length, the smallest last value, and where it is
    tails: list[int] = []
    before: list[int] = []
    for number, value in enumerate(values):
        length = bisect_left(ends, value)
        ends[length : length + 1] = [value]
        tails[length : length + 1] = [number]
        before.append(tails[length - 1] if length else -1)
    chosen = np.empty(len(tails), np.int64)
    number = tails[-1] if tails else -1
    for length in reversed(range(len(tails))):
        chosen[length] = number
        number = before[number]
    return chosen


def _between(gap: _Gap, at_a: Numbers, at_b: Numbers) -> list[_Gap]:
    """What is left of a gap between the words that were matched in it."""
    all_a = np.r_[gap.start_a - 1, at_a, gap.stop_a]
    all_b = np.r_[gap.start_b - 1, at_b, gap.stop_b]
    breaks = np.flatnonzero((np.diff(all_a) > 1) | (np.diff(all_b) > 1))
    bounds = (all_a[breaks] + 1, all_a[breaks + 1], all_b[breaks] + 1, all_b[breaks + 1])
    return [_Gap(*gap) for gap in zip(*(side.tolist() for side in bounds), strict=True)]


def _match_all(ids_a: Numbers, ids_b: Numbers, gap: _Gap, partners: Numbers) -> None:
    """Compare every word of one text with every word of the other."""
    words_a = ids_a[gap.start_a : gap.stop_a].tolist()
    words_b = ids_b[gap.start_b : gap.stop_b].tolist()
    matcher = difflib.SequenceMatcher(None, words_a, words_b, autojunk=False)
    for match in matcher.get_matching_blocks():
        at_a = gap.start_a + match.a
        at_b = gap.start_b + match.b
        partners[at_a : at_a + match.size] = np.arange(at_b, at_b + match.size)
