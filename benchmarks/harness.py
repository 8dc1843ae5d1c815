"""Shared by the benchmarks: corpora, timing, the machine, the table and the JSON file."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sysconfig
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

RESULTS = Path(__file__).parent / "results"


def arguments(description: str) -> argparse.Namespace:
    """Every benchmark takes the same options."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--corpora",
        type=Path,
        help="folder with docs.parquet and others; else text of this machine",
    )
    parser.add_argument(
        "--repeat", type=int, default=7, help="runs of each measurement; the best counts"
    )
    return parser.parse_args()


def made_arguments(description: str, full: str) -> argparse.Namespace:
    """The options of a benchmark that generates its data and runs every tool once; `full` says what --full does."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--corpora", type=Path, help="not used: the data is generated")
    parser.add_argument("--repeat", type=int, help="not used: every tool runs once")
    parser.add_argument("--full", action="store_true", help=full)
    return parser.parse_args()


def load_texts(corpora: Path | None, name: str) -> tuple[str, pa.ChunkedArray]:
    """Return the texts of a corpus, or of the standard library of this Python if there is no corpus."""
    if corpora is not None:
        return name, pq.read_table(corpora / f"{name}.parquet", columns=["text"]).column("text")
    return "standard library", standard_library()


def standard_library() -> pa.ChunkedArray:
    """The source files of the standard library: text that every machine has."""
    files = sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py"))
    texts = [
        file.read_text("utf-8", "replace") for file in files if "site-packages" not in file.parts
    ]
    return pa.chunked_array([pa.array(texts, pa.large_string())])


def best_seconds(work: Callable[[], Any], repeat: int) -> float:
    """The fastest of several runs: the one that other work on the machine disturbed least."""
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def machine(*packages: str) -> dict[str, Any]:
    """The machine and the versions with which a result was measured."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    model = next(
        (line.split(":")[1].strip() for line in lines if "model name" in line), platform.processor()
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "load_average": os.getloadavg()[0],
        "python": platform.python_version(),
        "versions": {
            name: importlib.metadata.version(name)
            for name in ("neardup", "numba", "numpy", "pyarrow", *packages)
        },
    }


def publish(question: str, rows: list[dict[str, Any]], about: dict[str, Any]) -> None:
    """Print a table and write it to results/QUESTION.json, which also has nested values."""
    nested = {name for row in rows for name, value in row.items() if isinstance(value, dict)}
    columns = [
        name for name in dict.fromkeys(name for row in rows for name in row) if name not in nested
    ]
    cells = [columns, *[[_cell(row.get(column)) for column in columns] for row in rows]]
    widths = [max(len(row[column]) for row in cells) for column in range(len(columns))]
    for row in cells:
        print(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        )
    print(json.dumps(about))
    RESULTS.mkdir(exist_ok=True)
    answer = {"question": question, "machine": about, "rows": rows}
    (RESULTS / f"{question}.json").write_text(
        json.dumps(answer, indent=2, ensure_ascii=False) + "\n"
    )


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if value < 100 else f"{value:,.0f}"
    return "" if value is None else str(value)
