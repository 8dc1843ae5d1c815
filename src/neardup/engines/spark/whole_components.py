"""Whole components from a stream of documents; one too large for memory is spilled to disk, block by block."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from neardup import schema as schemas
from neardup.engines.base import BatchStep, BlockStep
from neardup.io import records
from neardup.io.columns.arrow_rows import pieces
from neardup.io.storage.workspace import read_batches, write_batches


def _block_columns(texts: pa.DataType) -> pa.Schema:
    """Cast the documents of components to what steps expect; Spark may send texts without large offsets."""
    is_bytes = pa.types.is_binary(texts) or pa.types.is_large_binary(texts)
    kind = pa.large_binary() if is_bytes else pa.large_string()
    own = (schemas.documents(kind).field(name) for name in ("row", "text", "priority", "group"))
    return pa.schema([("component", pa.int64()), *own])


def _as_block(batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = _block_columns(batch.schema.field("text").type)
    return batch.select(columns.names).cast(columns)


def map_whole(
    batches: Iterable[pa.RecordBatch], step: BatchStep, block_step: BlockStep, limit: int
) -> Iterator[pa.RecordBatch]:
    """Apply a step to whole components, many at a time; `block_step` to one of more than `limit` bytes.

    The documents of a component are contiguous, best priority first.
    """
    stream = (_as_block(batch) for batch in batches if batch.num_rows)
    last: list[pa.RecordBatch] = []  # of the component that may continue in the next batch
    beyond: list[pa.RecordBatch] = []  # read from the stream past the end of a large component
    while (batch := beyond.pop() if beyond else next(stream, None)) is not None:
        first_end, last_start = _ends(batch)
        if last and last[0].column("component")[0] == batch.column("component")[0]:
            last.append(batch.slice(0, first_end))
            if first_end == batch.num_rows:
                if sum(part.nbytes for part in last) > limit:
                    beyond = yield from _map_large(last, stream, block_step, limit)
                    last = []
                continue
        else:
            first_end = 0
        whole = [*last, batch.slice(first_end, last_start - first_end)]
        yield from _map_in_memory(schemas.one_batch(whole, batch.schema), step, block_step, limit)
        last = [batch.slice(last_start)]
    if last:
        yield from _map_in_memory(schemas.one_batch(last, last[0].schema), step, block_step, limit)


def _ends(batch: pa.RecordBatch) -> tuple[int, int]:
    """Return where the first component of a batch ends and the last one begins."""
    labels = batch.column("component").to_numpy()
    cuts = np.flatnonzero(np.diff(labels)) + 1
    if not cuts.size:
        return batch.num_rows, 0
    return int(cuts[0]), int(cuts[-1])


def _map_in_memory(
    collected: pa.RecordBatch, step: BatchStep, block_step: BlockStep, limit: int
) -> Iterator[pa.RecordBatch]:
    """Map whole components in runs of about BATCH_BYTES."""
    labels = collected.column("component").to_numpy()
    if not labels.size:
        return
    ends = np.flatnonzero(np.r_[labels[1:] != labels[:-1], True]) + 1
    sizes = np.cumsum(records.text_bytes(collected.column("text")))
    starts = np.r_[0, ends]
    for first, stop in records.runs(sizes[ends - 1]):
        run = collected.slice(int(starts[first]), int(starts[stop] - starts[first]))
        if stop == first + 1 and run.nbytes > limit:
            yield from _map_blocks([run], block_step, limit)
        else:
            yield step(run)


def _map_large(
    known: list[pa.RecordBatch], stream: Iterator[pa.RecordBatch], block_step: BlockStep, limit: int
) -> Generator[pa.RecordBatch, None, list[pa.RecordBatch]]:
    """Map a component that continues in the stream; return the rows read past its end."""
    component = known[0].column("component")[0]
    beyond = []

    def documents() -> Iterator[pa.RecordBatch]:
        yield from known
        for batch in stream:
            if batch.column("component")[0] != component:
                beyond.append(batch)
                return
            first_end, _ = _ends(batch)
            yield batch.slice(0, first_end)
            if first_end < batch.num_rows:
                beyond.append(batch.slice(first_end))
                return

    yield from _map_blocks(documents(), block_step, limit)
    return beyond


def _map_blocks(
    documents: Iterable[pa.RecordBatch], block_step: BlockStep, limit: int
) -> Iterator[pa.RecordBatch]:
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        # Verifying one block against another takes up to four times the memory of a block.
        yield from block_step(_DiskBlocks(documents, Path(folder), max(limit // 4, 1))).to_batches()


class _DiskBlocks:
    """The blocks of one large component, in files of this task."""

    def __init__(self, documents: Iterable[pa.RecordBatch], folder: Path, block_bytes: int) -> None:
        self._folder = folder
        self._blocks: list[Path] = []
        self._aside: list[Path] = []
        collected: list[pa.RecordBatch] = []
        for piece in (piece for batch in documents for piece in pieces(batch, block_bytes)):
            if collected and sum(part.nbytes for part in [*collected, piece]) > block_bytes:
                self._blocks.append(self._write(f"block-{len(self._blocks):06}", collected))
                collected = []
            collected.append(piece)
        self._blocks.append(self._write(f"block-{len(self._blocks):06}", collected))

    def _write(self, name: str, batches: list[pa.RecordBatch]) -> Path:
        path = self._folder / f"{name}.arrow"
        block = schemas.one_batch(batches, batches[0].schema)
        write_batches(path, iter([block]), block.schema)
        return path

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for path in self._blocks:
            yield from read_batches(path)

    def put(self, documents: pa.RecordBatch) -> None:
        """Spill documents to a file."""
        self._aside.append(self._write(f"aside-{len(self._aside):06}", [documents]))

    def stored(self) -> Iterator[pa.RecordBatch]:
        """Read the spilled documents."""
        for path in list(self._aside):
            yield from read_batches(path)
