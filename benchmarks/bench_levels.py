"""What does it cost to remove repeated lines and paragraphs?

`neardup dedup --level line` and `--level paragraph`, `neardup dedup` of whole documents and
`neardup passages --cut` on the same files: docs.parquet, and about 1 GB of edited copies of it.
Beside them only reading, line deduplication in DuckDB, and datatrove's sentence deduplication.
Asked: at most 1.5 times the core-seconds of dedup.

--full takes 1 GB, too. --peers names a Python with datatrove. --work keeps the generated corpora.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import corpus
import harness
import process

HERE = Path(__file__).parent
NEARDUP = Path(sys.executable).parent / "neardup"
LARGE = 1_000_000_000
MAX_OF_DEDUP = 1.5
COMMANDS = {
    "dedup": ("dedup",),
    "dedup --level line": ("dedup", "--level", "line"),
    "dedup --level paragraph": ("dedup", "--level", "paragraph"),
    "dedup --level line --memory 1GB": ("dedup", "--level", "line", "--memory", "1GB"),
    "passages --cut": ("passages", "--cut"),
}
# The Python of a peer: this one has duckdb.
PEERS = {"duckdb lines": "duckdb_lines", "datatrove sentences": "datatrove_sentences"}
LIMIT_SECONDS = 900


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", type=Path, help="folder with docs.parquet")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each command")
    parser.add_argument("--full", action="store_true", help="also 1 GB")
    parser.add_argument("--peers", type=Path, help="a Python with datatrove")
    parser.add_argument("--work", type=Path, help="folder for the corpora, which are kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.work or Path(temporary)
        sources = [corpus.base(options.corpora, folder)]
        if options.full:
            made = folder / "large"
            if not made.exists():
                corpus.edited_copies(sources[0], made, LARGE)
            sources.append(made / "parquet")
        rows = []
        for source in sources:
            megabytes = corpus.text_bytes(source) / 1e6
            for title, words in COMMANDS.items():
                rows.append(_neardup(title, words, source, megabytes, options.repeat))
            rows.append(_peer("only reading", sys.executable, "only_reading", source, megabytes))
            for title, script in PEERS.items():
                interpreter = sys.executable if script == "duckdb_lines" else options.peers
                if interpreter is not None:
                    rows.append(_peer(title, interpreter, script, source, megabytes))
    harness.publish("levels", rows, harness.machine())
    sys.exit("\n".join(_broken(rows)) or 0)


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


def _neardup(title, words, source, megabytes, repeat):
    """The run with the fewest core-seconds; kernels are loaded from the cache."""
    best = None
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as out:
            command = [NEARDUP, words[0], source, "-o", Path(out) / "out", *words[1:], "-q"]
            cost = process.run(command, Path(out) / "log")
            report = json.loads((Path(out) / "out" / "report.json").read_text("utf-8"))
        more = {"removed": report["removed"], **report.get("parts", {})}
        row = _row(title, megabytes, cost, **more) | {"stages": report["stages"]}
        if best is None or row["core-seconds"] < best["core-seconds"]:
            best = row
    return best


def _peer(title, interpreter, script, source, megabytes):
    with tempfile.TemporaryDirectory() as out:
        command = [interpreter, HERE / "peers" / f"{script}.py", source, Path(out) / "answer.tsv"]
        try:
            cost = process.run(command, Path(out) / "log", limit_seconds=LIMIT_SECONDS)
        except (RuntimeError, subprocess.SubprocessError) as error:
            return {"what": title, "text MB": round(megabytes), "failed": str(error)[-200:]}
    return _row(title, megabytes, cost)


def _broken(rows):
    """What was asked and is not so."""
    costs = {(row["what"], row["text MB"]): row.get("core-seconds") for row in rows}
    for size in sorted({size for _, size in costs}):
        for level in ("line", "paragraph"):
            share = costs[f"dedup --level {level}", size] / costs["dedup", size]
            if share > MAX_OF_DEDUP:
                yield f"--level {level} takes {share:.2f} times the core-seconds of dedup on {size} MB"


if __name__ == "__main__":
    main()
