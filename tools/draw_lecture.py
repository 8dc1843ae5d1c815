"""Draw the pictures of docs/lecture.md as SVG: `python tools/draw_lecture.py` writes docs/images.

The same program and version of matplotlib give the same bytes. Ink is `currentColor`, which is dark or
light with the reader's theme, and the background is transparent; the other colours are readable on both.
"""

from __future__ import annotations

import io
import math
import random
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Arc, Circle, FancyBboxPatch, Rectangle

from neardup.theory import families, textbook
from neardup.theory.plan import curve_threshold, s_curve

IMAGES = Path(__file__).parents[1] / "docs" / "images"
# Stands for the ink until the picture is written, because matplotlib does not know currentColor.
INK = "#010203"
THEMES = """<style>
svg:root { color: #1f2328 }
@media (prefers-color-scheme: dark) { svg:root { color: #e6edf3 } }
</style>
"""
STYLE = {
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "legend.frameon": False,
    "savefig.transparent": True,
    "svg.hashsalt": "neardup",
    "svg.fonttype": "path",
    "font.family": "DejaVu Sans",
    "font.size": 10,
}
BLUE, GREEN, ORANGE, RED, GREY = "#3b82c4", "#2e8b57", "#c07a00", "#d64a3a", "#7d8590"
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
                facecolor=(BLUE, 0.12),
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
            axes.text(left + 1.52, 0.22, step, ha="center", size=8.5)
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
                face = (ORANGE, 0.35) if column in shared else "none"
                axes.add_patch(Rectangle((column, top + row), 1, 1, facecolor=face, edgecolor=GREY))
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
        axes.axvline(threshold, color=INK, linewidth=1)
        for words, place, target, color in (
            (
                "false positives:\ncompared, not reported",
                (0.04, 0.36),
                (0.5, s_curve(0.5, bands, 5) / 2),
                ORANGE,
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


def venn() -> Figure:
    """Draw {1, ..., 6} and {3, ..., 8}: four dots in both circles, two in each one alone."""
    figure, axes = _board(6, 3.2, (0, 6), (0, 3.2))
    for x, color in ((2.3, BLUE), (3.7, ORANGE)):
        axes.add_patch(Circle((x, 1.7), 1.35, facecolor=(color, 0.15), edgecolor=color, lw=2))
    places = [
        *((1.45, 2.1), (1.45, 1.3)),
        *((2.75, 2.15), (3.25, 2.15), (2.75, 1.25), (3.25, 1.25)),
        *((4.55, 2.1), (4.55, 1.3)),
    ]
    for item, (x, y) in enumerate(places, start=1):
        axes.plot([x], [y], "o", color=INK, markersize=5)
        axes.text(x + 0.12, y + 0.08, str(item))
    axes.text(0.55, 2.7, "A", weight="bold", color=BLUE, size=13)
    axes.text(5.3, 2.7, "B", weight="bold", color=ORANGE, size=13)
    axes.text(3, 0.08, "J(A, B) = 4 dots in both / 8 dots in all", ha="center")
    return figure


def shuffle() -> Figure:
    """Draw three columns in their own order and as the shuffle 34512 reads them, first ones framed."""
    columns = [{1, 3, 4}, {2, 5}, {1, 2, 4}]
    figure, axes = _board(8, 3.7, (0, 8), (6.6, 0))
    for left, order, title in (
        (0.9, (1, 2, 3, 4, 5), "the matrix"),
        (4.9, (3, 4, 5, 1, 2), "in the order 34512"),
    ):
        slots = textbook.permutation_signatures(columns, [order])[0]
        axes.text(left + 0.9, 0.35, title, ha="center", weight="bold")
        for column in range(3):
            axes.text(left + column * 0.6 + 0.3, 0.85, f"D{column + 1}", ha="center", color=GREY)
        for place, row in enumerate(order):
            axes.text(left - 0.15, place + 1.5, f"row {row}", ha="right", va="center", color=GREY)
            for column, ones in enumerate(columns):
                is_first = order[0] == 3 and slots[column] == row
                axes.add_patch(
                    Rectangle(
                        (left + column * 0.6, place + 1),
                        0.6,
                        1,
                        facecolor=(ORANGE, 0.35) if is_first else "none",
                        edgecolor=GREY,
                    )
                )
                axes.text(
                    left + column * 0.6 + 0.3,
                    place + 1.52,
                    str(int(row in ones)),
                    ha="center",
                    va="center",
                    weight="bold" if row in ones else "normal",
                )
        if order[0] == 3:
            text = f"first row with a 1: {tuple(slots)}"
            axes.text(left + 0.9, 6.4, text, ha="center", color=ORANGE, weight="bold")
    axes.annotate("", (4.1, 3.5), (3.0, 3.5), arrowprops={"arrowstyle": "->", "color": GREY})
    axes.text(3.4, 3.25, "shuffle", ha="center", color=GREY)
    return figure


def ideal() -> Figure:
    """Draw the ideal step, and what one function gives: the straight line."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    step, line = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    step.plot([0, 0.6, 0.6, 1], [0, 0, 1, 1], color=GREEN, linewidth=2.5)
    step.annotate("threshold t", (0.6, 0.5), (0.12, 0.5), arrowprops=_arrow(INK), va="center")
    step.text(0.3, 0.06, "never found", ha="center")
    step.text(0.8, 0.92, "always found", ha="center")
    line.plot([0, 1], [0, 1], color=BLUE, linewidth=2.5)
    line.plot([0.75, 0.75, 0], [0, 0.75, 0.75], ":", color=INK, linewidth=1.2)
    line.text(0.05, 0.79, "at 75 %, one function finds 75 %")
    for axes, title in ((step, "what we want"), (line, "what b = r = 1 gives: P = s")):
        axes.set(xlim=(0, 1), ylim=(-0.02, 1.03), xlabel="similarity s", title=title)
        axes.grid(alpha=0.2)
    step.set_ylabel("chance of sharing a bucket")
    return figure


def points() -> Figure:
    """Draw three points of the curve of 20 bands of 5 rows that are easily confused."""
    bands, rows = 20, 5
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.add_subplot()
    at = [0.35 + 0.35 * step / STEPS for step in range(STEPS + 1)]
    axes.plot(at, [s_curve(x, bands, rows) for x in at], color=BLUE, linewidth=2)
    named = (
        ((1 - 0.5 ** (1 / bands)) ** (1 / rows), "P = 1/2", GREEN, (0.40, 0.62)),
        (((rows - 1) / (bands * rows - 1)) ** (1 / rows), "steepest", ORANGE, (0.40, 0.75)),
        (curve_threshold(bands, rows), "(1/b)^(1/r)", RED, (0.40, 0.88)),
    )
    for x, name, color, place in named:
        y = s_curve(x, bands, rows)
        axes.plot([x], [y], "o", color=color)
        text = f"{name}: s = {x:.3f}, P = {y:.3f}"
        axes.annotate(text, (x, y), place, color=color, ha="center", arrowprops=_arrow(color))
    axes.set(xlabel="similarity of two documents", ylabel="chance of sharing a bucket")
    axes.grid(alpha=0.2)
    return figure


def tables() -> Figure:
    """Draw three hash tables, one per band, and the buckets that four documents fall into."""
    members = (
        {2: "D1, D2", 5: "D3", 7: "D4"},
        {1: "D1, D2", 4: "D3, D4"},
        {0: "D2", 3: "D1, D4", 6: "D3"},
    )
    notes = ("equal bands: always", "D3, D4: by accident, 1/T", "equal bands")
    figure, axes = _board(8, 4.2, (0, 8), (9.6, -1.2))
    for band, (of_band, note) in enumerate(zip(members, notes, strict=True)):
        left = 0.7 + band * 2.6
        axes.text(left + 0.75, -0.5, f"band {band + 1}", ha="center", weight="bold")
        for bucket in range(8):
            names = of_band.get(bucket, "")
            shared = "," in names
            face = (ORANGE, 0.35) if shared else "none"
            axes.add_patch(Rectangle((left, bucket), 1.5, 1, facecolor=face, edgecolor=GREY))
            axes.text(left - 0.1, bucket + 0.55, str(bucket), ha="right", va="center", color=GREY)
            axes.text(left + 0.75, bucket + 0.55, names, ha="center", va="center")
        axes.text(left + 0.75, 8.7, note, ha="center", size=9, color=ORANGE)
    axes.text(4, 9.45, "b = 3 tables of T = 8 buckets", ha="center")
    return figure


def amplified() -> Figure:
    """Draw the Jaccard family, with AND, OR, both, and the cascade of 256 functions."""
    figure = Figure(figsize=(8, 4.4), layout="constrained")
    axes = figure.add_subplot()
    base = families.jaccard_family()
    at = [step / STEPS for step in range(STEPS + 1)]
    for family, name, color in (
        (base, "one function", INK),
        (base.all_of(4), "all of 4 (AND)", ORANGE),
        (base.any_of(4), "any of 4 (OR)", RED),
        (base.all_of(4).any_of(4), "all of 4, any of 4", BLUE),
        (base.any_of(4).all_of(4).all_of(4).any_of(4), "cascade of 256", GREEN),
    ):
        axes.plot(at, [family.chance(x) for x in at], color=color, linewidth=2, label=name)
    axes.set(xlim=(0, 1), ylim=(0, 1.03), xlabel="Jaccard distance", ylabel="chance of agreeing")
    axes.grid(alpha=0.2)
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def plane() -> Figure:
    """Draw a hyperplane that separates two vectors, and the buckets of a line that points fall on."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    sides, buckets = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
    for (x, y), name, color in (((3, 1), "x = (3, 1)", BLUE), ((1, 3), "y = (1, 3)", ORANGE)):
        arrow = {"arrowstyle": "->", "color": color, "linewidth": 2}
        sides.annotate("", (x, y), (0, 0), arrowprops=arrow)
        sides.text(x + 0.1, y + 0.1, name, color=color)
    angles = [math.degrees(math.atan2(y, x)) for x, y in ((3, 1), (1, 3))]
    sides.add_patch(Arc((0, 0), 2, 2, theta1=angles[0], theta2=angles[1], color=INK))
    sides.text(0.95, 0.75, "53°")
    sides.plot([-1.2, 3.6], [-1.2, 3.6], "--", color=RED)
    sides.text(2.75, 2.25, "v x = 0\nfor v = (1, -1)", color=RED)
    sides.annotate("", (0.9, -0.9), (0, 0), arrowprops=_arrow(RED))
    sides.text(1.0, -1.05, "v", color=RED)
    sides.set(xlim=(-1.3, 4.4), ylim=(-1.3, 4), aspect="equal", title="the side of a line")
    for edge in range(0, 13, 4):
        buckets.plot([edge, edge], [-0.25, 0.25], color=INK)
        if edge < 12:
            buckets.text(edge + 2, -0.9, f"bucket {edge // 4}", ha="center", color=GREY)
    buckets.plot([0, 12], [0, 0], color=INK)
    for (x, y), color in (((1, 3), BLUE), ((3, 1), ORANGE), ((9, 1), GREEN)):
        buckets.plot([x, x], [0, y], ":", color=color)
        buckets.plot([x], [y], "o", color=color)
        buckets.plot([x], [0], "s", color=color, markersize=5)
        buckets.text(x + 0.2, y + 0.15, f"({x}, {y})", color=color)
    buckets.set(xlim=(-0.3, 12.3), ylim=(-1.3, 4), title="the bucket on a line, width 4")
    for axes in (sides, buckets):
        axes.set_axis_off()
    return figure


def prefix() -> Figure:
    """Draw two sets of ten items from rare to frequent, with the prefixes that threshold 0.8 needs."""
    threshold, items = 0.8, "abcdefghijkl"
    sets = [set("acdefghijk"), set("bcdefghijk")]
    counts = Counter({item: place for place, item in enumerate(items)})
    shared = set.intersection(*(set(textbook.prefix(ones, threshold, counts)) for ones in sets))
    figure, axes = _board(8, 2.5, (-0.6, 12.2), (3.5, -0.9))
    axes.text(0, -0.45, "rare", color=GREY)
    axes.text(12, -0.45, "frequent", ha="right", color=GREY)
    axes.annotate("", (10.6, -0.55), (0.9, -0.55), arrowprops=_arrow(GREY))
    for line, ones in enumerate(sets):
        top = line * 1.5
        axes.text(-0.2, top + 0.5, "AB"[line], ha="right", va="center", weight="bold")
        chosen = textbook.prefix(ones, threshold, counts)
        for place, item in enumerate(items):
            if item in ones:
                if item in shared:
                    face = (GREEN, 0.5)
                else:
                    face = (ORANGE, 0.35) if item in chosen else "none"
                axes.add_patch(Rectangle((place, top), 1, 1, facecolor=face, edgecolor=GREY))
                axes.text(place + 0.5, top + 0.53, item, ha="center", va="center")
    axes.text(
        0, 3.15, "prefixes: 10 - 8 + 1 = 3 items each; green: in both, so they meet", color=INK
    )
    return figure


def _board(
    width: float, height: float, across: tuple[float, float], down: tuple[float, float]
) -> tuple[Figure, Axes]:
    """Return an empty picture without axes."""
    figure = Figure(figsize=(width, height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=across, ylim=down)
    axes.axis("off")
    return figure, axes


def _arrow(color: str) -> dict[str, str]:
    return {"arrowstyle": "->", "color": color}


PICTURES = {
    "pipeline": pipeline,
    "venn": venn,
    "shuffle": shuffle,
    "bands": banded_matrix,
    "tables": tables,
    "ideal": ideal,
    "s-curves": s_curves,
    "points": points,
    "errors": errors,
    "plane": plane,
    "amplified": amplified,
    "prefix": prefix,
}


def draw(folder: Path, names: Iterable[str] = PICTURES) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(mpl.rcParamsDefault | STYLE):
        for name in names:
            written = io.StringIO()
            PICTURES[name]().savefig(
                written, format="svg", metadata={"Date": None, "Creator": None}
            )
            (folder / f"{name}.svg").write_text(in_both_themes(written.getvalue()), "utf-8")


def in_both_themes(svg: str) -> str:
    """Replace the ink of a picture by currentColor, and say what that is where nothing else does."""
    before, start, after = svg.replace(INK, "currentColor").partition(" <defs>")
    return before + THEMES + start + after


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
