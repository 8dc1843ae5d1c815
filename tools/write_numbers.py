"""Write the table of numbers in README.md from benchmarks/results/end_to_end.json.

    python tools/write_numbers.py

A column that no tool of the file has is left out, and so is a tool without a row. A test compares
the two.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
RESULTS = ROOT / "benchmarks" / "results" / "end_to_end.json"
BEGIN = "<!-- numbers: tools/write_numbers.py -->\n"
END = "<!-- end of numbers -->\n"
# Names in the results, and in the table.
TOOLS = {
    "only reading (pyarrow)": "only reading the files (pyarrow)",
    "neardup pairs": "**neardup pairs**, Parquet to a list of pairs",
    "neardup dedup": "**neardup dedup**, Parquet to Parquet",
    "neardup dedup, JSON Lines": "**neardup dedup**, JSON Lines to JSON Lines",
    "gaoya 21x6, own words": "gaoya 21 x 6, Parquet to a list of pairs",
    "rensa 16x8": "rensa 16 x 8",
    "FastSketchLSH 16x8": "FastSketchLSH 16 x 8",
    "datasketch 9x13, filtered": "datasketch 9 x 13, filtered",
}
WORKS = {"docs": "docs", "few duplicates": "few duplicates", "copies": "edited copies"}
MEASURED = {"seconds": "s", "core-seconds": "core-s", "recall": "recall", "precision": "precision"}
# Recall and precision are shown only for the last corpus, which has many pairs near the threshold.
ONLY_LAST = ("recall", "precision")


def table(results: dict[str, Any]) -> str:
    """Return the table for the results of the benchmark."""
    rows = {(row["work"], row["tool"]): row for row in results["rows"] if "seconds" in row}
    columns = [
        (work, name)
        for work in WORKS
        for name in MEASURED
        if (name not in ONLY_LAST or work == list(WORKS)[-1])
        and any(
            row.get(name) is not None
            for (own, tool), row in rows.items()
            if own == work and tool in TOOLS
        )
    ]
    sizes = {work: _size(row["MB"]) for (work, _), row in rows.items()}
    heads = [
        MEASURED[name] if name != "seconds" else f"{WORKS[work]}, {sizes[work]}: {MEASURED[name]}"
        for work, name in columns
    ]
    lines = [["tool", *heads], ["---", *["--:"] * len(columns)]]
    for tool, label in TOOLS.items():
        cells = [_cell(name, rows.get((work, tool), {}).get(name)) for work, name in columns]
        lines += [[label, *cells]] * any(cells)
    return "".join(f"|{'|'.join(_padded(cell) for cell in line)}|\n" for line in lines)


def _padded(cell: str) -> str:
    return cell if set(cell) <= {"-", ":"} and cell else f" {cell} " if cell else " "


def _size(megabytes: float) -> str:
    return f"{megabytes:.0f} MB" if megabytes < 1000 else f"{megabytes / 1000:.2f} GB"


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name in ONLY_LAST:
        return (
            "1.0"
            if value == 1
            else f"{value:.4f}".lstrip("0")
            if value > 0.999
            else f"{value:.2f}".lstrip("0")
        )
    return f"{value:.1f}" if value < 20 else f"{value:.0f}"


def rewritten(readme: str, results: dict[str, Any]) -> str:
    """Return the README with the table of the results."""
    before, _, rest = readme.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table(results)}{END}{after}"


def main() -> int:
    README.write_text(
        rewritten(README.read_text("utf-8"), json.loads(RESULTS.read_text("utf-8"))), "utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
