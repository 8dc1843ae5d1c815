"""Ctrl-C at any moment: a change is made or not, nothing acknowledged is lost, and the index stays usable."""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import itertools
import random
import shutil
import signal
import sys
import threading
from pathlib import Path

import pytest

import neardup.index
from neardup import Index
from neardup.index import folder_view, merge_thread, segment
from support.index_texts import texts

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


def is_in_destructor(frame):
    """Whether Python would ignore what is raised here, beyond a message that pytest calls an error."""
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is not None


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
        if not frame.f_code.co_filename.startswith(PACKAGE) or is_in_destructor(frame):
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
    """Changes an index, and knows what it must hold: `sure`, and `unsure` what an interrupted change may have left.

    other: an index that is merged into it.
    """

    def __init__(self, index, other):
        self.index = index
        self.other = other
        self.snapshot_path = index.path.with_name("snapshot")
        self.sure = set()
        self.unsure = set()
        self.count = 0
        self.kinds = [
            self.insert,
            self.insert_many,
            self.remove,
            self.replace,
            self.compact,
            self.merge,
            self.snapshot,
        ]

    def expect(self, added=(), removed=()):
        """Note what is about to change; return a function that notes that it was acknowledged."""
        self.unsure = set(added) | set(removed)
        self.sure -= self.unsure

        def acknowledge():
            self.unsure = set()
            self.sure |= set(added)

        return acknowledge

    def settle(self):
        """Take over what an interrupted change has left; a snapshot is complete or absent."""
        held = set(self.index.ids())
        assert self.sure <= held <= self.sure | self.unsure
        self.sure = held
        self.unsure = set()
        if self.snapshot_path.exists():
            with Index.open(self.snapshot_path, read_only=True) as copied:
                assert (copied.check(), set(copied.ids())) == ([], held)
            # Deleted under another name, because signals interrupt this, too.
            checked = self.snapshot_path.with_name("checked")
            shutil.rmtree(checked, ignore_errors=True)
            self.snapshot_path.rename(checked)

    def shrink(self):
        """Keep the index small, so that the number of lines of a change stays the same."""
        self.forget_merged()
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
        with self.all_or_none(batch):
            self.index.insert_many(batch)

    @contextlib.contextmanager
    def all_or_none(self, batch):
        """Let documents be stored together."""
        before = set(self.sure)
        acknowledge = self.expect(added=batch)
        try:
            yield
        except KeyboardInterrupt:
            held = set(self.index.ids()) - before
            assert held in (set(), set(batch)), "a part of a batch was stored"
            raise
        acknowledge()

    def merge(self):
        self.forget_merged()
        with self.all_or_none(set(self.other.ids())):
            self.index.merge(self.other)

    def forget_merged(self):
        """Remove what was merged, so that it can be merged again."""
        merged = sorted(self.sure & set(self.other.ids()))
        if merged:
            acknowledge = self.expect(removed=merged)
            self.index.remove(merged)
            acknowledge()

    def snapshot(self):
        self.index.snapshot(self.snapshot_path)

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


@contextlib.contextmanager
def driven(path, durability):
    """Create a small index to be changed, and another one to be merged into it."""
    settings = {"durability": durability, "size": 2, "num_perm": 16, "bands": 4, "rows": 4}
    with (
        Index.create(path.with_name("other"), **settings) as other,
        Index.create(path, **settings) as index,
    ):
        other.insert_many(texts(5, seed=0, length=12))
        yield Driver(index, other)


def interrupt_often(path, every):
    """Interrupt every kind of change at every nth of its lines; return how many interrupts there were."""
    interrupted = 0
    with driven(path, "fast") as driver:
        index = driver.index
        driver.insert_many()
        for step in driver.kinds:
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
        with driven(path, "full") as driver:
            index = driver.index
            steps = itertools.cycle(driver.kinds)
            interrupted = 0
            driver.insert_many()
            while interrupted < times:
                # Again after a while: Python ignores what a signal raises in a destructor.
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0005, 0.02), 0.5)
                try:
                    for step in steps:
                        step()
                        driver.settle()
                        driver.forget_merged()
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


# A signal may arrive in a destructor, too; what it raises there is ignored, which pytest calls an error.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_signals_at_random_moments_lose_nothing(tmp_path):
    interrupt_by_signals(tmp_path / "i", 40, seed=1)


@pytest.mark.long
@pytest.mark.slow("waits for 500 signals")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_500_signals_at_random_moments_lose_nothing(tmp_path):
    interrupt_by_signals(tmp_path / "i", 500, seed=2)


def collect():
    """Collect what was dropped, once the thread that merges has ended."""
    for thread in threading.enumerate():
        if thread.name == "neardup-merging":
            thread.join()
    gc.collect()


@pytest.mark.parametrize("is_dropped", [False, True])
def test_after_an_interrupted_close_an_index_can_be_opened_for_writing(tmp_path, is_dropped):
    path = tmp_path / "i"
    Index.create(path, size=2, num_perm=16, bands=4, rows=4).close()
    for number in itertools.count(1, 2):
        index = Index.open(path, timeout=0, durability="fast")
        index.put("a", f"text number {number}")
        interrupt = InterruptAt(number)
        with interrupt:
            index.close()
        if not is_dropped:
            index.close()
        del index
        collect()
        if interrupt.left > 0:
            break
    assert number > 30


def test_after_an_interrupted_opening_an_index_can_be_opened_for_writing(tmp_path):
    Index.create(tmp_path / "i", size=2, num_perm=16, bands=4, rows=4).close()
    for number in itertools.count(1, 17):
        interrupt = InterruptAt(number)
        with interrupt:
            Index.open(tmp_path / "i", timeout=0)
        collect()
        if interrupt.left > 0:
            break
    assert number > 200


def test_an_index_whose_thread_has_ended_can_be_dropped_without_being_closed(tmp_path):
    index = Index.create(tmp_path / "i", size=2, num_perm=16, bands=4, rows=4)
    index.insert_many(texts(40, seed=1))
    del index
    collect()
    Index.open(tmp_path / "i", timeout=0).close()


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


class InterruptedAfterCommit:
    """A connection to SQLite on which an interrupt comes as the first COMMIT returns."""

    def __init__(self, connection):
        self._connection = connection
        self._is_due = True

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def execute(self, statement, *values):
        cursor = self._connection.execute(statement, *values)
        if statement == "COMMIT" and self._is_due:
            self._is_due = False
            raise KeyboardInterrupt
        return cursor


@pytest.mark.parametrize(
    ("act", "num_documents"),
    [(lambda index: index.insert_many(texts(9, seed=3)), 27), (Index.compact, 18)],
)
def test_new_files_stay_when_an_interrupt_comes_as_the_commit_that_names_them_returns(
    tmp_path, act, num_documents
):
    with Index.create(tmp_path / "i") as index:
        for seed in (1, 2):
            index.insert_many(texts(9, seed=seed))
        index._store.finish_merging()
        writer = index._store._writer
        index._store._writer = InterruptedAfterCommit(writer)
        with pytest.raises(KeyboardInterrupt):
            act(index)
        index._store._writer = writer
        assert len(index) == num_documents
        assert index.check() == []
        assert len(index.query_many(texts(9, seed=1), k=1)) == 9


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
