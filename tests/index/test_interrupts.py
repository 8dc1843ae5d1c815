"""Ctrl-C at any moment: a change is made or not, nothing acknowledged is lost, and the index stays usable."""

from __future__ import annotations

import ast
import functools
import itertools
import random
import signal
import sys
from pathlib import Path

import pytest

import neardup.index
from neardup import Index
from neardup.index import folder_view, merge_thread, segment
from support.index_texts import texts

# Python ignores what an interrupt raises in a destructor, and pytest would call it an error.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

PACKAGE = str(Path(neardup.index.__file__).parent)


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch):
    monkeypatch.setattr(folder_view, "UNFLUSHED_DOCS", 4)
    monkeypatch.setattr(merge_thread, "TIER", 2)


@functools.cache
def lines_without_signals(file):
    """The lines of a file on which `with` and `try` stand, where Python never raises what a signal raises.

    They are traced all the same, `with` also when its block ends, before a lock is released.
    """
    nodes = list(ast.walk(ast.parse(Path(file).read_text("utf-8"))))
    heads = {node.lineno for node in nodes if isinstance(node, ast.Try)}
    for node in nodes:
        if isinstance(node, ast.With):
            heads |= set(range(node.lineno, node.body[0].lineno))
    return heads


class InterruptAt:
    """Raise KeyboardInterrupt at the nth line that runs in the package of the index, and only once."""

    def __init__(self, number):
        self.left = number

    def __enter__(self):
        sys.settrace(self.trace)
        return self

    def __exit__(self, kind, *_):
        sys.settrace(None)
        return kind is KeyboardInterrupt

    def trace(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line" and frame.f_lineno not in lines_without_signals(
            frame.f_code.co_filename
        ):
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.trace


class Driver:
    """Changes an index, and knows what it must hold: `sure`, and `unsure` what an interrupted change may have left."""

    def __init__(self, index):
        self.index = index
        self.sure = set()
        self.unsure = set()
        self.count = 0
        self.steps = itertools.cycle(
            [self.insert, self.insert_many, self.remove, self.replace, self.compact]
        )

    def expect(self, added=(), removed=()):
        """Note what is about to change; return a function that notes that it was acknowledged."""
        self.unsure = set(added) | set(removed)
        self.sure -= self.unsure

        def acknowledge():
            self.unsure = set()
            self.sure |= set(added)

        return acknowledge

    def settle(self):
        """Take over what an interrupted change has left."""
        held = set(self.index.ids())
        assert self.sure <= held <= self.sure | self.unsure
        self.sure = held
        self.unsure = set()

    def shrink(self):
        """Keep the index small, so that the number of lines of a change stays the same."""
        if len(self.sure) > 40:
            self.index.remove(sorted(self.sure)[10:])
            self.sure = set(sorted(self.sure)[:10])
            self.index.compact()

    def insert(self):
        self.count += 1
        acknowledge = self.expect(added=[f"one-{self.count}"])
        self.index.insert(
            f"one-{self.count}", f"text number {self.count} that nothing else in here repeats"
        )
        acknowledge()

    def insert_many(self):
        self.count += 1
        batch = texts(6, seed=self.count, length=12)
        before = set(self.sure)
        acknowledge = self.expect(added=batch)
        try:
            self.index.insert_many(batch)
        except KeyboardInterrupt:
            held = set(self.index.ids()) - before
            assert held in (set(), set(batch)), "a part of a batch was stored"
            raise
        acknowledge()

    def remove(self):
        gone = sorted(self.sure)[:2]
        acknowledge = self.expect(removed=gone)
        self.index.remove(gone)
        acknowledge()

    def replace(self):
        if not self.sure:
            self.insert()
        name = max(self.sure)
        self.index.replace(name, f"another text for {name}, the {self.count}th of them")

    def compact(self):
        self.index.compact()


