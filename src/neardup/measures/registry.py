"""The measures by name; each is imported when the settings name it."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Final

from neardup.config import Config
from neardup.measures.base import Measure

# The module of each measure. Containment compares the same sets; jobs/containment.py finds the
# pairs.
MODULES: Final = {
    "jaccard": "jaccard",
    "containment": "jaccard",
    "weighted": "weighted",
    "hamming": "hamming",
    "cosine": "cosine",
    "euclidean": "euclidean",
}


def holds_items(config: Config) -> bool:
    """Whether items are about as large as their contents, so that they are kept in memory for verification."""
    from neardup.measures import jaccard

    return config.measure == "jaccard" and jaccard.holds_sets(config)


def measure_of(config: Config) -> Measure:
    """Return the measure that the settings name."""
    return _load(MODULES[config.measure])


@cache
def _load(module: str) -> Measure:
    measure: Measure = importlib.import_module(f"neardup.measures.{module}")
    return measure
