"""The memory of a large insert and of a compaction is bounded in bytes, however long the documents are."""

from __future__ import annotations

import subprocess
import sys

import pytest

MB = 10**6
DOCUMENTS = 3_000
TEXT_BYTES = 90_000
# Anonymous memory, sampled: mapped files are not counted, the system drops their pages when it
# needs memory.
PROGRAM = f"""
import sys, threading, numpy as np, pyarrow as pa, neardup

def anonymous():
    lines = open("/proc/self/status", encoding="ascii").read().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))

def peak_of(call):
    before, peaks, done = anonymous(), [0], threading.Event()
    def sample():
        while not done.wait(0.002):
            peaks.append(anonymous() - before)
    thread = threading.Thread(target=sample)
    thread.start()
    call()
    done.set()
    thread.join()
    print(max(peaks))

def table(count):
    words = np.array([f"w{{number:05}} " for number in range(50_000)], "S7")
    chosen = words[np.random.default_rng(4).integers(50_000, size=(count, {TEXT_BYTES} // 7))]
    ends = np.arange(count + 1, dtype=np.int64) * chosen.shape[1] * 7
    made = pa.LargeStringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(chosen))
    return pa.table({{"id": pa.array(range(count)).cast(pa.string()), "text": made}})

path, step = sys.argv[1:]
with neardup.Index.create(path + "-" + step) as warm:
    warm.insert_many(table(2))
    warm.compact()
if step == "insert":
    with neardup.Index.create(path, durability="fast") as index:
        documents = table({DOCUMENTS})
        peak_of(lambda: index.insert_many(documents))
else:
    with neardup.Index.open(path) as index:
        peak_of(index.compact)
        assert (index.info()["segments"], len(index)) == (1, {DOCUMENTS})
"""


def peak_of(path, step):
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path), step],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout)


@pytest.mark.long
@pytest.mark.slow("stores 270 MB of text")
def test_memory_is_bounded_by_bytes(tmp_path):
    inserted = peak_of(tmp_path / "i", "insert")
    compacted = peak_of(tmp_path / "i", "compact")
    assert inserted < 250 * MB, f"{inserted / MB:.0f} MB"
    assert compacted < 100 * MB, f"{compacted / MB:.0f} MB"
