"""Count the common shingles of a run, before its documents are compared.

Two passes over the documents. Documents with equal sets count once. The first pass counts the
documents of every group, and shingles in counters that several of them share, so that none is
counted too low. The second collects the shingles whose counter reaches the bound of their group,
on disk if they are many, and they are counted exactly: the result depends on the documents alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.engines.base import Advance, Parts
from neardup.engines.local.engine import LocalEngine
from neardup.errors import DataError, NearDupError, NotStoredError
from neardup.events import Watch
from neardup.io.documents.file_reader import read_documents
from neardup.io.documents.layout import FileLayout
from neardup.io.records import text_bytes
from neardup.io.storage.spill import Shelves
from neardup.kernels import common_shingles as kernel
from neardup.measures import jaccard
from neardup.measures.remaining import (
    BYTES_A_SHINGLE,
    CommonShingles,
    count_all,
    least_common,
    salts_of,
)
from neardup.report import format_bytes

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
# Counters of the first pass: 64 MB.
NUM_COUNTERS: Final = 1 << 24
# The candidates of the second pass are counted in this many parts, by their highest bits.
_SHELF_BITS: Final = 6
_FIRST_CAPACITY: Final = 1 << 12
_NO_ROWS: Final = pa.schema([("row", pa.int64())])
_CANDIDATES: Final = pa.schema([("shingle", pa.int64()), ("need", pa.int64())])


class FilesToCount:
    """The documents of files, read without the notes of a run."""

    unit = "bytes"
    stops_at_first = False

    def __init__(self, layout: FileLayout) -> None:
        self._layout = layout
        self.total = layout.total
        self.num_parts = layout.num_parts

    def read(self, part: int, advance: Advance) -> Iterator[pa.RecordBatch]:
        """Read the documents of a part."""
        left = self._layout.weights[part]
        for batch in read_documents(self._layout, part):
            yield batch
            done = min(left, int(text_bytes(batch.column("text")).sum()))
            left -= done
            advance(done)
        advance(left)


def count_common(
    documents: Parts,
    config: Config,
    engine: LocalEngine,
    watch: Watch,
    folder: Path | None = None,
) -> pa.Table:
    """Return the common shingles of documents, as schema.COMMON, ascending; `folder` is for files beyond memory."""
    limit = engine.room() // 4 if folder is not None else None
    counting = _Counting(config, engine.secret, Shelves(folder, limit))
    with watch.stage("common", 2 * documents.total, documents.unit) as advance:
        engine.scan_documents(documents, counting.count, _NO_ROWS, advance)
        counting.begin_candidates()
        if counting.has_large_groups:
            engine.scan_documents(documents, counting.collect, _NO_ROWS, advance)
        found = counting.finish()
    if folder is not None and BYTES_A_SHINGLE * found.num_rows > engine.room():
        raise NearDupError(
            f"{found.num_rows:,} shingles are common, which do not fit in memory",
            hint=f"pass `memory` at least {format_bytes(2 * BYTES_A_SHINGLE * found.num_rows)}, or a larger "
            "`ignore_common`",
        )
    return found


def contents_of(texts: pa.Array, groups: I64, common: pa.Table | None, config: Config) -> pa.Array:
    """Return what a finished run compared of some texts, given the common shingles that it has stored."""
    return stored_common(common, config).contents(texts, salts_of(groups))


def stored_common(common: pa.Table | None, config: Config) -> CommonShingles:
    """Return the common shingles that a finished run has stored."""
    if common is None:
        raise NotStoredError(
            "the run did not store its common shingles", hint="run it again with `ignore_common`"
        )
    return CommonShingles(common, config)


class _Counting:
    """The state of both passes; thread-safe."""

    def __init__(self, config: Config, secret: bytes, shelves: Shelves) -> None:
        self._config = config
        self._counted = count_all(config)
        self._secret = secret
        self._shelves = shelves
        self._claims = _Claims()
        self._counters = np.zeros(NUM_COUNTERS, np.uint32)
        self._sizes: dict[int, int] = {}
        self._groups = np.empty(0, np.int64)
        self._needs = np.empty(0, np.int64)
        self._num_documents = 0
        self._lock = threading.Lock()

    @property
    def has_large_groups(self) -> bool:
        """Whether any group has enough documents for common shingles."""
        return bool(self._needs.any())

    def count(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Count the documents and shingles of a batch in the first pass."""
        groups = batch.column("common").to_numpy()
        found = self._collect(batch, groups)
        with self._lock:
            self._num_documents += batch.num_rows
            is_counted = self._claim(found, groups)
            kernel.add_to_counters(found.sets.shingles, found.sets.ends, is_counted, self._counters)
            names, counts = np.unique(groups[is_counted], return_counts=True)
            for name, count in zip(names.tolist(), counts.tolist(), strict=True):
                self._sizes[name] = self._sizes.get(name, 0) + count
        return _NO_BATCH

    def begin_candidates(self) -> None:
        """Work out in how many documents a shingle is common, for every group."""
        if self._num_documents and not self._sizes and self._config.common_by is not None:
            self._check_grouped()
        share = self._config.ignore_common or 0.0
        self._groups = np.array(sorted(self._sizes), np.int64)
        sizes = [self._sizes[name] for name in self._groups.tolist()]
        self._needs = np.array([least_common(share, size) for size in sizes], np.int64)
        self._claims = _Claims()

    def _check_grouped(self) -> None:
        if self._config.common_by == "host":
            raise DataError(
                "`common_by` is 'host', but no document has an address: neither a column url nor its id is a URL",
                hint="name a column in `common_by`, or leave it out",
            )

    def collect(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Collect the shingles of a batch that may be common, in the second pass."""
        groups = batch.column("common").to_numpy()
        needs = self._needs_of(groups)
        if not needs.any():
            return _NO_BATCH
        found = self._collect(batch, groups)
        with self._lock:
            is_counted = self._claim(found, groups)
        keys, ends = found.sets
        chosen = np.empty(keys.size, np.uint64)
        chosen_needs = np.empty(keys.size, np.int64)
        needs = np.where(is_counted, needs, 0)
        count = kernel.choose_candidates(keys, ends, needs, self._counters, chosen, chosen_needs)
        self._put(chosen[:count], chosen_needs[:count])
        return _NO_BATCH

    def finish(self) -> pa.Table:
        """Count the candidates exactly, and return those that are common."""
        keys = [np.empty(0, np.uint64)]
        counts = [np.empty(0, np.int64)]
        for shelf in range(1 << _SHELF_BITS):
            batches = list(self._shelves.batches(shelf))
            if not batches:
                continue
            table = pa.Table.from_batches(batches, schema=_CANDIDATES)
            found, firsts, times = np.unique(
                table.column("shingle").to_numpy().view(np.uint64),
                return_index=True,
                return_counts=True,
            )
            is_common = times >= table.column("need").to_numpy()[firsts]
            keys.append(found[is_common])
            counts.append(times[is_common])
            self._shelves.clear(shelf)
        shingles = np.concatenate(keys).view(np.int64)
        return pa.table([shingles, np.concatenate(counts)], schema=schema.COMMON)

    def _collect(self, batch: pa.RecordBatch, groups: I64) -> jaccard.Collected:
        """The sets of a batch, salted by group, and their digests."""
        return jaccard.collect_texts(
            batch.column("text"), self._counted, groups, None, self._secret
        )

    def _claim(self, found: jaccard.Collected, groups: I64) -> npt.NDArray[np.bool_]:
        """Mark the documents of a group that have shingles, and whose set no document of it had before."""
        is_counted: npt.NDArray[np.bool_] = (found.sizes > 0) & (groups != 0)
        rows = np.flatnonzero(is_counted)
        is_counted[rows] = self._claims.add(found.digests[rows])
        return is_counted

    def _needs_of(self, groups: I64) -> I64:
        if not self._groups.size:
            return np.zeros(groups.size, np.int64)
        at = np.searchsorted(self._groups, groups)
        at[at == self._groups.size] = 0
        return np.where(self._groups[at] == groups, self._needs[at], 0)

    def _put(self, keys: U64, needs: I64) -> None:
        shelves = (keys >> np.uint64(64 - _SHELF_BITS)).astype(np.int64)
        order = np.argsort(shelves, kind="stable")
        bounds = np.searchsorted(shelves[order], np.arange((1 << _SHELF_BITS) + 1))
        columns = [keys.view(np.int64)[order], needs[order]]
        for shelf in np.flatnonzero(np.diff(bounds)).tolist():
            part = slice(bounds[shelf], bounds[shelf + 1])
            arrays = [pa.array(column[part]) for column in columns]
            self._shelves.put(shelf, pa.record_batch(arrays, schema=_CANDIDATES))


class _Claims:
    """The digests of the documents that count; it grows with them."""

    def __init__(self) -> None:
        self._table = np.zeros((_FIRST_CAPACITY, 2), np.uint64)
        self._num = 0

    def add(self, digests: U64) -> npt.NDArray[np.bool_]:
        """Add digests, and return which are new."""
        needed = 2 * (self._num + digests.shape[0])
        if needed > self._table.shape[0]:
            before = self._table[self._table.any(axis=1)]
            self._table = np.zeros((1 << needed.bit_length(), 2), np.uint64)
            self._claim(before)
        is_new = self._claim(digests)
        self._num += int(is_new.sum())
        return is_new

    def _claim(self, digests: U64) -> npt.NDArray[np.bool_]:
        is_new = np.empty(digests.shape[0], np.bool_)
        kernel.claim(np.ascontiguousarray(digests), self._table.shape[0], self._table, is_new)
        return is_new


_NO_BATCH: Final = pa.record_batch([pa.array([], pa.int64())], schema=_NO_ROWS)
