"""The whole job from files to result, for neardup and other tools: time, memory, recall and precision in one table.

Every tool runs as a fresh process on the same Parquet files, and looks for a Jaccard similarity >=
.8 of 5-word shingles. Wall time includes the start of the process and the reading; the files are in
the page cache and the kernels of neardup are compiled (bench_start.py measures compilation). Best
of --repeat for runs below 10 s, else one run. Core-seconds are user and system time of all threads;
`busy` is the share of two cores that they used during the run, `both busy` the share of the run in
which at least two threads were runnable. `stages` has both for each stage.

What recall and precision mean:
  pairs     recall: the share of the true pairs that is listed. precision: the share of the listed pairs that is true.
  removed   recall: the share of the true pairs of which at least one document was removed. precision: the share of the
            removed documents with a true partner among the kept ones; if the tool names the kept one, that one. The
            true pairs are all pairs whose exact similarity reaches .8, found by truth.py. Peers are judged by the
            words [a-z0-9]+ that they are given (three of them use their own tokenizer: `own words`), neardup by its
            Unicode words.

The inputs: `docs` and `licences` (from --corpora; else the standard library of this Python),
`copies`, edited copies of the first, and `few duplicates`, copies edited so much that few are
similar (corpus.py). With --full they have 1.05 GB and 640 MB; tools that would take hours then run
only on `copies slice`, 100 MB of copies. neardup reads the copies from 8 Parquet files, from one,
and from 8 JSON Lines files, and writes the kept documents in the same format. --works selects some
of them.

Peers that conflict with neardup's packages (text-dedup; datatrove with xxhash<4, spacy, tokenizers
and regex) need
their own virtual environment: --interpreter datatrove=FOLDER/bin/python. Missing tools are named
and skipped. --work keeps the inputs and the true pairs for the next run.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import corpus
import harness
import process

HERE = Path(__file__).parent
NEARDUP = Path(sys.executable).parent / "neardup"
SHORT_SECONDS = 10
NUM_THREADS = 2


@dataclass(frozen=True)
class Tool:
    """A peer: its script and arguments, the package it needs, and the kind of result it gives."""

    name: str
    script: str
    answer: str
    package: str = "pyarrow"
    words: tuple[str, ...] = ()
    is_slow: bool = False


@dataclass(frozen=True)
class Work:
    """An input; `forms` are the same documents in other files."""

    name: str
    source: Path
    forms: tuple[tuple[str, Path], ...] = ()
    is_large: bool = False


PEERS = (
    Tool("only reading (pyarrow)", "only_reading", "nothing"),
    Tool("only shingling (Python)", "only_shingling", "nothing"),
    Tool("gaoya 21x6, own words", "gaoya_pairs", "pairs", "gaoya"),
    Tool("rensa 16x8", "rensa_pairs", "pairs", "rensa"),
    Tool("rensa Deduplicator", "rensa_deduplicator", "removed", "rensa"),
    Tool("FastSketchLSH 16x8", "fastsketchlsh_pairs", "pairs", "FastSketchLSH"),
    Tool("datasketch 9x13", "datasketch_pairs", "pairs", "datasketch", is_slow=True),
    Tool(
        "datasketch 9x13, filtered",
        "datasketch_pairs",
        "pairs",
        "datasketch",
        ("filter",),
        is_slow=True,
    ),
    Tool(
        "SetSimilaritySearch (exact)",
        "setsimilaritysearch_pairs",
        "pairs",
        "SetSimilaritySearch",
        is_slow=True,
    ),
    Tool("text-dedup, own words", "text_dedup_removed", "removed", "text-dedup", is_slow=True),
    Tool("datatrove, own words", "datatrove_removed", "removed", "datatrove", is_slow=True),
)
NEARDUP_COMMANDS = {"pairs": "pairs", "dedup": "removed"}


def neardup(command, source, out):
    """Run a command of neardup; return what it cost and its answer: pairs, or removed id -> kept id."""
    answer = out / "pairs.parquet" if command == "pairs" else out / "out"
    cost = process.run(
        [NEARDUP, command, source, "-o", answer, "--threads", NUM_THREADS], out / "log"
    )
    table = pq.read_table(answer if command == "pairs" else answer / "removed.parquet")
    columns = ("doc_a", "doc_b") if command == "pairs" else ("doc_id", "kept_id")
    report = Path(f"{answer}.report.json") if command == "pairs" else answer / "report.json"
    found = list(zip(*(table.column(name).to_pylist() for name in columns), strict=True))
    return cost, found, by_stage(cost, json.loads(report.read_text("utf-8")))


def by_stage(cost, report):
    """What each stage cost; stages run one after the other, and the report is the last thing that a run writes."""
    stages = {}
    end = cost.seconds - report["seconds"]
    for name, seconds in {"start": end, **report["stages"]}.items():
        begin, end = (0, end) if name == "start" else (end, end + seconds)
        cpu_seconds, both_busy = cost.between(begin, end)
        stages[name] = {"seconds": seconds, "core-seconds": cpu_seconds, "both busy": both_busy}
    return stages


def peer(tool, interpreter, source, out):
    """Run the script of a peer; return what it cost and the lines of its answer."""
    script = HERE / "peers" / f"{tool.script}.py"
    cost = process.run([interpreter, script, source, out / "answer.tsv", *tool.words], out / "log")
    return (
        cost,
        [tuple(line.split("\t")) for line in (out / "answer.tsv").read_text("utf-8").splitlines()],
        None,
    )


def judge_pairs(found, truth):
    found = {tuple(sorted(pair)) for pair in found}
    return len(truth & found) / max(len(truth), 1), len(truth & found) / max(len(found), 1)


def judge_removed(found, truth):
    """Judge rows (removed id) or (removed id, kept id)."""
    removed = {row[0] for row in found}
    left = sum(one not in removed and other not in removed for one, other in truth)
    stands = {}
    for one, other in truth:
        stands.setdefault(one, set()).add(other)
        stands.setdefault(other, set()).add(one)
    right = sum(
        bool((stands.get(row[0], set()) - removed) & set(row[1:] or stands.get(row[0], ())))
        for row in found
    )
    return 1 - left / max(len(truth), 1), right / max(len(found), 1)


JUDGES = {
    "pairs": judge_pairs,
    "removed": judge_removed,
    "nothing": lambda found, truth: (None, None),
}


def read_truth(work, words, folder):
    """The true pairs of a corpus, from a file of an earlier run or computed in a separate process."""
    file = (
        folder
        / f"truth-{work.name.replace(' ', '-')}-{corpus.text_bytes(work.source)}-{words}.parquet"
    )
    if not file.exists():
        process.run(
            [sys.executable, HERE / "truth.py", work.source, file, "--words", words],
            folder / "truth.log",
        )
    table = pq.read_table(file)
    return {
        tuple(sorted(pair))
        for pair in zip(table["doc_a"].to_pylist(), table["doc_b"].to_pylist(), strict=True)
    }


def best_run(run, repeat):
    """Repeat a run while it is short; return the fastest cost with its stages, and the answer."""
    best = None
    answer = None
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            cost, answer, stages = run(Path(folder))
        best = (cost, stages) if best is None or cost.seconds < best[0].seconds else best
        if cost.seconds >= SHORT_SECONDS:
            break
    return *best, answer


def measure(work, name, answer, run, truth, repeat):
    """One row of the table; a failure is recorded in the row."""
    print(f"{work.name}: {name}", file=sys.stderr, flush=True)
    megabytes = corpus.text_bytes(work.source) / 1e6
    row = {
        "work": work.name,
        "documents": corpus.num_documents(work.source),
        "MB": round(megabytes, 1),
        "tool": name,
    }
    try:
        cost, stages, found = best_run(run, repeat)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return row | {"answer": answer, "note": f"failed: {str(error).splitlines()[-1]}"}
    recall, precision = JUDGES[answer](found, truth)
    return row | {
        "seconds": cost.seconds,
        "core-seconds": cost.cpu_seconds,
        "busy": cost.cpu_seconds / (NUM_THREADS * cost.seconds),
        "both busy": cost.between(0, cost.seconds)[1],
        "MB/s": megabytes / cost.seconds,
        "peak MB": cost.peak_bytes / 1e6,
        "answer": answer,
        "found": len(found) if answer != "nothing" else None,
        "true pairs": len(truth) if answer != "nothing" else None,
        "recall": recall,
        "precision": precision,
        "stages": stages,
    }


def neardup_rows(work, folder, repeat):
    truth = read_truth(work, "unicode", folder)
    for command, answer in NEARDUP_COMMANDS.items():
        for form, source in (("", work.source), *(work.forms if command == "dedup" else ())):
            run = partial(neardup, command, source)
            yield measure(work, f"neardup {command}{form}", answer, run, truth, repeat)


def peer_rows(work, tools, interpreters, folder, repeat):
    truth = read_truth(work, "ascii", folder)
    for tool in tools:
        if not (work.is_large and tool.is_slow):
            run = partial(peer, tool, interpreters.get(tool.package, sys.executable), work.source)
            yield measure(work, tool.name, tool.answer, run, truth, repeat)


def copies(name, source, folder, num_bytes, *, is_large=False, make=corpus.edited_copies):
    """Generate an input of edited copies, or reuse that of an earlier run with the same settings."""
    place = folder / name.replace(" ", "-")
    stamp = place / "made.json"
    settings = json.dumps({"source": str(source), "bytes": num_bytes})
    if not stamp.exists() or stamp.read_text() != settings:
        make(source, place, num_bytes)
        stamp.write_text(settings)
    forms = ((", one file", place / "one-file.parquet"), (", JSON Lines", place / "jsonl"))
    return Work(name, place / "parquet", forms, is_large)


def works(options, folder):
    """Generate the chosen inputs, small ones first."""
    base = corpus.base(options.corpora, folder)
    few = partial(copies, make=corpus.few_duplicates)
    if options.full:
        first = folder / "slice.parquet"
        corpus.slice_of(base, first, 10_000_000)
        made = {
            "copies slice": partial(copies, "copies slice", first, folder, 100_000_000),
            "few duplicates": partial(
                few, "few duplicates", base, folder, 640_000_000, is_large=True
            ),
            "copies": partial(copies, "copies", base, folder, 1_050_000_000, is_large=True),
        }
    else:
        made = {
            "few duplicates": partial(few, "few duplicates", base, folder, 12_000_000),
            "copies": partial(copies, "copies", base, folder, 20_000_000),
        }
    if options.corpora:
        made = {"licences": partial(Work, "licences", options.corpora / "licences.parquet"), **made}
    made = {base.stem: partial(Work, base.stem, base), **made}
    return [
        make()
        for name, make in made.items()
        if name in (options.works or ",".join(made)).split(",")
    ]


def versions(tools, interpreters):
    """The version of each installed package."""
    found = {}
    for package in {tool.package for tool in tools}:
        code = f"import importlib.metadata as found; print(found.version({package!r}))"
        command = [interpreters.get(package, sys.executable), "-c", code]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if answer.returncode == 0:
            found[package] = answer.stdout.strip()
    return found


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--corpora", type=Path, help="folder with docs.parquet and licences.parquet"
    )
    parser.add_argument(
        "--repeat", type=int, default=3, help="runs of a short measurement; the best counts"
    )
    parser.add_argument("--full", action="store_true", help="1 GB of copies instead of 20 MB")
    parser.add_argument(
        "--tools",
        default="",
        help="run only tools whose name contains one of these, comma-separated",
    )
    parser.add_argument("--works", help="run only on these inputs, comma-separated")
    parser.add_argument(
        "--interpreter",
        action="append",
        default=[],
        metavar="PACKAGE=PATH",
        help="the Python of a peer's own environment",
    )
    parser.add_argument(
        "--work",
        type=Path,
        help="folder that keeps the generated inputs and the true pairs for the next run",
    )
    parser.add_argument("--result", default="end_to_end", help="name of the file in results/")
    return parser.parse_args()


def choose(options, interpreters):
    """The peers to run, the version of each package, the packages that are missing."""
    named = [tool for tool in PEERS if is_chosen(tool.name, options)]
    installed = versions(named, interpreters)
    missing = sorted({tool.package for tool in named} - set(installed))
    if missing:
        print(f"not installed, left out: {', '.join(missing)}", file=sys.stderr)
    return [tool for tool in named if tool.package in installed], installed, missing


def is_chosen(name, options):
    return any(part.strip().lower() in name.lower() for part in options.tools.split(","))


def main():
    options = arguments()
    interpreters = dict(one.split("=", 1) for one in options.interpreter)
    about = harness.machine()
    tools, installed, about["left_out"] = choose(options, interpreters)
    about["versions"] |= installed
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.work or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if is_chosen("neardup", options):
            compile_kernels(folder)
        for work in works(options, folder):
            rows += peer_rows(work, tools, interpreters, folder, options.repeat)
            if is_chosen("neardup", options):
                rows += neardup_rows(work, folder, options.repeat)
    harness.publish(options.result, rows, about)
    if any("note" in row and row["tool"].startswith("neardup") for row in rows):
        sys.exit("neardup failed, see above")


def compile_kernels(folder):
    """Fill the kernel cache, so that compilation is not measured."""
    file = folder / "two-documents.parquet"
    pq.write_table(pa.table({"id": ["1", "2"], "text": ["a b c d e f", "a b c d e f"]}), file)
    for command in NEARDUP_COMMANDS:
        with tempfile.TemporaryDirectory() as out:
            neardup(command, file, Path(out))


if __name__ == "__main__":
    main()
