"""The table of numbers in the README is the one that tools/write_numbers.py makes of the committed results."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def write_numbers():
    spec = importlib.util.spec_from_file_location(
        "write_numbers", ROOT / "tools" / "write_numbers.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_has_the_numbers_of_the_results():
    tool = write_numbers()
    readme = tool.README.read_text("utf-8")
    assert readme.count(tool.BEGIN) == readme.count(tool.END) == 1
    assert tool.rewritten(readme, json.loads(tool.RESULTS.read_text("utf-8"))) == readme


def test_columns_and_tools_without_numbers_are_left_out():
    tool = write_numbers()
    rows = [
        {
            "work": "docs",
            "tool": "neardup dedup",
            "MB": 106.2,
            "seconds": 1.25,
            "core-seconds": 2.0,
            "recall": 0.5,
        },
        {
            "work": "copies",
            "tool": "neardup dedup",
            "MB": 1050.3,
            "seconds": 21.4,
            "recall": 0.99983,
            "precision": 1.0,
        },
        {"work": "copies", "tool": "gaoya 21x6, own words", "MB": 1050.3, "note": "failed"},
        {"work": "copies", "tool": "another", "MB": 1050.3, "seconds": 1.0},
    ]
    assert tool.table({"rows": rows}).splitlines() == [
        "| tool | docs, 106 MB: s | core-s | edited copies, 1.05 GB: s | recall | precision |",
        "|---|--:|--:|--:|--:|--:|",
        "| **neardup dedup**, Parquet to Parquet | 1.2 | 2.0 | 21 | .9998 | 1.0 |",
    ]
