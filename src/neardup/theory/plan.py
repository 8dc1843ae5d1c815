"""The plan: the method, bands and rows that keep the promised recall, and the chance of being found by similarity.

P(s) = 1 - (1 - p(s)^r)^b is the chance that two documents of similarity s share one of b bands of r
rows, where p(s)
is the chance that one slot agrees: s itself for Jaccard, 1 - angle/pi for cosine (families.py).
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from neardup import html_view
from neardup.config import Config
from neardup.config.checks import (
    NUM_PERM_CHOICES,
    SET_MEASURES,
    asks_containment,
    num_perm_choices,
)
from neardup.config.distances import SCALES
from neardup.errors import ConfigError
from neardup.theory import families

# The share of true pairs at the threshold that the signature filter may drop; counted in the
# promised recall.
FILTER_LOSS: Final = 1e-4
# Measures for which comparing signatures is much cheaper than comparing items.
FILTERED_MEASURES: Final = ("jaccard", "weighted", "cosine")
_AREA_STEPS: Final = 2000
_CURVE_STEPS: Final = 100


def s_curve(similarity: float, bands: int, rows: int) -> float:
    """Return the chance that two documents of this similarity share a bucket.

    >>> round(s_curve(0.8, bands=20, rows=5), 5)
    0.99964
    """
    return families.or_chance(families.and_chance(similarity, rows), bands)


def curve_threshold(bands: int, rows: int) -> float:
    """Return (1/b)^(1/r), about where the S-curve is steepest.

    >>> round(curve_threshold(bands=20, rows=5), 3)
    0.549
    """
    return float((1 / bands) ** (1 / rows))


def _integral(function: Callable[[float], float], low: float, high: float) -> float:
    """Simpson's rule; the curve is smooth, so 2,000 steps leave an error below 1e-9."""
    step = (high - low) / _AREA_STEPS
    values = [function(low + at * step) for at in range(1, _AREA_STEPS)]
    inner = math.fsum(
        [*(4 * value for value in values[::2]), *(2 * value for value in values[1::2])]
    )
    return (function(low) + inner + function(high)) * step / 3


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Bands, rows and method of a run, and what they promise.

    The exact join finds every pair; it has 0 bands of 0 rows. `width` is the bucket width of the
    Euclidean family, `dimension` the dimension of vectors, and `estimate` the forecast of a run, if
    known; `reason` says why this method was chosen, with method="auto"; `shared_words` is the least
    number of words of the passages by which pairs were chosen, None if by similarity.
    """

    threshold: float
    recall: float
    num_perm: int
    bands: int
    rows: int
    method: str
    min_agreement: int
    measure: str = "jaccard"
    width: float | None = None
    dimension: int | None = None
    estimate: Any = None
    reason: str | None = None
    shared_words: int | None = None

    @property
    def is_exact(self) -> bool:
        """Whether every pair is found."""
        return self.method == "exact"

    @property
    def shape(self) -> str:
        """The method in a few words."""
        if self.is_exact:
            return "exact join" if self.measure in SET_MEASURES else "exact comparison of all pairs"
        bands = "band" if self.bands == 1 else "bands"
        rows = "row" if self.rows == 1 else "rows"
        return f"{self.bands} {bands} x {self.rows} {rows}"

    def chance(self, similarity: float) -> float:
        """Return the chance that two documents of this similarity share a bucket: the pure S-curve.

        For the exact join it is the chance of being found: 0 below the threshold, 1 at and above
        it.
        """
        if not isinstance(similarity, numbers.Real) or not 0 <= similarity <= 1:
            raise ConfigError(f"`similarity` must be a number in [0, 1], got {similarity!r}")
        if self.is_exact:
            return float(similarity >= self.threshold)
        return s_curve(self.slot_chance(similarity), self.bands, self.rows)

    def slot_chance(self, similarity: float) -> float:
        """Return the chance that one slot agrees for two documents of this similarity."""
        return families.slot_chance(self.measure, similarity, self.width or 0.0)

    @property
    def distance(self) -> float | None:
        """The threshold as a distance of the measure; None for bits whose dimension is unknown."""
        if self.measure == "hamming" and self.dimension is None:
            return None
        # Rounded, so that 1 - 0.8 is 0.2.
        return round(SCALES[self.measure].distance(self.threshold, self.dimension or 0), 12)

    @property
    def recall_at_threshold(self) -> float:
        """The chance that a pair exactly at the threshold is found: the S-curve minus the loss of the filter."""
        shared = self.chance(self.threshold)
        if self.min_agreement and self.threshold < 1:
            return shared - FILTER_LOSS
        return shared

    @property
    def keeps_recall(self) -> bool:
        """Whether the plan reaches the requested recall."""
        return self.recall_at_threshold >= self.recall

    @property
    def curve_threshold(self) -> float:
        """The similarity where a slot agrees with chance (1/b)^(1/r), near the steepest point; exact: the threshold."""
        if self.is_exact:
            return self.threshold
        chance = curve_threshold(self.bands, self.rows)
        return families.similarity_at(self.measure, chance, self.width or 0.0)

    @property
    def false_positive_area(self) -> float:
        """The area under the S-curve left of the threshold: buckets shared by documents that are not a pair."""
        if self.is_exact:
            return 0.0
        return _integral(self.chance, 0.0, self.threshold)

    @property
    def false_negative_area(self) -> float:
        """The area above the S-curve right of the threshold: pairs that share no bucket."""
        if self.is_exact:
            return 0.0

        def missed(similarity: float) -> float:
            return 1 - self.chance(min(1.0, similarity))

        return _integral(missed, self.threshold, 1.0)

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        other: Plan | None = None,
        by_distance: bool = False,
    ) -> Any:
        """Draw the S-curve with the threshold and both areas of error; return the Matplotlib figure.

        Args:
            path: the file to write, .svg or .png; without it nothing is written.
            other: a second plan, whose curve is drawn beside this one.
            by_distance: label the axis with distances instead of similarities.

        >>> figure = plan_for(Config(threshold=0.9)).plot()
        >>> figure.axes[0].get_xlabel()
        'similarity of two documents'
        """
        from neardup.theory.plot import plot

        target = None if path is None else os.fspath(path)
        return plot(self, target, other=other, by_distance=by_distance)

    def judgement(self) -> str:
        """Say in one line what this choice finds.

        >>> plan_for(Config(bands=9, rows=13)).judgement()
        '9 bands x 13 rows find 40 % of pairs at 0.8 (target 99 %)'
        """
        if self.is_exact:
            return f"the exact method finds every pair with {self._scale} >= {self.threshold:g}"
        find = "finds" if self.bands == 1 else "find"
        found = f"{self.shape} {find} {spell_ratio(self.recall_at_threshold, self.recall)} of pairs"
        if self.keeps_recall:
            asked = ""
        else:
            asked = f" (target {self.recall * 100:g} %)"
        return f"{found} at {self.threshold:g}{self._in_distance()}{asked}"

    def finding(self) -> str:
        """Say in one sentence what a run with this plan has found.

        >>> plan_for(Config(threshold=0.8, method="exact")).finding()
        'Every pair with similarity >= 0.8 was found (exact method).'
        >>> plan_for(Config(threshold=0.8)).finding()
        'Each pair with similarity >= 0.8 was found with a probability of at least 99.22 % (LSH, 16 bands x 6 rows).'
        >>> plan_for(Config(bands=9, rows=13)).finding().partition(": ")[2]
        '40 % of those at the threshold are found, the target is 99 % (LSH, 9 bands x 13 rows).'
        """
        if self.shared_words is not None:
            return f"Every listed pair shares a passage of at least {self.shared_words:,} words."
        pairs = f"with {self._scale} >= {self.threshold:g}{self._in_distance()}"
        if self.is_exact:
            return f"Every pair {pairs} was found (exact method)."
        found = spell_ratio(self.recall_at_threshold, self.recall)
        if self.keeps_recall:
            return f"Each pair {pairs} was found with a probability of at least {found} (LSH, {self.shape})."
        asked = f"{self.recall * 100:g} %"
        return (
            f"Pairs {pairs} may have been missed: {found} of those at the threshold are found, the target is {asked} "
            f"(LSH, {self.shape})."
        )

    @property
    def _scale(self) -> str:
        return self.measure if asks_containment(self.measure) else "similarity"

    def _in_distance(self) -> str:
        if self.measure == "jaccard" or asks_containment(self.measure) or self.distance is None:
            return ""
        return f" (distance {self.distance:g})"

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as report.json shows it."""
        values = dataclasses.asdict(self)
        for name in ("estimate", "width", "dimension", "reason", "shared_words"):
            if values[name] is None:
                del values[name]
        return values | {
            "distance": self.distance,
            "recall_at_threshold": self.recall_at_threshold,
            "curve_threshold": self.curve_threshold,
            "false_positive_area": self.false_positive_area,
            "false_negative_area": self.false_negative_area,
        }

    def _repr_html_(self) -> str:
        """Show the plan in a notebook: what it promises, and its S-curve."""
        chances = [self.chance(step / _CURVE_STEPS) for step in range(_CURVE_STEPS + 1)]
        rows = [
            ("method", self.shape),
            ("threshold", self.threshold),
            ("found at the threshold", f"{self.recall_at_threshold:.4%}"),
            ("slots of a signature", self.num_perm),
        ]
        if self.reason:
            rows.append(("reason", self.reason))
        curve = html_view.curve(chances, self.threshold)
        return html_view.view(self.judgement(), html_view.facts(rows), curve)

    def __str__(self) -> str:
        lines = [self.judgement()]
        if not self.is_exact:
            lines.append(f"S-curve threshold (1/b)^(1/r) = {self.curve_threshold:.3f}")
        lines.append("similarity  chance")
        for twentieth in range(4, 21):
            similarity = twentieth / 20
            lines.append(f"{similarity:10.2f}  {self.chance(similarity):.6f}")
        return "\n".join(lines)


