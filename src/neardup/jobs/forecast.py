"""Forecast a run: try both methods on a sample, scale up time, memory and disk, and predict the chosen method."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import pipeline, schema
from neardup.config import Config
from neardup.config.checks import SET_MEASURES
from neardup.engines.local.block_pairs import BLOCK_BYTES
from neardup.engines.local.engine import LocalEngine
from neardup.engines.local.limits import Memory, available_cores
from neardup.errors import ConfigError
from neardup.events import Watch
from neardup.io.documents import in_memory
from neardup.io.documents import sample as file_samples
from neardup.io.documents.column_choice import with_dimension
from neardup.io.documents.discover import find_files
from neardup.io.documents.file_reader import documents_of
from neardup.io.documents.in_memory import InMemoryDocuments
from neardup.io.records import BATCH_BYTES, InputFile, text_bytes
from neardup.jobs.containment import pipeline_for
from neardup.jobs.start import check_against, most_disk
from neardup.measures.jaccard import text_sets
from neardup.measures.registry import holds_items
from neardup.theory.method_choice import (
    MAX_OPERATIONS,
    Contents,
    all_pairs_operations,
    decide,
)
from neardup.theory.plan import Plan, is_open, plan_for
from neardup.theory.shingle_advice import (
    FEW_SHINGLES,
    advise_on_length,
    advise_on_short,
    has_shorter_shingles,
)

# The most bytes in a sample; a smaller corpus is sampled whole.
SAMPLE_BYTES: Final = 64 << 20
# The size of the first sample, which takes well under a second.
FIRST_BYTES: Final = 4 << 20
SAMPLED_FILES: Final = 16
# Reading takes a tenth of the time of a run, so this many times the sample is read, to spread it
# over a file.
SPREAD: Final = 8
# The time budget of a forecast: a base in seconds plus a share of the predicted run, up to a
# maximum.
FREE_SECONDS: Final = 1.0
SHARE_OF_RUN: Final = 0.1
MAX_SECONDS: Final = 10.0
_SAFETY: Final = 2.0
# A sample that is not at least this many times larger adds little.
_MIN_GROWTH: Final = 2.0
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
# Copies of a block of vectors that is compared with all others, its approximation included.
_BLOCK_COPIES: Final = 4
# Shingles are counted in this many documents.
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
        memory_bytes: memory that the run needs; `memory` limits how much it may use.
        seconds: time on this machine.
        sampled_ratio: the share of the input that was sampled.
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
    sampled_ratio: float
    forecasts: tuple[Forecast, ...]
    advice: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the estimate as a dict, as JSON has it."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ForecastSample:
    """Sampled documents, as schema.DOCUMENTS; the corpus is `scale` times as large, and reads in `read_seconds`.

    text_scale: how many times as much text the corpus holds, if it is known to differ from `scale`.
    """

    documents: pa.Table
    scale: float
    read_seconds: float
    file_bytes: int
    text_scale: float | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the sample is the whole input."""
        return self.scale <= 1


# Takes the most bytes of text that a sample may hold.
TakeSample = Callable[[int], ForecastSample]


def predict_files(paths: Sequence[str], config: Config, watch: Watch) -> Plan:
    """Plan a run on files, and predict its cost."""
    with watch.stage("sample"):
        check_against(config)
        files = find_files(paths, config)
        config = with_dimension(files, config)
        return predict(sample_files(files, config), config)


def predict_memory(source: Any, config: Config) -> Plan:
    """Plan a run on documents in memory, and predict its cost."""
    read = in_memory.read(source, config)
    return predict(sample_memory(read.documents), in_memory.with_dimension(read, config))


