"""What does it cost to find repeated passages, and to cut them out?

`neardup passages --min-words 50`, the same with `--cut`, and `neardup dedup` on the same files:
documents of docs.parquet and edited copies of them. Below them only reading, and on the smaller
corpus other ways to find what is repeated: a suffix array (pydivsufsort), datatrove's sentence
deduplication, and a dict of all windows in Python. Asked: at most twice the core-seconds of dedup,
and ten times the text for at most eleven times the cost. The smaller corpus is made of every tenth
document, so that as much of it is repeated.

--full takes 1 GB beside 100 MB. --peers names a Python with pydivsufsort and datatrove. --work keeps
the generated corpora.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import corpus
import harness
import process

HERE = Path(__file__).parent
NEARDUP = Path(sys.executable).parent / "neardup"
SMALL = 100_000_000
LARGE = 1_000_000_000
MAX_OF_DEDUP = 2.0
MAX_GROWTH = 1.1
COMMANDS = {
    "dedup": ("dedup",),
    "passages": ("passages",),
    "passages --cut": ("passages", "--cut"),
    "passages --memory 1GB": ("passages", "--memory", "1GB"),
}
PEERS = {
    "pydivsufsort": "suffix_array_passages",
    "datatrove sentences": "datatrove_sentences",
    "dict of windows": "ngram_dict_passages",
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", type=Path, help="folder with docs.parquet")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each command")
    parser.add_argument("--full", action="store_true", help="also 1 GB")
    parser.add_argument("--peers", type=Path, help="the Python of the peers")
    parser.add_argument("--work", type=Path, help="folder for the corpora, which are kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.work or Path(temporary)
        rows = []
        for name, size in (("tenth", SMALL), ("large", LARGE))[: 1 + options.full]:
            source = _made(folder, name, size, options)
            megabytes = corpus.text_bytes(source) / 1e6
            rows += _neardup(source, megabytes, options.repeat)
            rows.append(_peer("only reading", sys.executable, "only_reading", source, megabytes))
            if options.peers is not None and name == "tenth":
                rows += [
                    _peer(title, options.peers, script, source, megabytes)
                    for title, script in PEERS.items()
                ]
    harness.publish("passages", rows, harness.machine())
    sys.exit("\n".join(_broken(rows)) or 0)


def _made(folder, name, size, options):
    target = folder / name
    if not target.exists():
        source = corpus.base(options.corpora, folder)
        if name == "tenth":
            documents = pq.read_table(source)
            source = folder / "tenth.parquet"
            pq.write_table(documents.take(np.arange(0, documents.num_rows, 10)), source)
        corpus.edited_copies(source, target, size)
    return target / "parquet"


def _row(title, megabytes, cost, **more):
    return {
        "what": title,
        "text MB": round(megabytes),
        "seconds": round(cost.seconds, 2),
        "core-seconds": round(cost.tree_cpu_seconds, 2),
        "MB per core-second": round(megabytes / cost.tree_cpu_seconds, 1),
        "peak MB": round(cost.peak_bytes / 1e6),
        **more,
    }


def _neardup(source, megabytes, repeat):
    """Of each command the run with the fewest core-seconds, by turns; kernels are loaded from the cache."""
    best = {}
    for _ in range(repeat):
        for title, words in COMMANDS.items():
            row = _one_run(title, words, source, megabytes)
            if title not in best or row["core-seconds"] < best[title]["core-seconds"]:
                best[title] = row
    return list(best.values())


def _one_run(title, words, source, megabytes):
    with tempfile.TemporaryDirectory() as out:
        command = [NEARDUP, words[0], source, "-o", Path(out) / "out", *words[1:], "-q"]
        cost = process.run(command, Path(out) / "log")
        report = json.loads((Path(out) / "out" / "report.json").read_text("utf-8"))
    found = report.get("passages", {})
    more = {name: found[name] for name in ("num_places", "num_passages") if name in found}
    return _row(title, megabytes, cost, **more) | {"stages": report["stages"]}


def _peer(title, interpreter, script, source, megabytes):
    with tempfile.TemporaryDirectory() as out:
        command = [interpreter, HERE / "peers" / f"{script}.py", source, Path(out) / "answer.tsv"]
        try:
            cost = process.run(command, Path(out) / "log", limit_seconds=1800)
        except (RuntimeError, subprocess.SubprocessError) as error:
            return {"what": title, "text MB": round(megabytes), "failed": str(error)[-200:]}
    return _row(title, megabytes, cost)


def _broken(rows):
    """What was asked and is not so."""
    costs = {(row["what"], row["text MB"]): row.get("core-seconds") for row in rows}
    sizes = sorted({size for _, size in costs})
    for size in sizes:
        if costs["passages", size] > MAX_OF_DEDUP * costs["dedup", size]:
            yield f"passages takes more than twice the core-seconds of dedup on {size} MB"
    if len(sizes) == 2:
        growth = costs["passages", sizes[1]] / costs["passages", sizes[0]]
        if growth > MAX_GROWTH * sizes[1] / sizes[0]:
            yield f"passages takes {growth:.1f} times as long on {sizes[1]} MB as on {sizes[0]}"


if __name__ == "__main__":
    main()
