"""Indexes with random damage: each operation does its work or raises an error of ours, and changes no foreign file."""

from __future__ import annotations

import contextlib
import random
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from fuzz import forked, index_mutations
from neardup import Index
from neardup.errors import ConfigError, NearDupError, NotStoredError
from neardup.index import candidates, folder_view, merge_thread, page_requests

# What each kind of index is created with.
KINDS: dict[str, dict[str, Any]] = {
    "text": {"store": "text", "containment": True},
    "shingles": {"store": "shingles"},
    "signature": {"store": "signature"},
    "weighted": {"measure": "weighted"},
    "cosine": {"measure": "cosine", "dimension": 8},
    "hamming": {"measure": "hamming", "dimension": 64},
}
WORDS: Final = "the ferry to the island leaves every morning at nine from the second pier behind the old house".split()
FAR: Final = 4e9
WHERE: Final = {"lang": "de", "day": {"gte": 2}}
# What a child may allocate; the intact indexes need about 100 MB.
SPARE_BYTES: Final = 1 << 30
# How often there is an odd file beside that of SQLite.
FILE_BESIDE_RATIO: Final = 0.06
LOCK_SECONDS: Final = 0.5
# What an error about data names: a file, a row, or what was asked for.
_PLACE: Final = re.compile(
    r"\.sqlite|\.run\b|writer\.lock|\bruns\b|run file|index bad\b|the state"
    r"|documents? number|the id '|no document '|the document cannot"
)


def _content(kind: str, rng: random.Random) -> Any:
    """Return a random document of a kind; many are similar to others."""
    if kind in ("cosine", "hamming"):
        base = np.random.default_rng(rng.randrange(3)).standard_normal(
            64 if kind == "hamming" else 8
        )
        base[rng.randrange(base.size)] *= -1
        return base > 0 if kind == "hamming" else base
    words = WORDS.copy()
    for place in rng.sample(range(len(words)), rng.randrange(5)):
        words[place] = f"word{rng.randrange(9)}"
    if kind == "weighted":
        return {word: float(words.count(word)) for word in words}
    return " ".join(words)


def _contents(kind: str, number: int, seed: int) -> Any:
    rng = random.Random(seed)
    contents = [_content(kind, rng) for _ in range(number)]
    return np.array(contents) if kind in ("cosine", "hamming") else contents


def _make(path: Path, kind: str, *, name: str = "doc") -> None:
    """Create an index with runs, fresh documents, aliases, payloads and times."""
    settings = {"size": 1, "num_perm": 64} if kind in ("text", "shingles", "signature") else {}
    with Index.create(path, durability="fast", threshold=0.5, **settings, **KINDS[kind]) as index:
        for part in range(3):
            index.insert_many(
                _contents(kind, 6, part),
                ids=[f"{name}-{part}-{at}" for at in range(6)],
                payload=[{"lang": "de", "day": day} for day in range(6)],
                expires=[None, None, None, 5.0, FAR, None],
                tag=f"part {part}",
            )
        index.insert_new(f"{name}-alias", _contents(kind, 1, 0)[0], on_duplicate="link")
        index.insert_new(f"{name}-other-alias", _contents(kind, 1, 0)[0], on_duplicate="link")
        for at in range(3):
            index.insert(
                f"{name}-fresh-{at}",
                _contents(kind, 1, 9 + at)[0],
                payload={"lang": "en", "day": at},
                expires=FAR + at,
            )
        index.remove(f"{name}-1-1")


def _set_limits() -> None:
    """Let a few documents make runs, and a few runs be merged; in a child."""
    for module, name, value in (
        (folder_view, "UNFLUSHED_DOCS", 4),
        (merge_thread, "TIER", 3),
        (candidates, "_MIN_FOR_BITMAPS", 2),
    ):
        patch.object(module, name, value).start()


# --- what uses an index; each gets its path and its kind ---


