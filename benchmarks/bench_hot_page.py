"""What does one page cost that a corpus holds a million times, with small edits?

Copies and near-copies of one page, all in the same buckets: time must grow with their number, not with its square.
`strays` adds one document in a hundred that is cut from the same page but below the threshold: these are kept, and
every later document shares a bucket with many of them. 100 k, 300 k and 1 M documents with --full, else a tenth.
"""

import tempfile
from pathlib import Path

import corpus
import growth
import harness

# Linear is 1; the rest is room for a machine that is not quiet.
MOST_EXCESS = 1.3


def main():
    options = growth.arguments(__doc__)
    counts = (100_000, 300_000, 1_000_000) if options.full else (10_000, 30_000, 100_000)
    rows = []
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        start_seconds = growth.warm_up(Path(folder))
        for name, strays in (("near-copies", 0.0), ("near-copies and strays", 0.01)):
            family = []
            for count in counts:
                file = Path(folder) / f"{count}.parquet"
                corpus.hot_page(file, count, strays=strays)
                family.append(growth.measure(name, file, options))
                file.unlink()
            rows += growth.compare(family, start_seconds)
    harness.publish("hot_page", rows, harness.machine("duckdb"))
    growth.check(rows, most_excess=MOST_EXCESS if options.full else None)


if __name__ == "__main__":
    main()
