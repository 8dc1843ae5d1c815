"""Pairs of files as SARIF."""

from __future__ import annotations

import json
from pathlib import Path

import neardup
from support import corpora
from support.corpora import NEAR, PAGE


def results_of(path):
    document = json.loads(path.read_text("utf-8"))
    assert document["version"] == "2.1.0"
    [run] = document["runs"]
    [rule] = run["tool"]["driver"]["rules"]
    assert {result["ruleId"] for result in run["results"]} == {rule["id"]}
    return run["results"]


def place_of(location):
    physical = location["physicalLocation"]
    return physical["artifactLocation"]["uri"], physical["region"]["startLine"]


def test_a_pair_is_a_result_at_its_later_document(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"id": "a", "text": PAGE}, {"id": "b", "text": "other words"}]
    corpora.write_json_lines(tmp_path / "data" / "old pages.jsonl", rows)
    corpora.write_json_lines(tmp_path / "new.jsonl", [{"id": "c", "text": NEAR}])
    inputs = [Path("data/old pages.jsonl"), Path("new.jsonl")]
    neardup.find_pairs(inputs, threshold=0.5, sarif="found.sarif", progress=lambda _: None)
    [result] = results_of(tmp_path / "found.sarif")
    assert place_of(result["locations"][0]) == ("new.jsonl", 1)
    assert place_of(result["relatedLocations"][0]) == ("data/old%20pages.jsonl", 1)
    assert result["message"]["text"].startswith("c has similarity 0.")
    assert result["level"] == "warning"


def test_a_file_elsewhere_is_named_by_its_whole_path(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(PAGE, "utf-8")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    neardup.find_pairs(
        [tmp_path / "a.txt", tmp_path / "b.txt"], sarif="a.sarif", progress=lambda _: None
    )
    [result] = results_of(tmp_path / "here" / "a.sarif")
    assert place_of(result["locations"][0]) == ((tmp_path / "b.txt").as_uri(), 1)


def test_rows_of_json_lines_are_lines(tmp_path):
    rows = [{"text": "x"}, {"text": PAGE}, {"text": PAGE}]
    path = corpora.write_json_lines(tmp_path / "a.jsonl", rows)
    neardup.find_pairs(path, sarif=tmp_path / "a.sarif", progress=lambda _: None)
    [result] = results_of(tmp_path / "a.sarif")
    assert place_of(result["locations"][0])[1] == 3
    assert place_of(result["relatedLocations"][0])[1] == 2
