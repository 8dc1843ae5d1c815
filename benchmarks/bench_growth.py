"""Do time and memory grow no faster than the input?

- `pages`: text with few duplicates, with the default memory and with `--memory 2GB`. The MB/s of
  every size must be within 10 % of those of the smallest one. 640 MB, 5 GB and 10 GB with --full.
- `short documents` of about 200 bytes, one in ten a near-copy, with `--memory 2GB`: ten times the
  documents may take at most 11 times the core-seconds. 1 M and 10 M with --full.
- `near-copies` of one page, and the same with `strays`: one document in a hundred is cut from the
  page but below the threshold, so it is kept, and every later document shares a bucket with many of
  them. 3.3 times the documents may take at most 3.8 times the seconds. 100 k, 300 k and 1 M with
  --full.

The peak must stay within 1.1 times the memory. Without --full the sizes are a tenth or less, and
only the peak is judged. --full takes about 20 minutes on two quiet cores, and 16 GB of disk.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import corpus
import growth
import harness
from neardup.io.free_memory import free_bytes

GIGABYTE = 10**9
LIMITED = ("--memory", "2GB")
# The peak, relative to --memory or to its default, half of the free memory.
MAX_MEMORY = 1.1
MIN_SPEED = 0.9
MAX_CORE_SECONDS = 1.1
MAX_SECONDS = 3.8 / (10 / 3)


def main():
    parser = growth.parser(__doc__)
    parser.add_argument(
        "--only", choices=FAMILIES, action="append", help="measure only this; repeatable"
    )
    options = parser.parse_args()
    rows = []
    broken = []
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        growth.warm_up(Path(folder))
        for family in options.only or FAMILIES:
            FAMILIES[family](Path(folder), options, rows, broken)
    harness.publish("growth", rows, harness.machine())
    if broken:
        sys.exit("\n".join(broken))


def measure_pages(folder, options, rows, broken):
    sizes = (0.64, 5, 10) if options.full else (0.064, 0.5)
    series = {(): [], LIMITED: []}
    for size in sizes:
        source = folder / f"{size} GB"
        corpus.pages(source, int(size * GIGABYTE))
        for settings, measured in series.items():
            measured.append(_measure("pages", source, options, settings, broken))
        shutil.rmtree(source)
    for measured in series.values():
        for row in growth.compare(measured):
            if options.full and row["MB/s"] < MIN_SPEED * measured[0]["MB/s"]:
                broken.append(
                    f"{_name(row)}: {row['MB/s']:.0f} MB/s after {measured[0]['MB/s']:.0f}"
                )
        rows += measured


def measure_short_documents(folder, options, rows, broken):
    counts = (1_000_000, 10_000_000) if options.full else (20_000, 200_000)
    rows += _measure_counts(
        "short documents", corpus.short_documents, counts, folder, options, LIMITED, broken
    )
    _judge(rows[-1:], "core-seconds", MAX_CORE_SECONDS, options, broken)


def measure_near_copies(folder, options, rows, broken):
    counts = (100_000, 300_000, 1_000_000) if options.full else (10_000, 30_000, 100_000)
    for name, strays in (("near-copies", 0.0), ("near-copies and strays", 0.01)):

        def make(file, count, strays=strays):
            corpus.hot_page(file, count, strays=strays)

        measured = _measure_counts(name, make, counts, folder, options, (), broken)
        _judge(measured[1:], "seconds", MAX_SECONDS, options, broken)
        rows += measured


FAMILIES = {
    "pages": measure_pages,
    "short-documents": measure_short_documents,
    "near-copies": measure_near_copies,
}


def _measure_counts(name, make, counts, folder, options, settings, broken):
    measured = []
    for count in counts:
        file = folder / f"{count}.parquet"
        make(file, count)
        measured.append(_measure(name, file, options, settings, broken))
        file.unlink()
    return growth.compare(measured)


def _measure(name, source, options, settings, broken):
    """Return the row of one size, and judge its peak against the memory it may take."""
    memory = 2 * GIGABYTE if settings == LIMITED else free_bytes() // 2
    row = growth.measure(name, source, options, settings) | {"memory MB": memory / 1e6}
    if row["peak MB"] * 1e6 > MAX_MEMORY * memory:
        broken.append(
            f"{_name(row)}: peak of {row['peak MB']:,.0f} MB, memory {memory / 1e6:,.0f} MB"
        )
    return row


def _judge(rows, cost, most, options, broken):
    """Judge how a cost grows with the number of documents; small inputs are over too soon for that."""
    for row in rows:
        if options.full and row[f"times {cost}"] > most * row["times documents"]:
            broken.append(f"{_name(row)}: {row[f'times {cost}']:.1f} times the {cost}")


def _name(row):
    return f"{row['input']}, {row['settings']}, {row['documents']:,} documents"


if __name__ == "__main__":
    main()
