"""Turn docs/lecture.md into examples/lecture.ipynb: `python tools/build_notebook.py`.

Every cell is run, and its output is stored in the notebook.

Text becomes Markdown cells, and the examples become code cells, each up to the first output. A
curve becomes a code cell that draws it. A collapsible solution stays one Markdown cell, because a
cell cannot fold others, and an empty cell for the reader's own answer stands before it.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import doctest
import io
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LECTURE = ROOT / "docs" / "lecture.md"
NOTEBOOK = ROOT / "examples" / "lecture.ipynb"
ONLY_ON_THE_PAGE = """The tests run every line after `>>>`, so what you read is what you get when you type it.
The same page is a notebook, [examples/lecture.ipynb](../examples/lecture.ipynb)."""
ONLY_IN_THE_NOTEBOOK = """The tests run every cell. The same text is a page,
[docs/lecture.md](lecture.md). Under each exercise there is an empty cell for your answer."""
# The pictures that the notebook draws itself, so that readers can change them.
PLOTS = {
    "ideal": """import matplotlib.pyplot as plt
at = np.linspace(0, 1, 401)
plt.step([0, 0.6, 1], [0, 1, 1], where="post", label="what we want, for t = 0.6")
plt.plot(at, at, label="b = r = 1: one function")
plt.plot([0.75], [0.75], "o", label="at 75 %, one function finds 75 %")
plt.xlabel("similarity of two documents")
plt.ylabel("chance of sharing a bucket")
plt.legend()
plt.show()""",
    "s-curves": """def s_curve(s, b, r):
    return 1 - (1 - s**r) ** b
for b, r in ((50, 2), (20, 5), (10, 10), (5, 20)):
    plt.plot(at, s_curve(at, b, r), label=f"b = {b}, r = {r}, (1/b)^(1/r) = {(1 / b) ** (1 / r):.3f}")
plt.xlabel("similarity of two documents")
plt.ylabel("chance of sharing a bucket")
plt.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15))
plt.show()""",
    "points": """b, r = 20, 5
points = {
    "P = 1/2": (1 - 0.5 ** (1 / b)) ** (1 / r),
    "steepest": ((r - 1) / (b * r - 1)) ** (1 / r),
    "(1/b)^(1/r)": (1 / b) ** (1 / r),
}
near = np.linspace(0.35, 0.7, 201)
plt.plot(near, s_curve(near, b, r))
for name, s in points.items():
    plt.plot([s], [s_curve(s, b, r)], "o", label=f"{name}: {s:.3f}")
plt.xlabel("similarity of two documents")
plt.ylabel("chance of sharing a bucket")
plt.legend()
plt.show()""",
    "errors": """figure, both = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
for axes, bands in zip(both, (20, 10)):
    curve = s_curve(at, bands, 5)
    axes.plot(at, curve)
    axes.fill_between(at, curve, where=at <= 0.6, alpha=0.35, label="compared, not reported")
    axes.fill_between(at, curve, 1, where=at >= 0.6, alpha=0.35, label="missed")
    axes.axvline(0.6, color="black", linewidth=1)
    axes.set_title(f"{bands} bands of 5 rows, threshold 0.6")
    axes.set_xlabel("similarity of two documents")
both[0].set_ylabel("chance of sharing a bucket")
both[1].legend(loc="upper left", fontsize=8)
plt.show()""",
}
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def cells_of(lecture: str) -> Iterator[tuple[str, str]]:
    """Cut the lecture into ("markdown", text) and ("code", source)."""
    for part in re.split(
        r"(^<details>.*?^</details>$|^```python$.*?^```$)", lecture, flags=re.MULTILINE | re.DOTALL
    ):
        if part.startswith("```python"):
            yield from (("code", source) for source in code_of(part))
        elif part.startswith("<details>"):
            yield "code", ""
            yield "markdown", from_examples(part)
        else:
            yield from with_plots(part)


def with_plots(text: str) -> Iterator[tuple[str, str]]:
    """Cut a text where it shows a picture that the notebook draws; its description becomes a caption."""
    names = "|".join(PLOTS)
    parts = re.split(rf"^!\[(.*)\]\(images/({names})\.svg\)$", text, flags=re.MULTILINE)
    for before, caption, name in zip(parts[0::3], parts[1::3], parts[2::3], strict=False):
        yield "markdown", from_examples(f"{before.strip()}\n\n*{caption}*".strip())
        yield "code", PLOTS[name]
    if parts[-1].strip():
        yield "markdown", from_examples(parts[-1].strip())


def code_of(block: str) -> Iterator[str]:
    """Join the examples of a block up to the first with output."""
    sources: list[str] = []
    for example in doctest.DocTestParser().get_examples(block):
        sources.append(example.source)
        if example.want:
            yield "".join(sources).rstrip("\n")
            sources = []
    if sources:
        yield "".join(sources).rstrip("\n")


def from_examples(text: str) -> str:
    """Rewrite the links of a page in docs/ for examples/, and say where the notebook comes from."""
    text = text.replace(ONLY_ON_THE_PAGE, ONLY_IN_THE_NOTEBOOK)
    return re.sub(r"\]\((?!\.\./|https?:)", "](../docs/", text)


def run(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Run a cell and return its outputs as a notebook stores them."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        # Without a screen, plt.show() only warns.
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)  # noqa: S102 - our own lecture
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append(
            {"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())}
        )
    outputs += [
        {"data": {"image/png": png}, "metadata": {}, "output_type": "display_data"}
        for png in take_figures()
    ]
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        outputs.append(
            {
                "data": data,
                "execution_count": number,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def take_figures() -> Iterator[str]:
    """Close the open figures of pyplot, and yield each as a PNG in base64."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    for number in pyplot.get_fignums():
        written = io.BytesIO()
        pyplot.figure(number).savefig(written, format="png", dpi=80, bbox_inches="tight")
        pyplot.close(number)
        yield base64.b64encode(written.getvalue()).decode()


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def build(lecture: str) -> str:
    names: dict[str, Any] = {"__name__": "__main__"}
    cells: list[dict[str, Any]] = []
    num_run = 0
    for number, (kind, text) in enumerate(cells_of(lecture)):
        cell: dict[str, Any] = {
            "cell_type": kind,
            "id": f"cell-{number}",
            "metadata": {},
            "source": lines(text),
        }
        if kind == "code" and text:
            num_run += 1
            cell |= {"execution_count": num_run, "outputs": run(text, names, num_run)}
        elif kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        cells.append(cell)
    notebook = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else NOTEBOOK
    os.environ["MPLBACKEND"] = "agg"
    target.parent.mkdir(exist_ok=True)
    target.write_text(build(LECTURE.read_text("utf-8")), "utf-8")
