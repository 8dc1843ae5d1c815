"""The stored pairs of a finished run on files: list them, or select again at a higher threshold, without a new run."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup import schema
from neardup.config import Config
from neardup.errors import ConfigError, NotStoredError
from neardup.io.columns.sorted_search import find_sorted
from neardup.io.documents.cluster_sizes import ClusterSizes
from neardup.io.documents.file_reader import FileReader
from neardup.io.documents.layout import rows_in
from neardup.io.finished import finished_run, run_tables
from neardup.io.finished.stored_report import read_report
from neardup.io.storage.table_writer import TableWriter, reserved_table
from neardup.jobs.run import settings_again
from neardup.report import Report, count_references
from neardup.stages.select import close_pairs, lead_pairs, thin_table

if TYPE_CHECKING:
    from neardup.engines.local.engine import LocalEngine
    from neardup.pipeline import PipelineOutcome

I64 = npt.NDArray[np.int64]


def load_run(path: Path) -> Report:
    """Open the output of a finished run on files, which can be selected again by its stored pairs."""
    report = finished_run.restore(path)
    is_list = report.config.asks_containment and not path.is_dir()
    return dataclasses.replace(
        report, select_again=None if is_list else select_stored, lists_pairs=not path.is_dir()
    )


def list_stored(run: Path, target: Path, config: Config) -> Report:
    """Write the stored pairs of a finished run: all of them, or those of at least the given threshold."""
    read_report(run).check_compares(run)
    before = finished_run.restore(run)
    stored = before.load("pairs")
    if stored is None:
        raise NotStoredError(
            f"the run {run} did not store its pairs: removed documents were not compared with each other",
            hint="deduplicate with pairs=True, or find the pairs of the input files",
        )
    _check_apart(target, run, before)
    if not config.is_threshold_given:
        config = Config.of(config, threshold=before.config.threshold)
    if config.threshold < before.config.threshold:
        raise ConfigError(
            f"`threshold` must be at least {before.config.threshold:g}, the threshold of {run}, "
            f"got {config.threshold:g}",
            hint="run neardup pairs on the input files",
        )
    found = stored.filter(pc.greater_equal(stored.column("similarity"), config.threshold))
    with reserved_table(target, overwrite=config.overwrite) as write:
        write(found)
    return dataclasses.replace(
        before,
        config=config,
        plan=dataclasses.replace(before.plan, threshold=config.threshold),
        num_pairs=found.num_rows,
        load=functools.partial(run_tables.read_pairs, target),
        out=str(target),
        files=(target.name,),
    )


def _check_apart(target: Path, run: Path, before: Report) -> None:
    """Raise if the pairs would replace a file that the run wrote."""
    own = {
        os.path.realpath(run / name) for name in (*before.files, "removed.parquet", "pairs.parquet")
    }
    if os.path.realpath(target) in own:
        raise ConfigError(
            f"the output {target} is a file of the run {run}", hint="choose another `out`"
        )


def write_order(
    path: Path,
    pairs: Path,
    documents: FileReader,
    outcome: PipelineOutcome[pa.Table],
    engine: LocalEngine,
) -> None:
    """Write the position and the keep priority of every document in a pair, so that `at_threshold` can select again."""
    rows: I64 = np.empty(0, np.int64)
    for batch in pq.ParquetFile(pairs).iter_batches(columns=["file_a", "row_a", "file_b", "row_b"]):
        ends = []
        for side in "ab":
            numbers = batch.column(f"row_{side}").to_numpy()
            ends.append(documents.layout.rows_of(batch.column(f"file_{side}"), numbers))
        rows = np.union1d(rows, np.concatenate(ends))
    positions = np.full(rows.size, -1)
    num_before = 0
    for own, _ in documents.notes.ids_of_input():
        begin, end = np.searchsorted(rows, [own[0], own[-1] + 1]) if own.size else (0, 0)
        positions[begin:end] = np.searchsorted(own, rows[begin:end]) + num_before
        num_before += own.size
    if outcome.sketches is None:
        raise TypeError("the outcome of a run on files must have priorities")
    found = engine.lookup(pa.table({"row": rows}), "row", outcome.sketches, ["priority"])
    with TableWriter(path, schema.KEEP_ORDER) as writer:
        writer.write(
            pa.table([rows, positions, found.column("priority")], schema=schema.KEEP_ORDER)
        )


def select_stored(report: Report, threshold: float) -> Report:
    """Select among the stored pairs of a run on files, as a run at this threshold selects among the pairs it finds."""
    _check_undecided(report)
    stored = report.pairs
    numbered = _number(stored, report)
    named = _names(stored, numbered)
    rows = named.column("row").to_numpy()
    order = report.load("order")
    priority = _priorities(rows, order, report)
    chosen = pc.greater_equal(stored.column("similarity"), threshold)
    members = _select(rows, priority, numbered, numbered.filter(chosen), report)
    own_priority = priority[np.searchsorted(rows, members.column("row").to_numpy())]
    selection = thin_table(members, own_priority, report.config.per_cluster)
    at = np.searchsorted(rows, selection.column("row").to_numpy())
    kept_at = np.searchsorted(rows, selection.column("kept_row").to_numpy())
    tables = {"pairs": stored.filter(chosen), "removed": _removed(named, at, kept_at, selection)}
    if "containment_a" in stored.column_names:
        tables["removed"] = _with_shares(tables["removed"], selection, numbered, stored)
    clusters = report.load("clusters")
    if clusters is not None and order is not None:
        tables["clusters"] = _clusters(
            clusters, named, order.column("position").to_numpy(), members
        )
    config, plan = settings_again(report.config, report.plan, threshold)
    return dataclasses.replace(
        report,
        config=config,
        plan=plan,
        num_kept=report.num_kept + report.num_removed - selection.num_rows,
        num_removed=selection.num_rows,
        removed_against=count_references(selection.column("kept_row"), _num_references(report)),
        num_pairs=tables["pairs"].num_rows,
        warnings=() if plan.keeps_recall else (plan.judgement(),),
        load=functools.partial(_load, report, tables, threshold),
        # A second selection starts from the pairs of the run, which include those of every higher
        # threshold.
        select_again=functools.partial(_select_again, report),
        largest=None,
        audit=None,
        out=None,
        files=(),
    )


class StoredCounts(NamedTuple):
    """What `at_threshold` would select."""

    threshold: float
    removed: int
    pairs: int
    clusters: int


def count_stored(report: Report, thresholds: Sequence[float]) -> list[StoredCounts]:
    """Count what `at_threshold` selects at each of some thresholds, without building its tables."""
    _check_undecided(report)
    numbered = _number(report.pairs, report)
    rows = np.unique(np.concatenate([numbered.column(f"row_{side}").to_numpy() for side in "ab"]))
    priority = _priorities(rows, report.load("order"), report)
    counts = []
    for threshold in thresholds:
        chosen = numbered.filter(pc.greater_equal(numbered.column("similarity"), threshold))
        members = _select(rows, priority, numbered, chosen, report)
        own_priority = priority[np.searchsorted(rows, members.column("row").to_numpy())]
        selection = thin_table(members, own_priority, report.config.per_cluster)
        num_clusters = pc.count_distinct(selection.column("kept_row")).as_py()
        counts.append(StoredCounts(threshold, selection.num_rows, chosen.num_rows, num_clusters))
    return counts


def _check_undecided(report: Report) -> None:
    if report.decisions is not None:
        raise NotStoredError(
            "a run with decisions cannot be selected again: its tables do not record the decisions",
            hint="run again with the higher threshold",
        )


def _select_again(run: Report, report: Report, threshold: float) -> Report:
    del report
    return select_stored(run, threshold)


def _number(pairs: pa.Table, report: Report) -> pa.Table:
    """The pairs with the rows of the run, as schema.ROW_PAIRS."""
    names = pa.array([entry["file"] for entry in report.inputs], pa.string())
    first_rows = np.cumsum([0, *(entry["rows"] for entry in report.inputs)], dtype=np.int64)
    rows = []
    for side in "ab":
        files = schema.one_array(pairs.column(f"file_{side}"))
        numbers = pairs.column(f"row_{side}").to_numpy()
        rows.append(rows_in(files, numbers, names, first_rows))
    return pa.table([*rows, pairs.column("similarity")], schema=schema.ROW_PAIRS)


def _names(pairs: pa.Table, numbered: pa.Table) -> pa.Table:
    """Row, doc_id, file and row number of every document in a pair, ascending by row."""
    rows = np.concatenate([numbered.column(f"row_{side}").to_numpy() for side in "ab"])
    rows, firsts = np.unique(rows, return_index=True)

    def first_of(name: str, kind: pa.DataType) -> pa.ChunkedArray:
        chunks = [*pairs.column(f"{name}_a").chunks, *pairs.column(f"{name}_b").chunks]
        return pa.chunked_array(chunks, kind).take(pa.array(firsts))

    return pa.table(
        {
            "row": rows,
            "doc_id": first_of("doc", pa.string()),
            "file": first_of("file", pa.string()),
            "number": first_of("row", pa.int64()),
        }
    )


def _num_references(report: Report) -> int:
    return sum(entry["rows"] for entry in report.inputs if entry["ahead"])


def _priorities(rows: I64, order: pa.Table | None, report: Report) -> I64:
    """The keep priorities of documents in pairs, the smallest first."""
    if order is not None:
        _check_same_rows(rows, order.column("row").to_numpy(), report)
        priority: I64 = order.column("priority").to_numpy()
        return priority
    if report.config.keep not in ("first", "last"):
        raise NotStoredError(
            f"a run of pairs does not store the keep order of keep={report.config.keep!r}",
            hint="call neardup.deduplicate with pairs=True",
        )
    return np.where(
        rows < _num_references(report),
        schema.REFERENCE_PRIORITY,
        rows if report.config.keep == "first" else -rows,
    )


def _check_same_rows(rows: I64, ordered: I64, report: Report) -> None:
    """Raise unless order.parquet lists the documents of the stored pairs: kernels use its values by position."""
    strangers = np.setxor1d(rows, ordered, assume_unique=True)
    if strangers.size:
        table = Path(report.out or "") / "order.parquet"
        raise run_tables.damaged(
            table,
            f"row {strangers[0]:,} of the input is either only in it or only in pairs.parquet",
        )


def _select(
    rows: I64, priority: I64, stored: pa.Table, pairs: pa.Table, report: Report
) -> pa.Table:
    """The removed rows with their kept rows, as schema.SELECTION."""
    if report.config.cluster == "leader":
        chosen = lead_pairs(rows, priority, pairs)
    else:
        kept_rows = close_pairs(rows, priority, pairs)
        similarities = _similarities(rows, kept_rows, stored)
        chosen = pa.table([rows, kept_rows, similarities], schema=schema.SELECTION)
    is_removed = pc.not_equal(chosen.column("row"), chosen.column("kept_row"))
    is_input = pc.greater_equal(chosen.column("row"), _num_references(report))
    return chosen.filter(pc.and_(is_removed, is_input))


def _similarities(rows: I64, kept_rows: I64, stored: pa.Table) -> npt.NDArray[np.float64]:
    """The similarity of each document to the kept one of its cluster; raise if the two are not a stored pair."""
    width = int(rows.max(initial=0)) + 1
    keys = stored.column("row_a").to_numpy() * width + stored.column("row_b").to_numpy()
    order = np.argsort(keys)
    wanted = np.minimum(rows, kept_rows) * width + np.maximum(rows, kept_rows)
    is_stored, at = find_sorted(keys[order], wanted)
    values = np.where(is_stored, stored.column("similarity").to_numpy()[order][at], np.nan)
    values[rows == kept_rows] = 1.0
    if num_unknown := int(np.isnan(values).sum()):
        raise NotStoredError(
            f"{num_unknown:,} documents are connected to the kept one of their cluster only through others, and their "
            "similarity to it was not stored",
            hint="run again with the higher threshold, or with cluster='leader'",
        )
    return values


def _removed(named: pa.Table, at: I64, kept_at: I64, selection: pa.Table) -> pa.Table:
    own = named.take(pa.array(at))
    kept = named.take(pa.array(kept_at))
    columns = [
        own.column("doc_id"),
        kept.column("doc_id"),
        selection.column("similarity"),
        own.column("file"),
        own.column("number"),
        kept.column("file"),
        kept.column("number"),
    ]
    return pa.table(columns, schema=schema.REMOVED_FROM_FILES)


def _with_shares(
    removed: pa.Table, selection: pa.Table, numbered: pa.Table, stored: pa.Table
) -> pa.Table:
    """Add both shares of the pair that each document was removed for; the reference document is `a`."""
    width = int(pc.max(numbered.column("row_b")).as_py() or 0) + 1
    keys = numbered.column("row_a").to_numpy() * width + numbered.column("row_b").to_numpy()
    wanted = selection.column("kept_row").to_numpy() * width + selection.column("row").to_numpy()
    order = np.argsort(keys)
    is_stored, found_at = find_sorted(keys[order], wanted)
    if not is_stored.all():
        raise NotStoredError(
            "a document was removed for one that does not come before it, so the shares of the pair were not stored",
            hint="run again with the higher threshold",
        )
    at = pa.array(order[found_at])
    shares = [stored.column(f"containment_{side}").take(at) for side in "ba"]
    columns = schema.with_shares(schema.REMOVED_FROM_FILES, schema.CONTAINMENT_SELECTION)
    return pa.table([*removed.columns, *shares], schema=columns)


def _clusters(clusters: pa.Table, named: pa.Table, positions: I64, members: pa.Table) -> pa.Table:
    """Every document with its cluster; documents, `members` and `positions` are in input order."""
    ids = schema.one_array(clusters.column("doc_id"))
    rows = named.column("row").to_numpy()
    at = np.searchsorted(rows, members.column("row").to_numpy())
    kept_at = np.searchsorted(rows, members.column("kept_row").to_numpy())
    is_member = np.zeros(len(ids), np.bool_)
    sizes = np.ones(len(ids), np.int64)
    is_member[positions[at]] = True
    kept_ids = schema.one_array(named.column("doc_id").take(pa.array(kept_at)))
    is_own = positions >= 0
    sizes[positions[is_own]] = ClusterSizes(members).of(rows)[is_own]
    cluster_ids = pc.replace_with_mask(ids, pa.array(is_member), kept_ids)
    columns = [ids, cluster_ids, pa.array(sizes)]
    return pa.table(columns, schema=schema.clusters(pa.string()))


def _load(
    report: Report, tables: dict[str, pa.Table], threshold: float, name: str
) -> pa.Table | None:
    if name == "kept":
        raise NotStoredError(
            "a new selection writes no kept rows", hint=f"run again with threshold={threshold:g}"
        )
    if name == "mask":
        return _mask(report, tables["removed"])
    return report.load(name) if name in ("rejected", "common") else tables.get(name)


def _mask(report: Report, removed: pa.Table) -> pa.Table:
    """Which rows are kept by the new selection."""
    is_kept = report.mask.copy()
    is_kept[finished_run.own_rows(report.removed, report.inputs)] = True
    is_kept[finished_run.own_rows(removed, report.inputs)] = False
    return pa.table({"is_kept": is_kept})
