"""Random cases: a corpus in several files, reference documents, and the settings of a run, all from one seed."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from support import oracles
from support.corpora import packed

COLUMNS = ("id", "text", "score", "site")
FORMATS = ("jsonl", "jsonl.gz", "jsonl.zst", "csv", "csv.gz", "parquet", "txt")
BROKEN = {
    "jsonl": (b"{broken", b"[1]", b'{"text": 7}', b'{"text": "\xff"}'),
    "csv": (b'"a"b,c', b"only,three,fields"),
}
READINGS = (
    ("word", 1),
    ("word", 2),
    ("word", 3),
    ("word", 5),
    ("char", 1),
    ("char", 3),
    ("char", 6),
)
THRESHOLDS = (0.3, 0.5, 0.6, 2 / 3, 0.7, 0.75, 0.8, 0.9, 0.95, 1.0)
SCORES = (None, math.nan, 0, 1, 1.0, 2, 2.5, -1, -1.5)
SITES = (None, "x", "y", "1")
# Plenty of memory; shelves and blocks spilled to disk; sorts spilled to disk as well.
ROOMS = (1 << 40, 60_000, 40_000, 1_000)
# The common shingles of a case take a tenth of this.
_MIN_COMMON_ROOM = 1 << 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """A row of a file: a document, or, without a text, a rejected row; `raw` are its bytes if it is malformed."""

    text: str | None = None
    id: str | None = None
    score: float | None = None
    site: str | None = None
    raw: bytes | None = None
    style: int = 0

    @property
    def is_blank(self) -> bool:
        return self.raw is not None and not self.raw.strip()

    def value(self, column: str) -> Any:
        return getattr(self, column)


@dataclasses.dataclass(frozen=True)
class File:
    """A file, whose name determines the format; rows count from 1, including blank ones."""

    name: str
    rows: tuple[Row, ...]

    @property
    def format(self) -> str:
        return self.name.split(".")[1]

    @property
    def compression(self) -> str:
        return "".join(Path(self.name).suffixes[1:])

    def with_rows(self, numbers: Sequence[int]) -> File:
        """Return the file with some of its rows, by number from 0."""
        return File(self.name, tuple(self.rows[number] for number in numbers))

    def table(self) -> pa.Table:
        """Return the rows as a table; for a format of tables only."""
        types = (pa.string(), pa.string(), pa.float64(), pa.string())
        columns = [[row.value(name) for row in self.rows] for name in COLUMNS]
        return pa.table(dict(zip(COLUMNS, map(pa.array, columns, types), strict=True)))

    def encoded(self) -> bytes:
        """Return the bytes of the file, before they are compressed."""
        if self.format == "parquet":
            sink = pa.BufferOutputStream()
            pq.write_table(self.table(), sink, row_group_size=7)
            return sink.getvalue().to_pybytes()
        if self.format == "txt":
            return "".join(row.text or "" for row in self.rows).encode()
        header = b"id,text,score,site\n" if self.format == "csv" else b""
        return header + b"".join(map({"csv": _csv, "jsonl": _json_line}[self.format], self.rows))

    def write(self, folder: Path) -> Path:
        """Write the file into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / self.name
        path.write_bytes(packed(self.encoded(), self.compression))
        return path


def _line_end(row: Row) -> bytes:
    return b"\r\n" if row.style % 3 == 0 else b"\n"


def _json_line(row: Row) -> bytes:
    if row.raw is not None:
        return row.raw + _line_end(row)
    values = {name: row.value(name) for name in COLUMNS}
    if row.score is not None and math.isnan(row.score):  # JSON has no NaN
        values["score"] = None
    names = sorted(values, reverse=row.style % 5 == 0)
    spelled = json.dumps({name: values[name] for name in names}, ensure_ascii=row.style % 2 == 0)
    return spelled.encode() + _line_end(row)


