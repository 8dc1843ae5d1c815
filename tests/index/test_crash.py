"""kill -9 at any moment: nothing acknowledged is lost, nothing else appears, and the index stays usable."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time

import pytest

from neardup import Index
from support import killed_index

NEVER = 10**9


def run_and_kill(path, seed, seconds):
    """Change an index in a child process for some time, then kill it; return the lines that it printed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 1)
        try:
            killed_index.main(str(path), str(seed))
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        first = pipe.readline()  # kernels are loaded and work has begun
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        said = (first + pipe.read()).decode().splitlines()
    os.waitpid(child, 0)
    return [line.split("\t") for line in said]


def expected_ids(before, said):
    """The possible sets of ids in the index: without and with the step that was interrupted."""
    held = set(before)
    removing = []
    for word, *rest in said:
        if word == "removing":
            removing = rest
        elif word == "began":
            step, name = rest
        elif word == "done":
            held = after(held, rest[0], rest[1], removing)
            step = None if rest[0] == step else step
    if step is None:
        return [held]
    possible = [held, after(held, step, name, removing)]
    if step == "replace":  # an acknowledged insert, then a replacement
        possible.append(held | {name})
    return possible


def after(held, step, name, removing):
    if step == "insert_many":
        return held | {f"{name}/{at}" for at in range(12)}
    if step in ("insert", "replace"):
        return held | {name}
    return held - set(removing) if step == "remove" else held


def kill_often(tmp_path, times):
    draw = random.Random(3)
    path = tmp_path / "index"
    with Index.create(path) as index:
        index.insert_many(
            {f"old/{number}": f"old text {number} with a few words" for number in range(30)}
        )
        index.query("old text 3 with a few words")
        ids = set(index.ids())
    for seed in range(times):
        said = run_and_kill(path, seed, draw.expovariate(20))
        with Index.open(path) as index:
            held = list(index.ids())
            assert len(held) == len(set(held)) == len(index)
            assert set(held) in expected_ids(ids, said)
            assert index.check() == []
            ids = set(held)
            own = [
                doc_id for doc_id in held if doc_id.count("/") == 1 and not doc_id.startswith("old")
            ]
            for doc_id in own[-5:]:
                text = f"{doc_id} alone with some words of its own"
                found = [match.doc_id for match in index.query(text)]
                assert doc_id in found or index.query("first text of this name is here", k=None)
            if len(held) > 400:
                ids -= set(held[:300])
                index.remove(held[:300])
        if (tmp_path / "copy").exists():
            with Index.open(tmp_path / "copy", read_only=True) as copy:
                assert copy.check() == []
            shutil.rmtree(tmp_path / "copy")


def test_twenty_kills_lose_nothing(tmp_path):
    kill_often(tmp_path, 20)


@pytest.mark.long
@pytest.mark.slow("500 processes are started and killed")
def test_five_hundred_kills_lose_nothing(tmp_path):
    kill_often(tmp_path, 500)
