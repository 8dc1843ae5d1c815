"""Does `neardup tune` take at most 30 s on two cores for a gigabyte of text?

docs.parquet below --corpora, or the standard library of this Python, repeated until it has a
gigabyte: what tune costs depends on the texts, not on how many are copies. It runs in a fresh process
whose kernels are compiled already. On a busy machine the core-seconds count.
"""

import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import corpus
import harness
import process

GIGABYTE = 1_000_000_000


def repeated(source, file, num_bytes):
    """Write the documents of a file again and again, under other ids, until their text reaches `num_bytes`."""
    table = pq.read_table(source, columns=["id", "text"])
    times = -(-num_bytes // corpus.text_bytes(source))
    with pq.ParquetWriter(file, table.schema) as writer:
        for number in range(times):
            ids = [f"{name} {number}" for name in table.column("id").to_pylist()]
            writer.write_table(table.set_column(0, table.schema.field("id"), pa.array(ids)))
    return file


def measure(name, source, folder):
    """Tune a file in a process of its own."""
    command = [Path(sys.executable).parent / "neardup", "tune", source, "--quiet"]
    cost = process.run([*command, "-o", folder / f"{name}.html", "--overwrite"], folder / "log")
    return {
        "input": name,
        "documents": corpus.num_documents(source),
        "MB": round(corpus.text_bytes(source) / 1e6),
        "seconds": round(cost.seconds, 1),
        "core-s": round(cost.cpu_seconds, 1),
        "peak MB": round(cost.peak_bytes / 1e6),
    }


def main():
    """Measure it, print a table and write results/tune.json."""
    given = harness.arguments(__doc__)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        source = corpus.base(given.corpora, folder)
        small = folder / "small.parquet"
        pq.write_table(pq.read_table(source, columns=["id", "text"]).slice(0, 200), small)
        measure("compiles the kernels", small, folder)
        large = repeated(source, folder / "large.parquet", GIGABYTE)
        rows = [measure("a gigabyte", large, folder)]
    harness.publish("tune", rows, harness.machine())


if __name__ == "__main__":
    main()
