"""How long does a newcomer wait: import, the first job (kernels compiled), the second (loaded from the cache)?

The job removes near-duplicates among 100 short documents. On a shared machine, CPU seconds say more
than wall time.
"""

import os
import sys
import tempfile
from pathlib import Path

import corpus
import harness
import process

ARROW = "import pyarrow.compute, pyarrow.parquet"
MAIN = "from neardup.cli.main import main; main()"


def best(code, folder, words=(), repeat=1):
    """The run of a program with the least CPU time."""
    runs = []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory(dir=folder) as out:
            options = [*words, "-o", Path(out) / "out"] if words else []
            runs.append(process.run([sys.executable, "-c", code, *options], Path(out) / "log"))
    return min(runs, key=lambda run: run.cpu_seconds)


def main():
    options = harness.arguments(__doc__)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["NUMBA_CACHE_DIR"] = str(folder / "cache")
        os.environ.pop(
            "PYTHONDONTWRITEBYTECODE", None
        )  # it would compile all modules at every start: 0.12 s
        corpus.short_documents(folder / "few.parquet", 100)
        job = ["dedup", folder / "few.parquet"]
        runs = {
            "start of Python": best("pass", folder, repeat=options.repeat),
            "import neardup": best("import neardup", folder, repeat=options.repeat),
            "import NumPy and Arrow": best(ARROW, folder, repeat=options.repeat),
            "import NumPy, Arrow and Numba": best(f"{ARROW}, numba", folder, repeat=options.repeat),
            "first job of 100 documents: kernels compiled": best(MAIN, folder, job),
            "second job: kernels from the cache": best(MAIN, folder, job, options.repeat),
        }
    rows = [
        {"what": what, "seconds": run.seconds, "CPU seconds": run.cpu_seconds}
        for what, run in runs.items()
    ]
    harness.publish("start", rows, harness.machine())


if __name__ == "__main__":
    main()
