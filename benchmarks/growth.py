"""Shared by the scaling benchmarks: runs `neardup dedup` on inputs of increasing size, and compares the times."""

import argparse
import json
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import corpus
import process

NEARDUP = Path(sys.executable).parent / "neardup"


def parser(description):
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpora", type=Path, help="not used: the documents are generated")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each size; the best counts")
    parser.add_argument("--full", action="store_true", help="the sizes that the targets are about")
    parser.add_argument(
        "--work", type=Path, help="folder for temporary files, if the default one is too small"
    )
    return parser


def deduplicate(source, settings=()):
    """Run `neardup dedup` once in a fresh process; return its cost and its report."""
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        out = Path(folder) / "out"
        cost = process.run(
            [NEARDUP, "dedup", source, "-o", out, "--threads", "2", *settings], Path(folder) / "log"
        )
        return cost, json.loads((out / "report.json").read_text())


def warm_up(folder):
    """Fill the kernel cache, so that compilation is not measured, with the kernels of every method and list."""
    corpus.short_documents(folder / "few.parquet", 100)
    corpus.hot_page(folder / "hot.parquet", 20_000, strays=0.05)
    for name in ("few", "hot"):
        for method in ("lsh", "exact"):
            deduplicate(folder / f"{name}.parquet", ("--method", method))


def measure(name, source, options, settings=()):
    """One row: the cost of one size, best of --repeat."""
    print(f"{name}: {source.name}", file=sys.stderr, flush=True)
    cost, report = min(
        (deduplicate(source, settings) for _ in range(options.repeat)),
        key=lambda run: run[0].seconds,
    )
    megabytes = corpus.text_bytes(source) / 1e6
    return {
        "input": name,
        "settings": " ".join(settings) or "defaults",
        "documents": report["documents"],
        "MB": round(megabytes, 1),
        "removed": report["removed"],
        "seconds": cost.seconds,
        "core-seconds": cost.cpu_seconds,
        "documents/s": report["documents"] / cost.seconds,
        "MB/s": megabytes / cost.seconds,
        "MB per core-second": megabytes / cost.cpu_seconds,
        "peak MB": cost.peak_bytes / 1e6,
    }


def compare(rows):
    """Add to each row of a series its documents, seconds and core-seconds relative to the row before it."""
    for before, row in pairwise(rows):
        for name in ("documents", "seconds", "core-seconds"):
            row[f"times {name}"] = row[name] / before[name]
    return rows
