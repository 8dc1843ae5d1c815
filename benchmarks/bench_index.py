"""How fast is the index, and what does it find? insert, query, remove, open, on documents of about 1 KB.

    python benchmarks/bench_index.py [--documents 1000000] [--peer-documents 100000] [--out results/index.json]

Documents are random words, and every tenth one is a near-copy of an earlier one. Recall is that of pairs whose
similarity is between the threshold and 0.85; the promise is 0.99 at the threshold.

Beside it datasketch, in memory and on a Redis server of its own, with the same 5-word shingles and 128 slots: on fewer
documents, because it is slow, and without scores, because it has none. What is not installed is left out and named.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import resource
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import neardup

WORDS = np.array([f"w{number:05}" for number in range(50_000)])
LENGTH = 150


def texts(count, seed):
    """About 1 KB each; copies[i] is the document that i is a near-copy of, or -1."""
    draw = np.random.default_rng(seed)
    words = draw.integers(WORDS.size, size=(count, LENGTH), dtype=np.int32)
    copies = np.full(count, -1)
    chosen = np.flatnonzero(draw.random(count) < 0.1)
    chosen = chosen[chosen > 0]
    copies[chosen] = draw.integers(0, chosen)
    for doc in chosen.tolist():
        words[doc] = words[copies[doc]]
        # Three words changed leave a similarity of about 0.81, two of 0.87.
        words[doc, draw.choice(LENGTH, draw.integers(0, 4), replace=False)] = draw.integers(WORDS.size)
    return [" ".join(row) for row in WORDS[words]], copies


def timed(function):
    began = time.perf_counter()
    answer = function()
    return answer, time.perf_counter() - began


def anonymous_bytes():
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    return int(next(line for line in lines if line.startswith("RssAnon:")).split()[1]) * 1024


def batches(count, size=50_000):
    for first in range(0, count, size):
        made, copies = texts(min(size, count - first), seed=first + 1)
        yield first, made, copies


def percentile(seconds, share):
    return sorted(seconds)[int(share * (len(seconds) - 1))] * 1000


def measure(folder, num_documents):
    found = {"documents": num_documents}
    path = folder / "index"
    index = neardup.Index.create(path)
    warm, _ = texts(50, seed=0)
    index.insert_many({f"warm {at}": text for at, text in enumerate(warm)})
    index.query(warm[0])
    index.query_many(warm)
    index.remove([f"warm {at}" for at in range(50)])
    seconds, sample, near = 0.0, [], []
    for first, made, copies in batches(num_documents):
        table = pa.table({"id": [f"{first + at}" for at in range(len(made))], "text": made})
        seconds += timed(lambda table=table: index.insert_many(table))[1]
        sample += made[:: max(1, num_documents // 5000)]
        pairs = np.flatnonzero(copies >= 0)[:40].tolist()
        near += [(made[at], f"{first + copies[at]}", made[copies[at]]) for at in pairs]
    found["insert_many_per_second"] = num_documents / seconds
    fresh, _ = texts(1000, seed=77)
    found["insert_per_second"] = (
        1000 / timed(lambda: [index.insert(f"f{at}", text) for at, text in enumerate(fresh)])[1]
    )
    found["compact_seconds"] = timed(index.compact)[1]
    found["bytes_a_document"] = index.info()["bytes"] / len(index)
    index.close()
    index, found["open_seconds"] = timed(lambda: neardup.Index.open(path))
    for text in sample[:200]:
        index.query(text)
    single = [timed(lambda text=text: index.query(text))[1] for text in sample[:2000]]
    found["query_median_ms"], found["query_p99_ms"] = statistics.median(single) * 1000, percentile(single, 0.99)
    found["query_many_per_second"] = len(sample) / timed(lambda: index.query_many(sample))[1]
    found["anonymous_bytes"] = anonymous_bytes()
    hits = [
        doc_id in {match.doc_id for match in index.query(text, k=None)}
        for text, doc_id, other in near
        if 0.8 <= neardup.compare(text, other).jaccard <= 0.85
    ]
    found["recall"], found["recall_pairs"] = sum(hits) / max(1, len(hits)), len(hits)
    gone = [f"{number}" for number in range(0, num_documents, max(1, num_documents // 10_000))][:10_000]
    found["remove_seconds"], found["removed"] = timed(lambda: index.remove(gone))[1], len(gone)
    found["hot"] = hot(folder)
    index.close()
    return found


def hot(folder, steps=(1000, 4000)):
    """insert_new of near-copies of one page, and a query for it, as the copies get many; and pages of one template."""
    told = []
    draw, page = np.random.default_rng(5), WORDS[:LENGTH].tolist()
    for count in steps:
        with neardup.Index.create(folder / f"hot{count}", durability="fast") as index:
            made = []
            for _ in range(count):
                words = list(page)
                words[draw.integers(LENGTH)] = WORDS[draw.integers(WORDS.size)]
                made.append(" ".join(words))
            began = time.perf_counter()
            index.insert_new_many({f"{at}": text for at, text in enumerate(made)})
            skipped = time.perf_counter() - began
            skip_query = statistics.median(timed(lambda text=text: index.query(text))[1] for text in made[:50])
        with neardup.Index.create(folder / f"all{count}", durability="fast") as index:
            index.insert_many({f"{at}": text for at, text in enumerate(made)})
            all_query = statistics.median(timed(lambda text=text: index.query(text))[1] for text in made[:20])
        told.append(
            {
                "copies": count,
                "insert_new_microseconds": skipped / count * 1e6,
                "query_ms": skip_query * 1000,
                "query_ms_all_stored": all_query * 1000,
            }
        )
    return told


def shingles(text):
    words = text.split()
    return [" ".join(words[at : at + 5]).encode() for at in range(len(words) - 4)]


def measure_datasketch(num_documents, storage):
    """The same questions to datasketch; `storage` is what its MinHashLSH takes, None for memory."""
    import datasketch

    def signature(text):
        made = datasketch.MinHash(num_perm=128)
        made.update_batch(shingles(text))
        return made

    lsh = datasketch.MinHashLSH(threshold=0.8, num_perm=128, storage_config=storage)
    seconds, sample, near, before = 0.0, [], [], anonymous_bytes()
    for first, made, copies in batches(num_documents):

        def insert(first=first, made=made):
            with lsh.insertion_session() as session:
                for at, text in enumerate(made):
                    session.insert(f"{first + at}", signature(text))

        seconds += timed(insert)[1]
        sample += made[:: max(1, num_documents // 2000)]
        near += [
            (made[at], f"{first + copies[at]}", made[copies[at]]) for at in np.flatnonzero(copies >= 0)[:40].tolist()
        ]
    single = [timed(lambda text=text: lsh.query(signature(text)))[1] for text in sample]
    hits = [
        doc_id in lsh.query(signature(text))
        for text, doc_id, other in near
        if 0.8 <= neardup.compare(text, other).jaccard <= 0.85
    ]
    gone = [f"{number}" for number in range(0, num_documents, max(1, num_documents // 1000))][:1000]
    return {
        "documents": num_documents,
        "insert_many_per_second": num_documents / seconds,
        "query_median_ms": statistics.median(single) * 1000,
        "query_p99_ms": percentile(single, 0.99),
        "recall": sum(hits) / max(1, len(hits)),
        "anonymous_bytes_a_document": (anonymous_bytes() - before) / num_documents if storage is None else None,
        "remove_seconds": timed(lambda: [lsh.remove(doc_id) for doc_id in gone])[1],
        "removed": len(gone),
    }


def measure_redis(folder, num_documents):
    """Datasketch on a Redis server that keeps nothing on disk, over loopback."""
    import redis

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        shutil.which("redis-server"),
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--dir",
        str(folder),
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:  # noqa: S603
        try:
            client = redis.Redis(port=port)
            for _ in range(100):
                with contextlib.suppress(redis.exceptions.ConnectionError):
                    client.ping()
                    break
                time.sleep(0.05)
            storage = {"type": "redis", "basename": b"bench", "redis": {"host": "127.0.0.1", "port": port}}
            empty = client.info("memory")["used_memory"]
            found = measure_datasketch(num_documents, storage)
            found["server_bytes_a_document"] = (client.info("memory")["used_memory"] - empty) / num_documents
            return found
        finally:
            server.terminate()


def measure_peers(folder, num_documents):
    """Every peer that is installed, and the names of the others."""
    found, missing = {}, []
    has = {name: importlib.util.find_spec(name) is not None for name in ("datasketch", "redis")}
    if has["datasketch"]:
        found["datasketch in memory"] = measure_datasketch(num_documents, None)
    else:
        missing.append("datasketch")
    if has["datasketch"] and has["redis"] and shutil.which("redis-server"):
        found["datasketch on Redis"] = measure_redis(folder, num_documents)
    else:
        missing.append("redis")
    return {"peers": found, "left_out": missing}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--peer-documents", type=int, default=100_000, help="documents for datasketch; 0 leaves it out")
    parser.add_argument("--out", default="results/index.json")
    parser.add_argument("--corpora", help="not used: documents are made here, so that their near-copies are known")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="bench-index-"))
    try:
        found = measure(folder, options.documents)
        if options.peer_documents:
            found |= measure_peers(folder, options.peer_documents)
    finally:
        shutil.rmtree(folder)
    found |= {
        "load_average": os.getloadavg(),
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "neardup": neardup.__version__}
        | {
            name: importlib.metadata.version(name) for name in ("datasketch", "redis") if importlib.util.find_spec(name)
        },
    }
    print(json.dumps(found, indent=1))
    if options.out:
        (Path(__file__).parent / options.out).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
