"""Searches in texts on Spark (sections, passages, items): the files of a local run, byte for byte."""

from __future__ import annotations

import os
import random
import signal
import threading

import pytest

import neardup
from neardup.engines.spark import part_tasks
from neardup.io import records
from support.corpora import write_rows
from support.section_texts import sectioned_texts
from support.spark_corpora import contents
from support.spark_processes import workers_of

pytestmark = pytest.mark.slow("jobs of Spark")

MAX_JOBS = 20


class StoppedError(Exception):
    """Raised by a test to stop a run."""


def stop_at(stage):
    """Return a listener that stops a run when a stage begins."""

    def listen(event):
        if type(event).__name__ == "StageStarted" and event.stage == stage:
            raise StoppedError

    return listen


def write_sections(folder):
    """Files of several formats, with unusable rows; and reference documents."""
    texts = sectioned_texts(random.Random(11), num_docs=120)
    texts = [text.replace("\x00", "") + "x" for text in texts]
    documents = [{"id": f"d{at}", "text": text, "n": at} for at, text in enumerate(texts)]
    write_rows(folder / "b" / "one.jsonl", documents[:40])
    with (folder / "b" / "one.jsonl").open("ab") as lines:
        lines.write(b'{broken\n\n{"id": "n", "text": null}\n')
    write_rows(folder / "a.parquet", documents[40:80])
    write_rows(folder / "c.csv.gz", documents[80:100])
    write_rows(folder / "d.jsonl.zst", documents[100:])
    for number in range(3):
        (folder / f"t{number}.txt").write_text(texts[7 * number], "utf-8")
    write_rows(folder.with_name("old") / "old.jsonl", documents[::9])
    return folder


def num_jobs(spark):
    """The number of jobs so far."""
    spark.sparkContext.setJobGroup("probe", "probe")
    spark.sparkContext.parallelize([1], 1).count()
    return max(spark.sparkContext.statusTracker().getJobIdsForGroup("probe"))


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # workers have another working folder
    return write_sections(tmp_path / "in").relative_to(tmp_path)


def test_a_run_on_spark_writes_the_same_files_as_a_local_run_also_when_it_is_resumed(
    spark, source, tmp_path
):
    settings = {"level": "line", "min_words": 2, "against": tmp_path / "old", "min_left": 2}
    local = neardup.deduplicate(source, out=tmp_path / "local", **settings)
    first = num_jobs(spark)
    on_spark = settings | {"out": tmp_path / "spark", "engine": neardup.SparkEngine(spark)}
    with pytest.raises(StoppedError):
        neardup.deduplicate(source, progress=stop_at("write"), **on_spark)
    made = {path: path.stat().st_mtime_ns for path in tmp_path.glob(".spark.neardup/sections/*")}
    assert made
    found = neardup.deduplicate(source, **on_spark)
    assert num_jobs(spark) - first - 1 <= MAX_JOBS
    assert contents(tmp_path / "spark") == contents(tmp_path / "local")
    assert found.num_parts == local.num_parts > 50
    assert found.num_rejected == 2
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.usefixtures("spark")
def test_any_number_of_parts_and_marks_are_those_of_a_local_run(source, tmp_path, monkeypatch):
    tables = [path for path in source.rglob("*") if path.is_file() and path.suffix != ".txt"]
    settings = {"level": "paragraph", "min_words": 2, "mark": True, "keep": "none"}
    neardup.deduplicate(sorted(tables), out=tmp_path / "local", **settings)
    monkeypatch.setattr(records, "PART_BYTES", 700)
    neardup.deduplicate(sorted(tables), out=tmp_path / "spark", engine="spark", **settings)
    assert contents(tmp_path / "spark") == contents(tmp_path / "local")


