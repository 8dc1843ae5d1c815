"""Locality-sensitive families: the collision probability by distance, and its amplification by AND, OR and cascades.

A family of hash functions is (d1, d2, p1, p2)-sensitive if two items at most d1 apart agree with a
chance of at least p1, and two items at least d2 apart with a chance of at most p2. `all_of(r)`
agrees if all of r independent functions agree, p^r; `any_of(b)` if at least one of b does, 1 - (1 -
p)^b; bands of rows are `all_of(r).any_of(b)`.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable
from typing import Final, NamedTuple

from neardup.config.checks import check_int
from neardup.config.distances import SCALES
from neardup.errors import ConfigError

# Bucket width of the Euclidean family, relative to the distance at the threshold: pairs at that
# distance agree with chance 0.80, pairs three times as far apart with 0.47.
WIDTH_RATIO: Final = 4.0
_HALF_CIRCLE: Final = 180.0
_BISECTIONS: Final = 60


class Sensitivity(NamedTuple):
    """Items at most `near` apart agree with chance >= `chance_near`, at least `far` apart with <= `chance_far`."""

    near: float
    far: float
    chance_near: float
    chance_far: float


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """A family of hash functions, given by the chance that two items agree, which never increases with their distance.

    Attributes:
        name: the family, with its amplification.
        collide: returns the chance at a distance.
        largest: the largest possible distance.
    """

    name: str
    collide: Callable[[float], float]
    largest: float

    def chance(self, distance: float) -> float:
        """Return the chance that two items at this distance agree.

        >>> round(jaccard_family().all_of(4).any_of(4).chance(0.8), 4)
        0.0064
        """
        if (
            not isinstance(distance, numbers.Real)
            or isinstance(distance, bool)
            or not 0 <= distance <= self.largest
        ):
            raise ConfigError(
                f"`distance` must be a number in [0, {self.largest:g}], got {distance!r}"
            )
        return self.collide(float(distance))

    def sensitivity(self, near: float, far: float) -> Sensitivity:
        """Return (d1, d2, p1, p2) of this family.

        >>> tuple(jaccard_family().sensitivity(0.25, 0.75))
        (0.25, 0.75, 0.75, 0.25)
        """
        chances = self.chance(near), self.chance(far)
        if near > far:
            raise ConfigError(
                f"`near` must be at most `far`, got {near!r} > {far!r}", hint="swap the two"
            )
        return Sensitivity(near, far, *chances)

    def all_of(self, rows: int) -> Family:
        """Return the family that agrees if `rows` independent functions all agree: AND, p^r."""
        check_int("rows", rows, 1)
        return Family(
            name=f"{self.name}, all of {rows}",
            collide=lambda distance: and_chance(self.collide(distance), rows),
            largest=self.largest,
        )

    def any_of(self, bands: int) -> Family:
        """Return the family that agrees if at least one of `bands` independent functions agrees: OR, 1 - (1 - p)^b."""
        check_int("bands", bands, 1)
        return Family(
            name=f"{self.name}, any of {bands}",
            collide=lambda distance: or_chance(self.collide(distance), bands),
            largest=self.largest,
        )


def and_chance(chance: float, rows: int) -> float:
    """Return the chance that all of `rows` independent functions agree.

    >>> and_chance(0.5, 3)
    0.125
    """
    return float(chance**rows)


def or_chance(chance: float, bands: int) -> float:
    """Return the chance that at least one of `bands` independent functions agrees.

    >>> or_chance(0.5, 3)
    0.875
    """
    if chance >= 1:
        return 1.0
    return -math.expm1(bands * math.log1p(-chance))


def jaccard_family() -> Family:
    """Return the family of MinHash, for sets or weighted sets, by Jaccard distance: p = 1 - d."""
    return Family(name="jaccard", collide=lambda distance: 1 - distance, largest=1.0)


def hamming_family(dimension: int) -> Family:
    """Return the family of bit sampling on `dimension` bits, by the number of bits that differ: p = 1 - d/m."""
    check_int("dimension", dimension, 1)
    return Family(
        name="hamming", collide=lambda distance: 1 - distance / dimension, largest=float(dimension)
    )


def angle_family() -> Family:
    """Return the family of random hyperplanes by the angle in degrees, as in textbooks: p = 1 - angle/180.

    >>> tuple(angle_family().sensitivity(60, 120))
    (60, 120, 0.6666666666666667, 0.33333333333333337)
    """
    return Family(
        name="angle", collide=lambda degrees: 1 - degrees / _HALF_CIRCLE, largest=_HALF_CIRCLE
    )


def cosine_family() -> Family:
    """Return the family of random hyperplanes by cosine distance, 1 - cosine: p = 1 - angle/pi."""
    return Family(name="cosine", collide=lambda distance: _angle_chance(1 - distance), largest=2.0)


def euclidean_family(width: float) -> Family:
    """Return the family of projections on random lines with buckets of `width`, by Euclidean distance.

    >>> round(euclidean_family(4.0).chance(1.0), 4)
    0.8005
    """
    if not isinstance(width, numbers.Real) or not 0 < width < math.inf:
        raise ConfigError(f"`width` must be a number above 0, got {width!r}")
    return Family(
        name="euclidean", collide=lambda distance: _line_chance(distance, width), largest=math.inf
    )


def _angle_chance(cosine: float) -> float:
    angle = math.acos(min(1.0, max(-1.0, cosine)))
    return 1 - angle / math.pi


def _line_chance(distance: float, width: float) -> float:
    """The chance that a 2-stable projection puts two points in one bucket (Datar, Immorlica, Indyk, Mirrokni, 2004)."""
    if distance == 0:
        return 1.0
    ratio = width / distance
    if ratio < 1e-6:  # below, the difference of two nearly equal terms cancels; the limit is linear
        return ratio / math.sqrt(2 * math.pi)
    scale = 2 / (math.sqrt(2 * math.pi) * ratio)
    cut = scale * -math.expm1(-ratio * ratio / 2)
    chance = math.erf(ratio / math.sqrt(2)) - cut
    return min(1.0, max(0.0, chance))


def bucket_width(threshold: float) -> float:
    """Return the bucket width of the Euclidean family for a threshold; at 1, where only equal points count, any width.

    >>> bucket_width(0.5)
    4.0
    """
    if threshold < 1:
        return WIDTH_RATIO * SCALES["euclidean"].distance(threshold, 0)
    return 1.0


def slot_chance(measure: str, similarity: float, width: float = 0.0) -> float:
    """Return the chance that one slot agrees for two items of this similarity.

    >>> slot_chance("jaccard", 0.8), round(slot_chance("cosine", 0.5), 6)
    (0.8, 0.666667)
    """
    if measure == "cosine":
        return _angle_chance(similarity)
    if measure == "euclidean":
        if similarity > 0:
            return _line_chance(SCALES[measure].distance(similarity, 0), width)
        return 0.0
    return similarity


def similarity_at(measure: str, chance: float, width: float = 0.0) -> float:
    """Return the least similarity at which a slot agrees with this chance.

    >>> round(similarity_at("cosine", 2 / 3), 6)
    0.5
    """
    low, high = 0.0, 1.0
    if measure not in ("cosine", "euclidean"):
        return chance
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if slot_chance(measure, middle, width) < chance:
            low = middle
        else:
            high = middle
    return high if high > 1e-15 else 0.0
