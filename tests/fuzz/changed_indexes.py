"""Random operations on an index against a model, with interrupts, forks, kills, full disks and replaced files."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import signal
import time
import unittest.mock
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from fuzz import forked
from fuzz.index_model import THRESHOLD, Model, RefusedError, Row
from neardup import Index
from neardup.errors import DataError, NearDupError
from neardup.index import folder_view, merge_thread
from neardup.index.sqlite import Tables

WORDS: Final = [f"w{number}" for number in range(14)]
# With one row per band and a band for every slot, similar documents share a bucket except with
# probability 2**-128.
SETTINGS: Final[dict[str, Any]] = {
    "size": 1,
    "threshold": THRESHOLD,
    "bands": 128,
    "rows": 1,
    "signature_filter": False,
    "store": "text",
}
BEGIN: Final = 1.8e9
IDS: Final = [f"id{number}" for number in range(14)]
NUM_STEPS: Final = 40
ON_DUPLICATE: Final = ("skip", "replace", "link", "insert")
# Calls of the system that write or sync, one of which fails for want of space.
WRITES: Final = ("pwrite", "fsync", "fdatasync", "ftruncate")


class WrongError(AssertionError):
    """The index does not hold or answer what the model does."""


class Operation(NamedTuple):
    """One operation: on an index, with an answer; and on the model, with the answer that the index must give."""

    name: str
    act: Callable[[Index], Any]
    expect: Callable[[Model], Any]


class ChangedIndexes:
    """Checks random operations; `folder` is for their files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_warm = False

    def check(self, seed: int) -> str | None:
        """Return how the case of a seed fails, None if it does not."""
        if not self._is_warm:
            _warm(self._folder / "warm")
            self._is_warm = True
        case = self._folder / "case"
        shutil.rmtree(case, ignore_errors=True)
        case.mkdir()
        return forked.fault_of(lambda tell: Walk(case, random.Random(seed), tell).run())

    def close(self) -> None:
        """Nothing runs on."""


def _warm(path: Path) -> None:
    """Use an index once, which compiles and loads what the children need."""
    with Index.create(path, **SETTINGS) as index:
        index.insert_many([" ".join(WORDS[at:]) for at in range(6)], ids=IDS[:6])
        index.query(" ".join(WORDS))
        index.compact()
        index.query(" ".join(WORDS))


