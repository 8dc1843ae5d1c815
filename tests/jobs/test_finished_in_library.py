"""The library after a run: `load`, `explain` of a report, `plan.plot`, progress bars, `python -m`."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys

import pytest

import neardup
from neardup.cli.notebook_bars import TICK_SECONDS, NotebookBars
from neardup.cli.progress import Lines
from neardup.errors import ConfigError, DataError
from neardup.events import StageAdvanced, StageFinished, StageStarted, Warned

WORDS = "the ferry to the island leaves every morning at nine from the second pier behind the old customs house".split()
PAGE = " ".join(WORDS)
NEAR = " ".join([*WORDS[:-1], "station"])
OTHER = "nothing like the others at all, not a bit of it"
SETTINGS = {"threshold": 0.7, "size": 3}


def write_pages(folder):
    rows = [("a", PAGE), ("b", NEAR), ("c", OTHER), ("d", PAGE)]
    lines = [json.dumps({"id": doc_id, "text": text}) for doc_id, text in rows]
    (folder / "pages.jsonl").write_text("\n".join(lines), "utf-8")
    return folder / "pages.jsonl"


def in_memory(**settings):
    return neardup.deduplicate(
        {"a": PAGE, "b": NEAR, "c": OTHER, "d": PAGE}, **SETTINGS, **settings
    )


# load


def test_a_loaded_run_has_the_report_and_every_table(tmp_path):
    run = neardup.deduplicate(write_pages(tmp_path), out=tmp_path / "clean", pairs=True, **SETTINGS)
    loaded = neardup.load(tmp_path / "clean")
    assert loaded == run
    for name in ("kept", "removed", "clusters", "rejected", "pairs"):
        assert getattr(loaded, name).equals(getattr(run, name))
    assert loaded.mask.tolist() == [True, False, True, False]
    assert loaded.at_threshold(1.0).removed.column("doc_id").to_pylist() == ["d"]
    assert neardup.audit(loaded).missed.num_rows == 0


def test_a_loaded_list_of_pairs_can_be_filtered_by_threshold(tmp_path):
    found = neardup.find_pairs(write_pages(tmp_path), out=tmp_path / "pairs.csv", **SETTINGS)
    loaded = neardup.load(str(tmp_path / "pairs.csv"))
    assert loaded.pairs.to_pylist() == found.pairs.to_pylist()
    assert loaded.at_threshold(1.0).num_removed == 1


def test_loading_anything_but_a_run_is_an_error_with_a_hint(tmp_path):
    with pytest.raises(DataError, match=r"is not a finished run[\s\S]*hint: "):
        neardup.load(tmp_path)


# explain


@pytest.mark.parametrize("source", ["memory", "report of files", "report without a folder", "path"])
def test_explain_takes_a_report_or_a_path(source, tmp_path):
    if source == "memory":
        run = in_memory()
    else:
        out = None if source == "report without a folder" else tmp_path / "clean"
        run = neardup.deduplicate(write_pages(tmp_path), out=out, **SETTINGS)
        run = tmp_path / "clean" if source == "path" else run
    removed = neardup.explain(run, "b")
    assert (removed.kept_id, removed.text, removed.kept_text) == ("a", NEAR, PAGE)
    assert (
        removed.similarity
        == removed.comparison.jaccard
        == neardup.compare(PAGE, NEAR, size=3).jaccard
    )
    kept = neardup.explain(run, "a")
    assert (kept.kept_id, kept.text, kept.members) == (
        None,
        None,
        (("b", removed.similarity), ("d", 1.0)),
    )
    assert neardup.explain(run, "c").members == ()
    with pytest.raises(DataError, match="named 'bb'"):
        neardup.explain(run, "bb")


def test_explain_in_memory_distinguishes_equal_ids_by_row():
    report = neardup.deduplicate([PAGE, NEAR, PAGE], ids=["u", "u", "v"], **SETTINGS)
    with pytest.raises(
        DataError, match=r"2 documents are named 'u': rows 0, 1[\s\S]*hint: add row=0"
    ):
        neardup.explain(report, "u")
    assert neardup.explain(report, "u", row=0).members == (
        ("u", neardup.compare(PAGE, NEAR, size=3).jaccard),
        ("v", 1.0),
    )
    assert neardup.explain(report, "u", row=1).text == NEAR
    with pytest.raises(DataError, match="'u in row 2'"):
        neardup.explain(report, "u", row=2)
    with pytest.raises(ConfigError, match="`file` must be left out"):
        neardup.explain(report, "u", file="a.jsonl")


def test_explain_works_by_position_and_for_documents_without_text():
    report = neardup.deduplicate(items=[["tea", "jam"], ["jam", "tea"], None])
    answer = neardup.explain(report, 1)
    assert (answer.kept_id, answer.similarity, answer.text, answer.comparison) == (
        0,
        1.0,
        None,
        None,
    )
    with pytest.raises(DataError, match="named '2'"):
        neardup.explain(report, 2)
    with pytest.raises(DataError, match=r"named '1'[\s\S]*hint"):
        neardup.explain(report, "1")


# plot


def test_a_plan_can_plot_its_curve(tmp_path):
    plan = neardup.plan(threshold=0.9)
    figure = plan.plot(tmp_path / "plan.svg", other=neardup.plan(bands=20, rows=5))
    assert (tmp_path / "plan.svg").read_text("utf-8").startswith("<?xml")
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert {"11 bands x 10 rows", "20 bands x 5 rows"} <= set(labels)
    picture = io.BytesIO()
    plan.plot().savefig(picture)
    assert picture.getvalue().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"\.svg or \.png"):
        plan.plot(tmp_path / "plan.jpeg")
    with pytest.raises(ConfigError, match=r"counts bits[\s\S]*hint: plan with dimension="):
        neardup.plan(measure="hamming").plot(by_distance=True)


# progress


def test_progress_true_shows_warnings_on_stderr(capsys):
    report = neardup.deduplicate([PAGE, NEAR], bands=9, rows=13, progress=True)
    said = capsys.readouterr()
    assert said.out == ""
    assert f"warning: {report.warnings[0]}\n" in said.err
    neardup.neighbours([PAGE, NEAR, None], progress=True)
    assert "warning: 1 row cannot be used: row 2:" in capsys.readouterr().err
    neardup.deduplicate([PAGE, NEAR], bands=9, rows=13, progress=False)
    assert capsys.readouterr().err == ""


def test_a_slow_stage_is_announced_with_its_name_and_its_end():
    said = []
    lines = Lines(said.append, patience_seconds=0.0)
    neardup.deduplicate([PAGE, NEAR], progress=lines)
    neardup.neighbours([PAGE, NEAR], progress=lines)
    lines.stop()
    for words in ("verifying", "comparing"):
        assert any(re.fullmatch(rf"{words}: done in \d+ s.*", line) for line in said), said


class Notebook:
    """Remembers what a cell shows, with a clock that is set by hand."""

    def __init__(self):
        self.pages = []
        self.now = 0.0
        self.bars = NotebookBars(self.show, clock=lambda: self.now)

    def show(self, page):
        self.pages.append(page)
        return self.pages.append


def test_a_notebook_shows_one_bar_per_stage_and_escapes_data():
    notebook = Notebook()
    notebook.bars(StageStarted("verify", 400))
    notebook.bars(StageAdvanced("verify", 100, 400))
    assert len(notebook.pages) == 1  # too soon to draw again
    notebook.now = TICK_SECONDS
    notebook.bars(StageAdvanced("verify", 200, 400))
    notebook.bars(Warned("<script>"))
    notebook.bars(StageFinished("verify", 1.25))
    notebook.bars.stop()
    assert notebook.pages[0] == "verifying <progress></progress>"
    assert notebook.pages[1] == 'verifying <progress value="0.500"></progress> 50%, 200 documents'
    assert notebook.pages[-1] == "verifying done in 1.2 s<br>warning: &lt;script&gt;"


# python -m neardup


def test_python_m_neardup_runs_the_command():
    answer = subprocess.run(
        [sys.executable, "-m", "neardup", "--version"], capture_output=True, text=True, check=True
    )
    assert answer.stdout == f"neardup, version {neardup.__version__}\n"