def _csv(row: Row) -> bytes:
    if row.raw is not None:
        return row.raw + _line_end(row)
    line = io.StringIO()
    quoting = csv.QUOTE_ALL if row.style % 2 else csv.QUOTE_MINIMAL
    writer = csv.writer(line, quoting=quoting, lineterminator=_line_end(row).decode())
    writer.writerow([row.value(name) for name in COLUMNS])
    return line.getvalue().encode()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """One run: the files of the input in their order, the files to go against, and the settings.

    old_is_run   the input goes against a finished run on the old files
    in_files     it runs on files as well, which takes longer
    batch_bytes  how files are cut, as part_bytes
    rooms        memory of a first and a second run, as threads
    lists_twice  the second run lists pairs too
    listing      the ending of a file that lists pairs alone, if one is asked for
    kills        at which change on disk a run is killed, start by start
    """

    seed: int
    files: tuple[File, ...]
    old: tuple[File, ...]
    settings: dict[str, Any]
    old_is_run: bool
    in_files: bool
    batch_bytes: int
    part_bytes: int
    rooms: tuple[int, int]
    threads: tuple[int, int]
    lists_twice: bool
    listing: str | None
    kills: tuple[int, ...]

    def smaller(self) -> Iterator[Case]:
        """Yield the case without some of its rows, files or kills: half of a file first, a single row last."""
        for side in ("files", "old"):
            files: tuple[File, ...] = getattr(self, side)
            for at in range(len(files)) if len(files) > 1 or side == "old" else ():
                yield dataclasses.replace(self, **{side: files[:at] + files[at + 1 :]})
            for at, file in enumerate(files):
                if file.format == "txt":  # the file is a single row
                    continue
                for numbers in _fewer(len(file.rows)):
                    changed = (*files[:at], file.with_rows(numbers), *files[at + 1 :])
                    yield dataclasses.replace(self, **{side: changed})
        for at in range(len(self.kills)):
            yield dataclasses.replace(self, kills=self.kills[:at] + self.kills[at + 1 :])

    def num_rows(self) -> int:
        return sum(len(file.rows) for file in (*self.files, *self.old))

    def __str__(self) -> str:
        lines = [
            f"settings {self.settings}, rooms {self.rooms}, threads {self.threads}, kills {self.kills}"
        ]
        lines += [
            f"against{' a finished run of' if self.old_is_run else ''} {file}" for file in self.old
        ]
        return "\n".join([*lines, *map(str, self.files)])


def _fewer(number: int) -> Iterator[list[int]]:
    size = number // 2
    while size:
        for first in range(0, number, size):
            yield [at for at in range(number) if not first <= at < first + size]
        size //= 2


def random_case(seed: int) -> Case:
    """Return the case of a seed."""
    rng = random.Random(seed)
    num_own = rng.choice([1, 2, 3, 5, 8, 13, 20, 30, 45, 90])
    num_old = rng.choice([0, 0, 0, 0, 1, 2, 5, 12, 20])
    texts = _texts(rng, num_own + num_old)
    settings = _settings(rng, texts)
    batch_bytes = rng.choice([1, 300, 1 << 22])
    if batch_bytes < 1 << 22:  # in JSON Lines, default columns are searched only in the first batch
        settings["id_column"] = "id"
    has_columns = {"group_column", "id_column"} & settings.keys() or ":" in settings["keep"]
    forms = [form for form in FORMATS if form != "txt" or not has_columns]
    files = _files(rng, texts[num_old:], "n", forms)
    rng.shuffle(files)
    if num_own + num_old >= 50:
        settings |= _common(random.Random(~seed), has_site="group_column" in settings)
    return Case(
        seed=seed,
        files=tuple(files),
        old=tuple(_files(rng, texts[:num_old], "o", forms)),
        settings=settings,
        old_is_run=rng.random() < 0.4,
        in_files=num_old > 0 or rng.random() < 0.3,
        batch_bytes=batch_bytes,
        part_bytes=rng.choice([200, 2000, 1 << 26]),
        rooms=_rooms(rng, settings),
        threads=(rng.choice([1, 1, 1, 2]), rng.choice([1, 1, 2, 3])),
        lists_twice=rng.random() < 0.5,
        listing=rng.choice([None, None, None, "parquet", "jsonl", "csv"]),
        kills=tuple(rng.randrange(1, 90) for _ in range(rng.choice([1, 1, 2, 5])))
        if rng.random() < 0.3
        else (),
    )


def _texts(rng: random.Random, number: int) -> list[str]:
    vocabulary = oracles.WORDS.split()
    if rng.random() < 0.6:  # few words, so that many texts are nearly the same
        vocabulary = rng.sample(vocabulary, rng.choice([3, 6, 12]))
    return oracles.random_corpus(rng.randrange(1 << 30), number, vocabulary)


