"""How accurate are the predictions of `neardup plan INPUT`: memory, comparisons and time, by either method?

Every corpus of --corpora, else the standard library of this Python, is planned and then
deduplicated by fresh processes, with the files in the page cache and the kernels compiled. Targets:
memory within 30 %, comparisons and time within a factor of 2. `time` is that of the run, from its
report; on a busy machine, it is comparable only if prediction and run were disturbed alike.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import harness
from neardup import deduplicate

NEARDUP = Path(sys.executable).parent / "neardup"
# The largest allowed factor between prediction and measurement.
AIMS = {"memory": 1.3, "candidates": 2.0, "seconds": 2.0}


def inputs(options, folder):
    if options.corpora is not None:
        yield from ((file, items_of(file)) for file in sorted(options.corpora.glob("*.parquet")))
        return
    _, texts = harness.load_texts(None, "docs")
    pq.write_table(pa.table({"text": texts}), folder / "texts.parquet")
    yield folder / "texts.parquet", ()


def items_of(file):
    """The option for a corpus of sets instead of texts."""
    lists = [field.name for field in pq.read_schema(file) if pa.types.is_list(field.type)]
    return ("--items-column", lists[0]) if lists else ()


def neardup(*words):
    command = [str(word) for word in (NEARDUP, *words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603


def comparisons(file, given, method):
    """The comparisons of a run in this process: report.json leaves them out."""
    settings = {"items_column": given[1]} if given else {}
    return deduplicate(str(file), method=method, **settings).comparisons


def compare(file, given, folder):
    plan = json.loads(neardup("plan", file, *given, "--json", "--quiet"))
    for forecast in plan["estimate"]["forecasts"]:
        out = folder / "out"
        neardup(
            "dedup",
            file,
            *given,
            "-o",
            out,
            "--overwrite",
            "--quiet",
            "--method",
            forecast["method"],
        )
        report = json.loads((out / "report.json").read_text("utf-8"))
        pairs = {
            "memory": (forecast["memory_bytes"], report["peak_memory_bytes"]),
            "candidates": (forecast["candidates"], comparisons(file, given, forecast["method"])),
            "seconds": (forecast["seconds"], report["seconds"]),
        }
        row = {
            "corpus": file.stem,
            "method": forecast["method"],
            "chosen": forecast["method"] == plan["method"],
        }
        for name, (foretold, measured) in pairs.items():
            row |= {f"{name} foretold": foretold, f"{name} measured": measured}
            row[f"{name} kept"] = is_kept(name, max(foretold, 1), max(measured, 1))
        yield row


def is_kept(name, foretold, measured):
    return foretold <= AIMS[name] * measured and measured <= AIMS[name] * foretold


def main():
    options = harness.arguments(__doc__)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            row for file, given in inputs(options, folder) for row in compare(file, given, folder)
        ]
    harness.publish("predictions", rows, harness.machine("numba", "pyarrow"))


if __name__ == "__main__":
    main()
