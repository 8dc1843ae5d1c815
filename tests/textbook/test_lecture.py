"""docs/lecture.md, its notebook, its pictures, its table of examples and the measured figures in it are consistent."""

from __future__ import annotations

import base64
import csv
import importlib.util
import io
import json
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
LECTURE = (ROOT / "docs" / "lecture.md").read_text("utf-8")
NOTEBOOK = json.loads((ROOT / "examples" / "lecture.ipynb").read_text("utf-8"))
IMAGES = ROOT / "docs" / "images"
# Other pages of docs/ have pictures of their own.
OF_OTHER_PAGES = {
    name
    for page in (ROOT / "docs").glob("*.md")
    if page.name != "lecture.md"
    for name in re.findall(r"\(images/([^)]+\.svg)\)", page.read_text("utf-8"))
}
PICTURES = sorted({path.name for path in IMAGES.glob("*.svg")} - OF_OTHER_PAGES)
RESULTS = ROOT / "benchmarks" / "results"
CORRECTIONS = (ROOT / "docs" / "lecture-corrections.md").read_text("utf-8")
with (ROOT / "docs" / "lecture-examples.csv").open(encoding="utf-8", newline="") as table:
    EXAMPLES = list(csv.DictReader(table))


def tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts(svg):
    """The texts of a picture: an SVG repeats in a comment what it draws as paths."""
    return re.findall("<!-- (.+?) -->", svg.read_text("utf-8"), re.DOTALL)