def interrupt_often(path, every):
    """Interrupt every kind of change at every nth of its lines; return how many interrupts there were."""
    interrupted = 0
    with Index.create(path, durability="fast", size=2, num_perm=16, bands=4, rows=4) as index:
        driver = Driver(index)
        driver.insert_many()
        for step in (
            driver.insert,
            driver.insert_many,
            driver.remove,
            driver.replace,
            driver.compact,
        ):
            for number in itertools.count(1, every):
                interrupt = InterruptAt(number)
                with interrupt:
                    step()
                driver.settle()
                driver.shrink()
                assert (
                    index.query("text number 1 that nothing else in here repeats", k=1) is not None
                )
                if interrupt.left > 0:  # the whole change ran
                    break
                interrupted += 1
                if number % (50 * every) == 1:
                    assert index.check() == []
        assert index.check() == []
    with Index.open(path) as index:
        assert index.check() == []
        assert set(index.ids()) == driver.sure
        names = {segment.name for segment in index._store.read(lambda view: view.tables.segments())}
        assert {file.name for file in (path / "runs").iterdir()} == names
    return interrupted


def test_an_interrupt_in_any_part_of_a_change_leaves_it_made_or_not_made(tmp_path):
    assert interrupt_often(tmp_path / "i", every=61) > 50


@pytest.mark.long
@pytest.mark.slow("interrupts every line of every kind of change")
def test_an_interrupt_at_any_line_of_a_change_leaves_it_made_or_not_made(tmp_path):
    assert interrupt_often(tmp_path / "i", every=1) > 1000


def interrupt_by_signals(path, times, seed):
    """Change an index while signals arrive at random moments, as Ctrl-C does; check it after each."""
    draw = random.Random(seed)

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        with Index.create(path, size=2, num_perm=16, bands=4, rows=4) as index:
            driver = Driver(index)
            interrupted = 0
            driver.insert_many()
            while interrupted < times:
                # Again after a while: Python ignores what a signal raises in a destructor.
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0005, 0.02), 0.5)
                try:
                    for step in driver.steps:
                        step()
                        driver.settle()
                except KeyboardInterrupt:
                    interrupted += 1
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                driver.settle()
                if interrupted % 10 == 0:
                    assert index.check() == []
        with Index.open(path) as index:
            assert (index.check(), set(index.ids())) == ([], driver.sure)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_signals_at_random_moments_lose_nothing(tmp_path):
    interrupt_by_signals(tmp_path / "i", 40, seed=1)


@pytest.mark.long
@pytest.mark.slow("waits for 500 signals")
def test_500_signals_at_random_moments_lose_nothing(tmp_path):
    interrupt_by_signals(tmp_path / "i", 500, seed=2)


def test_files_of_a_change_stay_once_it_was_committed_whatever_is_raised_afterwards(
    tmp_path, monkeypatch
):
    with Index.create(tmp_path / "i") as index:
        with monkeypatch.context() as patch:

            def interrupted(_):
                raise KeyboardInterrupt

            patch.setattr("neardup.index.disk_sync.CommitLog.add", interrupted)
            with pytest.raises(KeyboardInterrupt):
                index.insert_many(texts(9, seed=1))
        assert len(index) == 9
        assert index.check() == []


def test_a_change_begins_anew_after_an_interrupt_that_left_a_transaction_open(tmp_path):
    with Index.create(tmp_path / "i") as index:
        index._store._writer.execute(
            "BEGIN IMMEDIATE"
        )  # as if interrupted twice: in the change, and while undoing it
        index.insert("a", "a text after the interrupt")
        assert list(index.ids()) == ["a"]


def test_a_descriptor_is_never_closed_twice(tmp_path, monkeypatch):
    closed = []
    close = segment.os.close

    def close_and_interrupt(file):
        closed.append(file)
        close(file)
        if len(closed) == 1:
            raise KeyboardInterrupt

    with Index.create(tmp_path / "i") as index:
        layout = index._settings.layout
        writer = segment.SegmentWriter(tmp_path / "a.run", 0, 0, 0, layout)
        monkeypatch.setattr(segment.os, "close", close_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            writer._close()
        writer.abandon()
        monkeypatch.undo()
    assert len(closed) == len(set(closed)) == 1