def sample_files(files: Sequence[InputFile], config: Config) -> TakeSample:
    """Return a sampler of the documents of files: runs of consecutive documents, spread over the input."""

    def take(most_bytes: int) -> ForecastSample:
        began = time.perf_counter()
        # Batches are read whole, so a small sample must come from few files.
        num_files = min(SAMPLED_FILES, max(1, most_bytes // BATCH_BYTES))
        spread = 1 if config.html else SPREAD
        found = file_samples.sample_files(
            files, config, num_files=num_files, most_bytes=most_bytes, spread=spread
        )
        read_seconds = (time.perf_counter() - began) * found.read_scale
        return ForecastSample(
            documents=_numbered(
                [documents_of(records, records.rows, config) for records in found.records]
            ),
            scale=found.scale,
            text_scale=found.text_scale,
            read_seconds=read_seconds,
            file_bytes=sum(file.size for file in files),
        )

    return take


def _numbered(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    table = schema.documents_table(batches)
    return table.set_column(0, "row", pa.array(np.arange(table.num_rows)))


def sample_memory(documents: pa.Table) -> TakeSample:
    """Return a sampler of the first documents in memory."""
    sizes = [text_bytes(chunk) for chunk in documents.column("text").chunks]
    ends = np.cumsum(np.concatenate(sizes or [np.zeros(1, np.int64)]))

    def take(most_bytes: int) -> ForecastSample:
        num_taken = min(int(np.searchsorted(ends, most_bytes)) + 1, documents.num_rows)
        scale = documents.num_rows / num_taken if num_taken else 1.0
        rows = pa.array(np.arange(num_taken))
        taken = documents.slice(0, num_taken).set_column(0, "row", rows)
        return ForecastSample(documents=taken, scale=scale, read_seconds=0.0, file_bytes=0)

    return take


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Trial:
    """The results on a sample; `seconds` is the time it took to read it and to try both methods."""

    sample: ForecastSample
    plan: Plan
    forecasts: tuple[Forecast, ...]
    seconds: float

    @property
    def own(self) -> Forecast:
        return next(forecast for forecast in self.forecasts if forecast.method == self.plan.method)


def predict(take: TakeSample, config: Config) -> Plan:
    """Plan a run from samples of its documents, with the forecast of each method.

    Samples grow while all of them together take at most a second and a tenth of the run, and never
    more than MAX_SECONDS.
    """
    began = time.perf_counter()
    trial = _try(take, FIRST_BYTES, config)
    while not trial.sample.is_whole:
        most = min(MAX_SECONDS, FREE_SECONDS + SHARE_OF_RUN * trial.own.seconds)
        left = most - (time.perf_counter() - began)
        size = _sampled_bytes(trial.sample)
        # Comparing may grow faster than the sample does.
        growth = min(SAMPLE_BYTES / max(size, 1), left / max(_SAFETY * trial.seconds, 1e-3))
        if growth < _MIN_GROWTH:
            break
        trial = _try(take, round(size * growth), config)
    sample = trial.sample
    own = trial.own
    taken = Estimate(
        documents=round(sample.documents.num_rows * sample.scale),
        text_bytes=_num_bytes(sample),
        disk_bytes=own.disk_bytes,
        memory_bytes=own.memory_bytes,
        seconds=own.seconds,
        sampled_documents=sample.documents.num_rows,
        sampled_ratio=1 / max(1.0, sample.scale),
        forecasts=trial.forecasts,
        advice=tuple(_advise(sample, config)),
    )
    return dataclasses.replace(trial.plan, estimate=taken)


def _try(take: TakeSample, most_bytes: int, config: Config) -> _Trial:
    began = time.perf_counter()
    sample = take(most_bytes)
    read_seconds = time.perf_counter() - began
    plan = plan_for(config)
    overheads = _warm_up(sample, config)
    began = time.perf_counter()
    contents = _contents(sample, config)
    if is_open(config):
        plan = decide(contents, plan, is_cached=holds_items(config))
    forecasts = tuple(
        _forecast(sample, contents, overhead, *tried)
        for overhead, tried in zip(overheads, _possible(config), strict=True)
    )
    seconds = read_seconds + time.perf_counter() - began
    return _Trial(sample=sample, plan=plan, forecasts=forecasts, seconds=seconds)


def _warm_up(sample: ForecastSample, config: Config) -> list[float]:
    """Load the kernels before timing starts; return the fixed overhead of each method in seconds."""
    few = dataclasses.replace(sample, documents=sample.documents.slice(0, _FIRST_DOCS))
    _contents(few, config)
    overheads = []
    for plan, asked in _possible(config):
        for _ in range(2):  # the first run loads the kernels
            began = time.perf_counter()
            find = pipeline_for(asked)
            find(_in_memory(few.documents), plan, asked, LocalEngine(config.threads), Watch())
        overheads.append(time.perf_counter() - began)
    return overheads


def _sampled_bytes(sample: ForecastSample) -> int:
    return pc.sum(pc.binary_length(sample.documents.column("text"))).as_py() or 0


def _possible(config: Config) -> Iterator[tuple[Plan, Config]]:
    """The plans that the settings allow, each with the settings that select it."""
    for method in ("lsh", "exact"):
        try:
            asked = Config.of(config, method=method, audit=False)
            yield plan_for(asked), asked
        except ConfigError:
            # No plan reaches the recall, or the exact join does not support the measure.
            continue


def _contents(sample: ForecastSample, config: Config) -> Contents:
    """The figures that decide the method, scaled up; shingles rare in a sample may be frequent in the corpus."""
    if _compares_all(config):
        return _all_of(sample)
    if config.measure != "jaccard" or not sample.documents.num_rows:
        return Contents(documents=0, shingles=0)
    threshold = min(config.threshold, 0.99)
    asked = Config.of(
        config, method="auto", threshold=threshold, recall=0.5, bands=None, rows=None, audit=False
    )
    found = pipeline.measure_contents(
        _in_memory(sample.documents), plan_for(asked), asked, LocalEngine(config.threads)
    )
    scaled = {
        name: round(value * sample.scale) for name, value in dataclasses.asdict(found).items()
    }
    return Contents(**scaled)


def _compares_all(config: Config) -> bool:
    """Whether the exact method compares every two documents."""
    return config.measure not in SET_MEASURES


def _all_of(sample: ForecastSample) -> Contents:
    """The documents, and the items of weighted ones, which take two words each."""
    return Contents(
        documents=round(sample.documents.num_rows * sample.scale),
        shingles=round(_num_bytes(sample) / 16),
    )


def _few_enough(sample: ForecastSample, plan: Plan) -> ForecastSample:
    """Return the first documents of a sample, so few that every two of them can be compared."""
    own = dataclasses.replace(sample, scale=1.0, text_scale=None)
    operations = all_pairs_operations(_all_of(own), plan)
    if operations <= MAX_OPERATIONS:
        return sample
    num_taken = max(1, int(sample.documents.num_rows * math.sqrt(MAX_OPERATIONS / operations)))
    scale = sample.scale * sample.documents.num_rows / num_taken
    return dataclasses.replace(
        sample, documents=sample.documents.slice(0, num_taken), scale=scale, text_scale=None
    )


def _in_memory(documents: pa.Table) -> InMemoryDocuments:
    return InMemoryDocuments(documents, documents.num_rows)


def _forecast(
    sample: ForecastSample, contents: Contents, overhead: float, plan: Plan, config: Config
) -> Forecast:
    """Run a method on the sample; assumes that pairs are close together in the input, so that they scale linearly."""
    whole = sample
    is_quadratic = plan.is_exact and _compares_all(config)
    if is_quadratic:
        sample = _few_enough(sample, plan)
    growth = sample.scale if is_quadratic else 1.0
    began = time.perf_counter()
    outcome = pipeline_for(config)(
        _in_memory(sample.documents), plan, config, LocalEngine(config.threads), Watch()
    )
    pairs = sum(batch.num_rows for batch in outcome.row_pairs or ()) or outcome.selection.num_rows
    seconds = time.perf_counter() - began
    run_seconds = min(seconds, overhead) + growth * max(0.0, seconds - overhead) * (
        sample.text_scale or sample.scale
    )
    read_seconds = sample.read_seconds / (config.threads or available_cores())
    documents = round(whole.documents.num_rows * whole.scale)
    stored = contents.shingles if plan.is_exact and not is_quadratic else 0
    disk = most_disk(documents, _num_bytes(whole), stored, plan, config)
    if is_quadratic:
        disk += _num_bytes(whole)
    return Forecast(
        method=plan.method,
        bands=plan.bands,
        rows=plan.rows,
        recall_at_threshold=plan.recall_at_threshold,
        candidates=round(outcome.comparisons * sample.scale * growth),
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
    if holds_items(config) and 8 * contents.shingles <= limit // 3:
        sets = 8 * contents.shingles
    else:
        sets = 0
    table = documents * (_DOCUMENT_BYTES + 16 * plan.bands)
    if plan.is_exact and _compares_all(config):
        joined = _BLOCK_COPIES * min(16 * contents.shingles, BLOCK_BYTES)
    elif plan.is_exact:
        joined = contents.postings * _POSTING_BYTES + 2 * contents.shingles
    else:
        joined = 0
    return min(_BASE_BYTES + threads * _THREAD_BYTES + sets + table + joined, limit)


def _num_bytes(sample: ForecastSample) -> int:
    return round(_sampled_bytes(sample) * (sample.text_scale or sample.scale))


def _advise(sample: ForecastSample, config: Config) -> Iterator[str]:
    """Advise on shingles for documents of these lengths."""
    texts = sample.documents.column("text")
    if config.measure != "jaccard" or config.items_column is not None or not texts.length():
        return
    if has_shorter_shingles(config):
        shown = schema.one_array(texts.slice(0, _SHOWN_DOCS))
        sizes = np.diff(text_sets(shown, config).ends)
        advice = advise_on_short(
            int(np.sum((sizes > 0) & (sizes < FEW_SHINGLES))), int(np.sum(sizes > 0))
        )
        if advice is not None:
            yield advice
            return
    yield from advise_on_length(pc.approximate_median(pc.utf8_length(texts)).as_py(), config)
