"""The tables of docs/index.md are made from the results of the benchmark, not written by hand."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_shows_the_results_of_the_benchmark(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import index_table as table

    names = ("index", "index_10m")
    files = [
        path
        for name in names
        if (path := ROOT / "benchmarks" / "results" / f"{name}.json").exists()
    ]
    results = [json.loads(file.read_text("utf-8")) for file in files]
    assert table.tables(results) in (ROOT / "docs" / "index.md").read_text("utf-8")