def _settings(rng: random.Random, texts: Sequence[str]) -> dict[str, Any]:
    unit, size = rng.choice(READINGS)
    settings: dict[str, Any] = {"unit": unit, "size": size}
    settings |= {
        name: True for name in ("multiset", "fold_numbers", "collapse_empty") if rng.random() < 0.25
    }
    settings |= {"fold_accents": True} if rng.random() < 0.15 else {}
    settings |= {"normalise": "nfkc"} if rng.random() < 0.15 else {}
    settings["threshold"] = _threshold(rng, texts, settings)
    settings["keep"] = rng.choice(["first", "first", "last", "longest", "max:score", "min:score"])
    settings["cluster"] = rng.choice(["leader", "leader", "components"])
    if rng.random() < 0.3:
        settings["per_cluster"] = rng.choice([2, 2, 3, 5, 100])
    if settings["cluster"] == "leader" and rng.random() < 0.4:
        settings["only_against"] = True
    if rng.random() < 0.25:
        settings["group_column"] = "site"
    if rng.random() < 0.3:
        settings["seed"] = rng.randrange(1 << 20)
    method = rng.choice(["exact", "exact", "lsh", "lsh", "bands", "auto"])
    if method == "bands":
        rows = rng.choice([1, 1, 2, 4])
        settings |= {
            "rows": rows,
            "bands": rng.choice([1, 4, 16, 32]),
            "num_perm": rng.choice([128, 256]),
        }
        settings |= {
            "sketch": rng.choice(["fast", "minhash"]),
            "signature_filter": rng.random() < 0.5,
        }
        method = "lsh"
    elif method == "lsh":
        settings["recall"] = rng.choice([0.5, 0.9, 0.99])
    return settings | {"method": method}


def _rooms(rng: random.Random, settings: dict[str, Any]) -> tuple[int, int]:
    """Return the memory of two runs; common shingles must fit into it, or the run says so."""
    least = _MIN_COMMON_ROOM if "ignore_common" in settings else 0
    return max(least, rng.choice(ROOMS)), max(least, rng.choice(ROOMS))


def _common(rng: random.Random, *, has_site: bool) -> dict[str, Any]:
    """Settings about common shingles, which only groups of 50 documents have."""
    if rng.random() < 0.3:
        return {}
    settings: dict[str, Any] = {"ignore_common": rng.choice([0.02, 0.05, 0.1, 0.3])}
    if has_site and rng.random() < 0.3:
        settings["common_by"] = "site"
    return settings


def _threshold(rng: random.Random, texts: Sequence[str], settings: dict[str, Any]) -> float:
    """Return a common threshold, or one that a pair of documents just meets or just misses."""
    names = ("unit", "size", "multiset", "fold_numbers", "normalise", "fold_accents")
    sets = [
        oracles.shingles(text, **{name: settings[name] for name in names if name in settings})
        for text in texts
    ]
    pairs = [rng.choices(sets, k=2) for _ in range(20)]
    near = [similarity for pair in pairs if 0.25 <= (similarity := oracles.jaccard(*pair)) < 1]
    if not near or rng.random() < 0.5:
        return rng.choice(THRESHOLDS)
    return rng.choice([near[0], near[0], math.nextafter(near[0], 1), math.nextafter(near[0], 0)])


def _files(
    rng: random.Random, texts: Sequence[str], prefix: str, forms: Sequence[str]
) -> list[File]:
    """Put texts into files of random formats."""
    files: list[File] = []
    waiting = list(texts)
    while waiting:
        form = rng.choice(forms)
        taken = 1 if form == "txt" else rng.randrange(1, len(waiting) + 1)
        rows = [_document(rng, text) for text in waiting[:taken]]
        del waiting[:taken]
        if form == "txt":
            rows = [Row(text=rows[0].text)]
        elif rng.random() < 0.5:
            rows = list(_with_others(rng, rows, form.split(".")[0]))
        files.append(File(f"{prefix}{len(files):02}.{form}", tuple(rows)))
    return files


def _document(rng: random.Random, text: str) -> Row:
    return Row(
        text=text,
        id=rng.choice([None, f"d{rng.randrange(1 << 20)}", "same"]),
        score=rng.choice(SCORES),
        site=rng.choice(SITES),
        style=rng.randrange(30),
    )


def _with_others(rng: random.Random, rows: Sequence[Row], form: str) -> Iterator[Row]:
    """Insert rows that are not documents: blank ones, broken ones, ones without a text."""
    for row in rows:
        while rng.random() < 0.15:
            other = rng.choice(["null", "blank", "broken"]) if form == "jsonl" else form
            if other in ("null", "parquet"):
                yield dataclasses.replace(_document(rng, ""), text=None)
            else:
                raw = b"" if other == "blank" else rng.choice(BROKEN[form])
                yield Row(raw=raw, style=rng.randrange(30))
        yield row
