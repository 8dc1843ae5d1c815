"""Measure the recall of a run: find all true partners of sampled documents, and which of them the run found.

Two passes over the documents: the first draws the sample, the second compares every document with
it exactly.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import AUDIT_SAMPLE, Config
from neardup.engines.base import Advance, Documents
from neardup.engines.local.engine import LocalEngine
from neardup.errors import ConfigError, DataError
from neardup.events import Watch
from neardup.io.columns.sorted_search import find_sorted
from neardup.io.documents import in_memory
from neardup.io.documents.file_reader import FileReader
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.memory_tables import name_pairs
from neardup.io.documents.row_names import RowNames
from neardup.io.finished import finished_run
from neardup.io.records import InputFile
from neardup.io.storage.workspace import Workspace
from neardup.measures.registry import measure_of
from neardup.report import Audit, ContaminationReport, PartsReport, PassagesReport, Report
from neardup.search.audit import CHANCE_UNITS, DRAW_RANGE, AuditSample, draw, draw_keys
from neardup.theory.plan import Plan

I64 = npt.NDArray[np.int64]
# The most reported pairs that are verified again; `Audit.verified` has the actual number.
MAX_CLAIMS: Final = 1 << 20
RESAMPLES: Final = 2000
# The sample is drawn larger by this many standard deviations.
_SPARE: Final = 5
_RESAMPLED_AT_ONCE: Final = 1 << 22
_QUANTILES: Final = (0.025, 0.975)
# The rule of three: with no event in g trials, 3 / g is an upper 95 % confidence bound of its
# probability.
_RULE_OF_THREE: Final = 3.0
# The most pairs that are loaded; with more, only removals are verified again, and found pairs are
# recomputed.
MAX_LOADED: Final = 10_000_000
_REMOVED: Final = (("file", "row"), ("kept_file", "kept_row"))
_PAIRS: Final = (("file_a", "row_a"), ("file_b", "row_b"))


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Audited:
    """A run as an audit sees it.

    removed, listed: iterate over the removals and the pairs that the run reported, as
    schema.ROW_PAIRS; called once the documents are numbered; listed: None if the run lists no
    pairs, so that found pairs are recomputed;
    name: replaces row_a and row_b of pairs by ids; num_documents: the approximate number of
    documents to sample from.
    """

    documents: Documents
    plan: Plan
    config: Config
    num_documents: int
    removed: Callable[[], Iterable[pa.Table]]
    listed: Callable[[], Iterable[pa.Table]] | None
    name: Callable[[pa.Table], pa.Table]


@dataclasses.dataclass(frozen=True, slots=True)
class _Keyed:
    """Documents with the hash that selects the sample; reference documents are read to be numbered, but not sampled."""

    documents: Documents
    seed: int

    @property
    def num_parts(self) -> int:
        return self.documents.num_parts

    @property
    def stops_at_first(self) -> bool:
        return self.documents.stops_at_first

    def read(self, part: int, advance: Advance) -> Iterator[pa.RecordBatch]:
        own = part - self.documents.num_reference_parts
        for batch in self.documents.read(part, advance):
            if own >= 0:
                # The hash uses the row within the part, because parts are not numbered in the first
                # pass.
                if self.documents.first_rows.size:
                    first = self.documents.first_rows[part]
                else:
                    first = 0
                rows = batch.column("row").to_numpy() - first
                columns = [np.full(rows.size, part), rows, draw_keys(own, rows, self.seed)]
                columns += [batch.column("group"), batch.column("text")]
                kinds = schema.sampled(batch.schema.field("text").type)
                yield pa.record_batch(list(map(pa.array, columns[:3])) + columns[3:], schema=kinds)


def measure(run: Audited, engine: LocalEngine, watch: Watch, size: int = AUDIT_SAMPLE) -> Audit:
    """Sample documents, find all their true partners, and count which of them the run found."""
    if run.config.measure != "jaccard":
        raise ConfigError(
            f"audit supports only the measure 'jaccard', got {run.config.measure}",
            hint="compare a sample with neardup.compare, or plan for a higher recall",
        )
    if run.config.weights is not None:
        raise ConfigError(
            f"audit does not support `weights` {run.config.weights!r}",
            hint="the exact method finds every pair: method='exact'",
        )
    if run.config.one_to_one:
        raise ConfigError(
            "this run lists only pairs of best partners, so its recall cannot be measured",
            hint="audit a run without `one_to_one`",
        )
    if run.config.pairs and run.listed is None:
        watch.warn(
            "the run listed too many pairs to look up, so the audit computes from the plan which ones it found"
        )
    began = watch.seconds
    documents = run.documents
    drawn = draw_sample(documents, run.config, run.num_documents, engine, watch, size)
    with watch.stage("audit", documents.total, documents.unit) as advance:
        sample = _prepare(drawn, run)
        if run.listed:
            found = list(_of_sample(run.listed(), sample, run.config.threshold))
        else:
            found = []
        claimed = _claims(
            [*_of_sample(run.removed(), sample, run.config.threshold), *found], sample
        )
        sample.claimed = np.sort(claimed[0])
        sample.listed = _listed(found, sample) if run.listed else None
        partners = engine.scan_documents(documents, sample.partners, schema.PARTNERS, advance)
    _check_claims(claimed, partners, sample, run)
    missed = _missed(partners, sample, run)
    return Audit(
        **_recall(sample, run.config.seed),
        promised=run.plan.recall_at_threshold,
        missed=missed,
        precision=1.0 if claimed[0].size else None,
        verified=claimed[0].size,
        sample=sample.rows.size,
        threshold=run.config.threshold,
        seconds=watch.seconds - began,
    )


def draw_sample(
    documents: Documents,
    config: Config,
    num_documents: int,
    engine: LocalEngine,
    watch: Watch,
    size: int,
) -> pa.Table:
    """Return the documents with the smallest hashes among those with shingles, as schema.SAMPLED, in this order.

    The documents are numbered afterwards. Draws again if too many are empty; `num_documents` is
    about how many there are.
    """
    keyed: Any = _Keyed(documents, config.seed)
    sampled = schema.SAMPLED
    if config.ignore_common is not None:
        sampled = schema.sampled(pa.large_binary())
    share = (size + _SPARE * size**0.5 + _SPARE) / max(num_documents, 1)
    while True:
        below = int(min(share, 1.0) * DRAW_RANGE)
        with watch.stage("draw", documents.total, documents.unit) as advance:
            step = partial(draw, below=below, config=config)
            drawn = engine.scan_documents(keyed, step, sampled, advance)
            if not documents.first_rows.size:
                documents.finish_reading(engine.sort)
        if drawn.num_rows >= size or share >= 1:
            by = [("draw", "ascending"), ("part", "ascending"), ("row", "ascending")]
            return drawn.take(pc.sort_indices(drawn.drop_columns(["text"]), sort_keys=by)[:size])
        share *= 2 * size / (drawn.num_rows + 1)


def rows_of_sample(drawn: pa.Table, documents: Documents) -> I64:
    """Return the rows of sampled documents, once all documents are numbered."""
    rows: I64 = (
        drawn.column("row").to_numpy() + documents.first_rows[drawn.column("part").to_numpy()]
    )
    return rows


def _prepare(drawn: pa.Table, run: Audited) -> AuditSample:
    rows = rows_of_sample(drawn, run.documents)
    order = pa.array(np.argsort(rows))
    texts, groups = (schema.one_array(drawn.column(name)).take(order) for name in ("text", "group"))
    return AuditSample(np.sort(rows), texts, groups.to_numpy(), run.plan, run.config)


Claims = tuple[I64, npt.NDArray[np.float64], I64]


def _of_sample(
    reported: Iterable[pa.Table], sample: AuditSample, threshold: float
) -> Iterator[pa.Table]:
    """The reported pairs of sampled documents."""
    for pairs in reported:
        ends = [_is_drawn(pairs.column(name).to_numpy(), sample) for name in ("row_a", "row_b")]
        # With cluster="components", a removed document may be below the threshold: that is not a
        # reported pair.
        yield pairs.filter(
            pa.array((ends[0] | ends[1]) & (pairs.column("similarity").to_numpy() >= threshold))
        )


def _is_drawn(rows: I64, sample: AuditSample) -> npt.NDArray[np.bool_]:
    is_drawn: npt.NDArray[np.bool_] = np.isin(rows, sample.rows)
    return is_drawn


def _claims(reported: Iterable[pa.Table], sample: AuditSample) -> Claims:
    """The pairs that the run reported for sampled documents: encoded pair, similarity, row of the sampled one."""
    found: list[Claims] = []
    room = MAX_CLAIMS
    for table in reported:
        pairs = table.slice(0, room)
        room -= pairs.num_rows
        rows = np.stack([pairs.column(name).to_numpy() for name in ("row_a", "row_b")])
        own = np.where(_is_drawn(rows[0], sample), rows[0], rows[1])
        numbers = sample.numbers[np.searchsorted(sample.rows, own)]
        claims = sample.claims(numbers, rows.sum(axis=0) - own)
        found.append((claims, pairs.column("similarity").to_numpy(), own))
    claims, values, own = (
        (np.concatenate(columns) for columns in zip(*found, strict=True)) if found else _NO_CLAIMS
    )
    return claims, values, own


def _listed(found: Iterable[pa.Table], sample: AuditSample) -> tuple[I64, I64]:
    """The listed pairs of sampled documents, once per sampled side: encoded pair, ascending, and its position."""
    own = [np.empty(0, np.int64)]
    other = [np.empty(0, np.int64)]
    for pairs in found:
        ends = [pairs.column(name).to_numpy() for name in ("row_a", "row_b")]
        for one, two in (ends, ends[::-1]):
            is_drawn = _is_drawn(one, sample)
            own.append(np.searchsorted(sample.rows, one[is_drawn]))
            other.append(two[is_drawn])
    rows, docs = np.divmod(
        np.unique(np.concatenate(other) * sample.rows.size + np.concatenate(own)), sample.rows.size
    )
    claims = sample.claims(sample.numbers[docs], rows)
    order = np.argsort(claims, kind="stable")
    return claims[order], docs[order]


_NO_CLAIMS: Final = (np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64))


def _check_claims(claimed: Claims, partners: pa.Table, sample: AuditSample, run: Audited) -> None:
    """Raise if the run reported a wrong pair or similarity."""
    pairs, values, own = claimed
    partner_pairs = sample.claims(
        partners.column("number").to_numpy(), partners.column("row").to_numpy()
    )
    order = np.argsort(partner_pairs)
    is_true, at = find_sorted(partner_pairs[order], pairs)
    if order.size:
        is_true &= partners.column("similarity").to_numpy()[order][at] == values
    if is_true.all():
        return
    wrong = np.flatnonzero(~is_true)
    first = own[wrong[0]]
    other = sample.row_of_claim(pairs[wrong[0]])
    named = _name(
        run, np.array([min(first, other)]), np.array([max(first, other)]), values[wrong[:1]], sample
    )
    pair = named.to_pylist()[0]
    raise DataError(
        f"{wrong.size:,} of {pairs.size:,} reported pairs are not as similar as reported: "
        f"{pair['doc_a']!r} and {pair['doc_b']!r} were reported as {pair['similarity']:.6f}",
        hint="the output was changed after the run, or neardup has a bug: repeat the run, and report it if it recurs",
    )


def _missed(partners: pa.Table, sample: AuditSample, run: Audited) -> pa.Table:
    """Name every missed pair once, in input order."""
    missed = partners.filter(pc.invert(partners.column("is_found")))
    order = np.argsort(sample.numbers, kind="stable")
    starts = np.searchsorted(sample.numbers[order], np.arange(sample.num_sets + 1))
    numbers = missed.column("number").to_numpy()
    counts = np.diff(starts)[numbers]
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    docs = order[np.repeat(starts[numbers], counts) + within]
    own = sample.rows[docs]
    other = np.repeat(missed.column("row").to_numpy(), counts)
    values = np.repeat(missed.column("similarity").to_numpy(), counts)
    # For documents with equal sets, the run may have listed the pair of one but not that of
    # another.
    is_missed = (own != other) & ~sample.is_listed(docs, other)
    ends = np.stack([np.minimum(own, other), np.maximum(own, other)], axis=1)[is_missed]
    values = values[is_missed]
    # A pair of two sampled documents was found from both sides.
    ends, firsts = np.unique(ends, axis=0, return_index=True)
    return _name(run, ends[:, 0], ends[:, 1], values[firsts], sample)


def _name(
    run: Audited, row_a: I64, row_b: I64, values: npt.NDArray[np.float64], sample: AuditSample
) -> pa.Table:
    named = run.name(pa.table([row_a, row_b, values], schema=schema.ROW_PAIRS))
    columns = schema.missed(named.schema)
    chances = pa.array(sample.chances(values))
    return named.add_column(3, columns.field(3), chances).cast(columns)


def _recall(sample: AuditSample, seed: int) -> dict[str, Any]:
    """Return recall, interval and prediction, after subtracting the pair of every sampled document with itself."""
    tally = sample.tally
    numbers = sample.numbers
    itself = int(not sample.only_against)
    weights = tally.weights[numbers] - itself
    found = tally.found[numbers] - itself
    pairs = tally.pairs[numbers] - itself
    drawn = tally.drawn[numbers] - itself
    if sample.listed is not None:  # no document is listed with itself
        found = tally.listed
    num_pairs = int(pairs.sum() - drawn.sum() // 2)
    total = int(weights.sum())
    if not total:
        return {"recall": None, "low": None, "high": None, "predicted": None, "pairs": 0}
    recall = int(found.sum()) / total
    chances = (tally.chances[numbers] - itself * CHANCE_UNITS).sum() / CHANCE_UNITS
    low, high = _interval(weights, found, num_pairs, seed)
    return {
        "recall": recall,
        "low": low,
        "high": high,
        "predicted": float(chances / total),
        "pairs": num_pairs,
    }


def _interval(weights: I64, found: I64, num_pairs: int, seed: int) -> tuple[float, float]:
    """The 95 % confidence interval by bootstrap over documents; by the rule of three if all or none were found."""
    if found.sum() == weights.sum():
        return max(0.0, 1 - _RULE_OF_THREE / num_pairs), 1.0
    if not found.any():
        return 0.0, min(1.0, _RULE_OF_THREE / num_pairs)
    has_pairs = weights > 0
    weights = weights[has_pairs]
    found = found[has_pairs]
    rng = np.random.default_rng(seed)
    recalls = []
    at_once = max(1, _RESAMPLED_AT_ONCE // weights.size)
    for begin in range(0, RESAMPLES, at_once):
        # Poisson bootstrap: a random weight per document; documents without pairs have no
        # influence.
        times = rng.poisson(1.0, (min(at_once, RESAMPLES - begin), weights.size))
        totals = times @ weights
        has_any = totals > 0
        recalls.append((times @ found)[has_any] / totals[has_any])
    low, high = np.quantile(np.concatenate(recalls), _QUANTILES).tolist()
    return low, high


class Reported(NamedTuple):
    """What a run on files has reported; `load` returns a table by name."""

    plan: Plan
    load: Callable[[str], pa.Table | None]
    num_documents: int
    num_pairs: int | None


def audit_files(
    files: Sequence[InputFile],
    num_references: int,
    reported: Reported,
    config: Config,
    watch: Watch,
    sample: int = AUDIT_SAMPLE,
) -> Audit:
    """Audit a run by reading its files again, on this machine; the first `num_references` are reference files."""
    config = Config.of(config, keep="first", strict=False, mark=False)
    with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
        workspace = Workspace(Path(folder))
        engine = LocalEngine(config.threads, workspace, config.memory)
        documents = FileReader(
            FileLayout(files, num_references, config), workspace, engine.room() // 2
        )
        if config.ignore_common is not None:
            from neardup.jobs.common_shingles import stored_common

            documents.compared = stored_common(reported.load("common"), config).compared
        return measure(audited_files(documents, reported, config), engine, watch, sample)


def audited_files(documents: FileReader, reported: Reported, config: Config) -> Audited:
    """Return a run on files as an audit sees it."""
    plan, load, num_documents, num_pairs = reported
    names = RowNames(documents.layout, documents.notes)
    is_listed = num_pairs is not None and num_pairs <= MAX_LOADED

    def name(pairs: pa.Table) -> pa.Table:
        batch = schema.one_batch(pairs.to_batches(), pairs.schema)
        columns = schema.with_shares(schema.PAIRS_FROM_FILES, pairs.schema)
        return pa.Table.from_batches(names.name_pairs(batch, 2 * batch.num_rows), schema=columns)

    return Audited(
        documents=documents,
        plan=plan,
        config=config,
        num_documents=num_documents,
        removed=lambda: _reported(documents.layout, load("removed"), _REMOVED),
        listed=(lambda: _reported(documents.layout, load("pairs"), _PAIRS)) if is_listed else None,
        name=name,
    )


def _reported(
    layout: FileLayout, table: pa.Table | None, ends: Sequence[tuple[str, str]]
) -> Iterator[pa.Table]:
    """Yield the pairs of a table by row; `ends` are the columns with file and number."""
    if table is not None and table.num_rows:
        rows = []
        for file, number in ends:
            files = schema.one_array(table.column(file))
            numbers = schema.one_array(table.column(number)).to_numpy()
            rows.append(layout.rows_of(files, numbers))
        yield pa.table([*rows, table.column("similarity")], schema=schema.ROW_PAIRS)


def audited_memory(
    read: in_memory.InMemorySource,
    documents: Documents,
    plan: Plan,
    config: Config,
    load: Callable[[str], pa.Table | None],
) -> Audited:
    """Return a run on documents in memory as an audit sees it; `load` returns a table that it reported, by name."""
    num_references = read.num_references
    own_ids = read.ids.slice(num_references)
    reference_ids = read.ids.slice(0, num_references)

    def rows_of(table: pa.Table, doc_id: str, row: str, *, may_be_against: bool) -> Any:
        """Return the rows that a table names; `is_against` says so of reference documents."""
        ids = table.column(doc_id)
        has_rows = row in table.column_names
        own = table.column(row) if has_rows else pc.index_in(ids, own_ids).cast(pa.int64())
        own = pc.add(own, num_references)
        if not (may_be_against and num_references):
            return own
        reference = (
            table.column(row) if has_rows else pc.index_in(ids, reference_ids).cast(pa.int64())
        )
        return pc.if_else(table.column("is_against"), reference, own)

    def reported(
        table: pa.Table, own: tuple[str, str], other: tuple[str, str]
    ) -> Iterator[pa.Table]:
        rows = [
            rows_of(table, *own, may_be_against=False),
            rows_of(table, *other, may_be_against=True),
        ]
        yield pa.table([*rows, table.column("similarity")], schema=schema.ROW_PAIRS)

    removed = load("removed")
    pairs = load("pairs")

    def reported_pairs() -> Iterator[pa.Table]:
        for table in reported(pairs, ("doc_b", "row_b"), ("doc_a", "row_a")):
            row_b, row_a, similarity = table.columns
            yield pa.table([row_a, row_b, similarity], schema=schema.ROW_PAIRS)

    return Audited(
        documents=documents,
        plan=plan,
        config=config,
        num_documents=read.num_own,
        removed=lambda: reported(removed, ("doc_id", "row"), ("kept_id", "kept_row")),
        listed=None if pairs is None else reported_pairs,
        name=lambda pairs: name_pairs(read, pairs),
    )


def audit_finished(report: Report, sample: int, config: Config, watch: Watch) -> Audit:
    """Audit a finished run on files, with the threads and the memory of `config`."""
    if isinstance(report, PassagesReport | ContaminationReport | PartsReport):
        raise DataError(
            "this run searched texts and compared no documents, so there are no pairs to audit",
            hint="audit a run of neardup dedup",
        )
    _check_format(report)
    again = Config.of(report.config, threads=config.threads, memory=config.memory)
    files = [finished_run.find_again(entry, again) for entry in report.inputs]
    num_references = sum(entry["ahead"] for entry in report.inputs)
    reported = Reported(
        report.plan, report.load, report.documents - report.num_rejected, report.num_pairs
    )
    return audit_files(files, num_references, reported, again, watch, sample)


def _check_format(report: Report) -> None:
    """Raise if this version computes other signatures than the run, and would therefore find other pairs."""
    now = measure_of(report.config).signature_format(report.config)
    if report.signature_format != now:
        raise DataError(
            f"the run {report.out} has signatures of the format `{report.signature_format}`, and this version computes "
            f"`{now}`",
            hint="run neardup dedup again, and audit that; the tables of the old run can still be read",
        )
