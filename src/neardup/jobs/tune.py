"""Find the threshold of a corpus: how similar its documents are to a sample of them, and where copies begin.

Two passes over the documents: the first draws the sample, the second compares every document with
it exactly, with each candidate for unit and size.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import html_view, schema
from neardup.config import TUNE_SAMPLE, Config
from neardup.config.checks import SET_MEASURES, check_int
from neardup.engines.base import Documents
from neardup.engines.local.engine import LocalEngine
from neardup.errors import ConfigError
from neardup.events import Watch
from neardup.io.documents import in_memory
from neardup.io.documents.discover import find_files, paths_of
from neardup.io.documents.file_reader import FileReader
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.row_names import RowNames
from neardup.io.documents.sample import estimate_sizes
from neardup.io.documents.stdin import spool
from neardup.io.records import text_bytes
from neardup.io.storage.workspace import STANDARD_INPUT, Workspace
from neardup.jobs.audit import draw_sample, rows_of_sample
from neardup.jobs.neighbours import warn_of_rejected
from neardup.jobs.rejections import first_rejected
from neardup.jobs.source import check_in_memory
from neardup.kernels.similarity import Sets
from neardup.measures import jaccard
from neardup.search.audit import DRAW_RANGE, draw_keys
from neardup.search.tune import Example, SimilarityCounts, Streamed, seconds_per_document
from neardup.theory.valley import (
    Sides,
    Valley,
    bin_edges,
    find_valley,
    separation,
    sides_of,
    smoothing_for,
)

I64 = npt.NDArray[np.int64]
# The most text in a sample, and in one document of it.
SAMPLE_BYTES: Final = 32 << 20
MAX_DOCUMENT_BYTES: Final = 1 << 20
# A smaller sample says nothing.
MIN_SAMPLE: Final = 30
# Seconds of one core for all candidates. If they take longer, the sample is compared with a part
# of the input, and the most expensive candidates are left out while that part would be smaller
# than this (docs/decisions/0042).
MAX_SECONDS: Final = 40.0
MIN_PART: Final = 0.2
# Units and sizes to compare; of equally good ones the first is suggested.
CANDIDATES: Final = (
    ("word", 5),
    ("word", 3),
    ("char", 5),
    ("char", 3),
    ("char", 8),
    ("word", 1),
)
# Scores that differ by less are equally good.
TIE: Final = 0.002
NUM_EXAMPLES: Final = 5
_EXCERPT: Final = 160
_SAMPLED_FILES: Final = 16
# Settings that do not apply: the input is compared with itself, whole, and nothing is written.
_NOT_HERE: Final = (
    *("against", "mark", "dry_run", "audit", "pairs", "decisions"),
    *("ignore_common", "common_by", "weights"),
)
_SURE: Final = ((0.95, "sure"), (0.7, "fairly sure"), (0.0, "not sure"))
_SHORT_BYTES: Final = 300


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TunedPair:
    """An example of a pair near the threshold.

    Attributes:
        doc_a: a document.
        doc_b: the other one, which comes later in the input.
        similarity: their exact similarity.
        is_above: whether it is at or above the suggested threshold.
        text_a: how the text of the first begins; empty for sets of items.
        text_b: how that of the second begins.
    """

    doc_a: Any
    doc_b: Any
    similarity: float
    is_above: bool
    text_a: str
    text_b: str


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class TuneCandidate:
    """A unit and a size that were compared.

    Attributes:
        unit: "word", "char" or "items".
        size: units per shingle.
        threshold: the bottom of its valley; None without one.
        separation: an estimate of F1 at this threshold, for comparison with other candidates only.
        is_searched: False if comparing with it would have taken too long.
    """

    unit: str
    size: int
    threshold: float | None
    separation: float
    is_searched: bool


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Tuning:
    """Where the copies of a corpus begin.

    Attributes:
        threshold: the suggested threshold; None if there is no valley.
        low: lower bound of its 95 % interval.
        high: upper bound of its 95 % interval.
        certainty: the share of resamples of the documents with about the same threshold.
        measure: "jaccard" or "containment".
        unit: the suggested unit: "word", "char", or "items" for sets.
        size: the suggested size of a shingle.
        histogram: for every bin of similarity (low, high) how many sampled documents have a pair in
            it, and how many pairs they have.
        examples: pairs on both sides of the threshold, the most similar first.
        candidates: what was compared, the best first.
        documents: rows of the input.
        sample: sampled documents.
        part: the share of the input that the sample was compared with, documents chosen by a hash.
        advice: what to keep in mind for documents like these.
    """

    threshold: float | None
    low: float | None
    high: float | None
    certainty: float
    measure: str
    unit: str
    size: int
    histogram: pa.Table
    examples: tuple[TunedPair, ...]
    candidates: tuple[TuneCandidate, ...]
    documents: int
    sample: int
    part: float
    advice: tuple[str, ...]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings to use next, by name; without a threshold if there is no valley."""
        chosen: dict[str, Any] = {}
        if self.measure != "jaccard":
            chosen["measure"] = self.measure
        if self.unit != "items":
            chosen |= {"unit": self.unit, "size": self.size}
        if self.threshold is not None:
            chosen["threshold"] = self.threshold
        return chosen

    def verdict(self) -> str:
        """Say in one sentence where the copies begin, and how sure that is."""
        if self.threshold is None:
            return (
                f"no valley between noise and copies among the pairs of {self.sample:,} sampled documents, "
                "so no threshold is suggested"
            )
        sure = next(words for least, words in _SURE if self.certainty >= least)
        return (
            f"copies begin at a similarity of about {self.threshold:g} ({sure}: {self.certainty:.0%} of resamples "
            f"agree; 95 % interval {self.low:g} to {self.high:g})"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return values | {
            "histogram": self.histogram.to_pylist(),
            "examples": [dataclasses.asdict(pair) for pair in self.examples],
            "candidates": [dataclasses.asdict(candidate) for candidate in self.candidates],
            "advice": list(self.advice),
            "settings": self.settings,
        }

    def to_html(self) -> str:
        """Return the histogram, the candidates and the examples as a page of their own."""
        return html_view.page("Where the threshold lies", self._repr_html_())

    def _repr_html_(self) -> str:
        """Show the histogram, the candidates and the examples in a notebook."""
        compared = [
            (
                f"{one.unit}, {one.size}",
                one.threshold or "",
                one.separation if one.is_searched else "not tried",
            )
            for one in self.candidates
        ]
        pairs = [(one.similarity, one.doc_a, one.doc_b) for one in self.examples]
        return html_view.view(
            self.verdict(),
            html_view.histogram(
                self.histogram.column("documents").to_pylist(),
                self.histogram.column("low")[0].as_py(),
                self.threshold,
            ),
            html_view.table(("unit and size", "threshold", "separation"), compared),
            html_view.table(("similarity", "document", "document"), pairs),
        )


class _Opened(NamedTuple):
    """Documents to tune: `name` returns the ids of rows; `check` warns of rejected rows, once all are read."""

    documents: Documents
    engine: LocalEngine
    config: Config
    num_documents: int
    text_bytes: int
    name: Callable[[I64], pa.Array]
    check: Callable[[], None]


class _Drawn(NamedTuple):
    """The sampled documents in the order of their hashes."""

    rows: I64
    groups: I64
    texts: pa.Array


# Every candidate with its search, None if it is left out.
_Prepared = list[tuple[Config, SimilarityCounts | None]]


class _Searched(NamedTuple):
    """A candidate after the search: its counts, and its valley if it has one."""

    config: Config
    found: SimilarityCounts
    valley: Valley | None
    sides: Sides


def tune(
    source: Any,
    ids: Sequence[Any] | None,
    config: Config,
    watch: Watch,
    sample: int = TUNE_SAMPLE,
) -> Tuning:
    """Compare a sample of the documents with all of them, and find the valley of each candidate."""
    check_int("sample", sample, MIN_SAMPLE, hint=f"{TUNE_SAMPLE} is a common choice")
    _check_settings(config)
    paths = paths_of(source)
    if paths is None:
        check_in_memory(config)
        return _tune(_open_memory(source, ids, config, watch), watch, sample)
    if ids is not None:
        raise ConfigError(
            "`ids` must be left out for files", hint="id_column= names the column with the ids"
        )
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        return _tune(_open_files(paths, config, Path(folder), watch), watch, sample)


def _check_settings(config: Config) -> None:
    if config.measure not in SET_MEASURES:
        raise ConfigError(
            f"tune compares texts and sets, by 'jaccard' or 'containment', got `measure` {config.measure!r}",
            hint="for vectors, list the neighbours of some with neardup.neighbours, and look at their similarities",
        )
    if config.engine == "spark":
        raise ConfigError(
            "tune runs on this machine, got `engine` 'spark'",
            hint="use engine='local' on some of the files",
        )
    for name in _NOT_HERE:
        if getattr(config, name):
            raise ConfigError(
                f"`{name}` does not apply to tune",
                hint=f"leave `{name}` out, and use it in the run",
            )


def _open_memory(source: Any, ids: Sequence[Any] | None, config: Config, watch: Watch) -> _Opened:
    with watch.stage("read"):
        read = in_memory.read(source, config, ids=ids)

    def check() -> None:
        if read.rejected.num_rows:
            warn_of_rejected(
                read.rejected.num_rows,
                read.documents.num_rows,
                read.first_rejected(),
                config,
                watch,
            )

    return _Opened(
        documents=in_memory.InMemoryDocuments(read.documents, read.original.num_rows),
        engine=LocalEngine(config.threads),
        config=config,
        num_documents=read.documents.num_rows,
        text_bytes=read.documents.column("text").nbytes,
        name=lambda rows: read.ids.take(pa.array(rows)),
        check=check,
    )


def _open_files(paths: Sequence[str], config: Config, folder: Path, watch: Watch) -> _Opened:
    config = Config.of(config, keep="first")
    with watch.stage("read"):
        paths, _ = spool(paths, folder / STANDARD_INPUT, config)
        files = find_files(paths, config, watch.warn)
        num_documents, num_bytes = estimate_sizes(files, config, num_files=_SAMPLED_FILES)
        workspace = Workspace(folder)
        engine = LocalEngine(config.threads, workspace, config.memory)
        documents = FileReader(FileLayout(files, 0, config), workspace, engine.room() // 2)
    notes = documents.notes
    names = RowNames(documents.layout, notes)

    def name(rows: I64) -> pa.Array:
        distinct, inverse = np.unique(rows, return_inverse=True)
        return names.ids_of(distinct).take(pa.array(inverse))

    def check() -> None:
        if num_rejected := notes.count("rejected"):
            warn_of_rejected(
                num_rejected, notes.count("documents"), first_rejected(notes), config, watch
            )

    return _Opened(
        documents=documents,
        engine=engine,
        config=config,
        num_documents=num_documents,
        text_bytes=num_bytes,
        name=name,
        check=check,
    )


def _tune(opened: _Opened, watch: Watch, sample: int) -> Tuning:
    drawn = _draw(opened, watch, sample)
    opened.check()
    prepared, part = _prepare(drawn, opened)
    documents = opened.documents
    limit = int(part * DRAW_RANGE)
    with watch.stage("compare", documents.total, documents.unit) as advance:

        def compare(batch: pa.RecordBatch) -> pa.RecordBatch:
            if part < 1:
                keys = draw_keys(0, batch.column("row").to_numpy(), opened.config.seed)
                batch = batch.filter(pa.array(keys < limit))
            for config, found in prepared:
                if found is not None:
                    _add(found, batch, config)
            return schema.one_batch([], schema.COUNTS)

        opened.engine.scan_documents(documents, compare, schema.COUNTS, advance)
    with watch.stage("choose"):
        return _tuning(prepared, part, drawn, opened)


def _draw(opened: _Opened, watch: Watch, sample: int) -> _Drawn:
    """Draw documents until there are enough of them, or of their text."""
    config = opened.config
    average = max(opened.text_bytes // max(opened.num_documents, 1), 1)
    size = min(sample, max(MIN_SAMPLE, SAMPLE_BYTES // average))
    found = draw_sample(opened.documents, config, opened.num_documents, opened.engine, watch, size)
    sizes = text_bytes(schema.one_array(found.column("text")))
    is_small = sizes <= MAX_DOCUMENT_BYTES
    if is_small.any():
        found = found.filter(pa.array(is_small))
        sizes = sizes[is_small]
    num_taken = max(1, int(np.searchsorted(np.cumsum(sizes), SAMPLE_BYTES, side="right")))
    taken = found.slice(0, num_taken)
    return _Drawn(
        rows_of_sample(taken, opened.documents),
        taken.column("group").to_numpy(),
        schema.one_array(taken.column("text")),
    )


def _candidates(config: Config) -> list[Config]:
    """The settings to compare: what was given is not varied."""
    if config.items_column is not None:
        return [config]
    chosen = [
        (unit, size)
        for unit, size in CANDIDATES
        if ("unit" not in config.given or unit == config.unit)
        and ("size" not in config.given or size == config.size)
    ]
    if {"unit", "size"} <= config.given:
        chosen = [(config.unit, config.size)]
    elif "size" in config.given and "unit" not in config.given:
        chosen = [("word", config.size), ("char", config.size)]
    return [Config.of(config, unit=unit, size=size) for unit, size in chosen]  # type: ignore[arg-type]


def _prepare(drawn: _Drawn, opened: _Opened) -> tuple[_Prepared, float]:
    """Index the sample for the candidates that the time allows, and return which part of the input to compare."""
    num_documents = int(opened.documents.first_rows[-1])
    sets = {config: jaccard.text_sets(drawn.texts, config) for config in _candidates(opened.config)}
    seconds = {config: seconds_per_document(own) * num_documents for config, own in sets.items()}
    left = sorted(sets, key=lambda config: seconds[config])
    while len(left) > 1 and sum(seconds[config] for config in left) > MAX_SECONDS / MIN_PART:
        left.pop()
    total = sum(seconds[config] for config in left)
    part = min(1.0, MAX_SECONDS / total) if total else 1.0
    prepared = [
        (config, _search_for(config, own, drawn) if config in left else None)
        for config, own in sets.items()
    ]
    return prepared, part


def _search_for(config: Config, sets: Sets, drawn: _Drawn) -> SimilarityCounts:
    return SimilarityCounts(
        sets,
        drawn.rows,
        drawn.rows,
        drawn.groups,
        edges=bin_edges(),
        is_share=config.asks_containment,
        room=NUM_EXAMPLES,
    )


def _add(found: SimilarityCounts, batch: pa.RecordBatch, config: Config) -> None:
    texts = batch.column("text")
    sets = jaccard.collect_texts(texts, config).sets
    rows = batch.column("row").to_numpy()
    has_text = config.items_column is None

    def text_of(doc: int) -> str:
        return _excerpt(texts[doc].as_py()) if has_text else ""

    found.add(Streamed(*sets, rows, rows, batch.column("group").to_numpy()), text_of)


def _excerpt(text: str) -> str:
    words = " ".join(text[: 4 * _EXCERPT].split())
    return words if len(words) <= _EXCERPT else f"{words[: _EXCERPT - 1]}…"


def _tuning(prepared: _Prepared, part: float, drawn: _Drawn, opened: _Opened) -> Tuning:
    num_documents = int(opened.documents.first_rows[-1])
    num_others = round((num_documents - 1) * part)
    searched = [
        _searched(config, found, num_others) for config, found in prepared if found is not None
    ]
    best_clear = max(one.sides.clear for one in searched)
    scores = [separation(one.sides, best_clear) for one in searched]
    chosen = _choose(searched, scores)
    edges = bin_edges()
    candidates = [
        _candidate(one.config, one.valley, score, is_searched=True)
        for one, score in zip(searched, scores, strict=True)
    ]
    candidates.sort(key=lambda one: -one.separation)
    candidates += [
        _candidate(config, None, 0.0, is_searched=False)
        for config, found in prepared
        if found is None
    ]
    own = chosen.config
    valley = chosen.valley
    threshold, low, high = (
        (None, None, None)
        if valley is None
        else (float(edges[bin_]) for bin_ in (valley.first_bin, valley.low, valley.high))
    )
    return Tuning(
        threshold=threshold,
        low=low,
        high=high,
        certainty=0.0 if valley is None else valley.certainty,
        measure=own.measure,
        unit=_unit_of(own),
        size=own.size if own.items_column is None else 1,
        histogram=_histogram(chosen.found.counts),
        examples=_examples(chosen, drawn, opened),
        candidates=tuple(candidates),
        documents=num_documents,
        sample=drawn.rows.size,
        part=part,
        advice=tuple(_advice(own, drawn, candidates)),
    )


def _searched(config: Config, found: SimilarityCounts, num_others: int) -> _Searched:
    smoothing = smoothing_for(found.median_size)
    valley = find_valley(found.counts, num_others, smoothing, config.seed)
    if valley is None:
        sides = Sides(0.0, 0.0)
    else:
        sides = sides_of(found.counts, valley.first_bin, smoothing)
    return _Searched(config, found, valley, sides)


def _choose(searched: Sequence[_Searched], scores: Sequence[float]) -> _Searched:
    """The first of the best candidates; without any valley, the first of all."""
    best = max(scores)
    for one, score in zip(searched, scores, strict=True):
        if one.valley is not None and score >= best - TIE:
            return one
    return searched[0]


def _candidate(
    config: Config, valley: Valley | None, score: float, *, is_searched: bool
) -> TuneCandidate:
    return TuneCandidate(
        unit=_unit_of(config),
        size=config.size if config.items_column is None else 1,
        threshold=None if valley is None else float(bin_edges()[valley.first_bin]),
        separation=round(score, 4),
        is_searched=is_searched,
    )


def _unit_of(config: Config) -> str:
    return config.unit if config.items_column is None else "items"


def _histogram(counts: I64) -> pa.Table:
    edges = bin_edges()
    return pa.table(
        {
            "low": edges,
            "high": np.r_[edges[1:], 1.0],
            "documents": (counts > 0).sum(axis=0),
            "pairs": counts.sum(axis=0),
        }
    )


def _examples(chosen: _Searched, drawn: _Drawn, opened: _Opened) -> tuple[TunedPair, ...]:
    """The examples nearest to the threshold; without one, of the most similar pairs."""
    by_bin = chosen.found.examples
    first_bin = 0 if chosen.valley is None else chosen.valley.first_bin
    above = [one for found in by_bin[first_bin:] for one in sorted(found, key=_by_similarity)]
    if chosen.valley is None:
        above = above[::-1]
    below = [
        one for found in by_bin[:first_bin][::-1] for one in sorted(found, key=_by_similarity)[::-1]
    ]
    taken = [(one, True) for one in above] + [(one, False) for one in below]
    pairs: dict[tuple[int, int], tuple[Example, bool]] = {}
    for one, is_above in taken:  # a pair of two sampled documents was found from both sides
        own = int(drawn.rows[one.number])
        ends = (min(own, one.row), max(own, one.row))
        num_taken = sum(is_above == other for _, other in pairs.values())
        if num_taken < NUM_EXAMPLES:
            pairs.setdefault(ends, (one, is_above))
    ordered = sorted(pairs.items(), key=lambda item: (-item[1][0].similarity, item[0]))
    rows = np.array([ends for ends, _ in ordered], np.int64).reshape(-1, 2)
    names = opened.name(rows.reshape(-1)).to_pylist()
    found = []
    for at, (ends, (one, is_above)) in enumerate(ordered):
        own_text = ""
        if chosen.config.items_column is None:
            own_text = _excerpt(drawn.texts[one.number].as_py())
        texts = {one.row: one.text, int(drawn.rows[one.number]): own_text}
        found.append(
            TunedPair(
                doc_a=names[2 * at],
                doc_b=names[2 * at + 1],
                similarity=one.similarity,
                is_above=is_above and chosen.valley is not None,
                text_a=texts[ends[0]],
                text_b=texts[ends[1]],
            )
        )
    return tuple(found)


def _by_similarity(one: Example) -> tuple[float, int]:
    return one.similarity, one.key


def _advice(config: Config, drawn: _Drawn, candidates: Sequence[TuneCandidate]) -> list[str]:
    advice = []
    columns = config.text_column
    if isinstance(columns, tuple) and len(columns) > 1:
        advice.append(
            f"{len(columns)} columns are compared as one text, so a long column weighs more than a short one: leave "
            "out columns that many records share, or compare within `group_column`"
        )
    sizes = text_bytes(drawn.texts)
    if config.items_column is None and sizes.size and np.median(sizes) < _SHORT_BYTES:
        advice.append(
            "these texts are short: for records of people or products, cluster='components' keeps one record of each "
            "chain of pairs"
        )
    skipped = [f"{one.unit} {one.size}" for one in candidates if not one.is_searched]
    if skipped:
        advice.append(
            f"not tried: {', '.join(skipped)}; unrelated documents of this input share too many such shingles"
        )
    return advice
