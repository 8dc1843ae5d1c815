"""Of renamed copies of code, the size of shingles decides where the threshold is, hardly how well it separates."""

from __future__ import annotations

import io
import keyword
import random
import sysconfig
import tokenize
from pathlib import Path

import pytest

import neardup

NUM_MODULES = 60
RENAMED = 0.1


@pytest.fixture(scope="module")
def code():
    """Modules of the standard library, and copies in which a tenth of all names are others."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("[a-m]*.py"))[:NUM_MODULES]
    rng = random.Random(1)
    documents = {}
    for file in files:
        text = file.read_text("utf-8")
        documents[f"{file.stem}/own"] = text
        documents[f"{file.stem}/copy"] = renamed(text, rng)
    assert len(documents) == 2 * NUM_MODULES
    return documents


def renamed(text, rng):
    others = {}
    lines = text.split("\n")
    for token in reversed(list(tokenize.generate_tokens(io.StringIO(text).readline))):
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string):
            is_renamed = rng.random() < RENAMED
            other = others.setdefault(token.string, f"v{len(others)}" if is_renamed else "")
            if other:
                row, start = token.start
                line = lines[row - 1]
                lines[row - 1] = line[:start] + other + line[token.end[1] :]
    return "\n".join(lines)


def best(documents, size):
    """Return the best F1 of any threshold, and that threshold."""
    pairs = neardup.find_pairs(documents, size=size, threshold=0.1, method="exact").pairs
    found = sorted(pairs.to_pylist(), key=lambda pair: -pair["similarity"])
    right = 0
    scores = []
    for number, pair in enumerate(found, start=1):
        right += pair["doc_a"].split("/")[0] == pair["doc_b"].split("/")[0]
        scores.append((2 * right / (number + NUM_MODULES), pair["similarity"]))
    return max(scores)


def test_size_moves_the_threshold_and_hardly_the_separation_of_renamed_copies(code):
    assert code["bisect/own"] != code["bisect/copy"]
    small, large = (best(code, size) for size in (3, 5))
    assert min(small[0], large[0]) > 0.9
    assert abs(small[0] - large[0]) < 0.03
    assert small[1] > large[1] + 0.05