@pytest.mark.parametrize("part_bytes", [None, 900])
def test_passages_on_spark_are_those_of_a_local_run(
    part_bytes, spark, source, tmp_path, monkeypatch
):
    if part_bytes is not None:
        monkeypatch.setattr(records, "PART_BYTES", part_bytes)
    settings = {"min_words": 4, "cut": True, "keep": "none", "against": tmp_path / "old"}
    local = neardup.find_passages(source, out=tmp_path / "local", **settings)
    assert local.num_places > 50
    first = num_jobs(spark)
    on_spark = settings | {"out": tmp_path / "spark", "engine": neardup.SparkEngine(spark)}
    with pytest.raises(StoppedError):
        neardup.find_passages(source, progress=stop_at("locate"), **on_spark)
    neardup.find_passages(source, **on_spark)
    assert num_jobs(spark) - first - 1 <= MAX_JOBS
    assert contents(tmp_path / "spark") == contents(tmp_path / "local")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("rule", ["coverage", "ngram13"])
def test_items_on_spark_are_those_of_a_local_run(rule, spark, source, tmp_path):
    rng = random.Random(3)
    questions = [" ".join(f"q{rng.randrange(300)}" for _ in range(24)) for _ in range(12)]
    items = [{"id": f"i{at}", "text": question} for at, question in enumerate(questions)]
    write_rows(tmp_path / "tests" / "quiz.jsonl", items)
    pages = [
        {"id": f"p{at}", "text": f"some words ahead {questions[at % 8]} and words behind {at}"}
        for at in range(40)
    ]
    write_rows(source / "e.parquet", pages)
    settings = {"against": tmp_path / "tests", "rule": rule, "cut": True, "min_left": 5}
    local = neardup.decontaminate(source, out=tmp_path / "local", **settings)
    assert local.num_contaminated == 40
    first = num_jobs(spark)
    on_spark = settings | {"out": tmp_path / "spark", "engine": neardup.SparkEngine(spark)}
    with pytest.raises(StoppedError):
        neardup.decontaminate(source, progress=stop_at("search"), **on_spark)
    neardup.decontaminate(source, **on_spark)
    assert num_jobs(spark) - first - 1 <= MAX_JOBS
    assert contents(tmp_path / "spark") == contents(tmp_path / "local")


@pytest.mark.long
def test_a_worker_killed_while_it_reads_changes_nothing(spark, tmp_path):
    source = tmp_path / "in"
    texts = sectioned_texts(random.Random(4), num_docs=400)
    for number in range(40):
        rows = [{"text": "\n".join(texts).replace("\x00", "") + str(at)} for at in range(3)]
        write_rows(source / f"{number}.jsonl", rows)
    neardup.deduplicate(source, out=tmp_path / "local", level="line", min_words=2)
    killed = []
    begun = threading.Event()

    def kill():
        begun.wait(60)
        victim = workers_of(os.getpid())[0]
        os.kill(victim, signal.SIGKILL)
        killed.append(victim)

    killer = threading.Thread(target=kill)
    killer.start()

    def listen(event):
        if getattr(event, "stage", "") == "sections":
            begun.set()

    on_spark = {"engine": neardup.SparkEngine(spark), "progress": listen}
    neardup.deduplicate(source, out=tmp_path / "spark", level="line", min_words=2, **on_spark)
    killer.join()
    assert killed
    assert contents(tmp_path / "spark") == contents(tmp_path / "local")


def test_an_attempt_that_is_repeated_writes_beside_the_first(tmp_path):
    first = part_tasks.WorkerFiles(tmp_path)
    first.draft("sections/1").write_text("half", "utf-8")
    second = part_tasks.WorkerFiles(tmp_path)
    second.checkpoint("sections/1", lambda path: path.write_text("whole", "utf-8") and None)
    assert (tmp_path / "drafts" / "sections" / "1").read_text("utf-8") == "whole"
    assert second.written == [("sections/1", {})]


def test_what_needs_one_machine_is_refused(spark, tmp_path, source):
    frame = spark.createDataFrame([(1, "a text")], ["id", "text"])
    with pytest.raises(neardup.NearDupError, match="on Spark, a search in texts needs files"):
        neardup.deduplicate(frame, level="line")
    with pytest.raises(neardup.NearDupError, match="`level` needs a threshold of 1 on Spark"):
        neardup.deduplicate(
            source, level="line", threshold=0.5, engine="spark", out=tmp_path / "out"
        )
