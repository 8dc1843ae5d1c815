"""Does a document crafted by someone who knows the seed take more than linear time?

A brute-force search finds words whose hashes, with the default seed, all fall into the same 64th of
a document's hash table, so that they collide; for comparison, the same number of ordinary words is
measured. Each size is twice the one before; `exponent` is how the time grows from one to the next:
1 is linear.
"""

import math
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import growth
import harness
import neardup
from neardup.config import Config
from neardup.measures import jaccard

SIZES = [12_500 << power for power in range(5)]
SHARE_BITS = 6
BATCH = 1 << 20


def words_in_one_region(count):
    """Words of one shingle each whose hashes have the same first SHARE_BITS bits."""
    found = []
    first = 0
    while sum(map(len, found)) < count:
        names = np.array([f"w{number:x}" for number in range(first, first + BATCH)])
        text = pa.array([" ".join(names.tolist())])
        _, hashes, _ = next(jaccard.shingle_runs(text, Config(size=1)))
        found.append(names[hashes >> np.uint64(64 - SHARE_BITS) == 31])
        first += BATCH
    return np.concatenate(found)[:count].tolist()


def best_cpu_seconds(work, repeat):
    times = []
    for _ in range(repeat):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def with_exponents(rows):
    for before, row in pairwise(rows):
        row["exponent"] = math.log2(row["CPU seconds"] / before["CPU seconds"])
    return rows


def measure_shingles(name, words, repeat):
    rows = []
    for size in SIZES:
        text = " ".join(words[:size])
        seconds = best_cpu_seconds(lambda text=text: neardup.shingles(text, size=1), repeat)
        rows.append(
            {
                "command": "shingles",
                "words": name,
                "shingles": size,
                "MB": len(text) / 1e6,
                "CPU seconds": seconds,
            }
        )
    return with_exponents(rows)


def measure_pairs(name, words, repeat):
    """Two documents that differ in one word, so that they are compared exactly."""
    rows = []
    for size in SIZES:
        texts = [" ".join(words[:size]), " ".join(words[1:size])]
        seconds = best_cpu_seconds(
            lambda texts=texts: neardup.find_pairs(texts, size=1, threads=1), repeat
        )
        megabytes = sum(map(len, texts)) / 1e6
        rows.append(
            {
                "command": "pairs",
                "words": name,
                "shingles": 2 * size,
                "MB": megabytes,
                "CPU seconds": seconds,
            }
        )
    return with_exponents(rows)


def main():
    options = growth.parser(__doc__).parse_args()
    crafted = words_in_one_region(SIZES[-1])
    kinds = {"any": [f"v{number:x}" for number in range(SIZES[-1])], "crafted": crafted}
    for words in kinds.values():
        neardup.find_pairs([" ".join(words[:100]), " ".join(words[1:100])], size=1)
    repeat = max(options.repeat, 3)
    rows = [row for name, words in kinds.items() for row in measure_shingles(name, words, repeat)]
    rows += [row for name, words in kinds.items() for row in measure_pairs(name, words, repeat)]
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        source = Path(folder) / "crafted.parquet"
        pq.write_table(pa.table({"text": [" ".join(crafted), " ".join(crafted[1:])]}), source)
        cost, report = growth.deduplicate(source, ("--size", "1"))
        rows.append(
            {
                "command": "dedup",
                "words": "crafted",
                "shingles": 2 * len(crafted),
                "seconds": cost.seconds,
            }
        )
        assert report["removed"] == 1
    harness.publish("flooding", rows, harness.machine())


if __name__ == "__main__":
    main()
