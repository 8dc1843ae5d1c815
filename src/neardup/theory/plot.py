"""The S-curve of a plan as a plot."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from neardup.config.distances import SCALES
from neardup.errors import ConfigError, MissingExtraError
from neardup.theory.plan import Plan

FORMATS: Final = ("svg", "png")
_STEPS: Final = 400
_FALSE: Final = "#d98c00"
_MISSED: Final = "#c0392b"
_CURVE: Final = "#1f5fa8"
_OTHER: Final = "#2e8b57"
# The length of an axis of Euclidean distances, as a multiple of the distance at the threshold.
_FAR: Final = 4.0


def format_of(path: str) -> str:
    """Return svg or png, by the ending of a path."""
    ending = os.path.splitext(path)[1].lower().lstrip(".")  # noqa: PTH122 - the path may be an address
    if ending not in FORMATS:
        raise ConfigError(
            f"`plot` must be a file that ends in .svg or .png, got {path!r}",
            hint="name it plan.svg, for example",
        )
    return ending


def plot(
    plan: Plan, path: str | None, *, other: Plan | None = None, by_distance: bool = False
) -> Any:
    """Draw the curve, the threshold, the target recall and the two error areas; equal plans give equal bytes.

    Args:
        plan: the plan to draw.
        path: the file to write, .svg or .png, if any.
        other: a second plan whose curve is drawn beside it.
        by_distance: label the axis with distances instead of similarities.
    """
    kind = None if path is None else format_of(path)
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure

        class ShownFigure(Figure):
            """A figure that a notebook shows, also where pyplot was never imported."""

            def _repr_png_(self) -> bytes:
                return _picture(self, "png")
    except ImportError as error:
        raise MissingExtraError(
            "drawing needs the package matplotlib", hint="pip install 'neardup[plot]'"
        ) from error
    # No date, no version and no random names in the file; a figure of its own never opens a window.
    style: Any = {
        "svg.hashsalt": "neardup",
        "svg.fonttype": "path",
        "font.family": "DejaVu Sans",
        "font.size": 10,
    }
    with mpl.rc_context(mpl.rcParamsDefault | style):
        figure = ShownFigure(figsize=(8, 5.5), layout="constrained")
        _draw(figure.add_subplot(), plan, other, _distances(plan) if by_distance else _SIMILARITIES)
        # Inside the axes it would hide part of a curve.
        figure.legend(loc="outside lower center", ncols=2)
        if path is None:
            return figure
        picture = _picture(figure, kind)
    Path(path).write_bytes(picture)
    return figure


def _picture(figure: Any, kind: str | None) -> bytes:
    """Return a figure as the bytes of a file, without a date or a version."""
    if kind == "svg":
        metadata: dict[str, Any] = {"Date": None, "Creator": None}
    else:
        metadata = {"Software": None}
    picture = io.BytesIO()
    figure.savefig(picture, format=kind, dpi=150, metadata=metadata)
    return picture.getvalue()


class _Axis(NamedTuple):
    """The horizontal axis: its label and end, the similarity at a position, and the position of a similarity."""

    label: str
    end: float
    similarity: Callable[[float], float]
    x_of: Callable[[float], float]
    is_distance: bool


_SIMILARITIES: Final = _Axis("similarity of two documents", 1.0, float, float, False)


def _distances(plan: Plan) -> _Axis:
    if plan.measure == "hamming" and plan.dimension is None:
        raise ConfigError(
            "`by_distance` counts bits, but the total number of bits is unknown",
            hint="plan with dimension=",
        )
    scale = SCALES[plan.measure]
    dimension = plan.dimension or 0
    ends = {"hamming": float(dimension), "euclidean": _FAR * (plan.distance or 1.0)}
    words = {
        "hamming": "bits that differ",
        "euclidean": "Euclidean distance",
        "cosine": "distance, 1 - cosine",
    }

    def similarity(distance: float) -> float:
        return scale.similarity(distance, dimension)

    def x_of(similarity: float) -> float:
        return scale.distance(similarity, dimension) if similarity > 0 else math.inf

    return _Axis(
        label=words.get(plan.measure, "distance, 1 - similarity"),
        end=ends.get(plan.measure, 1.0),
        similarity=similarity,
        x_of=x_of,
        is_distance=True,
    )


def _draw(axes: Any, plan: Plan, other: Plan | None, axis: _Axis) -> None:
    at = [axis.end * step / _STEPS for step in range(_STEPS + 1)]
    threshold = axis.x_of(plan.threshold)

    def chances(points: list[float], plan: Plan = plan) -> list[float]:
        return [plan.chance(min(1.0, axis.similarity(point))) for point in points]

    left = [point for point in at if point < threshold] + [threshold]
    right = [threshold] + [point for point in at if point > threshold]
    pairs, others = (left, right) if axis.is_distance else (right, left)
    in_vain = "false candidates, compared but not reported"
    missed = "missed"
    if not axis.is_distance:  # the area over distances is a different one
        in_vain += f": area {plan.false_positive_area:.4f}"
        missed += f": area {plan.false_negative_area:.2g}"
    axes.fill_between(others, chances(others), color=_FALSE, alpha=0.3, linewidth=0, label=in_vain)
    axes.fill_between(pairs, chances(pairs), 1, color=_MISSED, alpha=0.4, linewidth=0, label=missed)
    axes.plot(at, chances(at), color=_CURVE, linewidth=2, label=plan.shape)
    _mark_step(axes, plan, axis, _CURVE)
    if other is not None:
        axes.plot(
            at, chances(at, other), color=_OTHER, linewidth=2, linestyle="--", label=other.shape
        )
        _mark_step(axes, other, axis, _OTHER)
    what = "distance" if axis.is_distance else "threshold"
    axes.axvline(threshold, color="black", linewidth=1, label=f"{what} {round(threshold, 12):g}")
    axes.axhline(
        plan.recall, color="grey", linewidth=1, linestyle="--", label=f"target {plan.recall:g}"
    )
    axes.plot([threshold], [plan.chance(plan.threshold)], "o", color=_CURVE)
    axes.set(
        xlim=(0, axis.end), ylim=(0, 1.05), xlabel=axis.label, ylabel="chance of sharing a bucket"
    )
    axes.set_title(
        f"A pair at the threshold is found with a chance of {plan.recall_at_threshold:.4f}"
    )
    axes.grid(alpha=0.2)


def _mark_step(axes: Any, plan: Plan, axis: _Axis, color: str) -> None:
    """Mark where a slot agrees with chance (1/b)^(1/r), about where the curve is steepest."""
    if plan.is_exact:
        return
    step = axis.x_of(plan.curve_threshold)
    # For Jaccard, the chance of a slot is the similarity itself.
    if plan.measure == "jaccard" and not axis.is_distance:
        words = "(1/b)^(1/r)"
    else:
        words = "step, by (1/b)^(1/r)"
    axes.axvline(step, color=color, linewidth=1, linestyle=":", label=f"{words}: {step:.3f}")
