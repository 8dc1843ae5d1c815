"""Documents for tests of the index: random texts, of which some are near-copies of others."""

from __future__ import annotations

import random

WORDS = [f"word{number}" for number in range(400)]


def texts(count, seed, *, length=40):
    """Documents by id; about a third differs from an earlier one in a few words."""
    draw = random.Random(seed)
    made = {}
    for number in range(count):
        words = draw.choices(WORDS, k=length)
        if made and draw.random() < 0.35:
            words = draw.choice(list(made.values())).split()
            for _ in range(draw.randrange(4)):
                words[draw.randrange(len(words))] = draw.choice(WORDS)
        made[f"{seed}-{number}"] = " ".join(words)
    return made
