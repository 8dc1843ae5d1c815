"""A run on Spark whose driver was killed resumes when the same command is repeated, and writes the same files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import neardup
from neardup.io.storage.work_folder import JOURNAL
from support.spark_corpora import contents, write_corpus

pytestmark = [pytest.mark.long, pytest.mark.slow("a session of Spark for every start")]

LIMIT_SECONDS = 600


def finished_tables(folder):
    """The tables of Spark in the journal of a work folder, each as often as it was computed."""
    journal = folder / ".out.neardup" / JOURNAL
    entries = (
        [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    )
    return [
        entry["name"].removeprefix("spark/")
        for entry in entries
        if entry["name"].startswith("spark/")
    ]


def start(source, folder):
    command = [
        sys.executable,
        "-m",
        "neardup",
        "dedup",
        str(source),
        "-o",
        str(folder / "out"),
        "--quiet",
    ]
    command += ["--engine", "spark", "--master", "local[2]", "--method", "lsh"]
    command += [
        "--spark-conf",
        "spark.driver.host=127.0.0.1",
        "--spark-conf",
        "spark.ui.enabled=false",
    ]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def kill_after(table, driver, folder):
    """Kill the driver, with its Java, as soon as a table is finished."""
    end = time.monotonic() + LIMIT_SECONDS
    while table not in finished_tables(folder):
        assert driver.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < end
        time.sleep(0.02)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


@pytest.mark.usefixtures("spark")  # to find Java
def test_a_driver_killed_at_three_stages_resumes_to_the_same_files(tmp_path):
    source = write_corpus(tmp_path / "in")
    neardup.deduplicate(source, out=tmp_path / "local", method="lsh")
    for table in ("notes", "components", "selection"):
        kill_after(table, start(source, tmp_path), tmp_path)
        assert not (tmp_path / "out").exists()
    tables = finished_tables(tmp_path)
    assert len(tables) == len(set(tables)), "a finished table was computed again"
    assert start(source, tmp_path).wait(LIMIT_SECONDS) == 0, (tmp_path / "log").read_text()
    assert contents(tmp_path / "out") == contents(tmp_path / "local")
    assert not (tmp_path / ".out.neardup").exists()
