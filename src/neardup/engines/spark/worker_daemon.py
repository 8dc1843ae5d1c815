"""The Python daemon of Spark's executors, with our kernels loaded before it forks a worker.

A worker that loads Numba and kernels by itself takes seconds for its first batch. `spark.python.daemon.module` names
this module; sessions that neardup starts set it.
"""

from __future__ import annotations

from pyspark.daemon import manager

import neardup

_TEXTS = ["one two three four five six seven", "one two three four five six eight", "one two three four five six"] * 2


def load_kernels() -> None:
    """Run both methods on tiny input, on this thread alone, because workers are forked from here."""
    for method in ("lsh", "exact"):
        neardup.find_pairs(_TEXTS, threshold=0.5, size=2, method=method, threads=1)


if __name__ == "__main__":
    load_kernels()
    manager()
