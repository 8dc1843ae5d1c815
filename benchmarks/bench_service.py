"""What does the service add to the index: requests per second, latencies with writes beside, and documents per second?

    python benchmarks/bench_service.py                        20,000 documents: results/service.json
    python benchmarks/bench_service.py --documents 200000     more

Documents are those of bench_index.py, about 1 KB each. The service runs in a process of its own, on
loopback; clients are threads of this process that send bytes over kept connections, so that they
cost little. Rates are per wall second and per core-second (user and system) of the server, which
other work on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import bench_index
import harness
import neardup

TOKEN = "a token of the benchmark"  # noqa: S105
START = "from neardup.cli.main import main; main()"
QUERIES = 2_000
INSERTS = 1_500
LINES = 10_000


class Service:
    """A service in a process of its own."""

    def __init__(self, path):
        environment = os.environ | {"NEARDUP_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", START, "serve", str(path), "--write", "--port", "0"],
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        line = self.process.stdout.readline()
        self.port = int(line.rstrip().rstrip("/").rpartition(":")[2])

    def core_seconds(self):
        """User and system seconds of the server so far."""
        fields = (
            Path(f"/proc/{self.process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        )
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self):
        """Anonymous memory of the server."""
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii")
        line = next(line for line in status.splitlines() if line.startswith("RssAnon"))
        return int(line.split()[1]) * 1024

    def stop(self):
        """Stop the server."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)