def _read(path: Path, kind: str) -> None:
    with Index.open(path, read_only=True) as index:
        asked = _contents(kind, 4, 0)
        steps: list[Callable[[], object]] = [
            lambda: index.query(asked[0]),
            lambda: index.query(asked[1], k=None, where=WHERE, since=1.0),
            lambda: index.query_many(asked, k=3),
            lambda: index.query_many(_contents(kind, 3, 10), k=1, where={"lang": ["en"]}),
            lambda: index.get("doc-0-1"),
            lambda: index.get("doc-alias"),
            lambda: list(index.ids()),
            lambda: index.get_many(["doc-0-0", "doc-2-1"]),
            index.aliases,
            index.count,
            lambda: index.count(where=WHERE),
            lambda: "doc-2-2" in index,
            lambda: index.known_ids(["doc-0-1", "doc-fresh-0", "doc-alias"]),
            index.info,
        ]
        if KINDS[kind].get("containment"):
            steps.append(lambda: index.query(asked[2], containment=0.5))
            steps.append(lambda: index.query_many(asked, containment=0.9, k=None))
        for step in steps:
            with _ours():
                step()


def _check(path: Path, kind: str) -> None:
    del kind
    with Index.open(path, read_only=True) as index:
        found = index.check()
        assert all(isinstance(what, str) for what in found)


def _export(path: Path, kind: str) -> None:
    del kind
    for file in Path().glob("export.*"):
        file.unlink()
    with Index.open(path, read_only=True) as index:
        for ending in ("jsonl", "csv", "parquet"):
            with _ours():
                index.export(f"export.{ending}")


def _pairs(path: Path, kind: str) -> None:
    del kind
    with Index.open(path, read_only=True) as index, Index.open("intact", read_only=True) as other:
        for one, two in ((index, other), (other, index)):
            with _ours():
                one.pairs(two)


def _merge(path: Path, kind: str) -> None:
    del kind
    with Index.open(path, read_only=True) as index, _open(Path("intact")) as other:
        with _ours():
            other.merge(index)
        damage = other.check()
        assert damage == [], damage


def _snapshot(path: Path, kind: str) -> None:
    del kind
    for name in ("linked", "copied"):
        shutil.rmtree(name, ignore_errors=True)
    with Index.open(path, read_only=True) as index:
        for name, copy in (("linked", False), ("copied", True)):
            with _ours():
                index.snapshot(name, copy=copy)


def _insert(path: Path, kind: str) -> None:
    text = _contents(kind, 1, 20)[0]
    with _open(path) as index:
        for step in (
            lambda: index.insert("new", text, payload={"lang": "fr"}, expires=FAR),
            lambda: index.insert_new("newer", text, on_duplicate="link"),
            lambda: index.insert_new("newest", _contents(kind, 1, 0)[0], on_duplicate="replace"),
            lambda: index.put("doc-0-2", text),
            lambda: index.replace("doc-0-4", text),
        ):
            with _ours():
                step()


def _insert_many(path: Path, kind: str) -> None:
    with _open(path) as index:
        for number, insert in enumerate((index.insert_many, index.insert_new_many, index.put_many)):
            with _ours():
                insert(
                    _contents(kind, 7, 30 + number), ids=[f"more-{number}-{at}" for at in range(7)]
                )
        with _ours():
            index.put_many(_contents(kind, 2, 33), ids=["doc-0-0", "doc-alias"])


def _remove(path: Path, kind: str) -> None:
    del kind
    with _open(path) as index:
        for step in (
            lambda: index.remove(["doc-0-0", "doc-other-alias"]),
            lambda: index.remove(where=WHERE),
            lambda: index.remove("doc-fresh-1"),
        ):
            with _ours():
                step()


def _compact(path: Path, kind: str) -> None:
    del kind
    with _open(path) as index:
        index.compact()


def _repair(path: Path, kind: str) -> None:
    with _open(path) as index:
        index.repair()
        index.query(_contents(kind, 1, 0)[0])


def _open(path: Path) -> Index:
    return Index.open(path, durability="fast", timeout=LOCK_SECONDS)


