"""How fast is the index, what does it find, and what does it take? On documents of about 1 KB.

    python benchmarks/bench_index.py                          1 million documents, and datasketch: results/index.json
    python benchmarks/bench_index.py --documents 10000000     10 million, without datasketch: results/index_10m.json
    python benchmarks/bench_index.py --table                  put the results into docs/index.md

Documents are 150 random words, and every tenth one is a near-copy of an earlier one. Recall is that
of the copies whose similarity is between the threshold and 0.85. A measurement of a disk says
little without its sync time, so that is measured too. Memory is anonymous (RssAnon), its peak is
sampled: mapped files are not counted, the system drops them. "Cold" queries are those of an index
whose files were dropped from memory: as slow as a larger index can get. A million documents take 2
GB of disk, and as much again while they are compacted.

Beside it datasketch, in memory and on a Redis server of its own, with the same 5-word shingles and
128 slots: on fewer documents, because it is slow, and without scores, because it has none. What is
not installed is left out and named.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import statistics
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa

import harness
import index_table
import neardup
import process
from peers import datasketch_index

# Seven bytes each, so that texts are made without a Python string per word.
WORDS = np.array([f"w{number:05} " for number in range(50_000)], "S7")
LENGTH = 150
BATCH = 50_000
QUERIES = 5_000
THREADS = (1, 4, 16)
COPIES = (1_000, 10_000, 100_000)


def texts(count, seed):
    """Return texts, and for each the one that it is a near-copy of, or -1."""
    draw = np.random.default_rng(seed)
    words = draw.integers(WORDS.size, size=(count, LENGTH), dtype=np.int32)
    copies = np.full(count, -1)
    chosen = np.flatnonzero(draw.random(count) < 0.1)
    chosen = chosen[chosen > 0]
    copies[chosen] = draw.integers(0, chosen)
    for doc in chosen.tolist():
        words[doc] = words[copies[doc]]
        # Three words changed leave a similarity of about 0.81, two of 0.87.
        words[doc, draw.choice(LENGTH, draw.integers(0, 4), replace=False)] = draw.integers(
            WORDS.size
        )
    return as_texts(words), copies


def as_texts(words):
    """Return rows of word numbers as an Arrow array of texts."""
    count, length = words.shape
    ends = np.arange(count + 1, dtype=np.int64) * length * WORDS.itemsize
    return pa.LargeStringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(WORDS[words]))


def batches(count, size=BATCH):
    """Return the place of the first text, texts, and which of them are copies of which, batch by batch."""
    for first in range(0, count, size):
        yield first, *texts(min(size, count - first), seed=first + 1)


def timed(function):
    began = time.perf_counter()
    answer = function()
    return answer, time.perf_counter() - began


def percentile(seconds, share):
    return sorted(seconds)[int(share * (len(seconds) - 1))]


class Memory:
    """Samples the anonymous memory of this process while it is open."""

    def __enter__(self):
        self.peak_bytes = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()
        return self

    def _sample(self):
        while not self._stop.wait(0.05):
            self.peak_bytes = max(self.peak_bytes, process.anonymous_bytes())

    def take(self):
        """Return the peak since the last call."""
        taken = self.peak_bytes
        self.peak_bytes = 0
        return taken

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def sync_seconds(folder, count=300):
    """Return how long the disk takes to sync 4 KB that overwrite a file, as the log of an index does."""
    file = os.open(folder / "sync", os.O_RDWR | os.O_CREAT)
    try:
        os.pwrite(file, bytes(4096 * count), 0)
        os.fsync(file)
        block = os.urandom(4096)
        seconds = []
        for number in range(count):
            seconds.append(
                timed(lambda at=number: (os.pwrite(file, block, at * 4096), os.fdatasync(file)))[1]
            )
    finally:
        os.close(file)
    return {
        "sync median ms": statistics.median(seconds) * 1e3,
        "sync p99 ms": percentile(seconds, 0.99) * 1e3,
    }


class Asked:
    """Texts to query: a sample of all documents, and copies of which the original must be found."""

    def __init__(self, num_documents, num_queries):
        self._step = max(1, num_documents // num_queries)
        self.sample = []
        self.near = []

    def add(self, first, made, copies):
        """Choose texts of a batch."""
        self.sample += made.take(np.arange(0, len(made), self._step)).to_pylist()
        for at in np.flatnonzero(copies >= 0)[:400].tolist():
            text = made[at].as_py()
            other = made[int(copies[at])].as_py()
            if 0.8 <= neardup.compare(text, other).jaccard <= 0.85:
                self.near.append((text, f"{first + copies[at]}"))

    def recall(self, ids_of):
        """Return the share of originals that are found."""
        hits = [doc_id in ids_of(text) for text, doc_id in self.near]
        return {"recall": sum(hits) / max(1, len(hits)), "recall pairs": len(hits)}

    def query_times(self, query):
        """Return how long one query takes when warm."""
        for text in self.sample[:500]:
            query(text)
        seconds = [timed(lambda text=text: query(text))[1] for text in self.sample[:2000]]
        return {
            "query median ms": statistics.median(seconds) * 1e3,
            "query p99 ms": percentile(seconds, 0.99) * 1e3,
        }


def measure_index(folder, num_documents):
    """Insert, compact, open, query, remove: one row."""
    row = {"tool": "neardup", "documents": num_documents}
    path = folder / "index"
    asked = Asked(num_documents, QUERIES)
    with Memory() as memory:
        index = neardup.Index.create(path)
        warm(index)
        row |= fill(index, num_documents, asked)
        row["segments"] = index.info()["segments"]
        row |= {
            f"{name} before compact": value
            for name, value in asked.query_times(index.query).items()
        }
        row |= insert_alone(folder, index)
        peaks = {"insert": memory.take()}
        row["compact s"] = timed(index.compact)[1]
        peaks["compact"] = memory.take()
        row["bytes/document"] = index.info()["bytes"] / len(index)
        index.close()
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
            row["memory bytes/document"] = (
                pool.submit(opened_bytes, path, asked.sample[:500]).result() / num_documents
            )
        index, row["open s"] = timed(lambda: neardup.Index.open(path))
        row |= asked.query_times(index.query)
        row["query_many/s"] = len(asked.sample) / timed(lambda: index.query_many(asked.sample))[1]
        row |= asked.recall(lambda text: {match.doc_id for match in index.query(text, k=None)})
        gone = [f"{number}" for number in range(0, num_documents, max(1, num_documents // 10_000))][
            :10_000
        ]
        row["remove s"] = timed(lambda: index.remove(gone))[1]
        row["removed"] = len(gone)
        index.close()
        row |= measure_cold(path, asked.sample)
        peaks["query"] = memory.take()
    row |= {f"{name} peak anonymous bytes": peak for name, peak in peaks.items()}
    return row | {"peak anonymous bytes": max(peaks.values())}


def measure_cold(path, questions):
    """Query an index none of which is in memory, one by one and in batches; count what is read from disk."""
    found = {}
    evict(path)
    with neardup.Index.open(path, read_only=True) as index:
        before = disk_reads()
        seconds = []
        for text in questions[-500:]:
            seconds.append(timed(lambda text=text: index.query(text))[1])
        num_faults, num_bytes = np.subtract(disk_reads(), before) / len(seconds)
    found |= {
        "cold query median ms": statistics.median(seconds) * 1e3,
        "cold query p99 ms": percentile(seconds, 0.99) * 1e3,
    }
    found |= {"cold query faults": num_faults, "cold query bytes read": num_bytes}
    evict(path)
    with neardup.Index.open(path, read_only=True) as index:
        before = disk_reads()
        found["cold query_many/s"] = len(questions) / timed(lambda: index.query_many(questions))[1]
        num_faults, num_bytes = np.subtract(disk_reads(), before) / len(questions)
    return found | {"cold query_many faults": num_faults, "cold query_many bytes read": num_bytes}


def evict(path):
    """Drop the files of an index that nobody has open from memory."""
    for file in filter(Path.is_file, path.rglob("*")):
        handle = os.open(file, os.O_RDONLY)
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)


def disk_reads():
    """Return how many faults of this process have waited for the disk, and the bytes that it has read from it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_majflt, used.ru_inblock * 512


