"""How long does the slowest insert wait, while runs are written and merged beside it? And what memory does that take?

    python benchmarks/bench_index_stalls.py                        1 million documents: results/index_stalls.json
    python benchmarks/bench_index_stalls.py --documents 200000     fewer

Documents are those of bench_index.py. They are stored by `insert_many`, with `--alone` single
inserts before every
batch of 50,000: these are timed, and so are batches of 10, and single inserts for as long as
`compact()` takes. For the memory, documents of 90 KB are stored by one `insert_many`, and
compacted.

On a machine that others use, an insert also waits for a core. The kernel counts that (schedstat),
and the columns "own"
leave it out: for the thread that inserts, and for the one that merges, which may have held a lock
meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import bench_index
import harness
import neardup

BATCH = 50_000
LONG_WORDS = 12_800
LONG_DOCUMENTS = 1_500


def waited_for_core():
    """Return how long each thread of this process has waited for a core, in seconds."""
    waited = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            waited[int(task.name)] = int((task / "schedstat").read_text("ascii").split()[1]) / 1e9
        except (OSError, IndexError):
            continue
    return waited


class Latencies:
    """Times calls, with and without the time that threads waited for a core."""

    def __init__(self):
        self._wall = []
        self._own = []

    def time(self, call):
        """Call a function."""
        before = waited_for_core()
        began = time.perf_counter()
        call()
        wall = time.perf_counter() - began
        delay = sum(after - before.get(thread, 0.0) for thread, after in waited_for_core().items())
        self._wall.append(wall)
        self._own.append(max(0.0, wall - delay))

    def row(self):
        """Return the figures in milliseconds."""
        found = {"calls": len(self._wall)}
        for name, seconds in (("", self._wall), ("own ", self._own)):
            for label, share in (("median", 0.5), ("p99", 0.99), ("p99.9", 0.999), ("max", 1.0)):
                found[f"{name}{label} ms"] = float(np.quantile(seconds, share)) * 1e3
        return found


def grow(index, num_documents, alone):
    """Store documents; return the figures of the single inserts."""
    timed = Latencies()
    for first, made, _ in bench_index.batches(num_documents, BATCH):
        for at, text in enumerate(made[:alone].to_pylist()):
            timed.time(
                lambda at=at, text=text, first=first: index.insert(f"alone {first + at}", text)
            )
        ids = pa.array(range(first, first + len(made))).cast(pa.string())
        index.insert_many(pa.table({"id": ids, "text": made}))
    return timed.row()


def small_batches(index, count=5_000):
    made = bench_index.texts(count, seed=8)[0].to_pylist()
    timed = Latencies()
    began = time.perf_counter()
    cpu = time.process_time()
    for first in range(0, count, 10):
        part = {f"ten {first + at}": made[first + at] for at in range(10)}
        timed.time(lambda part=part: index.insert_many(part))
    rates = {
        "per second": count / (time.perf_counter() - began),
        "per CPU second": count / (time.process_time() - cpu),
    }
    return rates | timed.row()


def beside_compact(index):
    """Single inserts for as long as `compact()` takes."""
    made = bench_index.texts(20_000, seed=9)[0].to_pylist()
    timed = Latencies()
    seconds = []
    thread = threading.Thread(target=lambda: seconds.append(bench_index.timed(index.compact)[1]))
    thread.start()
    number = 0
    while thread.is_alive():
        timed.time(lambda: index.insert(f"beside {number}", made[number % len(made)]))
        number += 1
    thread.join()
    return {"compact s": seconds[0], **timed.row()}


def long_documents(folder):
    """The memory of one `insert_many` of documents of 90 KB, and of `compact()`, without that of the texts."""
    draw = np.random.default_rng(4)
    words = bench_index.WORDS[
        draw.integers(bench_index.WORDS.size, size=(LONG_DOCUMENTS, LONG_WORDS))
    ]
    ends = np.arange(LONG_DOCUMENTS + 1, dtype=np.int64) * LONG_WORDS * words.itemsize
    made = pa.LargeStringArray.from_buffers(LONG_DOCUMENTS, pa.py_buffer(ends), pa.py_buffer(words))
    table = pa.table({"id": pa.array(range(LONG_DOCUMENTS)).cast(pa.string()), "text": made})
    found = {"documents": LONG_DOCUMENTS, "text bytes": words.nbytes}
    with (
        neardup.Index.create(folder / "long", durability="fast") as index,
        bench_index.Memory() as memory,
    ):
        bench_index.warm(index)
        for name, call in (
            ("insert_many", lambda: index.insert_many(table)),
            ("compact", index.compact),
        ):
            before = bench_index.process.anonymous_bytes()
            memory.take()
            call()
            found[f"{name} bytes"] = max(0, memory.take() - before)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument(
        "--alone", type=int, default=5_000, help="single inserts before every batch of 50,000"
    )
    parser.add_argument(
        "--durability", default="fast", help="with 'full', inserts wait for the disk too"
    )
    parser.add_argument("--corpora", help="not used: documents are made here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-stalls-") as made:
        folder = Path(made)
        about = harness.machine()
        with neardup.Index.create(folder / "index", durability=options.durability) as index:
            bench_index.warm(index)
            rows = []
            for name, measure in (
                (
                    "single inserts while growing",
                    lambda: grow(index, options.documents, options.alone),
                ),
                ("batches of 10", lambda: small_batches(index)),
                ("single inserts beside compact", lambda: beside_compact(index)),
            ):
                rows.append({"what": name, "load": os.getloadavg()[0], **measure()})
                print(json.dumps(rows[-1]), flush=True)
        rows.append({"what": "documents of 90 KB", **long_documents(folder)})
        print(json.dumps(rows[-1]), flush=True)
    harness.publish(
        "index_stalls",
        rows,
        about | {"documents": options.documents, "durability": options.durability},
    )


if __name__ == "__main__":
    main()
