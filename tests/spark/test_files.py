"""Runs from files to files on Spark leave what the local engine leaves, byte for byte."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import commands
from support.corpora import EVERY_PAIR, cut, rows, write_rows
from support.made_run import data_of
from support.spark_corpora import contents, write_corpus
from support.spark_processes import workers_of

pytestmark = pytest.mark.slow("jobs of Spark")


# Every job waits its turn on a busy cluster.
MAX_JOBS = 22


class StoppedError(Exception):
    """Raised by a test to stop a run."""


def stop_at(stage):
    """Return a listener that stops a run when a stage begins."""

    def listen(event):
        if type(event).__name__ == "StageStarted" and event.stage == stage:
            raise StoppedError

    return listen


@pytest.mark.usefixtures("generated")
@pytest.mark.parametrize(
    "settings",
    [
        {
            "pairs": True,
            "mark": True,
            "keep": "max:score",
            "cluster": "components",
            "per_cluster": 2,
        },
        pytest.param({"pairs": True}, marks=pytest.mark.long),
        pytest.param(
            {"mark": True, "keep": "max:score", "cluster": "components"}, marks=pytest.mark.long
        ),
    ],
)
def test_a_run_on_spark_writes_the_same_files_as_a_local_run(
    spark, tmp_path, monkeypatch, settings
):
    cut(monkeypatch, joined_bytes=0)
    write_corpus(tmp_path / "in")
    monkeypatch.chdir(tmp_path)  # workers have another working folder
    source = Path("in")
    settings |= EVERY_PAIR
    neardup.deduplicate(source, out=tmp_path / "local", **settings)
    first = next_job(spark)
    on_spark = settings | {"out": tmp_path / "spark", "engine": neardup.SparkEngine(spark)}
    with pytest.raises(StoppedError):
        neardup.deduplicate(source, progress=stop_at("select"), **on_spark)
    # The tables of the stages before are used again, so that both together have no more jobs than
    # one.
    found = neardup.deduplicate(source, **on_spark)
    assert next_job(spark) - first - 1 <= MAX_JOBS
    assert contents(tmp_path / "spark") == contents(tmp_path / "local")
    assert found.num_removed > 10
    assert found.num_rejected == 3
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_large_table_is_a_folder_of_parts_that_every_command_reads(spark, tmp_path, monkeypatch):
    monkeypatch.setattr("neardup.io.documents.layout.JOINED_BYTES", 0)
    source = write_corpus(tmp_path / "in")
    settings = EVERY_PAIR | {"pairs": True}
    local = tmp_path / "local"
    out = tmp_path / "spark"
    expected = neardup.deduplicate(source, out=local, **settings)
    found = neardup.deduplicate(
        source, out=out, engine=neardup.SparkEngine(spark, few_rows=5), **settings
    )
    for name in ("removed", "clusters", "pairs"):
        assert len(list((out / f"{name}.parquet").iterdir())) > 1, name
        for report in (found, neardup.load(out)):
            assert getattr(report, name).equals(getattr(expected, name)), name
    assert contents(out)[1] | {"files": None} == contents(local)[1] | {"files": None}
    removed = found.removed.to_pylist()[0]
    assert str(neardup.explain(out, removed["doc_id"])) == str(
        neardup.explain(local, removed["doc_id"])
    )
    assert neardup.audit(out).pairs == neardup.audit(local).pairs
    assert removed["doc_id"] in str(data_of(neardup.load(out).to_html()))
    for run in (local, out):
        assert CliRunner().invoke(commands, ["pairs", str(run), "-o", f"{run}.csv"]).exit_code == 0
        neardup.deduplicate(
            source, out=f"{run}-again", against=[run], only_against=True, **EVERY_PAIR
        )
    assert (
        neardup.load(f"{out}-again").removed.num_rows
        == neardup.load(f"{local}-again").removed.num_rows
        > 50
    )
    assert Path(f"{out}.csv").read_bytes() == Path(f"{local}.csv").read_bytes()
    # Only what the run wrote is replaced, folders of parts included.
    neardup.deduplicate(source, out=out, overwrite=True, **settings)
    assert contents(out) == contents(local)


def next_job(spark):
    """The number that the next job of a session will have."""
    spark.sparkContext.setJobGroup("probe", "probe")
    spark.sparkContext.parallelize([1], 1).count()
    return max(spark.sparkContext.statusTracker().getJobIdsForGroup("probe")) + 1


@pytest.mark.long
@pytest.mark.parametrize("method", ["lsh", "auto"])
def test_a_run_takes_few_jobs(spark, tmp_path, method):
    source = write_rows(
        tmp_path / "in.parquet", rows(3, 80)
    )  # none of them rejected: a table of those is one more job
    first = next_job(spark)
    found = neardup.deduplicate(
        source, out=tmp_path / "out", engine=neardup.SparkEngine(spark), method=method
    )
    assert found.num_removed > 10
    assert next_job(spark) - first - 1 <= 15


@pytest.mark.long
def test_tasks_that_share_a_file_change_neither_the_result_nor_its_audit(
    spark, tmp_path, monkeypatch
):
    monkeypatch.setattr("neardup.engines.spark.documents._MIN_SHARE", 1)
    source = write_rows(tmp_path / "in.parquet", rows(3, 80))
    settings = EVERY_PAIR | {"audit": True}
    expected = neardup.deduplicate(source, out=tmp_path / "local", **settings)
    found = neardup.deduplicate(
        source, out=tmp_path / "spark", engine=neardup.SparkEngine(spark), **settings
    )
    asked = neardup.audit(tmp_path / "spark")
    audits = [
        (audit.pairs, audit.recall, audit.verified)
        for audit in (found.audit, asked, expected.audit)
    ]
    assert audits[0] == audits[1] == audits[2]
    assert expected.audit.pairs > 10
    tables = [contents(tmp_path / name)[0] for name in ("spark", "local")]
    assert tables[0] == tables[1]


@pytest.mark.parametrize(
    "linking", ["", pytest.param("only_against", marks=pytest.mark.long), "one_to_one"]
)
def test_pairs_with_against_equal_those_of_a_local_run(linking, spark, tmp_path):
    source = write_corpus(tmp_path / "in")
    # Copies and near-copies in OLD of what the input holds, beside others.
    old = write_rows(tmp_path / "old.jsonl", [*rows(5, 30), *rows(3, 80)[::2]])
    settings = EVERY_PAIR | {"against": str(old), "keep": "last"}
    if linking:
        settings[linking] = True
    neardup.find_pairs(source, out=tmp_path / "local.csv", **settings)
    neardup.find_pairs(
        source, out=tmp_path / "spark.csv", engine=neardup.SparkEngine(spark), **settings
    )
    for ending in ("", ".rejected.jsonl"):
        pair = [(tmp_path / f"{name}.csv{ending}").read_bytes() for name in ("spark", "local")]
        assert pair[0] == pair[1]
    assert len((tmp_path / "spark.csv").read_text().splitlines()) > 10


@pytest.mark.usefixtures("spark")
def test_the_command_line_runs_on_spark_and_names_the_first_bad_row(tmp_path):
    source = write_corpus(tmp_path / "in")
    strict = ["dedup", str(source), "-o", str(tmp_path / "out"), "--engine", "spark", "--strict"]
    said = CliRunner().invoke(commands, strict)
    assert said.exit_code != 0
    assert "one.jsonl, row 31 cannot be used: broken JSON" in str(said.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_a_worker_killed_during_a_job_changes_nothing(spark, tmp_path):
    rng = random.Random(8)
    source = tmp_path / "pages.jsonl"
    pages = [[f"{page}w{number}" for number in range(80)] for page in range(60)]
    with source.open("w") as lines:
        for number in range(900):
            words = list(rng.choice(pages))
            words[rng.randrange(80)] = f"edit{rng.randrange(500)}"
            lines.write(json.dumps({"id": str(number), "text": " ".join(words)}) + "\n")
    expected = neardup.deduplicate(source, out=tmp_path / "local")
    begun = threading.Event()
    killed = []

    def kill():
        begun.wait(60)
        time.sleep(0.3)
        victim = workers_of(os.getpid())[0]
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    killer = threading.Thread(target=kill)
    killer.start()

    def listen(event):
        if getattr(event, "stage", "") == "link":
            begun.set()

    engine = neardup.SparkEngine(spark, few_links=0)
    neardup.deduplicate(source, out=tmp_path / "spark", engine=engine, progress=listen)
    killer.join()
    assert killed
    assert contents(tmp_path / "spark") == contents(tmp_path / "local")
    assert expected.num_removed > 300
    assert Path(tmp_path / "spark" / "kept").is_dir()