def opened_bytes(path, questions):
    """Return the memory that an open index takes after queries, in a process of its own."""
    with (
        tempfile.TemporaryDirectory() as folder,
        neardup.Index.create(Path(folder) / "warm") as index,
    ):
        warm(index)
    before = process.anonymous_bytes()
    with neardup.Index.open(path, read_only=True) as index:
        for text in questions:
            index.query(text)
        return max(0, process.anonymous_bytes() - before)


def warm(index):
    """Load the kernels."""
    made = texts(50, seed=0)[0].to_pylist()
    index.insert_many({f"warm {at}": text for at, text in enumerate(made)})
    index.query(made[0])
    index.query_many(made)
    index.compact()
    index.remove([f"warm {at}" for at in range(50)])


def fill(index, num_documents, asked):
    seconds = 0.0
    cpu = 0.0
    for first, made, copies in batches(num_documents):
        table = pa.table(
            {"id": pa.array(range(first, first + len(made))).cast(pa.string()), "text": made}
        )
        began = time.process_time()
        seconds += timed(lambda table=table: index.insert_many(table))[1]
        cpu += time.process_time() - began
        asked.add(first, made, copies)
    return {"insert_many/s": num_documents / seconds, "insert_many/CPU s": num_documents / cpu}


def insert_alone(folder, index, count=2_000):
    """Durable inserts, one document a call, from one thread and from several; and with durability="fast"."""
    found = sync_seconds(folder)
    for number in THREADS:
        found[f"insert/s, {number} threads"] = count / insert_threads(
            index, f"t{number}", number, count
        )
    with neardup.Index.create(folder / "fast", durability="fast") as fast:
        found["insert/s, fast"] = count / insert_threads(fast, "f", 1, count)
    return found


