"""docs/lecture.md, its notebook and its pictures are consistent."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LECTURE = (ROOT / "docs" / "lecture.md").read_text("utf-8")
NOTEBOOK = json.loads((ROOT / "examples" / "lecture.ipynb").read_text("utf-8"))
IMAGES = ROOT / "docs" / "images"


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts(svg):
    """The texts of a picture: an SVG repeats in a comment what it draws as paths."""
    return re.findall("<!-- (.+?) -->", svg.read_text("utf-8"), re.DOTALL)


def test_notebook_cells_produce_their_stored_outputs():
    names = {"__name__": "__main__"}
    run = tool("build_notebook").run
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert len(code) > 40
    for cell in code:
        assert run("".join(cell["source"]), names) == cell["outputs"], "".join(cell["source"])


def test_the_notebook_is_generated_from_the_lecture():
    stored = [(cell["cell_type"], "".join(cell["source"])) for cell in NOTEBOOK["cells"]]
    assert stored == list(tool("build_notebook").cells_of(LECTURE)), "run tools/build_notebook.py"


def test_every_notebook_link_points_to_an_existing_file():
    links = re.findall(
        r"\]\(([^)]+)\)", "".join("".join(cell["source"]) for cell in NOTEBOOK["cells"])
    )
    assert len(links) >= 5
    assert [link for link in links if not (ROOT / "examples" / link).is_file()] == []


def test_the_lecture_shows_exactly_the_stored_pictures():
    shown = re.findall(r"\]\(images/([^)]+)\)", LECTURE)
    assert sorted(shown) == sorted(
        path.name for path in IMAGES.glob("*.svg")
    )  # screenshots are .png


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    tool("draw_lecture").draw(folder)
    return folder


def test_stored_pictures_match_the_output_of_the_tool(drawn):
    found, stored = (
        {path.name: texts(path) for path in folder.glob("*.svg")} for folder in (drawn, IMAGES)
    )
    assert found == stored, "run tools/draw_lecture.py"


def test_a_picture_drawn_twice_has_the_same_bytes(drawn, tmp_path):
    tool("draw_lecture").draw(tmp_path, ["pipeline"])
    assert (tmp_path / "pipeline.svg").read_bytes() == (drawn / "pipeline.svg").read_bytes()


@pytest.mark.parametrize("solution", re.findall("<details>.*?</details>", LECTURE, re.DOTALL))
def test_every_solution_is_collapsible_and_renders(solution):
    assert solution.startswith("<details><summary>Solution</summary>\n\n")
    assert solution.endswith("\n\n</details>")