READING: dict[str, Callable[[Path, str], None]] = {
    "read": _read,
    "check": _check,
    "export": _export,
    "pairs": _pairs,
    "snapshot": _snapshot,
    "merge": _merge,
}
# In a random order.
CHANGING: dict[str, Callable[[Path, str], None]] = {
    "insert": _insert,
    "insert_many": _insert_many,
    "remove": _remove,
    "compact": _compact,
    "repair": _repair,
}


@contextlib.contextmanager
def _ours() -> Iterator[None]:
    """Let errors of ours pass; one about data must name a file or a row."""
    try:
        yield
    except (ConfigError, NotStoredError):
        pass
    except NearDupError as error:
        if not _PLACE.search(str(error)):
            raise AssertionError(f"an error that names no place: {error}") from error


class MutatedIndexes:
    """Checks mutated indexes; `folder` is for their files."""

    def __init__(self, folder: Path) -> None:
        self._made = folder / "made"
        self._case = folder / "case"
        self._made.mkdir()

    def check(self, seed: int) -> str | None:
        """Return how the case of a seed fails, None if it does not."""
        rng = random.Random(seed)
        kind = rng.choice(tuple(KINDS))
        self._warm(kind)
        self._copy(kind)

        def act(tell: forked.Tell) -> None:
            _set_limits()
            is_reference = rng.random() < 0.3
            page_requests.DiskReads.are_expected = lambda _: is_reference  # type: ignore[method-assign]
            for _ in range(rng.choice((1, 1, 1, 2, 3))):
                tell(f"  {index_mutations.mutate(self._case / 'bad', rng)}")
            if rng.random() < FILE_BESIDE_RATIO:
                tell(f"  {index_mutations.add_file(self._case / 'bad', rng)}")
            _use_all(self._case, kind, rng, tell)

        fault = forked.fault_of(act, spare_bytes=SPARE_BYTES)
        return None if fault is None else f"an index of kind {kind}\n{fault}"

    def _warm(self, kind: str) -> None:
        """Make indexes of a kind once, and use them, which compiles and loads what the children need."""
        if (self._made / kind).exists():
            return
        made = forked.fault_of(lambda _: self._make(kind))
        if made is not None:
            raise AssertionError(made)
        self._copy(kind)
        _use_all(self._case, kind, random.Random(1), lambda _: None)

    def _make(self, kind: str) -> None:
        _set_limits()
        _make(self._made / kind, kind)
        _make(self._made / f"{kind} intact", kind, name="other")

    def _copy(self, kind: str) -> None:
        """Copy the indexes of a kind; the victim must stay as it is."""
        if self._case.exists():
            shutil.rmtree(self._case)
        self._case.mkdir()
        shutil.copytree(self._made / kind, self._case / "bad")
        shutil.copytree(self._made / f"{kind} intact", self._case / "intact")
        shutil.copytree(self._made / kind, self._case / "victim")
        (self._case / "victim" / "victim.txt").write_text("a foreign file\n" * 500)

    def close(self) -> None:
        """Nothing runs on."""


def _use_all(case: Path, kind: str, rng: random.Random, tell: forked.Tell) -> None:
    """Use an index in every way; those that change it in a random order."""
    changing = list(CHANGING.items())
    rng.shuffle(changing)
    before = _listed(case / "victim")
    with contextlib.chdir(case), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rejected rows are expected
        for name, use in (*READING.items(), *changing, *READING.items()):
            tell(name)
            with _ours():
                use(Path("bad"), kind)
    assert _listed(case / "victim") == before, "a foreign file was changed"
    known = {
        "bad",
        "intact",
        "victim",
        "linked",
        "copied",
        *(f"export.{end}" for end in ("jsonl", "csv", "parquet")),
    }
    assert {path.name for path in case.iterdir()} <= known, "a file was left outside of the index"


def _listed(folder: Path) -> dict[str, bytes]:
    """Return the contents of the files of a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
