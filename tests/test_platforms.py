"""neardup runs where its promises hold, without what only Linux has, and is refused elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src"
# What Linux has and macOS has not: system calls, flags, files of the kernel, functions of glibc.
LESS_THAN_LINUX = """
import ctypes, mmap, os, resource, sys

for module, names in (
    (os, ("fdatasync", "sched_getaffinity", "posix_fadvise", "memfd_create", "copy_file_range")),
    (os, ("splice", "eventfd", "sched_setaffinity", "posix_fallocate", "O_DIRECT", "O_TMPFILE")),
    (resource, ("RUSAGE_THREAD", "prlimit")),
    (mmap, ("MADV_HUGEPAGE", "MADV_DONTDUMP", "MAP_POPULATE")),
):
    for name in names:
        if hasattr(module, name):
            delattr(module, name)

class LibraryWithoutGlibc(ctypes.CDLL):
    def __getattr__(self, name):
        if name in ("mallopt", "malloc_trim"):
            raise AttributeError(name)
        return super().__getattr__(name)

ctypes.CDLL = LibraryWithoutGlibc

def refuse(event, arguments):
    if event == "open" and str(arguments[0]).startswith(("/proc/", "/sys/")):
        refused.add(str(arguments[0]))
        raise FileNotFoundError(2, "No such file or directory", arguments[0])

refused = set()
sys.addaudithook(refuse)
"""
JOBS = """
import neardup
from pathlib import Path

texts = [f"page {n} of a report on bridges and weather in the north" for n in range(200)]
rows = [f'{{"id": "{n}", "text": "{text}"}}' for n, text in enumerate(texts + texts[:50])]
Path("pages.jsonl").write_text("\\n".join(rows))
report = neardup.deduplicate(
    Path("pages.jsonl"), out="clean", memory="400MB", threads=2
)
assert report.removed.num_rows >= 50, report.removed.num_rows
found = neardup.find_passages(Path("pages.jsonl"), min_words=8)
assert found.passages.num_rows > 0
with neardup.Index.create("seen.index", store="text") as index:
    index.insert("a", texts[0])
    assert [match.doc_id for match in index.query(texts[0])] == ["a"]
    index.compact()
assert "/proc/self/statm" in refused
print(report.peak_memory_bytes > 0)
"""


def python(program: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(SOURCES)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("system", ["win32", "cygwin", "emscripten", "wasi"])
def test_a_system_without_file_locks_is_refused_at_import(system, tmp_path):
    answer = python(f"import sys; sys.platform = {system!r}; import neardup", tmp_path)

    assert answer.returncode == 1
    last = answer.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: neardup is not supported on {system}, which has no POSIX")


def test_python_without_its_global_lock_is_refused_at_import(tmp_path):
    answer = python("import sys; sys._is_gil_enabled = lambda: False; import neardup", tmp_path)

    assert answer.returncode == 1
    last = answer.stderr.splitlines()[-1]
    assert last.startswith("ImportError: neardup does not support free-threaded Python: set PYTHON")


def test_a_free_threaded_build_with_its_global_lock_is_accepted(tmp_path):
    answer = python("import sys; sys._is_gil_enabled = lambda: True; import neardup", tmp_path)

    assert answer.returncode == 0, answer.stderr


@pytest.mark.slow(
    "starts a process that loads and calls everything, which takes 4 s of a quiet core"
)
def test_jobs_need_nothing_that_only_linux_has(tmp_path):
    answer = python(LESS_THAN_LINUX + JOBS, tmp_path)

    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "True\n"
