"""Matrix products run on our own threads, so BLAS is limited to one: more would only compete for the cores."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

from threadpoolctl import threadpool_limits

# The limit is global to the process: overlapping callers would restore each other's limits.
_one_caller: Final = threading.Lock()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread in this process; concurrent callers wait for each other."""
    with _one_caller, threadpool_limits(1, "blas"):
        yield
