"""Forecast a run: try both methods on a sample, scale up time, memory and disk, and predict the chosen method."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import pipeline, schema
from neardup.config import Config
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.limits import Memory, available_cores
from neardup.errors import ConfigError
from neardup.events import Watch
from neardup.io.formats.base import InputFile, text_bytes
from neardup.io.sources import sample as file_samples
from neardup.io.sources.in_memory import InMemoryDocuments
from neardup.io.sources.parts import documents_of
from neardup.measures.jaccard import text_sets
from neardup.measures.registry import holds_items
from neardup.questions.containment import pipeline_for
from neardup.runs.start import most_disk
from neardup.theory.method_choice import Contents, decide
from neardup.theory.plan import Plan, is_open, plan_for
from neardup.theory.shingle_advice import FEW_SHINGLES, advise_on_length, advise_on_short, has_shorter_shingles

# The most bytes in a sample; a smaller corpus is sampled whole.
SAMPLE_BYTES: Final = 64 << 20
SAMPLED_FILES: Final = 16
# Documents to warm up the kernels with before timing.
_FIRST_DOCS: Final = 20
# Seconds to start and end a run.
_START_SECONDS: Final = 0.8
# Memory of a process with its imports and kernels, and of the batches of each thread.
_BASE_BYTES: Final = 300 << 20
_THREAD_BYTES: Final = 32 << 20
# A posting, including the memory to sort it.
_POSTING_BYTES: Final = 32 * 6
# A document in memory, including its sketch while it is grouped.
_DOCUMENT_BYTES: Final = 160
# Of so many documents shingles are counted.
_SHOWN_DOCS: Final = 2000


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """The estimated cost and result of one method.

    Attributes:
        method: "lsh" or "exact".
        bands: of LSH.
        rows: of LSH.
        recall_at_threshold: promised recall for pairs exactly at the threshold.
        candidates: candidate pairs that are compared.
        pairs: similar pairs: all of them if pairs are listed, else one per removed document.
        memory_bytes: peak memory.
        disk_bytes: peak disk space of the work folder and the output together.
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
    """The estimated cost of a run.

    Attributes:
        documents: documents in the input.
        text_bytes: bytes of text.
        disk_bytes: peak disk space of the work folder and the output together.
        memory_bytes: memory that the run needs; --memory limits how much it may use.
        seconds: time on this machine.
        sampled_documents: documents in the sample.
        forecasts: the forecast of each method.
        advice: settings that may suit these documents better.
    """

    documents: int
    text_bytes: int
    disk_bytes: int
    memory_bytes: int
    seconds: float
    sampled_documents: int
    forecasts: tuple[Forecast, ...]
    advice: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the estimate for machines."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """Sampled documents, as schema.DOCUMENTS; the corpus is `scale` times as large, and reads in `read_seconds`."""

    documents: pa.Table
    scale: float
    read_seconds: float
    file_bytes: int


def sample_files(files: Sequence[InputFile], config: Config) -> Sample:
    """Sample the first documents of some files, up to SAMPLE_BYTES."""
    began = time.perf_counter()
    found = file_samples.sample_files(files, config, num_files=SAMPLED_FILES, most_bytes=SAMPLE_BYTES)
    read_seconds = (time.perf_counter() - began) * found.scale
    return Sample(
        documents=_numbered([documents_of(records, records.rows, config) for records in found.records]),
        scale=found.scale,
        read_seconds=read_seconds,
        file_bytes=sum(file.size for file in files),
    )


def _numbered(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    table = schema.documents_table(batches)
    return table.set_column(0, "row", pa.array(np.arange(table.num_rows)))


def sample_memory(documents: pa.Table) -> Sample:
    """Sample the first documents in memory, up to SAMPLE_BYTES."""
    ends = np.cumsum(
        np.concatenate([text_bytes(chunk) for chunk in documents.column("text").chunks] or [np.zeros(1, np.int64)])
    )
    num_taken = min(int(np.searchsorted(ends, SAMPLE_BYTES)) + 1, documents.num_rows)
    scale = documents.num_rows / num_taken if num_taken else 1.0
    taken = documents.slice(0, num_taken).set_column(0, "row", pa.array(np.arange(num_taken)))
    return Sample(documents=taken, scale=scale, read_seconds=0.0, file_bytes=0)


def predict(sample: Sample, config: Config) -> Plan:
    """Plan a run from a sample of its documents, with the forecast of each method."""
    plan = plan_for(config)
    contents = _contents(sample, config)
    if is_open(config):
        plan = decide(contents, plan, is_held=holds_items(config))
    forecasts = tuple(_forecast(sample, contents, *tried, config) for tried in _possible(config))
    own = next(forecast for forecast in forecasts if forecast.method == plan.method)
    taken = Estimate(
        documents=round(sample.documents.num_rows * sample.scale),
        text_bytes=_num_bytes(sample),
        disk_bytes=own.disk_bytes,
        memory_bytes=own.memory_bytes,
        seconds=own.seconds,
        sampled_documents=sample.documents.num_rows,
        forecasts=forecasts,
        advice=tuple(_advise(sample, config)),
    )
    return dataclasses.replace(plan, estimate=taken)


def _possible(config: Config) -> Iterator[tuple[Plan, Config]]:
    """The plans that the settings allow, each with the settings that select it."""
    for method in ("lsh", "exact"):
        try:
            asked = Config.of(config, method=method, audit=False)
            yield plan_for(asked), asked
        except ConfigError:  # no plan reaches the recall, or the exact join does not support the measure
            continue


def _contents(sample: Sample, config: Config) -> Contents:
    """The figures that decide the method, scaled up; shingles rare in a sample may be frequent in the corpus."""
    if config.measure != "jaccard" or not sample.documents.num_rows:
        return Contents(documents=0, shingles=0)
    threshold = min(config.threshold, 0.99)
    asked = Config.of(config, method="auto", threshold=threshold, recall=0.5, bands=None, rows=None, audit=False)
    found = pipeline.measure_contents(_held(sample.documents), plan_for(asked), asked, LocalEngine(config.threads))
    scaled = {name: round(value * sample.scale) for name, value in dataclasses.asdict(found).items()}
    return Contents(**scaled)


def _held(documents: pa.Table) -> InMemoryDocuments:
    return InMemoryDocuments(documents, documents.num_rows)


def _forecast(sample: Sample, contents: Contents, plan: Plan, asked: Config, config: Config) -> Forecast:
    """Run a method on the sample; assumes that pairs are close together in the input, so that they scale linearly."""
    find = pipeline_for(asked)
    find(_held(sample.documents.slice(0, _FIRST_DOCS)), plan, asked, LocalEngine(config.threads), Watch())
    began = time.perf_counter()
    outcome = find(_held(sample.documents), plan, asked, LocalEngine(config.threads), Watch())
    pairs = sum(batch.num_rows for batch in outcome.row_pairs or ()) or outcome.selection.num_rows
    run_seconds = (time.perf_counter() - began) * sample.scale
    read_seconds = sample.read_seconds / (config.threads or available_cores())
    documents, stored = round(sample.documents.num_rows * sample.scale), contents.shingles if plan.is_exact else 0
    disk = most_disk(documents, _num_bytes(sample), stored, plan, config)
    return Forecast(
        method=plan.method,
        bands=plan.bands,
        rows=plan.rows,
        recall_at_threshold=plan.recall_at_threshold,
        candidates=round(outcome.pairs_verified * sample.scale),
        pairs=round(pairs * sample.scale),
        memory_bytes=_memory(documents, contents, plan, config),
        disk_bytes=disk + (0 if config.dry_run else sample.file_bytes),
        # Written rows are read once more.
        seconds=_START_SECONDS + run_seconds + read_seconds * (1 if config.dry_run else 2),
    )


def _memory(documents: int, contents: Contents, plan: Plan, config: Config) -> int:
    """The peak memory of a run; its sets are kept in memory if they fit in a third of the limit."""
    limit = Memory(config.memory).limit
    threads = config.threads or available_cores()
    sets = 8 * contents.shingles if holds_items(config) and 8 * contents.shingles <= limit // 3 else 0
    table = documents * (_DOCUMENT_BYTES + 16 * plan.bands)
    joined = contents.postings * _POSTING_BYTES + 2 * contents.shingles if plan.is_exact else 0
    return min(_BASE_BYTES + threads * _THREAD_BYTES + sets + table + joined, limit)


def _num_bytes(sample: Sample) -> int:
    return round((pc.sum(pc.binary_length(sample.documents.column("text"))).as_py() or 0) * sample.scale)


def _advise(sample: Sample, config: Config) -> Iterator[str]:
    """Say which shingles suit documents of such lengths."""
    texts = sample.documents.column("text")
    if config.measure != "jaccard" or config.items_column is not None or not texts.length():
        return
    if has_shorter_shingles(config):
        shown = schema.one_array(texts.slice(0, _SHOWN_DOCS))
        sizes = np.diff(text_sets(shown, config).ends)
        advice = advise_on_short(int(np.sum((sizes > 0) & (sizes < FEW_SHINGLES))), int(np.sum(sizes > 0)))
        if advice is not None:
            yield advice
            return
    yield from advise_on_length(pc.approximate_median(pc.utf8_length(texts)).as_py(), config)
