"""A file of documents, its columns, the records that are read from it, and the verdicts on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

# Approximate bytes of text per batch of records; a longer document is a batch of its own.
BATCH_BYTES: Final = 4 << 20
# The most rows per batch, however short they are.
BATCH_ROWS: Final = 1 << 14
# Approximate bytes of a file per part, the unit of parallel reading and of checkpoints.
PART_BYTES: Final = 64 << 20
# The items of a set are stored as one text, each terminated by this character.
ITEM_END: Final = "\x1f"
# What --mark adds to every row.
MARK_COLUMNS: Final = pa.schema(
    [
        pa.field("neardup_kept", pa.bool_()),
        pa.field("neardup_kept_id", pa.string()),
        pa.field("neardup_similarity", pa.float64()),
        pa.field("neardup_cluster_size", pa.int64()),
    ]
)


# What a search for passages adds instead; spans are in code points.
MARKED_SPAN: Final = pa.struct([("start", pa.int64()), ("end", pa.int64())])
# The text of an HTML page without the spans that are cut.
CUT_TEXTS: Final = pa.schema([pa.field("neardup_text", pa.large_string())])
PASSAGE_MARKS: Final = pa.schema(
    [
        pa.field("neardup_repeated_words", pa.int64()),
        pa.field("neardup_repeated_share", pa.float64()),
        pa.field("neardup_passages", pa.list_(MARKED_SPAN)),
    ]
)


class InputFile(msgspec.Struct, frozen=True, kw_only=True, array_like=True, gc=False):
    """A file of documents; there may be a million of them.

    path: what opens it, a local path or an fsspec address; name: its path below kept/, and its name
    in every table;
    compression: "gzip", "zstd" or None; modified: nanoseconds, or the tag that a remote filesystem
    reports;
    encoding: of its text, None for UTF-8;
    identity: what else distinguishes a local file from a replacement, "" if unknown;
    head: its `streams.head_of`, once a run has started;
    reason: why it cannot be read, such as a broken link, if it cannot.
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
    reason: str = ""

    @property
    def is_one_stream(self) -> bool:
        """Whether it can be read only from its beginning, because it is decompressed or decoded on the way."""
        return self.compression is not None or self.encoding is not None

    def as_found(self) -> dict[str, Any]:
        """Return what must not change for a run to resume; the identity may, as in a restored copy."""
        names = [name for name in self.__struct_fields__ if name not in ("identity", "reason")]
        found = {name: getattr(self, name) for name in names}
        return found | ({"reason": self.reason} if self.reason else {})


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """The columns of one file that are used; several text columns are joined by a newline.

    common: what groups documents in order to find their common shingles.
    others: columns of any type that are read as well, if there are such; they are no part of a run.
    """

    text: tuple[str, ...]
    items: str | None = None
    vector: str | None = None
    id: str | None = None
    score: str | None = None
    group: str | None = None
    common: str | None = None
    others: tuple[str, ...] = ()

    def taken(self) -> dict[str, str]:
        """Return the column of every role that has one."""
        chosen = {"text": " + ".join(self.text), "items": self.items, "vector": self.vector}
        chosen |= {"id": self.id, "keep": self.score, "group": self.group}
        chosen |= {"common": self.common}
        return {role: name for role, name in chosen.items() if name}


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Records:
    """Consecutive rows of a file.

    num_rows: number of rows, including blank and rejected ones;
    rows: which of them are documents, counted from 0 at the start of the batch;
    texts: large_string, one per document, no null, valid UTF-8; large_binary for measures of other
    contents;
    ids: string, null if the document has none;
    scores: the values for keep="max:COLUMN", as scores.SCORES; groups, common: string; rejected:
    (row, reason);
    found: the names in `Columns` that occur in at least one row, even as null;
    others: the values of each of `Columns.others`, one per document, as Python values;
    columns: all rows as they were read, if the format can write kept rows from them.
    """

    num_rows: int
    rows: npt.NDArray[np.int64]
    texts: pa.Array
    ids: pa.Array
    scores: pa.Array | None
    groups: pa.Array | None
    common: pa.Array | None
    rejected: list[tuple[int, str]]
    found: frozenset[str]
    columns: pa.RecordBatch | None = None
    others: Mapping[str, list[Any]] = dataclasses.field(default_factory=dict)


class Edits(Protocol):
    """What a run changes in the rows of one file that it writes: columns/text_edits.py."""

    @property
    def column(self) -> str | None:
        """The column with the texts."""

    @property
    def marks(self) -> Any:
        """The columns to add, None for none."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""

    def touched(self, first: int, stop: int) -> list[int]:
        """Return the rows with changed texts from `first` to `stop`."""

    def cut(self, rows: Sequence[int], texts: Sequence[str]) -> list[str]:
        """Return the new texts of some rows, which ascend."""

    def edited(self, file: InputFile, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Return rows of a columnar file from `first` on with the changes."""

    def schema_of(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the changed rows."""


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Verdicts:
    """The decisions of a run on the rows of one file.

    is_kept: one per row of the file; False for removed, rejected and blank rows;
    removed: the removed rows, ascending, from 0; kept_ids: string, the kept document of each;
    similarities: float64;
    cluster_sizes: one per row of the file, None where they are all 1, or no marks are written;
    cached: `Records.columns` of the spans of the file that are still in memory;
    edits: changes of the rows that are written.
    """

    is_kept: npt.NDArray[np.bool_]
    removed: npt.NDArray[np.int64]
    kept_ids: pa.Array
    similarities: npt.NDArray[np.float64]
    cluster_sizes: npt.NDArray[np.int64] | None = None
    cached: Mapping[tuple[int, int], Sequence[pa.RecordBatch]] = dataclasses.field(
        default_factory=dict
    )
    edits: Edits | None = None

    @property
    def leaves_all(self) -> bool:
        """Whether every row is written as it was read."""
        return bool(self.is_kept.all()) and (self.edits is None or self.edits.is_empty)

    def sizes(self, start: int, stop: int) -> npt.NDArray[np.int64]:
        """Return the sizes of the clusters of some rows."""
        if self.cluster_sizes is None:
            return np.ones(stop - start, np.int64)
        return self.cluster_sizes[start:stop]


def text_bytes(texts: pa.Array) -> npt.NDArray[np.int64]:
    """Return the bytes of each text of a large_string or large_binary array."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[
        texts.offset : texts.offset + len(texts) + 1
    ]
    return np.diff(offsets)


def runs(ends: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Split items with the cumulative sizes `ends` into runs of about BATCH_BYTES, at least one item each."""
    start = 0
    while start < ends.size:
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + BATCH_BYTES, side="right")))
        yield start, stop
        start = stop