class Walk:
    """A sequence of operations on one index, and what it must hold: `model`."""

    def __init__(self, folder: Path, rng: random.Random, tell: forked.Tell) -> None:
        self._folder = folder
        self._rng = rng
        self._tell = tell
        self._path = folder / "index"
        self._number = 0
        self._model = Model()
        self._model.now = BEGIN
        self._durability = rng.choice(("full", "fast"))
        for module, name, values in (
            (folder_view, "UNFLUSHED_DOCS", (2, 4, 8)),
            (folder_view, "_SWEPT_AT_ONCE", (0, 1, 64)),
            (merge_thread, "TIER", (2, 3)),
        ):
            unittest.mock.patch.object(module, name, rng.choice(values)).start()
        time.time = lambda: self._model.now
        self._index = Index.create(self._path, durability=self._durability, **SETTINGS)
        self._reader = Index.open(self._path, read_only=True)

    def run(self) -> None:
        """Make random operations, and compare the index with the model after each."""
        for _ in range(NUM_STEPS):
            kind = self._rng.choices(tuple(_STEPS), tuple(_STEPS.values()))[0]
            kind(self)
            self._compare()
        self._reopen()
        self._compare()
        self._reader.close()
        self._index.close()

    # --- steps ---

    def change(self) -> None:
        """Make a change that nothing disturbs."""
        operation = self._operation()
        self._tell(operation.name)
        before = self._model.copied()
        try:
            expected = operation.expect(self._model)
        except RefusedError:
            self._model = before
            try:
                answer = operation.act(self._index)
            except DataError:
                return
            raise WrongError(f"{answer!r} instead of an error") from None
        _same("the answer", operation.act(self._index), expected)

    def interrupt(self) -> None:
        """Press Ctrl-C at a random moment of a change."""
        seconds = self._rng.choice((0.0005, 0.003, 0.01)) * self._rng.random() + 1e-5
        operation = self._operation()
        self._tell(f"Ctrl-C after {seconds:.5f} s of {operation.name}")
        with contextlib.suppress(KeyboardInterrupt), _interrupted_after(seconds):
            self._try(operation, self._index)
        self._settle(operation)

    def fill_disk(self) -> None:
        """Let one write of a change fail for want of space."""
        operation = self._operation()
        number = self._rng.choice((0, 0, 1, 2, 4, 8, 16))
        self._tell(f"no space for write {number} of {operation.name}")
        with _full_disk(number):
            self._try(operation, self._index)
            with contextlib.suppress(NearDupError):
                self._index._store.finish_merging()
        self._index.close()
        self._open()
        self._settle(operation)

    def kill(self) -> None:
        """Kill a process at a random moment of a change."""
        operation = self._operation()
        seconds = self._rng.choice((0.001, 0.005, 0.02)) * self._rng.random()
        self._tell(f"kill after {seconds:.5f} s of {operation.name}")
        self._index.close()
        was_acknowledged = self._killed_after(seconds, operation)
        self._open()
        self._settle(operation, is_made=was_acknowledged)

    def _killed_after(self, seconds: float, operation: Operation) -> bool:
        """Return whether the process had said that the change was made."""
        said, say = os.pipe()
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                index = self._opened()
                os.write(say, b"1")
                self._try(operation, index)
                os.write(say, b"2")
                time.sleep(60)
            os._exit(1)
        os.close(say)
        os.read(said, 1)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        was_acknowledged = os.read(said, 1) == b"2"
        os.close(said)
        return was_acknowledged

    def fork(self) -> None:
        """Use the index in a forked process, which must be refused."""
        self._tell("fork")
        child = os.fork()
        if not child:
            code = 1
            with contextlib.suppress(BaseException):
                for act in (
                    lambda: self._index.insert("forked", "a b"),
                    lambda: self._index.query("a"),
                    self._ids,
                ):
                    with contextlib.suppress(NearDupError):
                        act()
                        os._exit(2)
                self._index.close()
                code = 0
            os._exit(code)
        _same(
            "the exit code of a forked process",
            os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
            0,
        )

    def _ids(self) -> list[str]:
        return list(self._index.ids())

    def replace_folder(self) -> None:
        """Put another index in the place of the open one for a while."""
        self._tell("another index at the path")
        other = self._new_path()
        with Index.create(other, **SETTINGS) as index:
            index.insert("elsewhere", "some words of another index")
        aside = self._new_path()
        self._path.rename(aside)
        other.rename(self._path)
        _same("ids of the other index", list(self._reader.ids()), ["elsewhere"])
        _same("matches of the other index", self._reader.query(" ".join(WORDS), k=None), [])
        self._must_refuse("writes the index of another path")
        self._path.rename(other)
        aside.rename(self._path)
        self._reopen()

    def remove_lock(self) -> None:
        """Delete the lock file, with which two processes could write."""
        self._tell("writer.lock is deleted")
        (self._path / "writer.lock").unlink()
        self._must_refuse("writes without its lock")
        self._reopen()

    def open_twice(self) -> None:
        """Open the index for writing a second time, which must be refused."""
        self._tell("second writer")
        try:
            second = Index.open(self._path, timeout=0)
        except NearDupError:
            return
        second.close()
        raise WrongError("a second writer was let in")

    def _must_refuse(self, what: str) -> None:
        try:
            self._index.insert("refused", "some words")
        except NearDupError:
            return
        raise WrongError(what)

    def pass_time(self) -> None:
        """Let some documents expire."""
        seconds = self._rng.choice((1.0, 30.0, 100.0))
        self._tell(f"{seconds:g} s pass")
        self._model.pass_time(seconds)

    def reopen(self) -> None:
        """Close and open the index."""
        self._tell("reopen")
        self._reopen()

    def copy(self) -> None:
        """Take a snapshot, which must hold the same; sometimes go on with it."""
        self._tell("snapshot")
        target = self._new_path()
        self._index.snapshot(target, copy=self._rng.random() < 0.5)
        with Index.open(target, read_only=True) as copied:
            _same("damage of the snapshot", copied.check(), [])
            self._compare_with(copied)
        if self._rng.random() < 0.5:
            self._tell("go on with the snapshot")
            self._reader.close()
            self._index.close()
            self._path = target
            self._open()
            self._reader = Index.open(self._path, read_only=True)

    def export(self) -> None:
        """Export all documents, and repair what needs no repair."""
        self._tell("export")
        target = self._folder / f"export-{len(list(self._folder.iterdir()))}.jsonl"
        _same("exported documents", self._index.export(target), len(self._model.documents))
        repair = self._index.repair()
        _same("repairs", (repair.dropped, repair.lost, repair.restored), ([], [], 0))

    # --- what steps share ---

    def _operation(self) -> Operation:
        """Return a random change."""
        make = self._rng.choices(tuple(_OPERATIONS), tuple(_OPERATIONS.values()))[0]
        return make(self)

    @staticmethod
    def _try(operation: Operation, index: Index) -> None:
        """Make a change that may be refused or fail."""
        with contextlib.suppress(NearDupError):
            operation.act(index)

    def _settle(self, operation: Operation, *, is_made: bool = False) -> None:
        """Learn whether a disturbed change was made; is_made: it must have been."""
        after = self._model.copied()
        try:
            operation.expect(after)
        except RefusedError:
            after = self._model.copied()
        found = _content_of(self._index)
        if found == after.content():
            self._model = after
        elif is_made:
            _same("the index after a change that was acknowledged", found, after.content())
        else:
            _same("the index after a change that was not made", found, self._model.content())
        _same("damage", self._index.check(), [])

    def _new_path(self) -> Path:
        self._number += 1
        return self._folder / f"index {self._number}"

    def _open(self) -> None:
        self._index = self._opened()

    def _opened(self) -> Index:
        return Index.open(self._path, durability=self._durability)

    def _reopen(self) -> None:
        self._index.close()
        self._open()
        _same("damage", self._index.check(), [])

    def _compare(self) -> None:
        for index in (self._index, self._reader):
            self._compare_with(index)

    def _compare_with(self, index: Index) -> None:
        _same("the index", _content_of(index), self._model.content())
        _same("the number of documents", len(index), len(self._model.documents))
        text = self._text()
        k = self._rng.choice((1, 3, None))
        found = [(match.doc_id, match.similarity) for match in index.query(text, k=k)]
        _same(f"matches of {text!r}", found, self._model.ranked(text)[:k])

    # --- random values and operations ---

    def _text(self) -> str:
        return " ".join(self._rng.sample(WORDS, self._rng.choice((0, 1, 3, 5, 5, 7))))

    def _row(self, doc_id: str | None = None) -> Row:
        payload = self._rng.choice((None, {"day": self._rng.randrange(3)}))
        expires = self._rng.choice(
            (None, None, None, self._model.now - 1, self._model.now + 50, 4e9)
        )
        return Row(doc_id or self._rng.choice(IDS), self._text(), payload, expires)

    def _rows(self) -> list[Row]:
        count = self._rng.choice((0, 1, 3, 5, 12))
        ids = (
            self._rng.choices(IDS, k=count)
            if self._rng.random() < 0.1
            else self._rng.sample(IDS, count)
        )
        if self._rng.random() < 0.6:
            ids = [doc_id for doc_id in ids if not self._model.is_taken(doc_id)]
        return [self._row(doc_id) for doc_id in ids]

    def insert(self) -> Operation:
        row = self._row()
        return Operation(
            f"insert {row}",
            lambda index: _insert(index, row),
            lambda model: model.insert_many([row]),
        )

    def insert_many(self) -> Operation:
        rows = self._rows()
        tag = self._rng.choice((None, None, "a", "b"))
        return Operation(
            f"insert_many {rows} {tag}",
            lambda index: index.insert_many(**_columns(rows), tag=tag).documents,
            lambda model: model.insert_many(rows, tag),
        )

    def insert_new(self) -> Operation:
        row = self._row()
        kind = self._rng.choice(ON_DUPLICATE)

        def act(index: Index) -> tuple[Any, ...]:
            inserted = index.insert_new(
                row.doc_id, row.text, on_duplicate=kind, payload=row.payload, expires=row.expires
            )
            match = (
                (None, None)
                if inserted.match is None
                else (inserted.match.doc_id, inserted.match.similarity)
            )
            return row.doc_id, inserted.is_new, *match

        return Operation(f"insert_new {row} {kind}", act, lambda model: model.insert_new(row, kind))

    def insert_new_many(self) -> Operation:
        rows = self._rows()
        kind = self._rng.choice(ON_DUPLICATE)
        return Operation(
            f"insert_new_many {rows} {kind}",
            lambda index: [
                tuple(found.values())
                for found in index.insert_new_many(
                    **_columns(rows), on_duplicate=kind
                ).rows.to_pylist()
            ],
            lambda model: [model.insert_new(row, kind) for row in rows],
        )

    def put(self) -> Operation:
        row = self._row()
        return Operation(
            f"put {row}",
            lambda index: index.put(row.doc_id, row.text, payload=row.payload, expires=row.expires),
            lambda model: model.put(row),
        )

    def put_many(self) -> Operation:
        rows = self._rows()
        return Operation(
            f"put_many {rows}",
            lambda index: index.put_many(**_columns(rows)).rows.column("outcome").to_pylist(),
            lambda model: [model.put(row) for row in rows],
        )

    def replace(self) -> Operation:
        row = self._row()
        return Operation(
            f"replace {row}", lambda index: _replace(index, row), lambda model: model.replace(row)
        )

    def remove(self) -> Operation:
        ids = self._rng.sample(IDS, self._rng.randrange(5))
        return Operation(
            f"remove {ids}", lambda index: index.remove(ids), lambda model: model.remove(ids)
        )

    def remove_where(self) -> Operation:
        where = {"day": self._rng.randrange(3)}
        return Operation(
            f"remove where {where}",
            lambda index: index.remove(where=where),
            lambda model: model.remove_where(where),
        )

    def compact(self) -> Operation:
        return Operation("compact", lambda index: index.compact(), lambda _: None)

    def merge(self) -> Operation:
        """Merge an index that is made for it."""
        path = self._new_path()
        other = Model()
        other.now = self._model.now
        rows = [
            self._row(f"{doc_id}{self._rng.choice(('', 'm'))}")
            for doc_id in self._rng.sample(IDS, 5)
        ]
        linked = Row("alias", rows[0].text)
        with Index.create(path, durability="fast", **SETTINGS) as index:
            index.insert_many(**_columns(rows))
            index.insert_new(*linked[:2], on_duplicate="link")
        other.insert_many(rows)
        other.insert_new(linked, "link")

        def act(index: Index) -> int:
            with Index.open(path, read_only=True) as read:
                return index.merge(read)

        return Operation(f"merge {rows} {linked}", act, lambda model: model.merge(other))


