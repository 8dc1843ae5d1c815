"""The arena keeps every set at its offset between two stages, or none at all."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from neardup.engines.local.arena import NOWHERE, Arena
from neardup.engines.local.limits import resident_bytes


def numbers(start, stop):
    return np.arange(start, stop, dtype=np.uint64)


def test_sets_are_at_the_offset_that_put_returned():
    arena = Arena(None)
    starts = np.array([arena.put(numbers(10 * at, 10 * at + at)) for at in range(20)])
    views = arena.views(starts, np.arange(20))
    assert views.to_pylist() == [list(range(10 * at, 10 * at + at)) for at in range(20)]
    assert arena.is_whole


def test_views_copy_nothing():
    arena = Arena(None)
    start = arena.put(numbers(0, 1000))
    one, two = (arena.views(np.array([start]), np.array([1000])) for _ in range(2))
    assert one.values.buffers()[1].address == two.values.buffers()[1].address


@pytest.mark.parametrize(("limit", "is_whole"), [(8 * 30, True), (8 * 30 - 1, False)])
def test_exceeding_the_limit_drops_all_sets(limit, is_whole):
    arena = Arena(lambda: 3 * limit)
    starts = [arena.put(numbers(0, 10)) for _ in range(3)]
    assert starts == ([0, 10, 20] if is_whole else [0, 10, NOWHERE])
    assert arena.is_whole == is_whole
    assert arena.put(numbers(0, 0)) == (30 if is_whole else NOWHERE)


def test_address_space_is_reserved_but_no_memory_used():
    arena = Arena(lambda: 6 << 30)
    before = resident_bytes()
    arena.put(numbers(0, 10))
    assert resident_bytes() - before < 64 << 20


def test_sets_are_not_kept_if_the_system_refuses_the_reservation():
    arena = Arena(lambda: 1 << 62)
    assert arena.put(numbers(0, 10)) == NOWHERE
    assert not arena.is_whole


def test_available_memory_is_read_once_with_the_first_set():
    asked = []
    arena = Arena(lambda: asked.append(len(asked)) or 10**6)
    assert not asked
    arena.put(numbers(0, 10))
    arena.put(numbers(0, 10))
    assert len(asked) == 1


def test_nothing_is_kept_after_the_arena_is_dropped():
    arena = Arena(None)
    arena.put(numbers(0, 5))
    arena.give_up()
    assert not arena.is_whole
    assert arena.put(numbers(0, 1)) == NOWHERE


def test_an_arena_is_empty_until_a_set_is_added():
    arena = Arena(None)
    assert arena.is_empty
    arena.put(numbers(0, 1))
    assert not arena.is_empty


def test_threads_do_not_overwrite_each_other():
    arena = Arena(None)
    starts = {}

    def fill(worker):
        for at in range(200):
            value = 1000 * worker + at
            starts[value] = arena.put(np.full(at % 17, value, np.uint64))

    threads = [threading.Thread(target=fill, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    values = np.array(sorted(starts))
    views = arena.views(np.array([starts[value] for value in values.tolist()]), values % 1000 % 17)
    assert views.to_pylist() == [[value] * (value % 1000 % 17) for value in values.tolist()]


@pytest.mark.parametrize(
    ("share", "is_whole"), [(0.04, True), (0.1, False), (0.3, False), (0.5, True), (1.0, True)]
)
def test_sets_are_dropped_as_soon_as_they_are_known_not_to_fit(share, is_whole):
    arena = Arena(lambda: 3 * 8 * 1000)
    arena.put(numbers(0, 400))
    arena.expect(share)
    assert arena.is_whole == is_whole


def test_without_a_limit_nothing_is_dropped():
    arena = Arena(None)
    arena.put(numbers(0, 400))
    arena.expect(0.1)
    assert arena.is_whole
