"""Precision and recall of a finished run against labels, at its threshold and at every other one.

Labelled pairs are compared exactly by their texts, so that the curve goes below the threshold of
the run. Nothing is quadratic in the labelled documents: of large clusters, documents are drawn.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import html_view, schema
from neardup.config import Config
from neardup.config.checks import SET_MEASURES
from neardup.engines.local.engine import LocalEngine
from neardup.errors import DataError
from neardup.events import Watch
from neardup.index.index_folder import is_index
from neardup.io.columns.sorted_search import find_sorted
from neardup.io.finished import finished_run
from neardup.io.finished.label_file import ClusterLabels, Labels, PairLabels, read_labels
from neardup.kernels import neighbours as kernel
from neardup.kernels import union_find
from neardup.kernels.similarity import Sets
from neardup.measures import jaccard
from neardup.report import ContaminationReport, PartsReport, PassagesReport, Report
from neardup.search.audit import draw_keys
from neardup.search.inverted_index import Compared, as_bags
from neardup.search.tune import SimilarityCounts, Streamed, seconds_per_document

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
# The most pairs within labelled clusters, and within those of a run: documents of larger clusters
# are drawn.
MAX_PAIRS: Final = 1_000_000
# Seconds of one core to find pairs of different clusters; with more documents, a part of them is
# compared with all.
MAX_SECONDS: Final = 20.0
RESAMPLES: Final = 1000
_RESAMPLED_AT_ONCE: Final = 1 << 22
_QUANTILES: Final = (0.025, 0.975)
# The 97.5 % quantile of the normal distribution.
_NORMAL: Final = 1.959963984540054
_LEAST: Final = 10
_STEPS: Final = 100
_SETS_AT_ONCE: Final = 1 << 12


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """How a run agrees with labels; None is a ratio without a pair to count.

    Attributes:
        precision: the share of the found pairs with a label that are the same document.
        precision_low: lower bound of its 95 % interval.
        precision_high: upper bound of its 95 % interval.
        recall: the share of the pairs labelled as the same document that were found.
        recall_low: lower bound of its 95 % interval.
        recall_high: upper bound of its 95 % interval.
        f1: the harmonic mean of precision and recall.
        f1_low: lower bound of its 95 % interval.
        f1_high: upper bound of its 95 % interval.
        threshold: the threshold of the run.
        right: found pairs labelled as the same.
        wrong: found pairs labelled as different.
        missed: pairs labelled as the same that were not found.
        documents: labelled documents of the input.
        unknown: ids of the labels that the input does not have.
        left_out: labelled documents of large clusters that were not drawn.
        curve: threshold, precision, recall and f1, if all pairs of at least this similarity were
            found; None if the run does not compare sets, or ignores common shingles.
        is_estimated: whether the curve counts pairs of different clusters from a part of the
            documents.
        best_threshold: the threshold with the highest f1; of equally good ones the middle.
        best_f1: that f1.
        errors: wrong and missed pairs: doc_a, doc_b, similarity, kind.
    """

    precision: float | None
    precision_low: float | None
    precision_high: float | None
    recall: float | None
    recall_low: float | None
    recall_high: float | None
    f1: float | None
    f1_low: float | None
    f1_high: float | None
    threshold: float
    right: int
    wrong: int
    missed: int
    documents: int
    unknown: int
    left_out: int
    curve: pa.Table | None
    is_estimated: bool
    best_threshold: float | None
    best_f1: float | None
    errors: pa.Table

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return values | {
            "curve": None if self.curve is None else self.curve.to_pylist(),
            "errors": self.errors.to_pylist(),
        }

    def _repr_html_(self) -> str:
        """Show the numbers and some errors in a notebook."""
        names = ("precision", "recall", "f1")
        rows = [
            (name, *(getattr(self, f"{name}{end}") for end in ("", "_low", "_high")))
            for name in names
        ]
        errors = self.errors.slice(0, 10).to_pylist()
        return html_view.view(
            f"at threshold {self.threshold:g}; best: {self.best_threshold}",
            html_view.table(("", "value", "low", "high"), rows),
            html_view.table(
                tuple(self.errors.column_names), [tuple(row.values()) for row in errors]
            ),
        )


class _Documents(NamedTuple):
    """Labelled documents in input order: row in the run, id, contents and group."""

    rows: I64
    ids: pa.Array
    texts: pa.Array
    groups: I64


class _Pairs(NamedTuple):
    """Pairs of labelled documents by position, the first one smaller."""

    first: I64
    second: I64

    def keys(self, num_documents: int) -> I64:
        return self.first * num_documents + self.second

    def take(self, chosen: Any) -> _Pairs:
        return _Pairs(self.first[chosen], self.second[chosen])


class _Judged(NamedTuple):
    """What labels and run say: pairs labelled the same, found pairs with a label, and whether those are the same.

    different: pairs labelled as different, None if those are all other pairs; unit: what is
    resampled, of every document.
    """

    same: _Pairs
    found: _Pairs
    is_right: Bools
    different: _Pairs | None
    unit: I64


def evaluate(report: Report, labels: Any, watch: Watch) -> Evaluation:
    """Compare what a run found with labels."""
    if isinstance(report, PassagesReport | ContaminationReport | PartsReport):
        raise DataError(
            "this run searched texts and compared no documents, so there are no pairs to evaluate",
            hint="evaluate a run of neardup dedup, or a list of neardup pairs",
        )
    path = report.out or getattr(report.load, "path", None)
    config = report.config
    removed = None if _is_list(report, path) else report.removed
    known = read_labels(labels, removed if path is not None else None)
    with watch.stage("read"):
        documents = _read_documents(report, _ids_of(known), path)
    ids = documents.ids
    num_unknown = pc.count_distinct(_ids_of(known)).as_py() - len(ids)
    if not len(ids):
        raise DataError(
            f"none of the {num_unknown:,} ids of the labels is an id of the input",
            hint="ids are those of removed.parquet and clusters.parquet; without one, a document is named file:row",
        )
    left_out = 0
    clusters = None
    if isinstance(known, ClusterLabels):
        clusters = _cluster_of(known, ids)
        drawn = _draw(clusters, documents.rows, config.seed)
        documents, clusters = _chosen(documents, drawn), clusters[drawn]
        left_out += len(ids) - drawn.size
    found_clusters = None
    if removed is not None:
        found_clusters = _found_clusters(report, documents, path)
        if clusters is not None:
            drawn = _draw(found_clusters, documents.rows, config.seed)
            left_out += len(documents.ids) - drawn.size
            documents, clusters = _chosen(documents, drawn), clusters[drawn]
            found_clusters = found_clusters[drawn]
    with watch.stage("compare"):
        judged = _judge(known, clusters, found_clusters, documents, report)
        return _evaluation(judged, clusters, documents, config, num_unknown, left_out)


def _is_list(report: Report, path: Any) -> bool:
    """Whether the run lists pairs; a folder has clusters, also if it stored its pairs."""
    if path is None:
        return report.num_pairs is not None
    return Path(path).is_file()


def _ids_of(labels: Labels) -> pa.Array:
    if isinstance(labels, ClusterLabels):
        return labels.doc_id
    return pa.concat_arrays([labels.doc_a, labels.doc_b])


def _read_documents(report: Report, wanted: pa.Array, path: Any) -> _Documents:
    """Read the labelled documents of a run; raise if an id names several."""
    rows: list[I64] = []
    ids: list[pa.Array] = []
    texts: list[pa.Array] = []
    groups: list[pa.Array] = []
    for own_rows, own_ids, own_texts, own_groups in _batches(report, path):
        is_wanted = pc.is_in(own_ids, wanted)
        if not pc.any(is_wanted).as_py():
            continue
        rows.append(own_rows[is_wanted.to_numpy(zero_copy_only=False)])
        ids.append(own_ids.filter(is_wanted))
        texts.append(own_texts.filter(is_wanted))
        groups.append(own_groups.filter(is_wanted))
    if not rows:
        none = pa.array([], pa.string())
        return _Documents(
            np.empty(0, np.int64), none, pa.array([], pa.large_string()), np.empty(0, np.int64)
        )
    all_ids = pa.concat_arrays(ids)
    counted = all_ids.value_counts()
    repeated = counted.filter(pc.greater(counted.field("counts"), 1))
    if len(repeated):
        first = repeated[0].as_py()
        raise DataError(
            f"labels need ids that are unique: {first['values']!r} names {first['counts']} documents of the input, and "
            f"{len(repeated):,} labelled ids in all are not unique",
            hint="run with an id_column whose values are unique, or leave these ids out of the labels",
        )
    codes = pa.concat_arrays(groups).dictionary_encode().indices.fill_null(-1)
    return _Documents(
        np.concatenate(rows), all_ids, pa.concat_arrays(texts), codes.to_numpy().astype(np.int64)
    )


def _batches(report: Report, path: Any) -> Iterator[tuple[I64, pa.Array, pa.Array, pa.Array]]:
    """Iterate over the documents of a run: row, id, contents and group."""
    if path is None:
        table = report.load("texts")
        if table is None:
            raise DataError(
                "the documents of this run are not stored", hint="write the run to files: out="
            )
        for batch in table.to_batches():
            ids = batch.column("doc_id").cast(pa.string())
            none = pa.nulls(batch.num_rows, pa.string())
            yield batch.column("row").to_numpy(), ids, batch.column("text"), none
        return
    config = Config.of(report.config, strict=False, keep="first")
    first = 0
    for entry in report.inputs:
        if is_index(entry["path"]):
            first += entry["rows"]
            continue
        is_whole = finished_run.find_again(entry, config).format == "text"
        begin = first
        for records in finished_run.read_again(entry, config):
            rows = begin + records.rows
            if is_whole:
                names = pa.array([entry["file"]] * rows.size, pa.string())
            else:
                numbers = pa.array(rows - first + 1).cast(pa.string())
                names = pc.binary_join_element_wise(pa.scalar(entry["file"]), numbers, ":")
            ids = pc.coalesce(records.ids.cast(pa.string()), names.cast(pa.string()))
            groups = records.groups
            if groups is None:
                groups = pa.nulls(rows.size, pa.string())
            yield rows, ids, records.texts, groups.cast(pa.string())
            begin += records.num_rows
        first += entry["rows"]


def _chosen(documents: _Documents, at: I64) -> _Documents:
    where = pa.array(at)
    return _Documents(
        documents.rows[at],
        documents.ids.take(where),
        documents.texts.take(where),
        documents.groups[at],
    )


def _cluster_of(labels: ClusterLabels, ids: pa.Array) -> I64:
    """Return the number of the labelled cluster of every document; raise if one has two labels."""
    both = (
        pa.table({"id": labels.doc_id, "cluster": labels.cluster})
        .group_by(["id", "cluster"])
        .aggregate([])
    )
    counts = both.column("id").value_counts()
    twice = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(twice):
        raise DataError(
            f"labels need ids that are unique: {twice[0].as_py()['values']!r} is labelled with several clusters",
            hint="give every document one cluster",
        )
    where = pc.index_in(ids, schema.one_array(both.column("id")))
    codes = schema.one_array(both.column("cluster")).dictionary_encode().indices
    found: I64 = codes.take(where).to_numpy().astype(np.int64)
    return found


def _draw(clusters: I64, rows: I64, seed: int) -> I64:
    """Return the positions of documents so that all clusters together have at most MAX_PAIRS pairs.

    The largest clusters lose documents, those with the largest hashes.
    """
    _, numbers, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    limit = int(sizes.max(initial=0))
    low = 1
    while low < limit:  # the largest size that keeps within the bound
        middle = (low + limit + 1) // 2
        kept = np.minimum(sizes, middle)
        if int((kept * (kept - 1) // 2).sum()) <= MAX_PAIRS:
            low = middle
        else:
            limit = middle - 1
    order = np.lexsort((draw_keys(0, rows, seed), numbers))
    starts = np.cumsum(np.r_[0, sizes])[:-1]
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size) - np.repeat(starts, sizes)
    return np.flatnonzero(rank < max(limit, 1))


def _found_clusters(report: Report, documents: _Documents, path: Any) -> I64:
    """Return the row of the kept document of every labelled one: equal in a cluster of the run."""
    kept = documents.rows.copy()
    if path is None:
        selection = report.load("selection")
        if selection is None:
            raise DataError("the run selects no documents", hint="evaluate a run of pairs")
        rows, kept_rows = (selection.column(name).to_numpy() for name in ("row", "kept_row"))
    else:
        inputs = report.inputs
        removed = report.removed
        rows, kept_rows = (
            _rows_in_run(removed, (f"{end}file", f"{end}row"), inputs) for end in ("", "kept_")
        )
    order = np.argsort(rows)
    is_removed, at = find_sorted(rows[order], documents.rows)
    kept[is_removed] = kept_rows[order][at[is_removed]]
    return kept


def _rows_in_run(table: pa.Table, names: tuple[str, str], inputs: Any) -> I64:
    """Return the rows that files and row numbers of a table name, over all inputs."""
    firsts = np.cumsum([0, *(entry["rows"] for entry in inputs)], dtype=np.int64)
    files = pa.array([entry["file"] for entry in inputs], pa.string())
    at = pc.index_in(schema.one_array(table.column(names[0])), files)
    where = at.fill_null(-1).to_numpy()
    numbers = table.column(names[1]).to_numpy()
    # A document of an index has no row: it is named by a negative number of its own.
    own = np.where(where >= 0, firsts[where] + numbers - 1, -1 - numbers)
    found: I64 = own.astype(np.int64)
    return found


def _pairs_within(clusters: I64) -> _Pairs:
    """Return all pairs of documents in a cluster."""
    order = np.argsort(clusters, kind="stable")
    _, sizes = np.unique(clusters, return_counts=True)
    ends = np.repeat(np.cumsum(sizes), sizes)
    later = ends - np.arange(order.size) - 1
    first = np.repeat(np.arange(order.size), later)
    within = np.arange(later.sum()) - np.repeat(np.cumsum(later) - later, later)
    a, b = order[first], order[first + 1 + within]
    return _Pairs(np.minimum(a, b), np.maximum(a, b))


def _judge(
    known: Labels,
    clusters: I64 | None,
    found_clusters: I64 | None,
    documents: _Documents,
    report: Report,
) -> _Judged:
    num_documents = len(documents.ids)
    if isinstance(known, PairLabels):
        same, different = _labelled_pairs(known, documents)
        parents = np.arange(num_documents)
        union_find.union_links(same.first, same.second, parents)
        union_find.find_roots(parents)
        labelled = _Pairs(np.r_[same.first, different.first], np.r_[same.second, different.second])
        is_same = np.arange(labelled.first.size) < same.first.size
        if found_clusters is not None:
            is_found = found_clusters[labelled.first] == found_clusters[labelled.second]
        else:
            listed = _listed(report, documents).keys(num_documents)
            is_found = np.isin(labelled.keys(num_documents), listed)
        return _Judged(same, labelled.take(is_found), is_same[is_found], different, parents)
    if clusters is None:
        raise TypeError("cluster labels must be numbered")
    if found_clusters is not None:
        found = _pairs_within(found_clusters)
    else:
        found = _listed(report, documents)
    is_right = clusters[found.first] == clusters[found.second]
    return _Judged(_pairs_within(clusters), found, is_right, None, clusters)


def _labelled_pairs(known: PairLabels, documents: _Documents) -> tuple[_Pairs, _Pairs]:
    """Return the pairs labelled as the same and as different, each once; raise if a pair is both."""
    ends = [
        pc.index_in(side, documents.ids).fill_null(-1).to_numpy().astype(np.int64)
        for side in (known.doc_a, known.doc_b)
    ]
    is_known = (ends[0] >= 0) & (ends[1] >= 0) & (ends[0] != ends[1])
    first = np.minimum(*ends)[is_known]
    second = np.maximum(*ends)[is_known]
    num_documents = max(len(documents.ids), 1)
    keys = first * num_documents + second
    is_same = known.same[is_known]
    same, different = np.unique(keys[is_same]), np.unique(keys[~is_same])
    both = np.intersect1d(same, different)
    if both.size:
        a, b = (documents.ids[int(at)].as_py() for at in divmod(int(both[0]), num_documents))
        raise DataError(
            f"the labels say of {a!r} and {b!r} both that they are the same and that they are not",
            hint="leave one of the two rows out",
        )
    return _Pairs(*np.divmod(same, num_documents)), _Pairs(*np.divmod(different, num_documents))


def _listed(report: Report, documents: _Documents) -> _Pairs:
    """Return the listed pairs of which both documents have a label."""
    pairs = report.load("pairs")
    if pairs is None:
        raise DataError("the run stored no pairs", hint="evaluate the output of neardup pairs")
    ends = [
        pc.index_in(schema.one_array(pairs.column(side).cast(pa.string())), documents.ids)
        .fill_null(-1)
        .to_numpy()
        .astype(np.int64)
        for side in ("doc_a", "doc_b")
    ]
    is_known = (ends[0] >= 0) & (ends[1] >= 0)
    num_documents = max(len(documents.ids), 1)
    keys = np.minimum(*ends)[is_known] * num_documents + np.maximum(*ends)[is_known]
    return _Pairs(*np.divmod(np.unique(keys), num_documents))


def _evaluation(
    judged: _Judged,
    clusters: I64 | None,
    documents: _Documents,
    config: Config,
    num_unknown: int,
    left_out: int,
) -> Evaluation:
    num_documents = len(documents.ids)
    right = judged.found.take(judged.is_right)
    wrong = judged.found.take(~judged.is_right)
    is_found = np.isin(judged.same.keys(num_documents), right.keys(num_documents))
    missed = judged.same.take(~is_found)
    ratios = _ratios(judged.unit, right, wrong, missed, config.seed)
    curve = None
    is_estimated = False
    best: tuple[float | None, float | None] = (None, None)
    values = [np.full(pairs.first.size, np.nan) for pairs in (wrong, missed)]
    if config.measure in SET_MEASURES and not (config.ignore_common or config.weights):
        sets = jaccard.text_sets(documents.texts, Config.of(config, html=False))
        score = partial(_similarities, sets, documents.groups, config)
        values = [score(pairs) for pairs in (wrong, missed)]
        edges = np.unique(np.r_[np.arange(_LEAST, _STEPS + 1) / _STEPS, config.threshold])
        num_right = _count_at_least(score(judged.same), edges)
        if judged.different is not None:
            num_wrong = _count_at_least(score(judged.different), edges).astype(np.float64)
        elif clusters is not None:
            num_wrong, is_estimated = _count_different(sets, clusters, documents, config, edges)
        curve = _curve(edges, num_right, num_wrong, judged.same.first.size)
        best = _best(curve)
    return Evaluation(
        **ratios,
        threshold=config.threshold,
        right=right.first.size,
        wrong=wrong.first.size,
        missed=missed.first.size,
        documents=num_documents,
        unknown=num_unknown,
        left_out=left_out,
        curve=curve,
        is_estimated=is_estimated,
        best_threshold=best[0],
        best_f1=best[1],
        errors=_errors(documents, wrong, missed, values),
    )


def _similarities(sets: Sets, groups: I64, config: Config, pairs: _Pairs) -> F64:
    """Return the exact similarity of pairs; 0 for documents of different groups, which are never compared."""
    bags = as_bags(Compared(sets, groups))
    shared = np.zeros(pairs.first.size)
    kernel.shared_items(bags, bags, np.stack(pairs), shared)
    sizes = np.diff(sets.ends)
    one, other = sizes[pairs.first], sizes[pairs.second]
    whole = np.minimum(one, other) if config.asks_containment else one + other - shared
    values: F64 = np.where(whole > 0, shared / np.maximum(whole, 1), 0.0)
    values[groups[pairs.first] != groups[pairs.second]] = 0.0
    return values


def _count_at_least(values: F64, edges: F64) -> I64:
    ordered = np.sort(values)
    counts: I64 = values.size - np.searchsorted(ordered, edges, side="left")
    return counts


def _count_different(
    sets: Sets, clusters: I64, documents: _Documents, config: Config, edges: F64
) -> tuple[F64, bool]:
    """Count the pairs of different clusters at or above each similarity, from a part of the documents if need be."""
    num_documents = clusters.size
    seconds = seconds_per_document(sets) * num_documents
    part = np.arange(num_documents)
    if seconds > MAX_SECONDS:
        size = max(1, int(num_documents * MAX_SECONDS / seconds))
        part = np.sort(np.argsort(draw_keys(0, documents.rows, config.seed))[:size])
    sizes = np.diff(sets.ends)[part]
    at = np.repeat(sets.ends[part] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    own = Sets(sets.shingles[at], np.r_[0, np.cumsum(sizes)])
    found = SimilarityCounts(
        own,
        part,
        clusters[part],
        documents.groups[part],
        edges=edges,
        is_share=config.asks_containment,
    )

    def count(start: int) -> None:
        stop = min(start + _SETS_AT_ONCE, num_documents)
        ends = sets.ends[start : stop + 1]
        found.add(
            Streamed(
                sets.shingles[ends[0] : ends[-1]],
                ends - ends[0],
                np.arange(start, stop),
                clusters[start:stop],
                documents.groups[start:stop],
            )
        )

    LocalEngine(config.threads).side_by_side(count, range(0, num_documents, _SETS_AT_ONCE))
    # Every pair of two documents of the part was counted from both sides.
    counts = np.cumsum(found.counts.sum(axis=0)[::-1])[::-1] / 2
    is_estimated = part.size < num_documents
    return counts * (num_documents / max(part.size, 1)), is_estimated


def _curve(edges: F64, right: I64, wrong: F64, num_same: int) -> pa.Table:
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = right / (right + wrong)
        recall = right / num_same if num_same else np.full(edges.size, np.nan)
        f1 = 2 * right / (right + wrong + num_same)
    columns = {"threshold": edges, "precision": precision, "recall": recall, "f1": f1}
    return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})


def _best(curve: pa.Table) -> tuple[float | None, float | None]:
    """Return the middle of the thresholds with the highest F1, and that F1."""
    values = curve.column("f1").fill_null(0).to_numpy()
    if not values.size or not values.max():
        return None, None
    best = np.flatnonzero(values == values.max())
    run = best[best - best[0] == np.arange(best.size)]
    return float(curve.column("threshold")[int(run[run.size // 2])].as_py()), float(values.max())


def _ratios(unit: I64, right: _Pairs, wrong: _Pairs, missed: _Pairs, seed: int) -> dict[str, Any]:
    """Return precision, recall and F1 with their 95 % intervals: by bootstrap over clusters, Wilson for 0 and 1.

    A pair belongs to the labelled cluster of its first document.
    """
    counts = np.stack(
        [
            np.bincount(unit[pairs.first], minlength=int(unit.max(initial=0)) + 1)
            for pairs in (right, wrong, missed)
        ]
    )
    counts = counts[:, counts.any(axis=0)]
    resampled = [_of_counts(counts.sum(axis=1)[None, :])]
    rng = np.random.default_rng(seed)
    at_once = max(1, _RESAMPLED_AT_ONCE // max(counts.shape[1], 1))
    for begin in range(0, RESAMPLES, at_once):
        size = min(at_once, RESAMPLES - begin)
        times = rng.poisson(1.0, (size, counts.shape[1]))
        resampled.append(_of_counts(times @ counts.T))
    measured, drawn = resampled[0], np.concatenate(resampled[1:])
    num_right, num_wrong, num_missed = counts.sum(axis=1).tolist()
    trials = (
        num_right + num_wrong,
        num_right + num_missed,
        num_right + num_wrong + num_missed,
    )
    found: dict[str, Any] = {}
    for column, (name, size) in enumerate(zip(("precision", "recall", "f1"), trials, strict=True)):
        value = measured[0, column]
        if np.isnan(value):
            found |= {name: None, f"{name}_low": None, f"{name}_high": None}
            continue
        if value in (0, 1):
            low, high = _wilson(value, size)
        else:
            low, high = np.nanquantile(drawn[:, column], _QUANTILES).tolist()
        found |= {name: float(value), f"{name}_low": low, f"{name}_high": high}
    return found


def _of_counts(counts: Any) -> F64:
    """Precision, recall and F1 of rows of right, wrong and missed pairs; NaN without a pair."""
    right, wrong, missed = np.asarray(counts, np.float64).T
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = (
            right / (right + wrong),
            right / (right + missed),
            2 * right / (2 * right + wrong + missed),
        )
    return np.stack(ratios, axis=1)


def _wilson(share: float, size: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of so many trials.

    >>> tuple(round(end, 3) for end in _wilson(1.0, 100))
    (0.963, 1.0)
    """
    square = _NORMAL**2
    middle = (share + square / (2 * size)) / (1 + square / size)
    half = _NORMAL * (share * (1 - share) / size + square / (4 * size**2)) ** 0.5
    half /= 1 + square / size
    return max(0.0, min(middle - half, share)), min(1.0, max(middle + half, share))


def _errors(documents: _Documents, wrong: _Pairs, missed: _Pairs, values: list[F64]) -> pa.Table:
    """The wrong pairs, the most similar first, and the missed ones, too: those are the most surprising."""
    tables = []
    for kind, pairs, own in zip(("wrong", "missed"), (wrong, missed), values, strict=True):
        order = np.lexsort((pairs.second, pairs.first, -own))
        ends = [documents.ids.take(pa.array(side[order])) for side in pairs]
        kinds = pa.array([kind] * order.size, pa.string())
        similarity = pa.array(own[order], from_pandas=True)
        tables.append(
            pa.table([*ends, similarity, kinds], names=["doc_a", "doc_b", "similarity", "kind"])
        )
    return pa.concat_tables(tables)
