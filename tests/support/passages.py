"""Passages of two texts in plain Python, and texts that are copied with edits; imports nothing of neardup."""

from __future__ import annotations

import random
from collections.abc import Sequence


def shared_runs(a: Sequence, b: Sequence, min_words: int) -> list[tuple[int, int, int]]:
    """(start in a, leftmost start in b, words) of the runs that lie in no longer one, by a dynamic programme."""
    lengths = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for at in range(len(a) - 1, -1, -1):
        for other in range(len(b) - 1, -1, -1):
            if a[at] == b[other]:
                lengths[at][other] = lengths[at + 1][other + 1] + 1
    runs = []
    reached = 0
    for at in range(len(a)):
        longest = max(lengths[at])
        if longest >= min_words and at + longest > reached:
            runs.append((at, lengths[at].index(longest), longest))
        reached = max(reached, at + longest)
    return runs


def edited(words: Sequence[str], rng: random.Random, share: float) -> list[str]:
    """Change, drop or add about a share of the words, and swap neighbours."""
    changed = []
    for word in words:
        draw = rng.random()
        if draw < share / 3:
            continue
        changed.append(f"changed{rng.randrange(10**6)}" if draw < 2 * share / 3 else word)
        if 2 * share / 3 < draw < share:
            changed.append(f"added{rng.randrange(10**6)}")
    for at in range(0, len(changed) - 1, 7):
        changed[at], changed[at + 1] = changed[at + 1], changed[at]
    return changed


def prose(rng: random.Random, num_words: int, vocabulary: int = 4000) -> list[str]:
    """Words as frequent as in prose: the n-th word about 1 / n times as frequent as the first."""
    return [f"w{int(vocabulary ** rng.random())}" for _ in range(num_words)]