def insert_threads(index, name, num_threads, count):
    made = texts(count, seed=77 + num_threads)[0].to_pylist()

    def insert(thread):
        for at in range(thread, count, num_threads):
            index.insert(f"{name} {at}", made[at])

    threads = [threading.Thread(target=insert, args=(number,)) for number in range(num_threads)]
    return timed(
        lambda: [thread.start() for thread in threads] and [thread.join() for thread in threads]
    )[1]


def measure_hot(folder, copies):
    """Near-copies of one page: insert_new of each, when there are many already, and a query; then with all stored."""
    draw = np.random.default_rng(5)
    words = np.tile(np.arange(LENGTH, dtype=np.int32), (copies + 200, 1))
    words[np.arange(words.shape[0]), draw.integers(LENGTH, size=words.shape[0])] = draw.integers(
        WORDS.size, size=words.shape[0]
    )
    made = as_texts(words)
    table = pa.table({"id": pa.array(range(copies)).cast(pa.string()), "text": made[:copies]})
    last = made[copies:].to_pylist()
    row = {"copies": copies}
    with neardup.Index.create(folder / f"new {copies}", durability="fast") as index:
        row["insert_new_many us each"] = (
            timed(lambda: index.insert_new_many(table))[1] / copies * 1e6
        )
        seconds = [
            timed(lambda at=at: index.insert_new(f"n{at}", last[at]))[1] for at in range(100)
        ]
        row["insert_new median ms"] = statistics.median(seconds) * 1e3
        row["query median ms"] = (
            statistics.median(timed(lambda text=text: index.query(text))[1] for text in last) * 1e3
        )
        row["stored"] = len(index)
    with neardup.Index.create(folder / f"all {copies}", durability="fast") as index:
        index.insert_many(table)
        row["query ms, all stored"] = (
            statistics.median(timed(lambda t=t: index.query(t))[1] for t in last[:9]) * 1e3
        )
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument(
        "--peer-documents",
        type=int,
        help="documents for datasketch; by default 100,000, 0 with 10 M",
    )
    parser.add_argument(
        "--table", action="store_true", help="measure nothing; put the results into docs/index.md"
    )
    parser.add_argument(
        "--corpora", help="not used: documents are made here, so that their near-copies are known"
    )
    options = parser.parse_args()
    if options.table:
        index_table.write()
        return
    is_large = options.documents > 1_000_000
    peers = (
        options.peer_documents if options.peer_documents is not None else 0 if is_large else 100_000
    )
    with tempfile.TemporaryDirectory(prefix="bench-index-") as made:
        folder = Path(made)
        about = harness.machine()
        rows = [measure_index(folder, options.documents)]
        print(json.dumps(rows[0], indent=1), flush=True)
        about["hot"] = [] if is_large else [measure_hot(folder, copies) for copies in COPIES]
        if peers:
            peer_rows, about["left out"] = datasketch_index.measure(folder, peers, Asked, batches)
            rows += peer_rows
    about["versions"] |= datasketch_index.versions()
    harness.publish("index_10m" if is_large else "index", rows, about)


if __name__ == "__main__":
    main()
