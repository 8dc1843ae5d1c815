"""Conversion between the similarity and the distance of each measure."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final, NamedTuple

# The largest coordinate for Euclidean distance; squares of larger ones overflow.
LARGEST_NUMBER: Final = 1e150


class Scale(NamedTuple):
    """Converts similarity to distance and back; Hamming distance also needs the dimension."""

    distance: Callable[[float, int], float]
    similarity: Callable[[float, int], float]
    bounds: str
    is_within: Callable[[float, int], bool]


def _from_one(value: float) -> float:
    """Return 1 - value in decimal arithmetic: 0.3 for 0.7, not the next double above it."""
    return float(1 - Decimal(repr(float(value))))


_COMPLEMENT: Final = Scale(
    lambda similarity, _: _from_one(similarity),
    lambda distance, _: _from_one(distance),
    "in [0, 1)",
    lambda value, _: 0 <= value < 1,
)
SCALES: Final = {
    "jaccard": _COMPLEMENT,
    "containment": _COMPLEMENT,
    "weighted": _COMPLEMENT,
    "cosine": _COMPLEMENT,
    "hamming": Scale(
        lambda similarity, dimension: (1 - similarity) * dimension,
        lambda distance, dimension: (dimension - distance) / dimension,
        "of bits from 0 to less than all of them",
        lambda value, dimension: 0 <= value < dimension,
    ),
    "euclidean": Scale(
        lambda similarity, _: 1 / similarity - 1,
        lambda distance, _: 1 / (1 + distance),
        "0, or from 1e-9 to 1e150: smaller distances are indistinguishable, and squares of larger ones overflow",
        lambda value, _: value == 0 or 1e-9 <= value <= LARGEST_NUMBER,
    ),
}
