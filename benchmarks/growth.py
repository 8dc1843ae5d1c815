"""What the benchmarks of growth share: `neardup dedup` on inputs of rising size, and how its time rises with them."""

import argparse
import json
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import corpus
import process

NEARDUP = Path(sys.executable).parent / "neardup"


def arguments(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=Path, help="not used: the documents are made")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each size; the best counts")
    parser.add_argument("--full", action="store_true", help="the sizes that the promise is about")
    parser.add_argument("--work", type=Path, help="folder for the temporary files, where the usual one is too small")
    return parser.parse_args()


def deduplicate(source, settings=()):
    """Run `neardup dedup` once in a fresh process; return its cost and its report."""
    with tempfile.TemporaryDirectory(dir=source.parent) as folder:
        out = Path(folder) / "out"
        cost = process.run([NEARDUP, "dedup", source, "-o", out, "--threads", "2", *settings], Path(folder) / "log")
        return cost, json.loads((out / "report.json").read_text())


def warm_up(folder):
    """Let neardup fill its kernel cache, which a first run pays once; return the seconds of a start without work."""
    corpus.short_documents(folder / "few.parquet", 100)
    deduplicate(folder / "few.parquet")
    return deduplicate(folder / "few.parquet")[0].seconds


def measure(name, source, options, settings=()):
    """One row: what a size costs, best of --repeat."""
    print(f"{name}: {source.stem}", file=sys.stderr, flush=True)
    cost, report = min((deduplicate(source, settings) for _ in range(options.repeat)), key=lambda run: run[0].seconds)
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
        "peak MB": cost.peak_bytes / 1e6,
    }


def compare(rows, start_seconds):
    """Add to each row of a family how many times the documents and the seconds of the row before it has.

    `times work` leaves out the start of the process, which hides growth; only where the work outweighs the start.
    """
    for before, row in pairwise(rows):
        row["times documents"] = row["documents"] / before["documents"]
        row["times seconds"] = row["seconds"] / before["seconds"]
        row["times core-seconds"] = row["core-seconds"] / before["core-seconds"]
        if before["seconds"] > 2 * start_seconds:
            row["times work"] = (row["seconds"] - start_seconds) / (before["seconds"] - start_seconds)
    return rows


def check(rows, *, most_times=None, most_excess=None, most_bytes=None):
    """End with an error where a row breaks a bound: seconds or work against the row before it, or peak memory."""
    broken = []
    for row in rows:
        name = f"{row['input']}, {row['documents']:,} documents"
        if most_times and row.get("times seconds", 0) > most_times:
            broken.append(f"{name}: {row['times seconds']:.1f} times the seconds, limit {most_times}")
        work = row.get("times work", row.get("times seconds", 0))
        if most_excess and work > most_excess * row.get("times documents", 1):
            broken.append(f"{name}: {work:.1f} times the work, {row['times documents']:.1f} times the documents")
        if most_bytes and row["peak MB"] * 1e6 > most_bytes:
            broken.append(f"{name}: peak of {row['peak MB']:,.0f} MB, limit {most_bytes / 1e6:,.0f} MB")
    if broken:
        sys.exit("\n".join(broken))
