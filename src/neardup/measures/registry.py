"""The measures by name."""

from __future__ import annotations

from typing import Final

from neardup.config import Config
from neardup.measures import cosine, euclidean, hamming, jaccard, weighted
from neardup.measures.base import Measure

MEASURES: Final[dict[str, Measure]] = {
    "jaccard": jaccard,
    # What is contained in what is asked of the same sets.
    "containment": jaccard,
    "weighted": weighted,
    "hamming": hamming,
    "cosine": cosine,
    "euclidean": euclidean,
}


def holds_items(config: Config) -> bool:
    """Whether what is compared takes about as much room as what it is made of, so that it can be held in its place."""
    return config.measure == "jaccard" and jaccard.holds_sets(config)


def measure_of(config: Config) -> Measure:
    """Return what the settings mean by similarity."""
    return MEASURES[config.measure]
