"""Ctrl-C while a kernel runs is a KeyboardInterrupt once it has returned."""

import random
import signal

import numpy as np
import pytest

from neardup.kernels import lookup

KEYS = np.random.default_rng(1).integers(0, 1 << 63, (8, 128)).astype(np.uint64)
SIZES = np.ones(8, np.int64)


@pytest.fixture
def _raising():
    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def scan_until_interrupted(seconds):
    signal.setitimer(signal.ITIMER_REAL, seconds)
    while True:
        lookup.scan(KEYS, SIZES, KEYS, SIZES, 0.5)


@pytest.mark.usefixtures("_raising")
def test_a_signal_that_arrives_while_a_kernel_returns_its_arrays_is_not_lost():
    lookup.scan(KEYS, SIZES, KEYS, SIZES, 0.5)
    draw = random.Random(1)
    for _ in range(200):
        with pytest.raises(KeyboardInterrupt):  # Numba would raise a SystemError for most of them
            scan_until_interrupted(draw.uniform(1e-5, 2e-3))
