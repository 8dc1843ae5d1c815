"""Compaction: merge the live documents of several runs into one run, by section and range of keys.

Only one range of postings is in memory at a time, so an index can be much larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from neardup.index.run_file import (
    BAND_POSTINGS,
    SET_POSTINGS,
    Postings,
    RunFile,
    RunWriter,
    bitmaps_of,
    directory_of,
)
from neardup.index.sketches import Layout, damaged, item_columns
from neardup.measures.base import I64

Bools = npt.NDArray[np.bool_]
# Postings sorted per step, and documents copied per step.
_POSTINGS_AT_ONCE: Final = 1 << 22
_DOCS_AT_ONCE: Final = 1 << 14


def merge_runs(path: Path, runs: Sequence[RunFile], is_live: Sequence[Bools], layout: Layout) -> int:
    """Merge the live documents of runs into one run; return their number, and write nothing if there are none.

    is_live: for every run, which of its documents are live.
    """
    num_docs = int(sum(live.sum() for live in is_live))
    if not num_docs:
        return 0
    sizes = [run.arrays["sizes"] for run in runs]
    flat = next((name for name in ("shingles", "hashes") if name in runs[0].arrays), None)
    num_items = sum(int(size[live].sum()) for size, live in zip(sizes, is_live, strict=True)) if flat else 0
    renumbered = _renumber(is_live)
    num_postings = sum(int((size[live] > 0).sum()) * layout.bands for size, live in zip(sizes, is_live, strict=True))
    writer = RunWriter(path, num_docs, num_items, num_postings, layout)
    try:
        for run, live in zip(runs, is_live, strict=True):
            _copy_documents(writer, run, live, layout)
        if layout.has_items and "ends" in item_columns(layout.config):
            _write_ends(writer, sizes, is_live)
        _merge_postings(writer, runs, renumbered, BAND_POSTINGS, num_postings)
        if layout.has_set_postings:
            _merge_postings(writer, runs, renumbered, SET_POSTINGS, num_items)
        writer.finish()
    except BaseException:
        writer.abandon()
        raise
    return num_docs


def _renumber(is_live: Sequence[Bools]) -> list[I64]:
    """Return the new position of every document of every run; -1 for a dead one."""
    places, before = [], 0
    for live in is_live:
        renumbered = np.cumsum(live, dtype=np.int64) - 1 + before
        renumbered[~live] = -1
        places.append(renumbered)
        before += int(live.sum())
    return places


def _copy_documents(writer: RunWriter, run: RunFile, live: Bools, layout: Layout) -> None:
    """Copy the sketches of the live documents of a run."""
    chosen = np.flatnonzero(live)
    columns = item_columns(layout.config) if layout.has_items else {}
    for first in range(0, chosen.size, _DOCS_AT_ONCE):
        docs = chosen[first : first + _DOCS_AT_ONCE]
        taken = run.take(docs)
        writer.write("numbers", run.arrays["numbers"][docs])
        writer.write("sizes", taken.sizes)
        writer.write("signatures", taken.signatures)
        if "ends" in columns and (np.diff(getattr(taken.items, "ends", 0)) != taken.sizes).any():
            raise damaged(f"sizes in {run.path} do not match its sets")
        if layout.has_bitmaps:
            writer.write("bitmaps", bitmaps_of(taken.items, writer.num_written("shingles")))
        for name in columns:
            if name != "ends":
                writer.write(name, getattr(taken.items, name))


def _write_ends(writer: RunWriter, sizes: Sequence[Any], is_live: Sequence[Bools]) -> None:
    last = np.zeros(1, np.int64)
    writer.write("ends", last)
    for size, live in zip(sizes, is_live, strict=True):
        ends = np.cumsum(size[live]) + last
        writer.write("ends", ends)
        last = ends[-1:] if ends.size else last


def _merge_postings(
    writer: RunWriter, runs: Sequence[RunFile], renumbered: Sequence[I64], names: Postings, total: int
) -> None:
    directory = directory_of([], total)
    for keys, docs in _sorted_ranges(runs, renumbered, names):
        writer.write(names.keys, keys)
        writer.write(names.docs, docs)
        directory += directory_of([keys], total)
    writer.write(names.directory, directory)


def _sorted_ranges(runs: Sequence[RunFile], renumbered: Sequence[I64], names: Postings) -> Iterator[tuple[Any, Any]]:
    """Iterate over the postings of all runs in key order, without those of dead documents."""
    num_postings = sum(run.arrays[names.keys].size for run in runs)
    num_ranges = max(1, -(-num_postings // _POSTINGS_AT_ONCE))
    bounds = [(number << 64) // num_ranges for number in range(1, num_ranges)]
    cuts = [
        np.r_[0, np.searchsorted(run.arrays[names.keys], np.array(bounds, np.uint64)), run.arrays[names.keys].size]
        for run in runs
    ]
    for number in range(num_ranges):
        keys, docs = [], []
        for run, places, cut in zip(runs, renumbered, cuts, strict=True):
            own = slice(int(cut[number]), int(cut[number + 1]))
            old = run.arrays[names.docs][own].astype(np.int64)
            if old.size and old.max() >= places.size:
                raise damaged(f"a posting of {run.path} points to no document")
            new = places[old]
            keys.append(run.arrays[names.keys][own][new >= 0])
            docs.append(new[new >= 0])
        joined, owners = np.concatenate(keys), np.concatenate(docs)
        order = np.argsort(joined, kind="stable")
        yield joined[order], owners[order].astype(np.uint32)
