"""Does a run of many short documents stay within its memory, and grow with their number and not faster?

Documents of about 200 bytes, one in ten a near copy, deduplicated under `--memory 2GB`: ten times the documents may
take at most 11 times the time, and the process at most 2.2 GB at its peak. 1 M and 10 M documents with --full; else
20,000 and 200,000, too short to judge the ratio, so only the memory is.
"""

import tempfile
from pathlib import Path

import corpus
import growth
import harness

MOST_BYTES = 2.2e9
MOST_TIMES = 11


def main():
    options = growth.arguments(__doc__)
    counts = (1_000_000, 10_000_000) if options.full else (20_000, 200_000)
    rows = []
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        start_seconds = growth.warm_up(Path(folder))
        for count in counts:
            file = Path(folder) / f"{count}.parquet"
            corpus.short_documents(file, count)
            rows.append(growth.measure("short documents", file, options, ("--memory", "2GB")))
            file.unlink()
    growth.compare(rows, start_seconds)
    harness.publish("short_documents", rows, harness.machine("duckdb"))
    growth.check(rows, most_times=MOST_TIMES if options.full else None, most_bytes=MOST_BYTES)


if __name__ == "__main__":
    main()
