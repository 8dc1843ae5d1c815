"""Apply a reviewer's decisions to a selection.

A decided document is last in keep order, so it never causes another to be removed. After the
selection, a document to keep is kept beside the kept one of its cluster. A document to remove that
is not similar to any kept document is removed with its true similarity to the nearest one, although
that is below the threshold.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.engines.base import no_progress
from neardup.events import Watch
from neardup.io.documents.file_reader import FileReader
from neardup.io.finished.decision_file import KEPT_LAST, REMOVED_LAST, Decided, Decision
from neardup.kernels.similarity import Sets
from neardup.measures.jaccard import text_sets
from neardup.pipeline import PipelineOutcome
from neardup.search.inverted_index import Compared, InvertedIndex

I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


def apply_decisions(
    outcome: PipelineOutcome[pa.Table],
    source: FileReader,
    decided: Decided,
    config: Config,
    watch: Watch,
) -> PipelineOutcome[pa.Table]:
    """Return the outcome with decisions about documents of the source."""
    keep = decided.fixed.rows_with(KEPT_LAST, source.layout)
    remove = decided.fixed.rows_with(REMOVED_LAST, source.layout)
    unmatched = decided.unmatched
    if unmatched:
        watch.warn(_unmatched_message(unmatched, len(unmatched) + keep.size + remove.size))
    members = outcome.clustered
    selection = outcome.selection
    is_kept = np.isin(selection.column("row").to_numpy(), keep)
    num_spared = int(is_kept.sum())
    selection = selection.filter(pa.array(~is_kept))
    astray = _astray(members, remove)
    # A member that `per_cluster` would spare is removed as well.
    thinned = np.setdiff1d(np.setdiff1d(remove, astray), selection.column("row").to_numpy())
    gone = np.concatenate([selection.column("row").to_numpy(), remove])
    nearest = _nearest_kept(source, astray, gone, config)
    selection = _joined(_without(selection, astray), _only(members, thinned), nearest)
    members = _joined(_without(members, astray), nearest)
    counts = {
        "kept": num_spared,
        "removed": nearest.num_rows + thinned.size,
        "unmatched": len(unmatched),
    }
    return dataclasses.replace(outcome, selection=selection, members=members, decisions=counts)


def _astray(members: pa.Table, remove: I64) -> I64:
    """The documents to remove that are not in the cluster of any kept document."""
    loses_kept = np.isin(members.column("kept_row").to_numpy(), remove)
    rows = members.column("row").to_numpy()
    return np.setdiff1d(remove, rows[~loses_kept])


def _without(table: pa.Table, rows: I64) -> pa.Table:
    return table.filter(pa.array(~np.isin(table.column("row").to_numpy(), rows)))


def _only(table: pa.Table, rows: I64) -> pa.Table:
    return table.filter(pa.array(np.isin(table.column("row").to_numpy(), rows)))


def _joined(*tables: pa.Table) -> pa.Table:
    return pa.concat_tables(tables).sort_by("row").combine_chunks()


def _nearest_kept(source: FileReader, rows: I64, gone: I64, config: Config) -> pa.Table:
    """The most similar kept document of each row, ties by row, as schema.SELECTION; empty if nothing is kept."""
    best = np.full(rows.size, -1)
    values = np.full(rows.size, -1.0)
    if rows.size:
        search = _Search(_sets_of(source, rows, config))
        for part in range(source.num_parts):
            for batch in source.read(part, no_progress):
                own = batch.column("row").to_numpy()
                is_candidate = ~np.isin(own, gone)
                texts = batch.filter(pa.array(is_candidate)).column("text")
                found = search.similarities(texts, config)
                for number, similarities in enumerate(found.T if found.size else ()):
                    at = int(np.argmax(similarities))
                    if similarities[at] > values[number]:
                        best[number] = own[is_candidate][at]
                        values[number] = similarities[at]
    is_found = best >= 0
    return pa.table([rows[is_found], best[is_found], values[is_found]], schema=schema.SELECTION)


def _sets_of(source: FileReader, rows: I64, config: Config) -> Sets:
    """The shingle sets of some rows, ascending."""
    sets: dict[int, npt.NDArray[np.uint64]] = {}
    parts = np.unique(np.searchsorted(source.first_rows, rows, side="right") - 1)
    for part in parts.tolist():
        for batch in source.read(part, no_progress):
            is_wanted = np.isin(batch.column("row").to_numpy(), rows)
            chosen = batch.filter(pa.array(is_wanted))
            found = text_sets(chosen.column("text"), config)
            for at, row in enumerate(chosen.column("row").to_pylist()):
                sets[row] = found.shingles[found.ends[at] : found.ends[at + 1]]
    ordered = [sets[row] for row in rows.tolist()]
    sizes = [shingles.size for shingles in ordered]
    return Sets(np.concatenate(ordered), np.cumsum([0, *sizes]))


class _Search:
    """Exact similarities of many documents to a few, which are indexed."""

    def __init__(self, sets: Sets) -> None:
        self._sizes = np.diff(sets.ends)
        self._index = InvertedIndex(Compared(sets, np.zeros(self._sizes.size, np.int64)))

    def similarities(self, texts: pa.Array, config: Config) -> F64:
        """Return a matrix with one row per text and one column per set."""
        sets = text_sets(texts, config)
        shared = self._index.count_shared(sets)
        union = np.diff(sets.ends)[:, None] + self._sizes - shared
        similarities: F64 = shared / np.maximum(union, 1)
        return similarities


def _unmatched_message(unmatched: tuple[Decision, ...], total: int) -> str:
    first = unmatched[0]
    count = len(unmatched)
    where = f"row {first.row:,} of {first.file}"
    if total == 1:
        message = f"the decision about {where} matches no document"
    elif count == 1:
        message = f"1 of {total:,} decisions, about {where}, matches no document"
    else:
        message = f"{count:,} of {total:,} decisions match no document, the first about {where}"
    return f"{message}: the file, the row or the text has changed"
