"""What does Spark cost compared with one machine, and how do Spark's own MinHashLSH and datatrove do the same job?

The same Parquet files, documents with a Jaccard similarity >= .8 of their 5-word shingles, every
tool a fresh process: neardup on this machine, neardup on Spark `local-cluster[2,1,1024]` (two
worker processes of one core), Spark MLlib's MinHashLSH on the same cluster, and datatrove with two
workers; with --full also neardup alone on 1 GB of edited copies, which would take the others an
hour. neardup chooses its method itself; a second run on Spark uses LSH. Time includes the start of
Spark, reported as `start seconds`. Jobs, tasks, gaps and shuffled bytes are those of Spark's event
log, stage by stage (spark_events.py); core-seconds those of all processes, the driver and its
executors. Recall and precision are those of bench_end_to_end.py.
"""

import argparse
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
import spark_events

HERE = Path(__file__).parent
MASTER = "local-cluster[2,1,1024]"
# A tool that takes longer is stopped, and reported as such.
LIMIT_SECONDS = 20 * 60


def spark_settings(events, partitions=None):
    source = str(HERE.parent / "src")
    settings = [
        "spark.eventLog.enabled=true",
        "spark.eventLog.compress=false",
        "spark.eventLog.rolling.enabled=false",
        f"spark.eventLog.dir={events.as_uri()}",
        f"spark.executorEnv.PYTHONPATH={source}",
        "spark.driver.host=127.0.0.1",
        "spark.ui.enabled=false",
    ]
    return (
        settings
        if partitions is None
        else [*settings, f"spark.sql.shuffle.partitions={partitions}"]
    )


def local(source, out, options):
    del options
    command = [end_to_end.NEARDUP, "dedup", source, "-o", out / "out", "--threads", "2", "-q"]
    return process.run(command, out / "log"), removed(out), "removed"


def on_spark(source, out, options, method="auto"):
    command = [end_to_end.NEARDUP, "dedup", source, "-o", out / "out", "-q", "--method", method]
    command += ["--engine", "spark", "--master", MASTER]
    del options
    for setting in spark_settings(out / "events"):
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
    return [
        tuple(line.split("\t")) for line in (out / "answer.tsv").read_text("utf-8").splitlines()
    ]


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
    num_documents = corpus.num_documents(work.source)
    megabytes = corpus.text_bytes(work.source) / 1e6
    row = {"work": work.name, "documents": num_documents, "MB": round(megabytes, 1), "tool": name}
    with tempfile.TemporaryDirectory() as out:
        try:
            cost, found, kind = run(work.source, Path(out), options)
        except (RuntimeError, OSError) as error:
            print(error, file=sys.stderr)
            return row | {"note": f"failed: {str(error).strip().splitlines()[-1]}"}
        events = Path(out) / "events"
        totals, stages = (
            spark_events.summarise(spark_events.read_log(events)) if events.exists() else ({}, [])
        )
    recall, precision = end_to_end.JUDGES[kind](found, truth)
    row |= {
        "seconds": cost.seconds,
        "core-seconds": cost.tree_cpu_seconds,
        "peak MB": cost.peak_bytes / 1e6,
    }
    row |= {"found": len(found), "recall": recall, "precision": precision}
    if totals:
        row["shuffle bytes a document"] = totals["shuffle MB"] * 1e6 / num_documents
        row |= {"Spark": totals, "stages": stages}
    return row


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--corpora", type=Path, help="folder with docs.parquet and licences.parquet"
    )
    parser.add_argument("--datatrove", default=sys.executable, help="a Python that has datatrove")
    parser.add_argument("--full", action="store_true", help="1 GB of copies, too")
    parser.add_argument(
        "--partitions", type=int, default=4, help="spark.sql.shuffle.partitions of MLlib"
    )
    parser.add_argument(
        "--tools", default="", help="parts of tool names, by commas: only those that contain one"
    )
    parser.add_argument(
        "--work", type=Path, help="folder to keep made inputs and truth in, for the next run"
    )
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
            rows += [
                measure(work, name, options, folder)
                for name in names
                if end_to_end.is_chosen(name, options)
            ]
    about = harness.machine("pyspark")
    harness.publish("spark" if options.full else "spark_small", rows, about)


if __name__ == "__main__":
    main()