_STEPS: Final[dict[Callable[[Walk], None], int]] = {
    Walk.change: 30,
    Walk.interrupt: 8,
    Walk.fill_disk: 4,
    Walk.kill: 3,
    Walk.fork: 1,
    Walk.replace_folder: 1,
    Walk.remove_lock: 1,
    Walk.open_twice: 1,
    Walk.pass_time: 4,
    Walk.reopen: 2,
    Walk.copy: 2,
    Walk.export: 1,
}
_OPERATIONS: Final[dict[Callable[[Walk], Operation], int]] = {
    Walk.insert: 4,
    Walk.insert_many: 5,
    Walk.insert_new: 4,
    Walk.insert_new_many: 4,
    Walk.put: 3,
    Walk.put_many: 4,
    Walk.replace: 2,
    Walk.remove: 3,
    Walk.remove_where: 1,
    Walk.compact: 2,
    Walk.merge: 1,
}


def _insert(index: Index, row: Row) -> int:
    index.insert(row.doc_id, row.text, payload=row.payload, expires=row.expires)
    return 1


def _replace(index: Index, row: Row) -> None:
    index.replace(row.doc_id, row.text, payload=row.payload, expires=row.expires)


def _columns(rows: list[Row]) -> dict[str, Any]:
    """Return the arguments of a batch."""
    return {
        "source": [row.text for row in rows],
        "ids": [row.doc_id for row in rows],
        "payload": [row.payload for row in rows],
        "expires": [row.expires for row in rows],
    }


