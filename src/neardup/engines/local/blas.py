"""Matrix products on our own threads: those of BLAS beside them would only wait for each other."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

from threadpoolctl import threadpool_limits

# The limit is one of the process: callers that overlapped would restore the limits of each other.
_one_caller: Final = threading.Lock()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Give BLAS one thread in this process; callers wait for each other."""
    with _one_caller, threadpool_limits(1, "blas"):
        yield
