"""The questions of bench_index.py, answered by datasketch in memory and on a Redis server of its own."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import shutil
import socket
import subprocess
import time

import process


def measure(folder, num_documents, asked_of, batches):
    """Return a row for each that is installed, and the names of what is not."""
    missing = [name for name in ("datasketch", "redis") if importlib.util.find_spec(name) is None]
    if shutil.which("redis-server") is None:
        missing.append("redis-server")
    rows = []
    if "datasketch" not in missing:
        rows.append(
            {"tool": "datasketch in memory"} | _measure(num_documents, asked_of, batches, None)
        )
        if not missing:
            rows.append(
                {"tool": "datasketch on Redis"}
                | _on_redis(folder, num_documents, asked_of, batches)
            )
    return rows, missing


def versions():
    """The versions of what is installed."""
    found = {}
    for name in ("datasketch", "redis"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    if server := shutil.which("redis-server"):
        told = subprocess.run(  # noqa: S603
            [server, "--version"], capture_output=True, text=True, check=True
        ).stdout
        found["redis-server"] = told.split("v=")[1].split()[0]
    return found


def _signature(text):
    import datasketch

    words = text.split()
    made = datasketch.MinHash(num_perm=128)
    made.update_batch([" ".join(words[at : at + 5]).encode() for at in range(len(words) - 4)])
    return made


def _measure(num_documents, asked_of, batches, storage):
    """Insert, query and remove; `storage` is what MinHashLSH takes, None for memory."""
    import datasketch

    lsh = datasketch.MinHashLSH(threshold=0.8, num_perm=128, storage_config=storage)
    asked = asked_of(num_documents, 2_000)
    seconds = 0.0
    before = process.anonymous_bytes()
    for first, made, copies in batches(num_documents):
        own = made.to_pylist()
        began = time.perf_counter()
        with lsh.insertion_session() as session:
            for at, text in enumerate(own):
                session.insert(f"{first + at}", _signature(text))
        seconds += time.perf_counter() - began
        asked.add(first, made, copies)
    row = {"documents": num_documents, "insert_many/s": num_documents / seconds}
    if storage is None:
        row["memory bytes/document"] = (process.anonymous_bytes() - before) / num_documents
    row |= asked.query_times(lambda text: lsh.query(_signature(text)))
    row |= asked.recall(lambda text: lsh.query(_signature(text)))
    gone = [f"{number}" for number in range(0, num_documents, max(1, num_documents // 1000))][:1000]
    began = time.perf_counter()
    for doc_id in gone:
        lsh.remove(doc_id)
    return row | {"remove s": time.perf_counter() - began, "removed": len(gone)}


def _on_redis(folder, num_documents, asked_of, batches):
    """As `_measure`, on a server that keeps nothing on disk, over loopback."""
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
            empty = client.info("memory")["used_memory"]
            storage = {
                "type": "redis",
                "basename": b"bench",
                "redis": {"host": "127.0.0.1", "port": port},
            }
            row = _measure(num_documents, asked_of, batches, storage)
            row["memory bytes/document"] = (
                client.info("memory")["used_memory"] - empty
            ) / num_documents
            return row
        finally:
            server.terminate()