def spell_ratio(ratio: float, below: float) -> str:
    """Spell a ratio in percent, with enough digits to tell 99.99 % from 100 %, and less than `below` from `below`."""
    if ratio < 0.01:
        return "less than 1 %"
    if ratio < 0.9 or ratio == 1:
        digits = 0
    else:
        missed_percent = 100 * max(1 - ratio, 1e-8)
        digits = min(6, 1 - math.floor(math.log10(missed_percent)))
    while ratio < below and digits < 6 and round(ratio * 100, digits) >= below * 100:
        digits += 1
    return f"{ratio * 100:.{digits}f} %"


def is_open(config: Config) -> bool:
    """Whether the choice of the method depends on the documents."""
    return config.method == "auto" and _why_settled(config) is None


def _why_settled(config: Config) -> str | None:
    """The reason why the settings alone determine the method; None if the documents decide."""
    if config.recall == 1:
        return "exact join: recall 1 requires every pair"
    if config.asks_containment:
        return "exact join: banding cannot find containment"
    if config.bands is not None or config.rows is not None:
        return "LSH: bands or rows are given"
    if config.threshold == 1 and config.measure in SET_MEASURES:
        return "LSH: at threshold 1 it finds every pair too"
    return None


def as_exact(plan: Plan) -> Plan:
    """Return the plan with the exact join instead of bands."""
    return dataclasses.replace(plan, method="exact", bands=0, rows=0, min_agreement=0)


