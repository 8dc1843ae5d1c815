"""The Python daemon of Spark's executors, with our kernels loaded before it forks a worker.

A worker that loads Numba and kernels by itself takes seconds for its first batch.
`spark.python.daemon.module` names this module; sessions that neardup starts set it. It is outside
the Spark engine, because it must run before pyspark is imported.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

_TEXTS = [
    "one two three four five six seven",
    "one two three four five six eight",
    "one two three four five six",
] * 2


def prefer_installed() -> None:
    """Import pyspark from the folder it is installed in, not from the archive that Spark puts first on the path.

    Python compiles every module of an archive again in each process, which takes seconds for those
    of pyspark.
    """
    for archive in [Path(entry) for entry in sys.path if entry.endswith("/python/lib/pyspark.zip")]:
        package = archive.parents[2]
        if package.name == "pyspark" and (package / "__init__.py").is_file():
            sys.path.remove(str(archive))
            if str(package.parent) not in sys.path:
                sys.path.append(str(package.parent))


def load_kernels() -> None:
    """Run both methods on tiny input, on this thread alone, because workers are forked from here."""
    import neardup

    for method in ("lsh", "exact"):
        neardup.find_pairs(_TEXTS, threshold=0.5, size=2, method=method, threads=1)


def load_worker() -> None:
    """Import what a worker needs besides kernels."""
    import pyspark.worker  # noqa: F401

    import neardup.engines.spark  # noqa: F401


if __name__ == "__main__":
    prefer_installed()
    load_kernels()
    load_worker()
    # Workers collect garbage after every task. What is loaded so far is never garbage, and scanning
    # it would take longer than many tasks do.
    gc.collect()
    gc.freeze()
    from pyspark.daemon import manager

    manager()
