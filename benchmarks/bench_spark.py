"""What does Spark cost over one machine, and what do Spark's own MinHashLSH and datatrove make of the same job?

The same Parquet files, documents with a Jaccard similarity >= .8 of their 5-word shingles, every tool a fresh process:
neardup on this machine, neardup on Spark `local-cluster[2,1,1024]` (two worker processes of one core), Spark MLlib's
MinHashLSH on the same cluster, and datatrove with two workers; with --full also neardup alone on 1 GB of edited copies,
which the others would take an hour for. neardup chooses its method itself, and once more on Spark takes LSH. Time
includes the start of Spark, which `start seconds` tells. Shuffle bytes are what Spark's event log says was written for
other tasks, stage by stage for neardup. Recall and precision are those of bench_end_to_end.py.
"""

import argparse
import collections
import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq

import bench_end_to_end as end_to_end
import corpus
import harness
import process

HERE = Path(__file__).parent
MASTER = "local-cluster[2,1,1024]"
# What takes longer than that is said to.
LIMIT_SECONDS = 20 * 60


def spark_settings(events, partitions):
    source = str(HERE.parent / "src")
    return [
        "spark.eventLog.enabled=true",
        "spark.eventLog.compress=false",
        "spark.eventLog.rolling.enabled=false",
        f"spark.eventLog.dir={events.as_uri()}",
        f"spark.executorEnv.PYTHONPATH={source}",
        "spark.driver.host=127.0.0.1",
        f"spark.sql.shuffle.partitions={partitions}",
        "spark.ui.enabled=false",
    ]


def read_events(events):
    """Shuffle bytes by what the job is described as, and the seconds until the first job began."""
    described, written, times = {}, collections.Counter(), {}
    for line in next(events.iterdir()).open():
        event = json.loads(line)
        kind = event["Event"]
        if kind == "SparkListenerApplicationStart":
            times["start"] = event["Timestamp"]
        elif kind == "SparkListenerJobStart":
            times.setdefault("job", event["Submission Time"])
            what = event["Properties"].get("spark.job.description", "all").removeprefix("neardup: ")
            described |= dict.fromkeys(event["Stage IDs"], what)
        elif kind == "SparkListenerTaskEnd":
            told = (event.get("Task Metrics") or {}).get("Shuffle Write Metrics", {})
            written[described.get(event["Stage ID"], "all")] += told.get("Shuffle Bytes Written", 0)
    return written, (times["job"] - times["start"]) / 1000


def local(source, out, options):
    del options
    command = [end_to_end.NEARDUP, "dedup", source, "-o", out / "out", "--threads", "2", "-q"]
    return process.run(command, out / "log"), removed(out), "removed"


def on_spark(source, out, options, method="auto"):
    command = [end_to_end.NEARDUP, "dedup", source, "-o", out / "out", "-q", "--method", method]
    command += ["--engine", "spark", "--master", MASTER]
    for setting in spark_settings(out / "events", options.partitions):
        command += ["--spark-conf", setting]
    (out / "events").mkdir()
    return process.run(command, out / "log"), removed(out), "removed"


def removed(out):
    table = pq.read_table(out / "out" / "removed.parquet")
    return list(zip(table["doc_id"].to_pylist(), table["kept_id"].to_pylist(), strict=True))


def mllib(source, out, options):
    (out / "events").mkdir()
    settings = [f"spark.master={MASTER}", *spark_settings(out / "events", options.partitions)]
    return peer("mllib_pairs", sys.executable, source, out, settings), answer(out), "pairs"


def datatrove(source, out, options):
    return peer("datatrove_removed", options.datatrove, source, out, []), answer(out), "removed"


def peer(script, interpreter, source, out, words):
    command = [interpreter, HERE / "peers" / f"{script}.py", source, out / "answer.tsv", *words]
    return process.run(command, out / "log", LIMIT_SECONDS)


def answer(out):
    return [tuple(line.split("\t")) for line in (out / "answer.tsv").read_text("utf-8").splitlines()]


TOOLS = {
    "neardup, this machine": (local, "unicode"),
    f"neardup, Spark {MASTER}": (on_spark, "unicode"),
    f"neardup, Spark {MASTER}, LSH": (partial(on_spark, method="lsh"), "unicode"),
    f"MLlib MinHashLSH, {MASTER}, own words": (mllib, "ascii"),
    "datatrove, 2 workers, own words": (datatrove, "ascii"),
}


def measure(work, name, options, folder):
    run, words = TOOLS[name]
    truth = end_to_end.read_truth(work, words, folder)
    print(f"{work.name}: {name}", file=sys.stderr, flush=True)
    num_documents, megabytes = corpus.num_documents(work.source), corpus.text_bytes(work.source) / 1e6
    row = {"work": work.name, "documents": num_documents, "MB": round(megabytes, 1), "tool": name}
    with tempfile.TemporaryDirectory() as out:
        try:
            cost, found, kind = run(work.source, Path(out), options)
        except (RuntimeError, OSError) as error:
            print(error, file=sys.stderr)
            return row | {"note": f"failed: {str(error).strip().splitlines()[-1]}"}
        events = Path(out) / "events"
        written, start = read_events(events) if events.exists() else (collections.Counter(), None)
    recall, precision = end_to_end.JUDGES[kind](found, truth)
    row |= {"seconds": cost.seconds, "start seconds": start, "peak MB": cost.peak_bytes / 1e6, "found": len(found)}
    row |= {"recall": recall, "precision": precision}
    if written:
        row["shuffle MB"] = sum(written.values()) / 1e6
        row["shuffle bytes a document"] = sum(written.values()) / num_documents
        row["shuffle by stage"] = {what: size / num_documents for what, size in written.most_common() if size}
    return row


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", type=Path, help="folder with docs.parquet and licences.parquet")
    parser.add_argument("--datatrove", default=sys.executable, help="a Python that has datatrove")
    parser.add_argument("--full", action="store_true", help="1 GB of copies, too")
    parser.add_argument("--partitions", type=int, default=4, help="spark.sql.shuffle.partitions")
    parser.add_argument("--tools", default="", help="parts of tool names, by commas: only those that contain one")
    parser.add_argument("--work", type=Path, help="folder to keep made inputs and truth in, for the next run")
    return parser.parse_args()


def works(options, folder):
    base = corpus.base(options.corpora, folder)
    found = [end_to_end.Work(base.stem, base)]
    if options.corpora:
        found.append(end_to_end.Work("licences", options.corpora / "licences.parquet"))
    if options.full:
        found.append(end_to_end.copies("copies", base, folder, 1_050_000_000, is_large=True))
    return found


def main():
    options = arguments()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.work or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for work in works(options, folder):
            names = [name for name in TOOLS if not work.is_large or name.startswith("neardup")]
            rows += [measure(work, name, options, folder) for name in names if end_to_end.is_chosen(name, options)]
    about = harness.machine("pyspark")
    harness.publish("spark" if options.full else "spark_small", rows, about)


if __name__ == "__main__":
    main()
