"""A run as the page shows it: every document has a key, and every cluster the key of its kept document.

A key is the row of a document over all input files, from 0; in memory it is its position. Ids may
repeat, keys do not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.errors import DataError, NotStoredError
from neardup.report import ContaminationReport, PartsReport, PassagesReport, Report

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


class Removals(NamedTuple):
    """The removed documents in input order; containments where the run measured them."""

    keys: I64
    kept_keys: I64
    similarities: F64
    ids: pa.Array
    kept_ids: pa.Array


class Clusters(NamedTuple):
    """The clusters that lost a document, by key of the kept one.

    Cluster c has the removals order[starts[c]:starts[c + 1]]; `order` sorts them by cluster, the
    most similar first.
    """

    keys: I64
    sizes: I64
    weakest: F64
    starts: I64
    order: I64

    def find(self, key: int) -> int | None:
        """Return the number of a cluster by key."""
        return position_of(key, self.keys)

    def members(self, number: int) -> I64:
        """Return the removals of a cluster, the most similar first."""
        return self.order[self.starts[number] : self.starts[number + 1]]


class Location(NamedTuple):
    """The location of a document: the name of its file and its row, from 1; in memory no file, and its position."""

    file: str | None
    row: int


@dataclasses.dataclass(frozen=True)
class RunView:
    """The tables of a run, with keys instead of files and rows."""

    report: Report

    def __post_init__(self) -> None:
        if isinstance(self.report, PassagesReport | ContaminationReport | PartsReport):
            raise NotStoredError(
                "this run searched texts and compared no documents, so there is no page of it",
                hint="its tables list what was found; show the folder that `neardup dedup -o` wrote",
            )
        if not isinstance(self.report.load("removed"), pa.Table):
            if self.report.load("pairs") is not None:
                reason = "this run lists pairs"
            else:
                reason = "this run is on Spark"
            raise NotStoredError(
                f"{reason}, so it has no removed documents to show",
                hint="show the folder that `neardup dedup -o` wrote",
            )

    @property
    def is_from_files(self) -> bool:
        """Whether the documents came from files."""
        return "file" in self.report.removed.column_names

    @property
    def name(self) -> str:
        """The name of the run: that of its folder."""
        if self.report.out:
            return Path(self.report.out).resolve().name
        return "a run in memory"

    @cached_property
    def files(self) -> list[str]:
        """The names of all files: those of the input, then others that have a kept document."""
        if not self.is_from_files:
            return []
        known = [entry["file"] for entry in self.report.inputs]
        named = pc.unique(self.report.removed.column("kept_file")).to_pylist()
        return known + sorted(set(named) - set(known))

    @cached_property
    def first_keys(self) -> I64:
        """The key of the first row of every file, and one more than the last key."""
        rows = [entry["rows"] for entry in self.report.inputs]
        foreign = self.files[len(rows) :]
        removed = self.report.removed
        for name in foreign:
            is_there = pc.equal(removed.column("kept_file"), name)
            rows.append(pc.max(removed.column("kept_row").filter(is_there)).as_py() + 1)
        return np.cumsum([0, *rows], dtype=np.int64)

    def location(self, key: int) -> Location:
        """Return the location of a document."""
        if not self.is_from_files:
            return Location(None, key)
        at = int(np.searchsorted(self.first_keys, key, side="right")) - 1
        return Location(self.files[at], key - int(self.first_keys[at]) + 1)

    def has_key(self, key: int) -> bool:
        """Whether a key is one of the run; it may be of a blank or rejected row."""
        if self.is_from_files:
            return 0 <= key < int(self.first_keys[-1])
        texts = self.report.load("texts")
        first = 0  # reference documents have negative positions
        if texts is not None and texts.num_rows:
            first = min(0, texts.column("row")[0].as_py())
        return first <= key < self.num_rows

    @property
    def num_rows(self) -> int:
        """The rows of a source in memory."""
        return len(self.report.mask)

    def _keys(self, table: pa.Table, file: str, row: str) -> I64:
        at = pc.index_in(
            schema.one_array(table.column(file)), pa.array(self.files, pa.string())
        ).to_numpy()
        keys: I64 = self.first_keys[at] + table.column(row).to_numpy() - 1
        return keys

    @cached_property
    def removals(self) -> Removals:
        """The removed documents."""
        removed = self.report.removed
        ids, kept_ids = (_texts_of(removed.column(name)) for name in ("doc_id", "kept_id"))
        similarities = removed.column("similarity").to_numpy()
        if self.is_from_files:
            keys = self._keys(removed, "file", "row")
            kept_keys = self._keys(removed, "kept_file", "kept_row")
        else:
            selection = self.report.load("selection")
            if selection is None:
                raise NotStoredError(
                    "this run did not store its rows",
                    hint="use the report that neardup.deduplicate returned",
                )
            keys, kept_keys = (selection.column(name).to_numpy() for name in ("row", "kept_row"))
        return Removals(keys, kept_keys, similarities, ids, kept_ids)

    @cached_property
    def clusters(self) -> Clusters:
        """The clusters that lost a document."""
        removals = self.removals
        order = np.lexsort((removals.keys, -removals.similarities, removals.kept_keys))
        keys, firsts, counts = np.unique(
            removals.kept_keys[order], return_index=True, return_counts=True
        )
        starts = np.r_[firsts, order.size].astype(np.int64)
        if keys.size:
            weakest = removals.similarities[order[starts[1:] - 1]]
        else:
            weakest = np.empty(0)
        return Clusters(keys, counts + self.report.config.per_cluster, weakest, starts, order)

    @cached_property
    def by_key(self) -> I64:
        """The removals in ascending order of their keys."""
        return np.argsort(self.removals.keys, kind="stable")

    def removal(self, key: int) -> int | None:
        """Return the position of a removed document among the removals, None for a document that was not removed."""
        keys = self.removals.keys
        at = int(np.searchsorted(keys, key, sorter=self.by_key))
        if at < keys.size and keys[self.by_key[at]] == key:
            return int(self.by_key[at])
        return None

    @cached_property
    def rejected_keys(self) -> I64:
        """The keys of rejected rows, ascending."""
        rejected = self.report.rejected
        if self.is_from_files:
            return np.sort(self._keys(rejected, "file", "row"))
        return np.sort(rejected.column("row").to_numpy())

    @cached_property
    def document_keys(self) -> I64 | None:
        """The keys of all documents in the order of the table of clusters; None if blank rows make them unknown."""
        report = self.report
        if not self.is_from_files:
            texts = report.load("texts")
            if texts is None:
                return None
            rows: I64 = texts.column("row").to_numpy()
            return rows[rows >= 0]
        own = [at for at, entry in enumerate(report.inputs) if not entry["ahead"]]
        if sum(report.inputs[at]["rows"] for at in own) != report.documents:
            return None
        ranges = [np.arange(self.first_keys[at], self.first_keys[at + 1]) for at in own]
        keys = np.concatenate([np.empty(0, np.int64), *ranges])
        keys = np.setdiff1d(keys, self.rejected_keys, assume_unique=True)
        num_ids = len(self.document_ids)
        if keys.size != num_ids:
            raise DataError(
                f"clusters.parquet lists {num_ids:,} documents, but the inputs have {keys.size:,} rows that are not in"
                " rejected.jsonl",
                hint="the run is damaged: run neardup again on the input files",
            )
        return keys

    @cached_property
    def document_ids(self) -> pa.Array:
        """The ids of all documents, as texts, in input order."""
        clusters = self.report.load("clusters")
        if clusters is None:
            return pa.array([], pa.string())
        return _texts_of(clusters.column("doc_id"))

    def ids(self, keys: Sequence[int]) -> list[str]:
        """Return the ids of documents in clusters, or of any document if no row is blank."""
        return [self.id(key) for key in keys]

    def id(self, key: int) -> str:
        """Return the id of a document."""
        at = self.removal(key)
        if at is not None:
            return str(self.removals.ids[at].as_py())
        number = self.clusters.find(key)
        if number is not None:
            return str(self.removals.kept_ids[int(self.clusters.members(number)[0])].as_py())
        keys = self.document_keys
        position = None if keys is None else int(np.searchsorted(keys, key))
        if (
            keys is not None
            and position is not None
            and position < keys.size
            and keys[position] == key
        ):
            return str(self.document_ids[position].as_py())
        location = self.location(key)
        if location.file is None:
            return str(location.row)
        return f"{location.file}:{location.row}"

    @property
    def settings(self) -> list[tuple[str, Any]]:
        """The settings that differ from the defaults; the seed, which may be secret, is left out."""
        config = self.report.config
        defaults = {field.name: field.default for field in dataclasses.fields(config)}
        hidden = {"seed", "num_perm", "overwrite", "threads", "memory", "master", "spark_conf"}
        given = [(name, value) for name, value in config.as_dict().items() if name not in hidden]
        always = ("threshold", "recall", "unit", "size")
        settings = []
        for name, value in given:
            is_default = (tuple(value) if isinstance(value, list) else value) == defaults[name]
            if name in always or not is_default:
                settings.append((name, value))
        return settings


def position_of(key: int, keys: I64) -> int | None:
    """Return the position of a key among ascending ones."""
    at = int(np.searchsorted(keys, key))
    if at < keys.size and keys[at] == key:
        return at
    return None


def _texts_of(column: pa.ChunkedArray) -> pa.Array:
    array = schema.one_array(column)
    return array if pa.types.is_string(array.type) else array.cast(pa.string())
