"""BLAS runs on one thread while our own threads multiply, and gets its threads back afterwards."""

from __future__ import annotations

import threading

import numpy as np
from threadpoolctl import threadpool_info

from neardup.engines.local.blas import one_blas_thread


def num_threads():
    assert np.__version__  # loads BLAS
    return [
        library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"
    ]


def test_concurrent_callers_restore_the_previous_setting():
    before = num_threads()
    inside = []
    most = []
    assert before

    def call():
        for _ in range(20):
            with one_blas_thread():
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    others = [threading.Thread(target=call) for _ in range(4)]
    with one_blas_thread():
        for other in others:
            other.start()
        assert set(num_threads()) == {1}
        assert not most
    for other in others:
        other.join()
    assert max(most) == 1
    assert num_threads() == before
