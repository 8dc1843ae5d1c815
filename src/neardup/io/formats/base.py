"""What every file format reads and writes: the words between files and documents.

A format is a module of this folder with the four functions of `Format`; `formats.py` names them all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.config import Config

# Bytes of text in one batch of records, about; a longer document is a batch of its own.
BATCH_BYTES: Final = 4 << 20
# Rows in one batch at most, however short they are.
BATCH_ROWS: Final = 1 << 14
# Bytes of a file in one part, about: the unit of reading in parallel and of going on after a stop.
PART_BYTES: Final = 64 << 20
# Items of a set travel as one text, each ended by this character.
ITEM_END: Final = "\x1f"
# What --mark adds to every row.
MARK_COLUMNS: Final = pa.schema(
    [
        pa.field("neardup_kept", pa.bool_()),
        pa.field("neardup_kept_id", pa.string()),
        pa.field("neardup_similarity", pa.float64()),
    ]
)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class InputFile:
    """A file of documents.

    path: what opens it, a local path or an fsspec address; name: its path below kept/, and its name in every table;
    compression: "gzip", "zstd" or None; modified: nanoseconds, or what a remote filesystem tells instead;
    encoding: of its text, None for UTF-8;
    identity: what else tells a local file from one put in its place, "" where that is not known;
    head: what `streams.head_of` says of it, once a run has begun.
    """

    path: str
    name: str
    format: str
    compression: str | None
    size: int
    modified: str
    encoding: str | None = None
    identity: str = ""
    head: str = ""

    @property
    def is_one_stream(self) -> bool:
        """Whether it can be read only from its beginning, because it is decompressed or decoded on the way."""
        return self.compression is not None or self.encoding is not None

    def as_found(self) -> dict[str, Any]:
        """Return what must be the same for a later start to go on; the identity may change, as with a restored copy."""
        names = (field.name for field in dataclasses.fields(self))
        return {name: getattr(self, name) for name in names if name != "identity"}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """The columns of one file that are taken; several text columns are joined by a newline."""

    text: tuple[str, ...]
    items: str | None = None
    vector: str | None = None
    id: str | None = None
    score: str | None = None
    group: str | None = None

    def taken(self) -> dict[str, str]:
        """Return which columns are taken for what."""
        chosen = {"text": " + ".join(self.text), "items": self.items, "vector": self.vector}
        chosen |= {"id": self.id, "keep": self.score, "group": self.group}
        return {role: name for role, name in chosen.items() if name}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Records:
    """Consecutive rows of a file.

    num_rows: rows covered, those that are blank or rejected too;
    rows: which of them are documents, counted from 0 at the first of the batch;
    texts: large_string, one a document, no null, valid UTF-8, or large_binary, what a measure has instead;
    ids: string, null where the document has none;
    scores: what keep="max:COLUMN" orders by, as scores.SCORES; groups: string; rejected: (row, reason);
    found: the names of `Columns` that at least one row has, null or not.
    """

    num_rows: int
    rows: npt.NDArray[np.int64]
    texts: pa.Array
    ids: pa.Array
    scores: pa.Array | None
    groups: pa.Array | None
    rejected: list[tuple[int, str]]
    found: frozenset[str]


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Verdicts:
    """What a run says of the rows of one file.

    is_kept: one a row of the file; False for removed, rejected and blank rows;
    removed: the removed rows, ascending from 0; kept_ids: string, who stands for each; similarities: float64.
    """

    is_kept: npt.NDArray[np.bool_]
    removed: npt.NDArray[np.int64]
    kept_ids: pa.Array
    similarities: npt.NDArray[np.float64]


class Format(Protocol):
    """A file format. Rows are counted the same way by `read` and `write`."""

    def split(self, file: InputFile) -> list[tuple[int, int]]:
        """Cut a file into spans of about PART_BYTES that can be read apart; what a span counts is the format's own."""

    def column_names(self, file: InputFile, config: Config) -> list[str] | None:
        """Return the columns of the file, of its first rows where rows differ; None for a format without columns."""

    def read(self, file: InputFile, span: tuple[int, int], columns: Columns, config: Config) -> Iterator[Records]:
        """Read the rows that begin in a span, a batch at a time."""

    def write(self, file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:
        """Write the kept rows of a file to `target` as they came in; with config.mark all documents and the marks."""


def text_bytes(texts: pa.Array) -> npt.NDArray[np.int64]:
    """Return the bytes of each text of a large_string or large_binary array."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return np.diff(offsets)


def runs(ends: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Cut items whose sizes add up to `ends` into runs of about BATCH_BYTES, at least one item each."""
    start = 0
    while start < ends.size:
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + BATCH_BYTES, side="right")))
        yield start, stop
        start = stop
