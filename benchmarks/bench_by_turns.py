"""Is this checkout slower than another one? The same jobs with both, by turns.

    python benchmarks/bench_by_turns.py --other FOLDER [--corpora FOLDER] [--repeat 7]

FOLDER is another checkout, such as `git worktree add FOLDER COMMIT`. Each job is a fresh process with
the modules of one checkout, after one run of each to compile kernels. The machine changes during a
day, and other work disturbs both sides alike, so what counts is the ratio of CPU seconds: the least
of each side, and the median of the ratios of neighbouring runs. `same work` says whether both wrote
the same rows. Not part of `make bench`, which has no other checkout: without --other it does nothing.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import corpus
import harness
import process

HERE = Path(__file__).resolve().parent.parent
MAIN = "from neardup.cli.main import main; main()"
# Seconds of queries and inserts, without the start of Python, would drown in those of a command.
INDEX = """
import sys
import pyarrow.parquet as pq
import neardup

texts = pq.read_table(sys.argv[1]).slice(0, 8_000)
index = neardup.Index.create(sys.argv[2])
index.insert_many(texts)
for _ in range(3):
    found = index.query_many(texts)
print(found.num_rows)
"""
COPIES_BYTES = 150_000_000


def jobs(folder, corpora):
    """Return the name of each job, the program it runs, and its arguments without the output."""
    source = corpus.base(corpora, folder)
    for name, make in (
        ("copies", corpus.edited_copies),
        ("few duplicates", corpus.few_duplicates),
    ):
        if not (folder / name).exists():
            make(source, folder / name, COPIES_BYTES)
    corpus.short_documents(folder / "few.parquet", 100)
    copies = folder / "copies"
    few = folder / "few duplicates"
    return {
        "dedup copies, Parquet": (MAIN, ["dedup", *sorted((copies / "parquet").iterdir())]),
        "dedup copies, JSON Lines": (MAIN, ["dedup", *sorted((copies / "jsonl").iterdir())]),
        "dedup few duplicates, Parquet": (MAIN, ["dedup", *sorted((few / "parquet").iterdir())]),
        "dedup few duplicates, exact": (
            MAIN,
            ["dedup", few / "one-file.parquet", "--method", "exact"],
        ),
        "start and 100 documents": (MAIN, ["dedup", folder / "few.parquet"]),
        "index: insert 8,000, query 24,000": (INDEX, [few / "one-file.parquet"]),
        "Spark: dedup copies": (
            MAIN,
            ["dedup", copies / "one-file.parquet", "--engine", "spark"],
        ),
    }


def run(checkout, program, words, folder):
    """Run a job with the modules of a checkout; return what it cost and what it reported."""
    with tempfile.TemporaryDirectory(dir=folder) as out:
        output = Path(out) / "out"
        target = [output] if program == INDEX else ["-o", output]
        os.environ["PYTHONPATH"] = str(checkout / "src")
        cost = process.run([sys.executable, "-c", program, *words, *target], Path(out) / "log")
        report = output / "report.json"
        if report.exists():
            counts = json.loads(report.read_text("utf-8"))
            written = [
                counts[name] for name in ("documents", "kept", "removed", "exact_duplicates")
            ]
        else:
            written = [(Path(out) / "log").read_text("utf-8")]
    return max(cost.cpu_seconds, cost.tree_cpu_seconds), written


def compare(name, program, words, checkouts, repeat, folder):
    """Run a job with both checkouts by turns; return a row of the table."""
    for checkout in checkouts:
        run(checkout, program, words, folder)
    pairs = []
    is_same = True
    for turn in range(repeat):
        seconds = {}
        written = {}
        for checkout in checkouts if turn % 2 else reversed(checkouts):
            seconds[checkout], written[checkout] = run(checkout, program, words, folder)
        other, this = checkouts
        pairs.append((seconds[other], seconds[this]))
        is_same = is_same and written[other] == written[this]
    least_other = min(other for other, _ in pairs)
    least_this = min(this for _, this in pairs)
    return {
        "job": name,
        "other CPU s": least_other,
        "this CPU s": least_this,
        "ratio of the least": least_this / least_other,
        "median ratio": statistics.median(this / other for other, this in pairs),
        "same work": is_same,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--other", type=Path, help="another checkout")
    parser.add_argument("--corpora", type=Path)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--jobs", default="", help="only the jobs whose names contain this")
    parser.add_argument("--work", type=Path, help="keeps the inputs for the next time")
    options = parser.parse_args()
    if options.other is None:
        print("nothing to compare with: pass --other CHECKOUT")
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.work or Path(temporary)
        folder.mkdir(exist_ok=True)
        checkouts = [options.other.resolve(), HERE]
        rows = [
            compare(name, program, words, checkouts, options.repeat, folder)
            for name, (program, words) in jobs(folder, options.corpora).items()
            if options.jobs in name
        ]
    commits = [
        subprocess.run(  # noqa: S603
            ["git", "-C", checkout, "rev-parse", "--short", "HEAD"],  # noqa: S607
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for checkout in checkouts
    ]
    other, this = commits
    harness.publish("by_turns", rows, harness.machine() | {"other": other, "this": this})


if __name__ == "__main__":
    main()
