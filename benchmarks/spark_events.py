"""What did a Spark application do? Jobs, tasks, gaps, CPU seconds, shuffled bytes and memory, from its event log.

    python benchmarks/spark_events.py EVENTS

A stage here is a step of neardup, as its jobs are labelled in Spark's own interface. A gap is time
between the first and the last job in which no job ran. CPU seconds are those of the Java threads of
tasks; the Python workers beside them are not in an event log, so the seconds that tasks ran are
given as well. Run the application with `spark.eventLog.enabled=true` and
`spark.eventLog.compress=false`. Memory is reported with
`spark.eventLog.logStageExecutorMetrics=true`, `spark.executor.processTreeMetrics.enabled=true` and
`spark.executor.metrics.pollingInterval=1s`: the peak of the driver's heap, and of the largest
executor, its Java process and its Python workers separately.
"""

import argparse
import collections
import json
import sys
from pathlib import Path

MEMORY = ("driver heap MB", "executor Java MB", "executor Python MB")
COLUMNS = (
    "jobs",
    "tasks",
    "seconds",
    "task seconds",
    "Java CPU seconds",
    "shuffle MB",
    "gap seconds before",
)


def read_log(path):
    """Return the events of a log: a file, or a folder that holds one."""
    file = (
        path
        if path.is_file()
        else next(entry for entry in sorted(path.rglob("*")) if entry.is_file())
    )
    with file.open() as lines:
        return [json.loads(line) for line in lines]


def summarise(events):
    """Return the totals of an application, and one row per stage in the order of their first job."""
    stages = {}
    owners = {}
    started = None
    running = {}
    last_end = None
    gaps = 0.0
    first_job = None
    for event in events:
        kind = event["Event"]
        if kind == "SparkListenerApplicationStart":
            started = event["Timestamp"]
        elif kind == "SparkListenerJobStart":
            what = (
                (event.get("Properties") or {})
                .get("spark.job.description", "all")
                .removeprefix("neardup: ")
            )
            row = stages.setdefault(what, collections.Counter(dict.fromkeys(COLUMNS, 0)))
            at = event["Submission Time"]
            first_job = first_job or at
            if not running and last_end is not None:
                row["gap seconds before"] += (at - last_end) / 1000
                gaps += (at - last_end) / 1000
            running[event["Job ID"]] = what, at
            row["jobs"] += 1
            owners |= dict.fromkeys(event["Stage IDs"], what)
        elif kind == "SparkListenerJobEnd":
            what, at = running.pop(event["Job ID"])
            last_end = event["Completion Time"]
            stages[what]["seconds"] += (last_end - at) / 1000
        elif kind == "SparkListenerTaskEnd":
            add_task(stages[owners[event["Stage ID"]]], event)
        elif kind == "SparkListenerStageExecutorMetrics":
            add_memory(stages[owners[event["Stage ID"]]], event)
    totals = {name: round(sum(row[name] for row in stages.values()), 3) for name in COLUMNS[:-1]}
    totals |= {
        "gap seconds": round(gaps, 3),
        "start seconds": (first_job - started) / 1000 if first_job else None,
    }
    totals["seconds after the start"] = (last_end - first_job) / 1000 if first_job else None
    names = [*COLUMNS, *(name for name in MEMORY if any(row[name] for row in stages.values()))]
    return totals, [
        {"stage": what} | {name: round(row[name], 3) for name in names}
        for what, row in stages.items()
    ]


def add_task(row, event):
    told = event.get("Task Metrics") or {}
    row["tasks"] += 1
    row["task seconds"] += told.get("Executor Run Time", 0) / 1000
    row["Java CPU seconds"] += told.get("Executor CPU Time", 0) / 1e9
    row["shuffle MB"] += told.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0) / 1e6


def add_memory(row, event):
    told = event["Executor Metrics"]
    java, python = (told.get(f"ProcessTree{what}RSSMemory", 0) / 1e6 for what in ("JVM", "Python"))
    if (
        event["Executor ID"] == "driver"
    ):  # whose process tree includes the executors of a local cluster
        row[MEMORY[0]] = max(row[MEMORY[0]], told.get("JVMHeapMemory", 0) / 1e6)
    else:
        row[MEMORY[1]], row[MEMORY[2]] = max(row[MEMORY[1]], java), max(row[MEMORY[2]], python)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("events", type=Path, help="an event log, or the folder that holds it")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args()
    totals, stages = summarise(read_log(options.events))
    if options.json:
        json.dump({"totals": totals, "stages": stages}, sys.stdout, indent=1)
        return
    names = [name for name in stages[0] if name != "stage"]
    print(f"{'stage':18}" + "".join(f"{name:>20}" for name in names))
    for row in stages:
        print(f"{row['stage']:18}" + "".join(f"{row[name]:>20,.6g}" for name in names))
    for name, value in totals.items():
        print(f"{name:26}{value}")


if __name__ == "__main__":
    main()