def sections(page):
    """The text of each section and subsection, by its heading; each one ends at the next heading."""
    parts = re.split(r"^##+ (.+)$", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def pixels(png):
    from matplotlib.image import imread

    return imread(io.BytesIO(base64.b64decode(png)), format="png")[:, :, :3]


def take_plot(outputs):
    """Take the picture out of the outputs of a cell, if there is one."""
    for output in outputs:
        if output["output_type"] == "display_data":
            return output["data"].pop("image/png")
    return None


def test_notebook_cells_produce_their_stored_outputs_and_plots(monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    names = {"__name__": "__main__"}
    run = tool("build_notebook").run
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code" and cell["source"]]
    num_plots = 0
    for number, cell in enumerate(code, start=1):
        source = "".join(cell["source"])
        found, stored = run(source, names, number), json.loads(json.dumps(cell["outputs"]))
        plot, stored_plot = take_plot(found), take_plot(stored)
        assert found == stored, source
        assert cell["execution_count"] == number
        if stored_plot is not None:
            num_plots += 1
            # Other versions of matplotlib place letters a little differently.
            assert pixels(plot).shape == pixels(stored_plot).shape, source
            assert np.abs(pixels(plot) - pixels(stored_plot)).mean() < 0.01, source
    assert len(code) > 90
    assert num_plots == len(tool("build_notebook").PLOTS)


def test_an_empty_cell_follows_every_exercise():
    cells = NOTEBOOK["cells"]
    exercises = [
        (number, "".join(following["source"]))
        for cell, following in pairwise(cells)
        for number in re.findall(r"^\*\*(\d+)\.\*\*", "".join(cell["source"]), re.MULTILINE)
    ]
    in_the_lecture = re.findall(r"^\*\*(\d+)\.\*\*", LECTURE, re.MULTILINE)
    assert in_the_lecture == [str(number) for number in range(1, len(in_the_lecture) + 1)]
    assert exercises == [(number, "") for number in in_the_lecture]


def test_the_notebook_is_generated_from_the_lecture():
    stored = [(cell["cell_type"], "".join(cell["source"])) for cell in NOTEBOOK["cells"]]
    assert stored == list(tool("build_notebook").cells_of(LECTURE)), "run tools/build_notebook.py"
    first = "".join(NOTEBOOK["cells"][0]["source"])
    assert "Under each exercise there is an empty cell" in first
    assert ">>>" not in first


def test_every_notebook_link_points_to_an_existing_file():
    links = re.findall(
        r"\]\(([^)]+)\)", "".join("".join(cell["source"]) for cell in NOTEBOOK["cells"])
    )
    assert len(links) >= 5
    assert [link for link in links if not (ROOT / "examples" / link).is_file()] == []


def test_the_lecture_shows_exactly_the_stored_pictures():
    shown = re.findall(r"\]\(images/([^)]+)\)", LECTURE)
    assert sorted(shown) == PICTURES  # screenshots are .png


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    folder = tmp_path_factory.mktemp("drawn")
    tool("draw_lecture").draw(folder)
    return folder


def test_stored_pictures_match_the_output_of_the_tool(drawn):
    found = {path.name: texts(path) for path in drawn.glob("*.svg")}
    stored = {name: texts(IMAGES / name) for name in PICTURES}
    assert found == stored, "run tools/draw_lecture.py"


def test_a_picture_drawn_twice_has_the_same_bytes(drawn, tmp_path):
    tool("draw_lecture").draw(tmp_path, ["pipeline"])
    assert (tmp_path / "pipeline.svg").read_bytes() == (drawn / "pipeline.svg").read_bytes()


@pytest.mark.parametrize("solution", re.findall("<details>.*?</details>", LECTURE, re.DOTALL))
def test_every_solution_is_collapsible_and_renders(solution):
    assert solution.startswith("<details><summary>Solution</summary>\n\n")
    assert solution.endswith("\n\n</details>")


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_takes_its_ink_from_the_theme(name):
    svg = (IMAGES / name).read_text("utf-8")
    assert "currentColor" in svg
    assert "@media (prefers-color-scheme: dark)" in svg
    # Black, white and the stand-in for ink are readable in one theme only.
    assert re.findall("#(?:000000|ffffff|010203)", svg) == []


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=[f"{row['source']}: {row['example']}" for row in EXAMPLES]
)
def test_every_example_of_the_notes_is_in_its_section(example):
    section = sections(LECTURE).get(example["section"])
    assert section is not None, f"the lecture has no section {example['section']!r}"
    assert example["shown"] in section


def test_the_table_of_examples_lists_five_sources_and_each_example_once():
    assert len({row["source"] for row in EXAMPLES}) == 5
    assert len({row["example"] for row in EXAMPLES}) == len(EXAMPLES) >= 45


@pytest.mark.parametrize(
    "name",
    [
        "34512",
        "(4, 5, 4)",
        "(0, 4, 1, 4, 5)",
        "5.8 days",
        "400 bytes",
        "1110010",
        "{342, 825, 312, 54}",
    ],
)
def test_the_lecture_has_the_names_of_the_notes(name):
    assert name in LECTURE


def test_every_correction_has_a_number_and_a_computed_value_or_a_reference():
    numbered = [re.match(r"(\d+)\. ", heading) for heading in sections(CORRECTIONS)]
    assert [int(match[1]) for match in numbered] == list(range(1, len(numbered) + 1))
    assert len(numbered) >= 12
    for text in sections(CORRECTIONS).values():
        assert ">>> " in text
    named = {int(number) for number in re.findall(r"[Ss]ee\s+section (\d+)", CORRECTIONS)}
    existing = {int(number) for number in re.findall(r"^## (\d+)\.", LECTURE, re.MULTILINE)}
    assert named <= existing


def test_the_ten_steps_quote_lines_of_the_pipeline():
    pipeline = (ROOT / "src" / "neardup" / "pipeline.py").read_text("utf-8")
    steps = re.findall(
        r"^\| (\d+) \|.*\|(.*)\|$",
        sections(LECTURE)["Ten steps, and where the library does them"],
        re.MULTILINE,
    )
    assert [number for number, _ in steps] == [str(number) for number in range(1, 11)]
    for number, where in steps:
        quotes = re.findall("`([^`]+)`", where)
        assert quotes, f"step {number} quotes no line"
        assert [quote for quote in quotes if quote not in pipeline] == []


def results(name):
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def test_a_million_documents_take_what_was_measured():
    """The sentence of the lecture is made of growth.json; write it anew when the benchmark has run again."""
    measured = results("growth")
    million, ten_million = (row for row in measured["rows"] if row["input"] == "short documents")
    said = (
        f"{million['documents']:,} documents of {million['MB'] * 1e6 / million['documents']:.0f} bytes, "
        "one in ten a near-copy of another, take "
        f"`neardup dedup {million['settings']}` {million['seconds']:.1f} s on {measured['machine']['cores']} cores "
        f"({measured['machine']['cpu']}), with a peak of {million['peak MB']:.0f} MB. "
        f"{ten_million['documents']:,} take {ten_million['seconds']:.1f} s: "
        f"{ten_million['times seconds']:.1f} times as long for ten times the documents"
    )
    assert said in " ".join(sections(LECTURE)["A million documents, measured"].split())


def test_the_table_of_the_exact_join_is_what_was_measured():
    measured = {
        (row["corpus"], str(row["threshold"])): row
        for row in results("exact")["rows"]
        if "exact compared" in row
    }
    shown = re.findall(
        r"^\| (\S+) \| (0\.\d) \| (.+) \|$",
        sections(LECTURE)["10. Exactly: length and prefix filters"],
        re.MULTILINE,
    )
    assert len(shown) == 6
    for corpus, threshold, figures in shown:
        row = measured[corpus, threshold]
        names = ("pairs", "exact compared", "LSH compared", "LSH pairs")
        assert figures == " | ".join(f"{row[name]:,}" for name in names), (corpus, threshold)


def test_the_web_is_extrapolated_from_the_figures_of_the_spark_page():
    spark = (ROOT / "docs" / "spark.md").read_text("utf-8")
    said = sections(LECTURE)["A million documents, measured"]
    assert "19.1 GB, 4.6 million documents" in spark
    assert "4.6 million pages are 19.1 GB" in said
    [hours] = re.findall(
        r"^\| core-hours.*\| (\S+) to (\S+) \| \S+ to \S+ \|$", spark, re.MULTILINE
    )
    assert f"({', '.join(hours)})" in said
