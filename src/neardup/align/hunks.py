"""Where two texts differ, with the words around: what a page shows of a pair whose texts are too long for it."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.align.word_diff import Difference, find_differences, find_words

# Equal words that are shown before and behind a difference, and the characters they may have.
AROUND: Final = 24
_AROUND_CHARACTERS: Final = 400
# Characters of differing words that are shown of each text; the rest is counted.
MAX_CHARACTERS: Final = 30_000

I64 = npt.NDArray[np.int64]


class Hunk(NamedTuple):
    """Aligned parts of two texts, in characters.

    skipped: equal words between the hunk before it, or the beginning, and this one.
    """

    skipped: int
    start_a: int
    stop_a: int
    start_b: int
    stop_b: int


class Hunks(NamedTuple):
    """All that differs between two texts.

    skipped: equal words behind the last hunk.
    left_out_a, left_out_b: differing words of each text that no hunk contains.
    """

    hunks: list[Hunk]
    skipped: int
    left_out_a: int
    left_out_b: int


def find_hunks(text_a: str, text_b: str, *, max_characters: int = MAX_CHARACTERS) -> Hunks:
    """Return the parts of two texts that differ, each with up to `AROUND` equal words before and behind it.

    Places that are near each other share a hunk. Of more than `max_characters` of differing words, the rest is counted.

    >>> words = " ".join(f"w{number}" for number in range(100))
    >>> found = find_hunks(words, words.replace("w50", "other"))
    >>> found.skipped, [(hunk.skipped, words[hunk.start_a : hunk.stop_a][:7]) for hunk in found.hunks]
    (25, [(26, 'w26 w27')])
    """
    words_a = find_words(text_a)
    words_b = find_words(text_b)
    differences = find_differences(
        [text_a[start:stop] for start, stop in words_a.tolist()],
        [text_b[start:stop] for start, stop in words_b.tolist()],
    )
    is_shown = _choose(differences, words_a, words_b, max_characters)
    # Equal words before each difference and behind the last, less those that a hunk shows.
    equal = _num_equal(differences, len(words_a))
    hunks: list[Hunk] = []
    skipped = 0
    left_out_a = left_out_b = 0
    at = 0
    while at < len(differences):
        first = differences[at]
        if not is_shown[at]:
            skipped += equal[at]
            left_out_a += first.stop_a - first.start_a
            left_out_b += first.stop_b - first.start_b
            at += 1
            continue
        stop = at + 1
        while (
            stop < len(differences)
            and is_shown[stop]
            and _is_near(words_a, differences[stop - 1 : stop + 1])
        ):
            stop += 1
        last = differences[stop - 1]
        before = _num_before(words_a[: first.start_a], words_b[: first.start_b], equal[at])
        after = _num_behind(words_a[last.stop_a :], words_b[last.stop_b :], equal[stop])
        span_a = _characters(words_a, first.start_a - before, last.stop_a + after, len(text_a))
        span_b = _characters(words_b, first.start_b - before, last.stop_b + after, len(text_b))
        hunks.append(Hunk(skipped + equal[at] - before, *span_a, *span_b))
        equal[stop] -= after
        skipped = 0
        at = stop
    return Hunks(hunks, skipped + equal[-1], left_out_a, left_out_b)


def _choose(
    differences: list[Difference], words_a: I64, words_b: I64, max_characters: int
) -> list[bool]:
    """Which differences are shown: in order, as long as there is room for both sides."""
    chosen: list[bool] = []
    room_a = room_b = max_characters
    for difference in differences:
        size_a = _size(words_a, difference.start_a, difference.stop_a)
        size_b = _size(words_b, difference.start_b, difference.stop_b)
        has_room = size_a <= room_a and size_b <= room_b
        chosen.append(has_room)
        if has_room:
            room_a -= size_a
            room_b -= size_b
    return chosen


def _size(words: I64, start: int, stop: int) -> int:
    """The characters from the first to the last of some words."""
    return int(words[stop - 1, 1] - words[start, 0]) if start < stop else 0


def _num_equal(differences: list[Difference], num_words: int) -> list[int]:
    starts = [*(difference.start_a for difference in differences), num_words]
    stops = [0, *(difference.stop_a for difference in differences)]
    return [start - stop for start, stop in zip(starts, stops, strict=True)]


def _is_near(words_a: I64, differences: list[Difference]) -> bool:
    """Whether the words between two differences would be shown anyway."""
    start, stop = differences[0].stop_a, differences[1].start_a
    size = _size(words_a, start, stop)
    return stop - start <= 2 * AROUND and size <= 2 * _AROUND_CHARACTERS


def _num_before(words_a: I64, words_b: I64, num_equal: int) -> int:
    """How many of the last words are shown, of which `num_equal` are equal."""
    fits = [
        int((words[-AROUND:, 0] >= words[-1, 1] - _AROUND_CHARACTERS).sum()) if len(words) else 0
        for words in (words_a, words_b)
    ]
    return min(num_equal, *fits)


def _num_behind(words_a: I64, words_b: I64, num_equal: int) -> int:
    """How many of the first words are shown, of which `num_equal` are equal."""
    fits = [
        int((words[:AROUND, 1] <= words[0, 0] + _AROUND_CHARACTERS).sum()) if len(words) else 0
        for words in (words_a, words_b)
    ]
    return min(num_equal, *fits)


def _characters(words: I64, first: int, stop: int, size: int) -> tuple[int, int]:
    """Where some words start and end in a text of `size` characters; an empty one is between two."""
    if first < stop:
        return int(words[first, 0]), int(words[stop - 1, 1])
    position = int(words[first, 0]) if first < len(words) else size
    return position, position
