"""Turn docs/lecture.md into examples/lecture.ipynb: `python tools/build_notebook.py`.

Every cell is run, and its output is stored in the notebook.

Text becomes Markdown cells, and the examples become code cells, each up to the first output. A
collapsible solution stays one Markdown cell, because a cell cannot fold others.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LECTURE = ROOT / "docs" / "lecture.md"
NOTEBOOK = ROOT / "examples" / "lecture.ipynb"
ONLY_ON_THE_PAGE = """Every line after `>>>` is run by our tests, so what you read is what you get when you type it.
The same page is a notebook, [examples/lecture.ipynb](../examples/lecture.ipynb)."""
ONLY_IN_THE_NOTEBOOK = """Every cell is run by our tests. The same text is a page,
[docs/lecture.md](../docs/lecture.md)."""
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
        elif part.strip():
            yield "markdown", from_examples(part.strip())


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
    text = text.replace("](images/", "](../docs/images/").replace(
        "](measures.md)", "](../docs/measures.md)"
    )
    return text.replace(ONLY_ON_THE_PAGE, ONLY_IN_THE_NOTEBOOK)


def run(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run a cell and return its outputs as a notebook stores them."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "<cell>", "exec"), names)  # noqa: S102 - our own lecture
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append(
            {"name": "stdout", "output_type": "stream", "text": lines(printed.getvalue())}
        )
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        outputs.append(
            {"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"}
        )
    return outputs


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def build(lecture: str) -> str:
    names: dict[str, Any] = {"__name__": "__main__"}
    cells: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(cells_of(lecture)):
        cell: dict[str, Any] = {
            "cell_type": kind,
            "id": f"cell-{number}",
            "metadata": {},
            "source": lines(text),
        }
        if kind == "code":
            cell |= {"execution_count": None, "outputs": run(text, names)}
        cells.append(cell)
    notebook = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else NOTEBOOK
    target.parent.mkdir(exist_ok=True)
    target.write_text(build(LECTURE.read_text("utf-8")), "utf-8")