def plan_for(config: Config) -> Plan:
    """Derive the plan from the settings alone; if the documents decide the method, it is the plan of LSH.

    >>> plan = plan_for(Config(threshold=0.8, recall=0.99))
    >>> plan.bands, plan.rows
    (16, 6)
    """
    if config.measure == "euclidean":
        width = families.bucket_width(config.threshold)
    else:
        width = None
    chance = families.slot_chance(config.measure, _known_threshold(config), width or 0.0)
    exact = Plan(
        threshold=config.threshold,
        recall=config.recall,
        num_perm=config.num_perm,
        bands=0,
        rows=0,
        method="exact",
        min_agreement=0,
        measure=config.measure,
        width=width,
        dimension=config.dimension,
        reason=_why_settled(config) if config.method == "auto" else None,
    )
    if config.asks_exact:
        return exact
    bands, rows = _bands_and_rows(config, chance)
    if _is_filtered(config):
        min_agreement = least_agreement(config.num_perm, chance)
    else:
        min_agreement = 0
    return dataclasses.replace(
        exact, method="lsh", bands=bands, rows=rows, min_agreement=min_agreement
    )


def _is_filtered(config: Config) -> bool:
    return config.signature_filter and config.measure in FILTERED_MEASURES


def _known_threshold(config: Config) -> float:
    if config.measure == "hamming" and config.distance is not None and config.dimension is None:
        raise ConfigError(
            f"`distance` {config.distance:g} is a number of bits, but the total number of bits is unknown",
            hint="give `dimension` too, or `threshold`, the share of equal bits",
        )
    return config.threshold


