"""The S-curve of a plan as a picture."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any, Final

from neardup.errors import ConfigError, MissingExtraError
from neardup.planner import Plan

FORMATS: Final = ("svg", "png")
_STEPS: Final = 400
_FALSE: Final = "#d98c00"
_MISSED: Final = "#c0392b"
_CURVE: Final = "#1f5fa8"


def format_of(path: str) -> str:
    """Return svg or png, by the ending of a path."""
    ending = os.path.splitext(path)[1].lower().lstrip(".")  # noqa: PTH122 - the path may be an address
    if ending not in FORMATS:
        raise ConfigError(
            f"`plot` must be a file that ends in .svg or .png, got {path!r}", hint="name it plan.svg, for example"
        )
    return ending


def plot(plan: Plan, path: str) -> None:
    """Draw the curve, the threshold, the asked recall and the two error areas; equal plans give equal bytes."""
    kind = format_of(path)
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("drawing needs the package matplotlib", hint="pip install 'neardup[plot]'") from error
    # No date, no version and no random names in the file; a figure of its own never opens a window.
    style: Any = {"svg.hashsalt": "neardup", "svg.fonttype": "path", "font.family": "DejaVu Sans", "font.size": 10}
    with mpl.rc_context(mpl.rcParamsDefault | style):
        figure = Figure(figsize=(8, 5.5), layout="constrained")
        _draw(figure.add_subplot(), plan)
        figure.legend(loc="outside lower center", ncols=2)  # inside it would hide a part of some curve
        metadata: dict[str, Any] = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        picture = io.BytesIO()
        figure.savefig(picture, format=kind, dpi=150, metadata=metadata)
    Path(path).write_bytes(picture.getvalue())


def _draw(axes: Any, plan: Plan) -> None:
    at = [step / _STEPS for step in range(_STEPS + 1)]
    chances = [plan.chance(similarity) for similarity in at]
    below = [similarity for similarity in at if similarity < plan.threshold] + [plan.threshold]
    above = [plan.threshold] + [similarity for similarity in at if similarity > plan.threshold]
    in_vain = f"compared in vain, never reported: area {plan.false_positive_area:.4f}"
    missed = f"missed: area {plan.false_negative_area:.2g}"
    axes.fill_between(below, list(map(plan.chance, below)), color=_FALSE, alpha=0.3, linewidth=0, label=in_vain)
    axes.fill_between(above, list(map(plan.chance, above)), 1, color=_MISSED, alpha=0.4, linewidth=0, label=missed)
    axes.plot(at, chances, color=_CURVE, linewidth=2, label=plan.shape)
    axes.axvline(plan.threshold, color="black", linewidth=1, label=f"threshold {plan.threshold:g}")
    axes.axhline(plan.recall, color="grey", linewidth=1, linestyle="--", label=f"asked for {plan.recall:g}")
    axes.plot([plan.threshold], [plan.chance(plan.threshold)], "o", color=_CURVE)
    axes.set(xlim=(0, 1), ylim=(0, 1.05), xlabel="similarity of two documents", ylabel="chance to share a bucket")
    axes.set_title(f"A pair at the threshold is found with chance {plan.recall_at_threshold:.4f}")
    axes.grid(alpha=0.2)
