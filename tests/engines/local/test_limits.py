"""The memory limit of a run: the requested one, or half of the free memory, also in a control group."""

from __future__ import annotations

import numpy as np
import pytest

from neardup.engines.local import limits as memory
from neardup.engines.local.limits import MIN_ROOM, Memory, free_bytes, resident_bytes
from neardup.io import free_memory


def test_the_memory_limit_is_the_requested_one():
    assert Memory(10**9).limit == 10**9


def test_the_default_limit_is_half_of_the_free_memory(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**9)
    assert Memory().limit == 5 * 10**8


def test_remaining_memory_excludes_what_the_process_uses(monkeypatch):
    monkeypatch.setattr(memory, "resident_bytes", lambda: 3 * 10**8)
    assert Memory(10**9).room() == 7 * 10**8


@pytest.mark.parametrize("limit", [0, 10**6, 3 * 10**8 + MIN_ROOM - 1])
def test_a_run_close_to_its_limit_still_gets_some_memory(monkeypatch, limit):
    monkeypatch.setattr(memory, "resident_bytes", lambda: 3 * 10**8)
    assert Memory(limit).room() == MIN_ROOM


def test_memory_held_by_the_process_is_counted():
    before = resident_bytes()
    held = np.ones(50 << 20, np.uint8)
    assert held.nbytes * 0.8 < resident_bytes() - before < held.nbytes * 1.5


@pytest.fixture
def group(tmp_path, monkeypatch):
    """A control group with the given files."""
    monkeypatch.setattr(free_memory, "_CGROUP", tmp_path)
    monkeypatch.setattr(free_memory, "_system_free_bytes", lambda: 1000)

    def write(**values):
        for name, value in values.items():
            (tmp_path / f"memory.{name}").write_text(f"{value}\n")

    return write


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, 1000),
        ({"max": "max", "current": 5}, 1000),
        ({"max": 700, "current": 100}, 600),
        ({"max": 5000, "current": 100}, 1000),
        ({"max": 700, "current": 800}, 0),
        ({"max": 700}, 1000),
    ],
)
def test_a_control_group_limits_the_free_memory(group, files, free):
    group(**files)
    assert free_bytes() == free


def test_free_memory_comes_from_the_system():
    assert free_bytes() > 10 << 20
