"""A job has one function, whatever the source; the command line calls it with the same arguments."""

from __future__ import annotations

import pytest

import neardup
from neardup.cli.options import as_paths
from neardup.errors import ConfigError, DataError
from neardup.io.documents.discover import paths_of

PAGES = '{"id": "a", "text": "one two three"}\n{"id": "b", "text": "One two three!"}\n'
SETTINGS = {"size": 1, "threads": 1}


@pytest.fixture
def pages(tmp_path):
    path = tmp_path / "pages.jsonl"
    path.write_text(PAGES, "utf-8")
    return path


def test_inputs_of_a_command_keep_their_characters():
    typed = ["s3://bucket//key", "-", "./a/../*.jsonl"]
    assert paths_of(as_paths(typed)) == typed


def test_the_page_of_a_run_is_among_its_files(tmp_path, pages):
    report = neardup.deduplicate(pages, out=tmp_path / "out", report="page.html", **SETTINGS)
    assert "page.html" in report.files
    assert (tmp_path / "out" / "page.html").read_text("utf-8").startswith("<!doctype html>")
    assert neardup.load(tmp_path / "out").num_removed == 1


@pytest.mark.parametrize("name", ["", "a/page.html", "../page.html", "page.txt", True, 7])
def test_the_page_of_a_run_is_an_html_file_in_its_folder(tmp_path, pages, name):
    with pytest.raises(ConfigError, match="`report` must be the name of an HTML file"):
        neardup.deduplicate(pages, out=tmp_path / "out", report=name, **SETTINGS)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("argument", [{"update": True}, {"report": "page.html"}])
def test_update_and_report_need_files_and_an_output(pages, argument):
    (name,) = argument
    with pytest.raises(ConfigError, match=f"`{name}` needs `out`"):
        neardup.deduplicate(pages, **argument, **SETTINGS)
    with pytest.raises(ConfigError, match=f"`{name}` needs files as the source"):
        neardup.deduplicate(["one", "two"], **argument, **SETTINGS)


def test_neighbours_of_files_are_returned_and_written(tmp_path, pages):
    out = tmp_path / "near.csv"
    found = neardup.neighbours(pages, k=1, out=out, **SETTINGS)
    lines = out.read_text("utf-8").splitlines()
    assert found.column("neighbour_id").to_pylist() == ["b", "a"]
    assert len(lines) == 3
    with pytest.raises(DataError, match="already exists"):
        neardup.neighbours(pages, k=1, out=out, **SETTINGS)
    with pytest.raises(ConfigError, match="`out` needs files as the source"):
        neardup.neighbours(["one", "two"], out=out, **SETTINGS)


def test_a_plan_of_files_emits_events(pages):
    events = []
    neardup.plan(pages, progress=events.append, **SETTINGS)
    assert events


@pytest.mark.parametrize(
    "name", ["deduplicate_files", "find_pairs_files", "neighbours_files", "plan_files"]
)
def test_a_function_that_is_gone_names_the_one_to_call(name):
    with pytest.raises(
        AttributeError, match=f"call neardup.{name.removesuffix('_files')}, which takes files too"
    ):
        getattr(neardup, name)
