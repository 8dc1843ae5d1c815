"""What does an audit of 1,000 documents cost, compared with one pass?

A pass is the first pass of a run: read, shingle, sketch. Reading alone, on one thread, is listed
for comparison. `held` is an audit that keeps the texts in memory for its second pass, `read twice`
one that reads them again. The table has wall and CPU seconds; on a busy machine, only CPU seconds
can be compared. The input is --input (a file or folder), else docs.parquet of --corpora, else text
found on this machine.
"""

import argparse
import dataclasses
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import harness
import neardup
from neardup import schema
from neardup.config import Config
from neardup.engines.local.engine import LocalEngine
from neardup.io.documents.column_choice import choose_columns
from neardup.io.documents.discover import find_files
from neardup.io.documents.file_reader import FileReader
from neardup.io.documents.layout import FileLayout
from neardup.io.formats import registry as formats
from neardup.io.storage.workspace import Workspace
from neardup.stages.sketch import sketch
from neardup.theory.plan import plan_for

CONFIG = Config()
MOST = 1.5


def read_alone(path):
    """Read the texts and do nothing with them."""
    for file in find_files([str(path)], CONFIG):
        if file.format == "parquet":
            for batch in pq.ParquetFile(file.path).iter_batches(columns=["text"]):
                batch.validate()
        else:
            form = formats.load(file.format)
            columns = choose_columns(file, form.column_names(file, CONFIG), CONFIG)
            for span in form.split(file):
                for _ in form.read(file, span, columns, CONFIG):
                    pass


def reading_pass(path):
    """The first pass of a run on files."""
    plan = plan_for(CONFIG)
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(Path(folder))
        engine = LocalEngine(None, workspace)
        layout = FileLayout(find_files([str(path)], CONFIG), 0, CONFIG)
        documents = FileReader(layout, workspace, engine.room() // 4)
        engine.map_documents(
            documents,
            lambda batch, _: sketch(batch, plan, CONFIG),
            schema.sketches(plan.bands),
            lambda _: None,
        )


def audit_without_room(report):
    """Audit as if no text fitted in memory."""
    room = LocalEngine.room
    LocalEngine.room = lambda _: 0
    try:
        return neardup.audit(report)
    finally:
        LocalEngine.room = room


def timed(work, *values):
    """The result of a call, and its wall and CPU seconds."""
    wall = time.perf_counter()
    processor = time.process_time()
    answer = work(*values)
    return answer, (time.perf_counter() - wall, time.process_time() - processor)


def measure(path, repeat):
    with tempfile.TemporaryDirectory() as folder:
        report = neardup.deduplicate(path, out=Path(folder) / "out", dry_run=True)
        rounds = []
        for _ in range(
            repeat + 1
        ):  # alternating, so that other work on the machine affects all of them
            answer, held = timed(neardup.audit, report)
            again, twice = timed(audit_without_room, report)
            values = [
                dataclasses.replace(audit, seconds=0, missed=None) for audit in (answer, again)
            ]
            if values[0] != values[1]:
                raise SystemExit(f"the audit of {path} depends on how much memory there is")
            rounds.append((timed(read_alone, path)[1], timed(reading_pass, path)[1], held, twice))
    rows = [_row(name, rounds[1:]) for name in range(2)]  # the first round compiles
    about = {"input": path.name, "documents": report.documents, "text MB": report.bytes_read / 1e6}
    names = ("pairs", "recall", "low", "high", "predicted")
    found = {name: getattr(answer, name) for name in names} | {"missed": answer.missed.num_rows}
    return [about | row | found for row in rows]


def _row(clock, rounds):
    read, reading, held, twice = (
        min(times[clock] for times in column) for column in zip(*rounds, strict=True)
    )
    return {
        "seconds of": ("the clock", "processors")[clock],
        "read alone": read,
        "reading pass": reading,
        "audit, held": held,
        "audit, read twice": twice,
        "held / pass": held / reading,
        "read twice / pass": twice / reading,
    }


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--corpora", type=Path, help="folder with docs.parquet; else text of this machine"
    )
    parser.add_argument(
        "--input", type=Path, action="append", default=[], help="a file or a folder; repeatable"
    )
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the best of each counts")
    return parser.parse_args()


def main():
    options = arguments()
    inputs = options.input + ([options.corpora / "docs.parquet"] if options.corpora else [])
    with tempfile.TemporaryDirectory() as folder:
        if not inputs:
            inputs = [Path(folder) / "standard-library.parquet"]
            pq.write_table(pa.table({"text": harness.standard_library()}), inputs[0])
        rows = [row for path in inputs for row in measure(path, options.repeat)]
    harness.publish("audit", rows, harness.machine())
    slow = [
        row["input"]
        for row in rows
        if row["seconds of"] == "processors" and row["held / pass"] > MOST
    ]
    if slow:
        raise SystemExit(f"an audit took more than {MOST} reading passes on {', '.join(slow)}")


if __name__ == "__main__":
    main()
