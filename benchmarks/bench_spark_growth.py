"""What does each further gigabyte cost on Spark, compared with one machine, and does the memory of the driver grow?

Edited copies of real text at two sizes, deduplicated on this machine and on Spark
`local-cluster[2,1,1024]`, every run
a fresh process: the row `further` divides the core-seconds of all processes, the driver and its
executors included, by the gigabytes between the two sizes. With --large also that many gigabytes of
generated pages, on Spark alone: memory of the driver and of executors, stage by stage. Both sizes
are small unless --full is given.

    python benchmarks/bench_spark_growth.py --corpora CORPORA --full --large 20 --work FOLDER
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

import bench_end_to_end as end_to_end
import bench_spark
import corpus
import harness
import process
import spark_events

SIZES = {False: (60_000_000, 120_000_000), True: (1_050_000_000, 2_100_000_000)}
MEMORY_SETTINGS = (
    "spark.eventLog.logStageExecutorMetrics=true",
    "spark.executor.processTreeMetrics.enabled=true",
    "spark.executor.metrics.pollingInterval=1s",
)


def run(source, out, engine):
    """Run once; return the cost, and totals and stages of the event log."""
    command = [end_to_end.NEARDUP, "dedup", source, "-o", out / "out", "-q"]
    if engine == "local":
        return process.run([*command, "--threads", "2"], out / "log"), {}, []
    (out / "events").mkdir()
    command += ["--engine", "spark", "--master", bench_spark.MASTER]
    for setting in (*bench_spark.spark_settings(out / "events"), *MEMORY_SETTINGS):
        command += ["--spark-conf", setting]
    cost = process.run(command, out / "log")
    return cost, *spark_events.summarise(spark_events.read_log(out / "events"))


def measure(name, source, engine, scratch):
    print(f"{name}: {engine}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=scratch) as out:
        cost, totals, stages = run(source, Path(out), engine)
    gigabytes = corpus.text_bytes(source) / 1e9
    row = {
        "work": name,
        "GB": gigabytes,
        "documents": corpus.num_documents(source),
        "engine": engine,
    }
    row |= {
        "seconds": cost.seconds,
        "core-seconds": cost.tree_cpu_seconds,
        "peak MB": cost.peak_bytes / 1e6,
    }
    return row | ({"Spark": totals, "stages": stages} if totals else {})


def further(rows):
    """The core-seconds of each further gigabyte, by engine, and the ratio of the two."""
    found = {}
    for engine in ("local", "spark"):
        first, second = (row for row in rows if row["engine"] == engine)
        found[engine] = (second["core-seconds"] - first["core-seconds"]) / (
            second["GB"] - first["GB"]
        )
    return {"work": "further", "core-seconds a GB": found, "ratio": found["spark"] / found["local"]}


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--corpora", type=Path, help="folder with docs.parquet; else text of this machine"
    )
    parser.add_argument(
        "--full", action="store_true", help="1.05 and 2.1 GB of copies instead of 60 and 120 MB"
    )
    parser.add_argument(
        "--large", type=float, default=0, help="gigabytes of made pages for a run on Spark alone"
    )
    parser.add_argument(
        "--work",
        type=Path,
        help="folder for made inputs and outputs; about twice --large on its disk",
    )
    return parser.parse_args()


def main():
    options = arguments()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with tempfile.TemporaryDirectory(dir=options.work) as temporary:
        folder = Path(temporary)
        base = corpus.base(options.corpora, folder)
        rows = []
        for size in SIZES[options.full]:
            work = end_to_end.copies(f"copies {size // 1_000_000} MB", base, folder, size)
            rows += [
                measure(work.name, work.source, engine, folder) for engine in ("local", "spark")
            ]
            shutil.rmtree(work.source.parent)
        rows.append(further(rows))
        if options.large:
            pages = folder / "pages"
            corpus.pages(pages, round(options.large * 1e9))
            rows.append(measure(f"pages {options.large:g} GB", pages, "spark", folder))
    name = "spark_growth" if options.full or options.large else "spark_growth_small"
    harness.publish(name, rows, harness.machine("pyspark"))


if __name__ == "__main__":
    main()
