"""Runs under --memory 400MB on inputs designed to exceed it: each in a separate process, which reports its own peak."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

CAP = 400 * 10**6
# The allowed peak, as a multiple of the limit.
ALLOWED = 1.15
_BLOCK = 1 << 20
# 2.6 MB of gzip expand to this many bytes of one letter.
_ENDLESS = 2_600 << 20
_PAIRED = 8_000
_WORDS = 20
# The process reports its own peak: what the system reports for a child includes the memory of its
# parent.
_MAIN = """
import atexit, pathlib, sys
peak = pathlib.Path(sys.argv.pop(1))
def tell():
    lines = pathlib.Path("/proc/self/status").read_text("ascii").splitlines()
    peak.write_text(next(line.split()[1] for line in lines if line.startswith("VmHWM:")), "ascii")
atexit.register(tell)
from neardup.cli.main import main
main()
"""

pytestmark = pytest.mark.long


def endless_jsonl(folder: Path) -> list[str]:
    """One line of 2.6 GB between two that are fine."""
    path = folder / "endless.jsonl.gz"
    with gzip.open(path, "wb", 1) as output:
        output.write(b'{"text": "the first line is a document of a few words"}\n')
        output.write(b'{"text": "')
        for _ in range(_ENDLESS >> 20):
            output.write(b"a" * _BLOCK)
        output.write(b'"}\n{"text": "so is the last line, which must keep its number"}\n')
    return ["dedup", str(path)]


def endless_csv(folder: Path) -> list[str]:
    """One cell of 2.6 GB between two that are fine."""
    path = folder / "endless.csv.gz"
    with gzip.open(path, "wb", 1) as output:
        output.write(b"id,text\n1,the first row is a document of a few words\n2,")
        for _ in range(_ENDLESS >> 20):
            output.write(b"a" * _BLOCK)
        output.write(b"\n3,so is the last row which must keep its number\n")
    return ["dedup", str(path)]


def one_dictionary_value(folder: Path) -> list[str]:
    """1,000 rows that are one value of 4 MB, stored once."""
    path = folder / "dictionary.parquet"
    numbers = np.random.default_rng(1).integers(0, 10**7, 500_000)
    text = " ".join(map(str, numbers.tolist()))[: 4 << 20]
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, np.int32)), pa.array([text]))
    table = pa.table({"text": column}).replace_schema_metadata(None)
    pq.write_table(table, path, dictionary_pagesize_limit=64 << 20, use_dictionary=True)
    return ["dedup", str(path)]


def many_pairs(folder: Path) -> list[str]:
    """32 million pairs of 8,000 copies."""
    path = folder / "copies.jsonl"
    text = " ".join(f"word{number}" for number in range(_WORDS))
    path.write_text("".join(f'{{"text": "{text}"}}\n' for _ in range(_PAIRED)), "utf-8")
    return ["pairs", str(path)]


def near_pairs(folder: Path) -> list[str]:
    """14.8 million pairs of 12,878 documents that share 100 words, in one component."""
    path = folder / "near.jsonl"
    shared = " ".join(f"word{number}" for number in range(100))
    with path.open("w", encoding="utf-8") as output:
        for number in range(12_878):
            own = " ".join(f"own{number}x{word}" for word in range(number % 16 + 1))
            output.write(f'{{"text": "{shared} {own}"}}\n')
    return ["pairs", str(path), "--threshold", "0.9"]


def stored_pairs(folder: Path) -> list[str]:
    """The same pairs, beside the kept documents."""
    return ["dedup", *near_pairs(folder)[1:], "--pairs"]


def long_ids(folder: Path) -> list[str]:
    """150,000 ids of 4 KB; half of the documents are copies, so that ids of kept ones are looked up too."""
    path = folder / "ids.jsonl"
    with path.open("w", encoding="utf-8") as output:
        for number in range(150_000):
            words = " ".join(f"w{number % 75_000 + word}x{word}" for word in range(_WORDS))
            output.write(json.dumps({"id": f"{number:08}" + "i" * 4088, "text": words}) + "\n")
    return ["dedup", str(path)]


def tiny_documents(folder: Path) -> list[str]:
    """2 million documents of two words."""
    path = folder / "tiny.jsonl"
    with path.open("w", encoding="utf-8") as output:
        for number in range(2_000_000):
            output.write(f'{{"text": "tiny{number} {number % 7}"}}\n')
    return ["dedup", str(path)]


def wide_parquet(folder: Path) -> list[str]:
    """Texts of some KB in one large row group, a third of them near-duplicates."""
    path = folder / "docs.parquet"
    draw = np.random.default_rng(2)
    vocabulary = np.array([f"word{number}" for number in range(50_000)])
    texts: list[str] = []
    for number in range(24_000):
        if number % 3 == 2:
            texts.append(texts[-1] + f" changed{number}")
        else:
            texts.append(" ".join(vocabulary[draw.integers(0, vocabulary.size, 600)]))
    pq.write_table(pa.table({"text": texts}), path, row_group_size=len(texts))
    return ["dedup", str(path)]


def exact_join(folder: Path) -> list[str]:
    """The same by the exact join."""
    return [*wide_parquet(folder), "--method", "exact"]


def small_files(folder: Path) -> list[str]:
    """100,000 text files."""
    texts = folder / "texts"
    for number in range(100_000):
        below = texts / f"{number // 1000:03}"
        if number % 1000 == 0:
            below.mkdir(parents=True)
        words = " ".join(f"w{number * 31 + word}" for word in range(_WORDS))
        (below / f"{number:06}.txt").write_text(words, "utf-8")
    return ["dedup", str(texts)]


CASES: list[Callable[[Path], list[str]]] = [
    endless_jsonl,
    endless_csv,
    one_dictionary_value,
    many_pairs,
    near_pairs,
    stored_pairs,
    long_ids,
    tiny_documents,
    wide_parquet,
    exact_join,
    small_files,
]


def measured(command: list[str], out: Path) -> tuple[int, int, float, str]:
    """Run a command in a fresh process; return exit code, peak memory in bytes, CPU seconds and output."""
    peak_file = out.with_name("peak")
    arguments = [
        sys.executable,
        "-c",
        _MAIN,
        str(peak_file),
        *command,
        "-o",
        str(out),
        "--memory",
        str(CAP),
        "--quiet",
    ]
    with tempfile.TemporaryFile() as spoken:
        process = subprocess.Popen(arguments, stdout=spoken, stderr=spoken)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        spoken.seek(0)
        words = spoken.read().decode()
    return (
        process.returncode,
        int(peak_file.read_text("ascii")) << 10,
        usage.ru_utime + usage.ru_stime,
        words,
    )


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that is deleted after the test: some inputs take a gigabyte."""
    with tempfile.TemporaryDirectory() as path:
        yield Path(path)


@pytest.mark.slow("makes inputs of up to a gigabyte")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_run_stays_within_its_memory_limit(
    case: Callable[[Path], list[str]], folder: Path
) -> None:
    command = case(folder)
    out = folder / ("out.parquet" if command[0] == "pairs" else "out")

    code, peak, _, words = measured(command, out)

    assert code == 0, words
    assert peak <= ALLOWED * CAP, f"{peak / 1e6:.0f} MB"


if __name__ == "__main__":  # prints the figures of docs/files.md
    for chosen in [case for case in CASES if case.__name__ in sys.argv[1:] or len(sys.argv) == 1]:
        with tempfile.TemporaryDirectory() as scratch:
            asked = chosen(Path(scratch))
            ending = Path(scratch) / ("out.parquet" if asked[0] == "pairs" else "out")
            code, peak, seconds, words = measured(asked, ending)
        print(  # noqa: T201
            f"{chosen.__name__:22} {code:3} {peak / 1e6:7.0f} MB {seconds:6.1f} core-s {words[:300]}",
            flush=True,
        )
