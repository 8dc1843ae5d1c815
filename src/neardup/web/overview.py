"""The overview of a run as JSON: what was promised and found, distributions, and what a higher threshold would do."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neardup.errors import NearDupError
from neardup.jobs.explain import reason_to_keep
from neardup.jobs.review import STRATA, draw_review
from neardup.jobs.sources import Sources, choices
from neardup.jobs.stored_pairs import StoredCounts, count_stored
from neardup.report import Report
from neardup.theory.plan import spell_ratio
from neardup.version import VERSION
from neardup.web.pairs_view import PairsView
from neardup.web.run_view import RunView

NUM_LARGEST: Final = 10
# Rejected rows, reasons, warnings and files that the overview lists; it counts all.
_MAX_ROWS: Final = 100
_MAX_REASONS: Final = 20
_MAX_FILES: Final = 50
# Columns, and other things, by which the page counts sources.
_MAX_SOURCES_BY: Final = 6
# Above this many pairs, selecting again for every step takes too long.
_MANY_PAIRS: Final = 20_000_000
_NO_PAIRS: Final = "Run `neardup dedup --pairs` to see what a higher threshold would remove."


def sources_of(run: RunView, by: str | None = None) -> list[Sources]:
    """Return the sources that the page shows: by `by`, then by all that has several."""
    if not run.removals.keys.size or isinstance(run, PairsView):
        return []
    asked = [] if by is None else [run.report.sources(by=by)]
    return [*asked, *(one for one in choices(run.report) if one.by != by)][:_MAX_SOURCES_BY]


def review_of(run: RunView) -> dict[str, Any] | None:
    """Return the removals to judge: keys of the kept and of the removed document, and the number of the stratum."""
    if isinstance(run, PairsView) or not run.removals.keys.size:
        return None
    drawn = draw_review(run.report)
    removals = []
    for one in drawn.removals:
        key = one.row or 0
        if one.file is not None:
            key += int(run.first_keys[run.files.index(one.file)]) - 1
        at = run.removal(key)
        if at is not None:
            kept_key = int(run.removals.kept_keys[at])
            removals.append([kept_key, key, STRATA.index(one.stratum)])
    sizes = [drawn.sizes[name] for name in STRATA]
    return {"removals": removals, "sizes": sizes, "identical": drawn.identical}


def _sources(found: Sequence[Sources]) -> list[dict[str, Any]]:
    """Sources as numbers: a cell is two positions among the names, and how many documents were removed."""
    shown = []
    for one in found:
        num_sources = one.table.num_rows
        cells = one.removed_codes * num_sources + one.kept_codes
        counts = np.bincount(cells, minlength=num_sources**2)
        full = np.flatnonzero(counts)
        shown.append(
            {
                "by": one.by,
                "label": one.label,
                "sentence": one.sentence(),
                "names": one.table.column("source").to_pylist(),
                "documents": one.table.column("documents").to_pylist(),
                "cells": [
                    [int(at // num_sources), int(at % num_sources), int(counts[at])] for at in full
                ],
            }
        )
    return shown


def overview(
    run: RunView, *, removed_bytes: int | None = None, sources: Sequence[Sources] = ()
) -> dict[str, Any]:
    """Return everything that the first view shows."""
    report = run.report
    plan = run.report.plan
    return {
        "version": VERSION,
        "kind": "run",
        "name": run.name,
        "run": _name_run(run),
        "measure": plan.measure,
        "threshold": plan.threshold,
        "cluster": report.config.cluster,
        "finding": plan.finding(),
        "method": plan.shape,
        "reason": plan.reason,
        "counts": _counts(run),
        "decisions": report.decisions,
        "recall": _recall(report),
        "bytes": {"read": report.bytes_read, "removed": removed_bytes},
        "seconds": report.seconds,
        "warnings": list(report.warnings),
        "settings": [[name, _spelled(value)] for name, value in run.settings],
        "files": [
            {"file": entry["file"], "rows": entry["rows"], "ahead": entry["ahead"]}
            for entry in report.inputs[:_MAX_FILES]
        ],
        "num_files": len(report.inputs),
        "histogram": _histogram(run),
        "slider": thresholds(run),
        "sizes": _sizes(run),
        "sources": _sources(sources),
        "review": review_of(run),
        "curve": [round(plan.chance(step / 100), 6) for step in range(101)],
        "rejected": _rejected(run),
        "largest": _largest(run),
        "shingles": _shingles(report),
        "reason_to_keep": reason_to_keep(report.config),
        "asks_containment": report.config.asks_containment,
        "has_references": bool(report.config.against),
        "only_against": report.config.only_against,
    }


def overview_of_pairs(run: PairsView) -> dict[str, Any]:
    """Return everything that the first view of a list of pairs shows."""
    about = overview(run)
    report = run.report
    counts = about["counts"]
    about["kind"] = "pairs"
    about["counts"] = {
        "documents": counts["documents"],
        "rejected": counts["rejected"],
        "pairs": run.pairs.similarities.size,
        "in_pairs": run.document_keys.size,
        "exact": int((run.pairs.similarities == 1).sum()),
    }
    about["histogram"] = {"removed": None, "pairs": _bins(run.pairs.similarities)}
    about["recall"] = _recall(report)
    return about


def _counts(run: RunView) -> dict[str, int | None]:
    report = run.report
    return {
        "documents": report.documents,
        "kept": report.num_kept,
        "removed": report.num_removed,
        "removed_against": report.removed_against,
        "rejected": report.num_rejected,
        "exact_duplicates": report.exact_duplicates,
        "pairs": report.num_pairs,
        "clusters": run.clusters.keys.size,
        "identical": int((run.removals.similarities == 1).sum()),
        "below": int((run.removals.similarities < report.plan.threshold).sum()),
    }


def _recall(report: Report) -> dict[str, Any]:
    audit = None
    if report.audit is not None:
        audit = {
            "recall": report.audit.recall,
            "low": report.audit.low,
            "high": report.audit.high,
            "pairs": report.audit.pairs,
            "missed": report.audit.missed.num_rows,
            "sample": report.audit.sample,
        }
    target = report.plan.recall
    recall = {
        "promised": spell_ratio(report.plan.recall_at_threshold, target),
        "is_exact": report.plan.is_exact,
        "audit": audit,
    }
    if audit is not None and audit["recall"] is not None:
        recall |= {
            "measured": spell_ratio(audit["recall"], target),
            "low": spell_ratio(audit["low"], target),
            "high": spell_ratio(audit["high"], target),
        }
    return recall


def _histogram(run: RunView) -> dict[str, list[int] | None]:
    """Counts of similarities by hundredths; the last bin is 1 alone."""
    report = run.report
    pairs = None
    if report.num_pairs is not None:
        pairs = _bins(report.pairs.column("similarity").to_numpy())
    return {"removed": _bins(run.removals.similarities), "pairs": pairs}


def _bins(similarities: npt.NDArray[np.float64]) -> list[int]:
    # 0.29 * 100 is 28.999999999999996, which belongs to bin 29.
    hundredths = np.floor(similarities * 100 + 1e-9).astype(np.int64)
    counts: list[int] = np.bincount(np.clip(hundredths, 0, 100), minlength=101).tolist()
    return counts


def thresholds(run: RunView) -> dict[str, Any]:
    """Return what would be removed at every higher threshold in steps of 0.01, by `at_threshold`."""
    report = run.report
    if report.num_pairs is None or report.select_again is None:
        return {"steps": [], "hint": _NO_PAIRS}
    if report.num_pairs > _MANY_PAIRS:
        return {
            "steps": [],
            "hint": f"{report.num_pairs:,} stored pairs are too many to compute other thresholds for this page.",
        }
    first = int(np.ceil(report.config.threshold * 100 - 1e-9))
    try:
        counts = _count(run, [step / 100 for step in range(first, 101)])
    except NearDupError as error:
        return {"steps": [], "hint": error.message, "more": error.hint}
    num_usable = report.num_kept + report.num_removed
    return {
        "hint": None,
        "steps": [step._asdict() | {"kept": num_usable - step.removed} for step in counts],
    }


def _count(run: RunView, steps: list[float]) -> list[StoredCounts]:
    if run.is_from_files:
        return count_stored(run.report, steps)
    counts = []
    for step in steps:
        again = run.report.at_threshold(step)
        num_clusters = RunView(again).clusters.keys.size
        counts.append(
            StoredCounts(
                threshold=again.config.threshold,
                removed=again.num_removed,
                pairs=again.pairs.num_rows,
                clusters=num_clusters,
            )
        )
    return counts


def _sizes(run: RunView) -> list[list[int]]:
    """How many clusters have each size, ascending."""
    sizes, counts = np.unique(run.clusters.sizes, return_counts=True)
    pairs: list[list[int]] = np.stack([sizes, counts], axis=1).tolist()
    return pairs


def _rejected(run: RunView) -> dict[str, Any]:
    rejected = run.report.rejected
    reasons = Counter(rejected.column("reason").to_pylist())
    return {
        "total": rejected.num_rows,
        "reasons": [list(reason) for reason in reasons.most_common(_MAX_REASONS)],
        "rows": rejected.slice(0, _MAX_ROWS).to_pylist(),
    }


def _largest(run: RunView) -> list[dict[str, Any]]:
    clusters = run.clusters
    removals = run.removals
    found = []
    for number in np.lexsort((clusters.keys, -clusters.sizes))[:NUM_LARGEST].tolist():
        weakest = int(clusters.members(number)[-1])
        found.append(
            {
                "key": int(clusters.keys[number]),
                "id": str(removals.kept_ids[weakest].as_py()),
                "size": int(clusters.sizes[number]),
                "weakest": float(clusters.weakest[number]),
                "weakest_key": int(removals.keys[weakest]),
                "weakest_id": str(removals.ids[weakest].as_py()),
            }
        )
    return found


def _shingles(report: Report) -> dict[str, Any]:
    """The settings by which the page itself cuts texts into shingles, to show which are shared."""
    config = report.config
    return {
        "unit": "item" if config.items_column is not None else config.unit,
        "size": config.size,
        "fold_numbers": config.fold_numbers,
        "fold_accents": config.fold_accents,
        "form": config.normalise.upper(),
    }


def _name_run(run: RunView) -> str:
    """Name a run for the marks that a browser keeps: equal inputs, settings and counts give the same name."""
    identity = [
        run.name,
        run.settings,
        [[entry["file"], entry["rows"]] for entry in run.report.inputs],
        _counts(run),
    ]
    return hashlib.sha256(json.dumps(identity, default=str).encode()).hexdigest()[:16]


def _spelled(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)