def _content_of(index: Index) -> tuple[Any, ...]:
    """Return what `Model.content` returns."""
    stored = index.get_many(list(index.ids()))
    documents = [
        (doc_id, held.text, held.payload, held.expires, held.times_matched)
        for doc_id, held in stored.items()
    ]
    return documents, index.aliases(), index._store.read(lambda view: _tags_of(view.tables))


def _tags_of(tables: Tables) -> set[str]:
    return {tag for (tag,) in tables.connection.execute("SELECT tag FROM tags")}


def _same(what: str, found: Any, expected: Any) -> None:
    if found != expected:
        raise WrongError(f"{what}\n  found    {found!r:.1500}\n  expected {expected!r:.1500}")


@contextlib.contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt after some time, as Ctrl-C does."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(forked.WAIT_SECONDS)


@contextlib.contextmanager
def _full_disk(number: int) -> Iterator[None]:
    """Let the n-th write or sync of this process, and all after it, fail for want of space."""
    left = iter(range(number))

    def failing(call: Callable[..., Any]) -> Callable[..., Any]:
        def act(*arguments: Any) -> Any:
            if next(left, None) is None:
                raise OSError(errno.ENOSPC, "No space left on device")
            return call(*arguments)

        return act

    with contextlib.ExitStack() as patches:
        for name in WRITES:
            patches.enter_context(unittest.mock.patch.object(os, name, failing(getattr(os, name))))
        yield
