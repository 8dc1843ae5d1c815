"""Count in how many documents each shingle is, before documents are compared by weighted shingles."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.engines.base import Parts
from neardup.engines.local.engine import LocalEngine
from neardup.errors import NearDupError
from neardup.events import Watch
from neardup.io.storage.spill import Shelves
from neardup.measures import jaccard
from neardup.measures.idf import BYTES_A_SHINGLE, NUM_DOCUMENTS
from neardup.pipeline import Pipeline, PipelineOutcome
from neardup.report import format_bytes
from neardup.theory.plan import Plan, plan_for

U64 = npt.NDArray[np.uint64]
# Shingles are counted in this many parts, by their highest bits.
_SHELF_BITS: Final = 6
_SHINGLES: Final = pa.schema([("shingle", pa.int64())])
_NO_ROWS: Final = pa.schema([("row", pa.int64())])
_NO_BATCH: Final = pa.record_batch([pa.array([], pa.int64())], schema=_NO_ROWS)


def compared_config(config: Config) -> Config:
    """Return the settings by which weighted shingles are compared, once they are made of texts or items."""
    return Config.of(
        config,
        weights=None,
        measure="weighted",
        text_out=None,
        passages=False,
        edits=False,
        min_words=None,
    )


def weighed(find: Pipeline, config: Config) -> Pipeline:
    """Return a pipeline over documents whose texts are replaced by weighted shingles, if the settings ask for it."""
    if config.weights is None:
        return find

    def find_weighed(
        documents: Any, plan: Plan, config: Config, engine: Any, watch: Watch
    ) -> PipelineOutcome[Any]:
        del plan
        compared = compared_config(config)
        return find(documents, plan_for(compared), compared, engine, watch)

    return find_weighed


def count_shingles(
    documents: Parts,
    config: Config,
    engine: LocalEngine,
    watch: Watch,
    folder: Path | None = None,
) -> pa.Table:
    """Return the shingles in more than one document, as schema.COMMON; `folder` is for files beyond memory.

    The metadata of the schema have the number of documents with shingles.
    """
    limit = engine.room() // 4 if folder is not None else None
    counting = _Counting(config, Shelves(folder, limit))
    with watch.stage("weights", documents.total, documents.unit) as advance:
        engine.scan_documents(documents, counting.count, _NO_ROWS, advance)
        found = counting.finish()
    if folder is not None and BYTES_A_SHINGLE * found.num_rows > engine.room():
        raise NearDupError(
            f"{found.num_rows:,} shingles are in more than one document, whose weights do not fit in memory",
            hint=f"pass `memory` at least {format_bytes(2 * BYTES_A_SHINGLE * found.num_rows)}, or a larger `size`",
        )
    return found


class _Counting:
    """The shingles of all documents, by their highest bits; thread-safe."""

    def __init__(self, config: Config, shelves: Shelves) -> None:
        self._config = config
        self._shelves = shelves
        self._num_documents = 0
        self._lock = threading.Lock()

    def count(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Put the distinct shingles of every document of a batch on shelves."""
        sets = jaccard.text_sets(batch.column("text"), self._config)
        with self._lock:
            self._num_documents += int((np.diff(sets.ends) > 0).sum())
        self._put(np.sort(sets.shingles))
        return _NO_BATCH

    def _put(self, shingles: U64) -> None:
        bounds = np.arange(1, 1 << _SHELF_BITS, dtype=np.uint64) << np.uint64(64 - _SHELF_BITS)
        ends = np.r_[0, np.searchsorted(shingles, bounds), shingles.size]
        for shelf in np.flatnonzero(np.diff(ends)).tolist():
            part = shingles[ends[shelf] : ends[shelf + 1]].view(np.int64)
            self._shelves.put(shelf, pa.record_batch([pa.array(part)], schema=_SHINGLES))

    def finish(self) -> pa.Table:
        """Count the shingles of every shelf."""
        found = [np.empty(0, np.uint64)]
        counts = [np.empty(0, np.int64)]
        for shelf in range(1 << _SHELF_BITS):
            batches = list(self._shelves.batches(shelf))
            if not batches:
                continue
            table = pa.Table.from_batches(batches, schema=_SHINGLES)
            shingles, times = np.unique(
                table.column("shingle").to_numpy().view(np.uint64), return_counts=True
            )
            is_shared = times > 1
            found.append(shingles[is_shared])
            counts.append(times[is_shared])
            self._shelves.clear(shelf)
        columns = [np.concatenate(found).view(np.int64), np.concatenate(counts)]
        noted = schema.COMMON.with_metadata({NUM_DOCUMENTS: str(self._num_documents)})
        return pa.table([pa.array(column) for column in columns], schema=noted)