class Connection:
    """A kept connection that sends bytes and reads answers by their length."""

    def __init__(self, port):
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb", 1 << 16)

    def post(self, operation, body, kind="application/json"):
        """Send a body; return the status and the answer."""
        head = (
            f"POST /v1/collections/pages/{operation} HTTP/1.1\r\nHost: localhost\r\n"
            f"Authorization: Bearer {TOKEN}\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        self._socket.sendall(head.encode() + body)
        status = int(self._file.readline().split()[1])
        length = None
        while (line := self._file.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if length is not None:
            return status, self._file.read(length)
        parts = []
        while size := int(self._file.readline(), 16):
            parts.append(self._file.read(size))
            self._file.readline()
        self._file.readline()
        return status, b"".join(parts)


def query_body(text):
    """A query for the best match."""
    return json.dumps({"text": text, "k": 1}).encode()


def by_threads(service, num_threads, bodies, operation):
    """Send bodies from some threads; return what that took."""
    latencies = []
    queue = iter(bodies)
    lock = threading.Lock()

    def work():
        connection = Connection(service.port)
        while True:
            with lock:
                body = next(queue, None)
            if body is None:
                return
            began = time.perf_counter()
            status, answer = connection.post(operation, body)
            latencies.append(time.perf_counter() - began)
            assert status in (200, 201), answer

    return measured(service, latencies, [threading.Thread(target=work) for _ in range(num_threads)])


def measured(service, latencies, threads):
    """Run threads; return rates and latencies."""
    before = service.core_seconds()
    began = time.perf_counter()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    seconds = time.perf_counter() - began
    cores = service.core_seconds() - before
    return {
        "requests": len(latencies),
        "per_second": round(len(latencies) / seconds),
        "per_core_second": round(len(latencies) / max(cores, 0.01)),
        "median_ms": round(bench_index.percentile(latencies, 0.5) * 1e3, 2),
        "p99_ms": round(bench_index.percentile(latencies, 0.99) * 1e3, 2),
        "longest_ms": round(max(latencies) * 1e3, 1),
    }


def half_load(service, bodies, documents, rate, seconds):
    """Query at half the rate of the server, while one thread inserts; return the latencies of queries."""
    latencies = []
    stop = threading.Event()

    def ask(share):
        connection = Connection(service.port)
        begun = time.perf_counter()
        for number, body in enumerate(bodies):
            due = begun + number * share / rate
            if due - begun > seconds:
                break
            time.sleep(max(0.0, due - time.perf_counter()))
            started = time.perf_counter()
            connection.post("query", body)
            latencies.append(time.perf_counter() - started)

    num_written = 0

    def write():
        nonlocal num_written
        connection = Connection(service.port)
        for body in documents:
            if stop.is_set():
                return
            connection.post("documents", body)
            num_written += 1

    writer = threading.Thread(target=write)
    writer.start()
    found = measured(
        service, latencies, [threading.Thread(target=ask, args=(4,)) for _ in range(4)]
    )
    stop.set()
    writer.join()
    return found | {"requested_per_second": round(rate), "inserted_meanwhile": num_written}


def main():
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--documents", type=int, default=20_000, help="documents of the index")
    parser.add_argument("--seconds", type=float, default=15.0, help="of the mixed load")
    given = parser.parse_args()
    load_before = os.getloadavg()[0]
    made = bench_index.texts(given.documents, 1)[0].to_pylist()
    more = bench_index.texts(LINES + 6 * INSERTS, 2)[0].to_pylist()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pages.index"
        with neardup.Index.create(path, threshold=0.8) as index:
            index.insert_many({f"d{number}": text for number, text in enumerate(made)})
            questions = [made[number % len(made)] for number in range(QUERIES)]
            for question in questions[:50]:
                index.query(question, k=1)
            before = time.process_time()
            for question in questions:
                index.query(question, k=1)
            alone = (time.process_time() - before) / QUERIES
        results["library_query_core_ms"] = round(alone * 1e3, 3)
        service = Service(path)
        bodies = [query_body(question) for question in questions]
        by_threads(service, 4, bodies[:200], "query")
        results["query, 1 connection"] = by_threads(service, 1, bodies[:500], "query")
        results["query, 8 connections"] = by_threads(service, 8, bodies, "query")
        results["http_overhead_core_ms"] = round(
            1e3 / results["query, 8 connections"]["per_core_second"] - alone * 1e3, 3
        )
        results["query, batches of 250, queries"] = batches(service, questions)
        fresh = [
            json.dumps({"id": f"n{number}", "text": text}).encode()
            for number, text in enumerate(more)
        ]
        results["insert_new, 1 connection"] = by_threads(
            service, 1, fresh[: INSERTS // 3], "documents"
        )
        results["insert_new, 8 connections"] = by_threads(
            service, 8, fresh[INSERTS // 3 : INSERTS], "documents"
        )
        lines = fresh[INSERTS : INSERTS + LINES]
        results["lines, stored if new"] = stream(service, lines[: LINES // 2], "documents")
        results["lines, stored"] = stream(service, lines[LINES // 2 :], "insert")
        rate = results["query, 8 connections"]["per_second"] / 2
        results["query at half load, with inserts"] = half_load(
            service, bodies * 20, fresh[INSERTS + LINES :], rate, given.seconds
        )
        results["memory_mb"] = round(service.resident_bytes() / 1e6)
        service.stop()
    results["load_average"] = [round(load_before, 1), round(os.getloadavg()[0], 1)]
    results["documents"] = given.documents
    written = {"machine": harness.machine("fastapi", "uvicorn", "h11"), "results": results}
    text = json.dumps(written, indent=1)
    (harness.RESULTS / "service.json").write_text(text + "\n", "utf-8")
    print(text)


def batches(service, questions):
    """Queries of a batch, in one request."""
    connection = Connection(service.port)
    before = service.core_seconds()
    began = time.perf_counter()
    for first in range(0, len(questions), 250):
        queries = [{"text": text} for text in questions[first : first + 250]]
        status, answer = connection.post("query", json.dumps({"queries": queries, "k": 1}).encode())
        assert status == 200, answer
    seconds = time.perf_counter() - began
    cores = service.core_seconds() - before
    return {
        "per_second": round(len(questions) / seconds),
        "per_core_second": round(len(questions) / max(cores, 0.01)),
    }


def stream(service, documents, operation):
    """Documents as lines of one request."""
    connection = Connection(service.port)
    body = b"\n".join(documents)
    before = service.core_seconds()
    began = time.perf_counter()
    status, answer = connection.post(operation, body, "application/x-ndjson")
    seconds = time.perf_counter() - began
    cores = service.core_seconds() - before
    assert status == 200
    assert answer.count(b"\n") == len(documents), answer[-300:]
    return {
        "documents": len(documents),
        "per_second": round(len(documents) / seconds),
        "per_core_second": round(len(documents) / max(cores, 0.01)),
    }


if __name__ == "__main__":
    main()
