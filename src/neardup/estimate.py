"""What a run on files will take: documents, disk, memory and time, from a sample of its input."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup.config import Config
from neardup.engines.memory import Memory, available_cores
from neardup.io import formats
from neardup.io.files import choose_columns
from neardup.io.records import InputFile
from neardup.io.tables import opened
from neardup.measures.choice import measure_of
from neardup.measures.jaccard import collect_texts
from neardup.planner import Plan

SAMPLED_FILES: Final = 4
SAMPLED_BATCHES: Final = 1
# Bytes a document takes in the work folder beside its band keys: row, priority, sizes, digest, id.
_NOTE_BYTES: Final = 88
# Bytes a shingle takes there in the exact join: itself, and half as often a posting of 32 bytes, at worst.
_SHINGLE_BYTES: Final = 24
# Bytes a document takes in memory for good: its component and whether it goes on.
_MEMORY_BYTES: Final = 10
_BASE_MEMORY: Final = 350 << 20
# Writing, verifying and the second reading, as a share of the first; from the runs in benchmarks/results.
_REST: Final = 1.0
# Bytes of a compressed file for a byte of text.
_PACKED: Final = 0.25


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """What one method would take and give, about.

    Attributes:
        method: "lsh" or "exact".
        bands: of LSH.
        rows: of LSH.
        recall_at_threshold: what it promises for pairs exactly at the threshold.
        candidates: documents that are compared with each other.
        pairs: of them those that are similar: all of them where pairs are listed, else one a removed document.
        memory_bytes: the most that it takes.
        disk_bytes: the most that the work folder and the output take together.
        seconds: time on this machine.
    """

    method: str
    bands: int
    rows: int
    recall_at_threshold: float
    candidates: int
    pairs: int
    memory_bytes: int
    disk_bytes: int
    seconds: float


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """What a run will take, about.

    Attributes:
        documents: documents in the input.
        text_bytes: bytes of text.
        disk_bytes: the most the work folder and the output take together.
        memory_bytes: the least that the run needs; --memory is how much it may take.
        seconds: time on this machine, None where it was not measured.
        sampled_documents: how many of the documents were looked at, 0 where a first look was enough.
        forecasts: what each method would take.
        advice: what other settings may suit these documents.
    """

    documents: int
    text_bytes: int
    disk_bytes: int
    memory_bytes: int
    seconds: float | None
    sampled_documents: int = 0
    forecasts: tuple[Forecast, ...] = ()
    advice: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the estimate for machines."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(slots=True)
class _Sample:
    file_bytes: float = 0.0
    rows: int = 0
    text_bytes: int = 0
    num_shingles: int = 0
    seconds: float = 0.0


def estimate(files: Sequence[InputFile], plan: Plan, config: Config, *, is_timed: bool = False) -> Estimate:
    """Sample the first documents of some files and scale up by their sizes."""
    step = max(1, len(files) // SAMPLED_FILES)
    sample = _Sample()
    for file in list(files)[::step][:SAMPLED_FILES]:
        _add(sample, file, plan, config, is_timed=is_timed)
    size = sum(file.size for file in files)
    scale = size / sample.file_bytes if sample.file_bytes else 0.0
    documents, text_bytes = round(sample.rows * scale), round(sample.text_bytes * scale)
    threads = config.threads or available_cores()
    return Estimate(
        documents=documents,
        text_bytes=text_bytes,
        disk_bytes=most_disk(documents, text_bytes, round(sample.num_shingles * scale), plan, config)
        + (0 if config.dry_run else size),
        memory_bytes=min(_BASE_MEMORY + documents * _MEMORY_BYTES, Memory(config.memory).limit),
        seconds=sample.seconds * scale * (1 + _REST) / threads + 1.0 if is_timed else None,
    )


def most_disk(documents: int, text_bytes: int, num_shingles: int, plan: Plan, config: Config) -> int:
    """Return what the work folder takes at most; `num_shingles` counts those that are stored."""
    work = documents * (8 * plan.bands + _NOTE_BYTES) + num_shingles * _SHINGLE_BYTES
    # At worst every document has a partner, and what does not fit in a third of memory is set aside.
    return work + (text_bytes if text_bytes > Memory(config.memory).limit // 3 else 0)


def _add(sample: _Sample, file: InputFile, plan: Plan, config: Config, *, is_timed: bool) -> None:
    form = formats.load(file.format)
    columns = choose_columns(file, form.column_names(file, config), config)
    spans = form.split(file)
    if not spans:
        return
    began, rows, text_bytes = time.perf_counter(), 0, 0
    batches = form.read(file, spans[0], columns, config)
    for records in islice(batches, SAMPLED_BATCHES):
        rows += records.num_rows
        text_bytes += pc.sum(pc.binary_length(records.texts)).as_py() or 0
        if is_timed:
            began += _seconds_to_load(records.texts.slice(0, 1), plan, config)
        if is_timed or plan.is_exact:
            sample.num_shingles += _pass(records.texts, plan, config)
    sample.seconds += time.perf_counter() - began
    sample.rows += rows
    sample.text_bytes += text_bytes
    sample.file_bytes += file.size * share_of(file, rows, text_bytes, next(batches, None) is None and len(spans) == 1)


def _pass(texts: pa.Array, plan: Plan, config: Config) -> int:
    """Do to texts what the first pass does; return how many shingles it stores."""
    if plan.is_exact:
        return collect_texts(texts, config).sets.shingles.size
    measure_of(config).sketch(texts, plan, config)
    return 0


def _seconds_to_load(texts: pa.Array, plan: Plan, config: Config) -> float:
    """Load the kernels, and say how long it took: a long run does not notice."""
    began = time.perf_counter()
    _pass(texts, plan, config)
    return time.perf_counter() - began


def share_of(file: InputFile, rows: int, text_bytes: int, is_whole: bool) -> float:
    """How much of the file a sample is: all of it, so many of its rows, or what its text makes likely."""
    if is_whole or not file.size:
        return 1.0
    if file.format == "parquet":
        with opened(file, "Parquet") as source:
            return float(rows / max(1, pq.ParquetFile(source).metadata.num_rows))
    return min(1.0, text_bytes * (_PACKED if file.compression else 1.05) / file.size)
