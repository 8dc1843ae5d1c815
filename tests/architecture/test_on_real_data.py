"""docs/on-real-data.md is the page that benchmarks/bench_on_real_data.py makes of the committed results."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(ROOT / "benchmarks")])
    spec = importlib.util.spec_from_file_location(
        "bench_on_real_data", ROOT / "benchmarks" / "bench_on_real_data.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_numbers_of_the_results(benchmark):
    assert benchmark.PAGE.read_text("utf-8") == benchmark.page(benchmark.read_results())


def test_the_recipe_of_the_readme_is_the_one_that_was_measured(benchmark):
    row = re.search(r"^\| match records .*$", README.read_text("utf-8"), re.MULTILINE)[0]
    options = " ".join(f"--{name} {value}" for name, value in benchmark.RECIPE.items())
    assert options in row
    measured = benchmark.read_results()["records"]
    recipes = [one["f1"] for one in measured["rows"] if one["tool"].endswith(", README")]
    assert len(recipes) == 8
    assert min(recipes) >= 0.99


def test_the_recipe_is_the_best_of_the_half_it_was_chosen_on(benchmark):
    measured = benchmark.read_results()["records"]
    best = max(
        measured["sweep"], key=lambda row: sum(row["f1"][name] for name in measured["chosen_on"])
    )
    assert best["unit"] == f"{benchmark.RECIPE['unit']} {benchmark.RECIPE['size']}"
    assert abs(best["threshold"] - benchmark.RECIPE["threshold"]) <= 0.05


def test_what_the_page_says_of_edited_pages_is_what_was_measured(benchmark):
    recalls = {}
    precisions = {}
    scores = {}
    for row in benchmark.read_results()["versions"]["rows"]:
        scores.setdefault(row["data"], {})[row["tool"]] = row["f1"]
        recalls.setdefault(row["tool"], {})[row["data"]] = row["recall"]
        precisions.setdefault(row["tool"], {})[row["data"]] = row["precision"]
    own = [tool for tool in recalls if tool.startswith("neardup pairs, ")]
    defaults, by_jaccard, by_containment, tuned = own
    assert by_containment.startswith("neardup pairs, containment, ")
    assert by_jaccard.startswith("neardup pairs, jaccard, ")
    assert sum(recalls[by_containment].values()) > sum(recalls[by_jaccard].values())
    for package in ("networkx", "sympy"):
        assert recalls[defaults][package] < 0.5
        assert recalls[tuned][package] > recalls[defaults][package]
        assert precisions[tuned][package] < precisions[defaults][package]
    for package in ("Django", "networkx", "sympy"):
        assert max(scores[package], key=scores[package].get).startswith("scikit-learn")
    assert min(scores["pytest"], key=scores["pytest"].get).startswith("scikit-learn")


def test_vectors_have_the_neighbours_and_pairs_of_a_brute_force(benchmark):
    measured = benchmark.read_results()["digits"]
    neighbours = {row["tool"]: row for row in measured["neighbours"]}
    pairs = {row["tool"]: row for row in measured["pairs"]}
    assert neighbours["neardup neighbours, cosine"]["different"] == 0
    for method in ("exact", "auto (default)"):
        row = pairs[f"neardup pairs, --method {method}"]
        assert (row["missed"], row["false"]) == (0, 0)


def test_main_content_is_found_on_pages_that_nothing_was_tuned_on(benchmark):
    rows = benchmark.read_results()["html"]["rows"]
    own = {row["half"]: row for row in rows if row["extractor"] == "neardup, main"}
    reported = own["reported"]
    assert reported["F1"] >= 0.95
    assert reported["mirrors"] >= 0.86
    assert min(half["F1 of chapters"] for half in own.values()) >= 0.95
    assert min(half["mirrors of chapters"] for half in own.values()) >= 0.86
    said = (ROOT / "docs" / "files.md").read_text("utf-8")
    for figure in (reported["F1"], reported["F1 of chapters"]):
        assert f"{figure:.3f}".lstrip("0") in said


def test_the_recipe_for_essays_is_the_one_that_was_measured(benchmark):
    copies = benchmark.real_copies
    row = re.search(r"^\| find copied essays .*$", README.read_text("utf-8"), re.MULTILINE)[0]
    assert all(f"--{name} {value}" in row for name, value in copies.RECIPE.items())
    measured = benchmark.read_results()["copies"]
    own, _, whole, _ = measured["rows"]
    assert copies.SETTINGS[own["settings"]] == copies.RECIPE
    assert own["found"]["no-plagiarism"] == 0
    verbatim = own["found"]["no-obfuscation"] / measured["labelled"]["no-obfuscation"]
    assert verbatim > 0.8
    assert whole["found"]["no-obfuscation"] <= 0.01 * measured["labelled"]["no-obfuscation"]
    guide = (ROOT / "docs" / "guides" / "plagiarism.md").read_text("utf-8")
    assert f"{verbatim:.0%}".replace("%", " %") in guide


def test_tune_of_a_gigabyte_takes_less_than_thirty_seconds_of_two_cores(benchmark):
    measured = json.loads((benchmark.FOLDER / "tune.json").read_text("utf-8"))
    [row] = measured["rows"]
    assert row["MB"] >= 1000
    assert row["core-s"] / 2 < 30
    decision = (ROOT / "docs" / "decisions" / "0042-thresholds-found.md").read_text("utf-8")
    assert f"{row['core-s']} CPU seconds" in decision
