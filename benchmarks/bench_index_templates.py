"""What does a query cost if the index holds 50,000 pages of one template that are similar, but not similar enough?

    python benchmarks/bench_index_templates.py                    the column "now" of results/index_templates.json
    python benchmarks/bench_index_templates.py --column before    another column, for another version of neardup

Pages have 300 shingles, some of a template and some of their own; the threshold is 0.8. A query is
a new page of the same template, warm, from one thread. CPU time is measured, so other work on the
machine matters less. `python benchmarks/bench_index.py --table` puts the result into docs/index.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import harness
import neardup

PAGES = 50_000
SIZE = 300
SHINGLE_WORDS = 5
SIMILARITIES = (0.30, 0.56, 0.63, 0.69, 0.75)
# Queries before the measurement, after which an index no longer requests pages from the disk.
WARM = 100
QUERIES = 60


def pages(similarity, count, seed):
    """Return pages that have this Jaccard similarity to each other."""
    draw = np.random.default_rng(seed)
    # A block of n words that are not in the template takes part in n + SHINGLE_WORDS - 1 shingles.
    num_own = round(SIZE * (1 - similarity) / (1 + similarity)) - SHINGLE_WORDS + 1
    words = [f"template{number}" for number in range(SIZE + SHINGLE_WORDS - 1 - num_own)]
    middle = len(words) // 2
    before, after = " ".join(words[:middle]), " ".join(words[middle:])
    for own in draw.integers(0, 10**9, (count, num_own)).tolist():
        yield f"{before} {' '.join(map(str, own))} {after}"


def measure(folder, similarity):
    """Return the CPU time of a query, and the bytes of a page."""
    stored = pa.array(list(pages(similarity, PAGES, seed=1)), pa.large_string())
    with neardup.Index.create(folder / f"{similarity}", durability="fast") as index:
        for first in range(0, PAGES, 10_000):
            ids = pa.array(range(first, first + 10_000)).cast(pa.string())
            index.insert_many(pa.table({"id": ids, "text": stored[first : first + 10_000]}))
        index.compact()
        row = {"similarity": similarity, "bytes/page": index.info()["bytes"] / PAGES}
        asked = list(pages(similarity, WARM + QUERIES, seed=2))
        for text in asked[:WARM]:
            index.query(text)
        seconds = []
        for text in asked[WARM:]:
            began = time.process_time()
            found = index.query(text)
            seconds.append(time.process_time() - began)
            if found:
                raise AssertionError("pages of a template must not match")
    row["median ms"] = statistics.median(seconds) * 1e3
    row["largest ms"] = max(seconds) * 1e3
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--column", default="now", help="name of the measured version")
    parser.add_argument("--corpora", help="not used: pages are made here")
    options = parser.parse_args()
    path = harness.RESULTS / "index_templates.json"
    earlier = (
        json.loads(path.read_text("utf-8"))["rows"] if path.exists() else [{} for _ in SIMILARITIES]
    )
    about = harness.machine() | {"pages": PAGES, "shingles": SIZE}
    rows = []
    for similarity, row in zip(SIMILARITIES, earlier, strict=True):
        with tempfile.TemporaryDirectory(prefix="bench-templates-") as made:
            measured = measure(Path(made), similarity)
        columns = {
            f"{name}, {options.column}": value
            for name, value in measured.items()
            if name != "similarity"
        }
        rows.append({"similarity": similarity} | row | columns)
        print(json.dumps(rows[-1]), flush=True)
    harness.publish("index_templates", rows, about)


if __name__ == "__main__":
    main()
