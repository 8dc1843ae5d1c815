"""Draw the pictures of docs/lecture.md as SVG: `python tools/draw_lecture.py` writes docs/images.

The same program and version of matplotlib give the same bytes.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from neardup.theory import textbook
from neardup.theory.plan import curve_threshold, s_curve

IMAGES = Path(__file__).parents[1] / "docs" / "images"
STYLE = {
    "svg.hashsalt": "neardup",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 10,
}
BLUE, GREEN, ORANGE, RED, GREY = "#1f5fa8", "#2e8b57", "#d98c00", "#c0392b", "#666666"
STEPS = 400


def pipeline() -> Figure:
    generator, words = random.Random(1), "a rose is red a rose is white".split()  # noqa: S311, SIM905 - a picture
    shingles = {
        textbook.shingle_number(" ".join(shingle)) for shingle in textbook.shingle_set(words, 3)
    }
    functions = [textbook.UniversalHash.draw(100, generator) for _ in range(6)]
    slots = [str(slot) for (slot,) in textbook.minhash_one_pass([shingles], functions)]
    stages = [
        ("document", "“A rose is red,\na rose is white.”", "shingle"),
        ("set", "{a rose is,\nrose is red,\n…}", "MinHash"),
        ("signature", f"({', '.join(slots[:3])},\n{', '.join(slots[3:])}, …)", "cut into bands"),
        ("buckets", "band 1: A, B\nband 2: A, C\n…", "take pairs"),
        ("candidates", "(A, B)\n(A, C)", "verify"),
        ("pairs", "(A, B)  3/7", ""),
    ]
    figure = Figure(figsize=(11, 2.3))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-0.08, 10.68), ylim=(0, 2.3))
    axes.axis("off")
    for number, (name, example, step) in enumerate(stages):
        left = 0.1 + number * 1.84
        axes.add_patch(
            FancyBboxPatch(
                (left, 0.5),
                1.2,
                1.05,
                boxstyle="round,pad=0.06",
                facecolor="#e8f0fa",
                edgecolor=BLUE,
            )
        )
        axes.text(left + 0.6, 1.85, name, ha="center", weight="bold")
        axes.text(left + 0.6, 1.02, example, ha="center", va="center", size=8.5)
        if step:
            axes.annotate(
                "",
                (left + 1.76, 1.02),
                (left + 1.28, 1.02),
                arrowprops={"arrowstyle": "->", "color": GREY},
            )
            axes.text(left + 1.52, 0.22, step, ha="center", size=8.5, color=GREY)
    return figure


def banded_matrix() -> Figure:
    """Draw signatures of 12 slots in 4 bands: the second document is an edited copy of the first."""
    generator, bands, rows = random.Random(5), 4, 3  # noqa: S311 - a picture, no secret
    first = set(generator.sample(range(200), 40))
    columns = [
        first,
        set(sorted(first)[4:]) | {300, 301},
        *(set(generator.sample(range(200), 40)) for _ in range(4)),
    ]
    functions = [textbook.UniversalHash.draw(1000, generator) for _ in range(bands * rows)]
    matrix = textbook.minhash_one_pass(columns, functions)
    figure = Figure(figsize=(8, 5))
    axes = figure.add_axes((0.02, 0.02, 0.96, 0.96))
    axes.set(xlim=(-1.3, 10.2), ylim=(bands * (rows + 0.6) + 0.2, -1.1))
    axes.axis("off")
    for column in range(len(columns)):
        axes.text(column + 0.5, -0.4, f"D{column + 1}", ha="center", weight="bold")
    for band, buckets in enumerate(textbook.buckets(matrix, bands)):
        top = band * (rows + 0.6)
        axes.text(-0.2, top + rows / 2, f"band {band + 1}", ha="right", va="center")
        shared = {column for members in buckets.values() if len(members) > 1 for column in members}
        for row in range(rows):
            for column in range(len(columns)):
                face = "#f6d9a3" if column in shared else "white"
                axes.add_patch(
                    Rectangle((column, top + row), 1, 1, facecolor=face, edgecolor="#bbbbbb")
                )
                value = matrix[band * rows + row][column]
                axes.text(
                    column + 0.5, top + row + 0.52, str(value), ha="center", va="center", size=9
                )
        names = " and ".join(f"D{column + 1}" for column in sorted(shared))
        axes.text(
            6.3,
            top + rows / 2,
            f"{names} share a bucket" if shared else "no shared bucket",
            va="center",
            color=GREY,
        )
    return figure


def s_curves() -> Figure:
    """Draw four ways to cut 100 slots into bands."""
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.add_subplot()
    at = [step / STEPS for step in range(STEPS + 1)]
    for (bands, rows), color in zip(
        [(50, 2), (20, 5), (10, 10), (5, 20)], [ORANGE, BLUE, GREEN, RED], strict=True
    ):
        step = curve_threshold(bands, rows)
        axes.plot(
            at,
            [s_curve(x, bands, rows) for x in at],
            color=color,
            linewidth=2,
            label=f"b = {bands}, r = {rows}",
        )
        axes.vlines(step, 0, s_curve(step, bands, rows), color=color, linestyle=":", linewidth=1.2)
        axes.plot(
            [step],
            [s_curve(step, bands, rows)],
            "o",
            color=color,
            label=f"(1/b)^(1/r) = {step:.3f}",
        )
    axes.set(
        xlim=(0, 1),
        ylim=(0, 1.03),
        xlabel="similarity of two documents",
        ylabel="chance of sharing a bucket",
    )
    axes.grid(alpha=0.2)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8.5)
    return figure


def errors() -> Figure:
    """Draw the errors of 20 and 10 bands of 5 rows at a threshold of 0.6."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    threshold = 0.6
    for number, bands in enumerate((20, 10)):
        axes = figure.add_subplot(1, 2, number + 1)
        at = [step / STEPS for step in range(STEPS + 1)]
        below, above = (
            [x for x in at if (x <= threshold) == is_below] for is_below in (True, False)
        )
        above = [threshold, *above]
        axes.fill_between(
            below, [s_curve(x, bands, 5) for x in below], color=ORANGE, alpha=0.35, linewidth=0
        )
        axes.fill_between(
            above, [s_curve(x, bands, 5) for x in above], 1, color=RED, alpha=0.4, linewidth=0
        )
        axes.plot(at, [s_curve(x, bands, 5) for x in at], color=BLUE, linewidth=2)
        axes.axvline(threshold, color="black", linewidth=1)
        for words, place, target, color in (
            (
                "false positives:\ncompared, not reported",
                (0.04, 0.36),
                (0.5, s_curve(0.5, bands, 5) / 2),
                "#7a4f00",
            ),
            (
                "false negatives:\nmissed",
                (0.04, 0.8),
                (0.63, (s_curve(0.63, bands, 5) + 1) / 2),
                RED,
            ),
        ):
            axes.annotate(
                words,
                target,
                place,
                size=9,
                color=color,
                arrowprops={"arrowstyle": "->", "color": color},
            )
        axes.set(
            xlim=(0, 1),
            ylim=(0, 1.03),
            xlabel="similarity",
            title=f"{bands} bands of 5 rows, threshold 0.6",
        )
        axes.grid(alpha=0.2)
    figure.axes[0].set_ylabel("chance of sharing a bucket")
    return figure


PICTURES = {"pipeline": pipeline, "bands": banded_matrix, "s-curves": s_curves, "errors": errors}


def draw(folder: Path, names: Iterable[str] = PICTURES) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(mpl.rcParamsDefault | STYLE):
        for name in names:
            figure = PICTURES[name]()
            figure.savefig(
                folder / f"{name}.svg", format="svg", metadata={"Date": None, "Creator": None}
            )


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
