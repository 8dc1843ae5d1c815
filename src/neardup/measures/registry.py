"""The measures by name."""

from __future__ import annotations

from typing import Final

from neardup.config import Config
from neardup.measures import cosine, euclidean, hamming, jaccard, weighted
from neardup.measures.base import Measure

MEASURES: Final[dict[str, Measure]] = {
    "jaccard": jaccard,
    # Containment compares the same sets; questions/containment.py finds the pairs.
    "containment": jaccard,
    "weighted": weighted,
    "hamming": hamming,
    "cosine": cosine,
    "euclidean": euclidean,
}


def holds_items(config: Config) -> bool:
    """Whether items are about as large as their contents, so that they are kept in memory for verification."""
    return config.measure == "jaccard" and jaccard.holds_sets(config)


def measure_of(config: Config) -> Measure:
    """Return the measure that the settings name."""
    return MEASURES[config.measure]