def _bands_and_rows(config: Config, chance: float) -> tuple[int, int]:
    """Return the plan with the most rows that fits; `chance` is that of one slot at the threshold."""
    if config.bands is not None and config.rows is not None:
        return config.bands, config.rows
    if config.threshold == 1 and config.bands is None and config.rows is None:
        return 1, config.num_perm
    target = _target(config)
    if config.bands is not None:
        fitting = [
            rows
            for rows in range(1, config.num_perm // config.bands + 1)
            if s_curve(chance, config.bands, rows) >= target
        ]
        if fitting:
            return config.bands, fitting[-1]
    else:
        allowed: Sequence[int] = range(config.num_perm, 0, -1)
        if config.rows is not None:
            allowed = [config.rows]
        for rows in allowed:
            bands = _bands_for(chance, target, rows)
            if bands * rows <= config.num_perm:
                return bands, rows
    raise _no_plan(config, chance, target)


def _target(config: Config) -> float:
    """The chance of sharing a bucket that leaves the requested recall after the loss of the signature filter."""
    loss = FILTER_LOSS if _is_filtered(config) and config.threshold < 1 else 0.0
    if config.recall + loss >= 1:
        raise ConfigError(
            f"`recall` {config.recall} leaves no room for the signature filter, which may drop {FILTER_LOSS:g}",
            hint=f"pass a recall below {1 - FILTER_LOSS:g}, or pass signature_filter=False",
        )
    return config.recall + loss


def _bands_for(chance: float, target: float, rows: int) -> int:
    """The fewest bands of `rows` rows whose chance of sharing a bucket is >= target, if a slot agrees with `chance`."""
    if chance == 1:
        return 1
    too_many = NUM_PERM_CHOICES[-1] + 1
    miss = math.log1p(-(chance**rows))
    if miss:
        wanted = math.log1p(-target) / miss
        bands = max(1, math.ceil(min(wanted, float(too_many))))
    else:
        bands = too_many
    while s_curve(chance, bands, rows) < target and bands <= NUM_PERM_CHOICES[-1]:
        bands += 1
    return bands


def _no_plan(config: Config, chance: float, target: float) -> ConfigError:
    asked = f"threshold {config.threshold:g} with recall {config.recall:g}"
    if config.bands is not None:
        best = s_curve(chance, config.bands, 1)
        return ConfigError(
            f"{config.bands} bands cannot reach {asked}: even with 1 row they find {100 * best:.1f} %",
            hint="leave `bands` out, or give `rows` too to accept what they find",
        )
    rows = config.rows or 1
    needed = _bands_for(chance, target, rows) * rows
    choices = num_perm_choices(config.measure, config.sketch)
    fitting = [choice for choice in choices if choice >= needed]
    if fitting:
        hint = f"use num_perm={fitting[0]}"
    else:
        hint = "even num_perm 1024 is not enough: raise the threshold or lower the recall"
    given = f" with {config.rows} rows" if config.rows is not None else ""
    return ConfigError(
        f"no bands and rows{given} within num_perm {config.num_perm} reach {asked}", hint=hint
    )


def least_agreement(num_perm: int, chance: float) -> int:
    """Return the least number of equal slots for a pair at the threshold to pass; at most FILTER_LOSS of them fail.

    The smallest c with P(Bin(num_perm, chance) <= c) >= FILTER_LOSS; `chance` is that of one slot
    at the threshold.

    >>> least_agreement(128, 0.8)
    84
    """
    if chance == 1:
        return num_perm
    below = 0.0
    for agreeing in range(num_perm + 1):
        differing = num_perm - agreeing
        log_ways = (
            math.lgamma(num_perm + 1) - math.lgamma(agreeing + 1) - math.lgamma(differing + 1)
        )
        log_each = agreeing * math.log(chance)
        below += math.exp(log_ways + log_each + differing * math.log1p(-chance))
        if below >= FILTER_LOSS:
            return agreeing
    return num_perm
