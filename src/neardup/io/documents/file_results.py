"""The results of a run on files of one machine: tables and kept rows, with as few ids in memory as fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.events import Tally
from neardup.io.documents.cluster_sizes import ClusterSizes
from neardup.io.documents.file_reader import Advance
from neardup.io.documents.kept_ids import KeptIds
from neardup.io.documents.kept_rows import KeptRows
from neardup.io.documents.row_names import RowNames
from neardup.io.storage.table_writer import TableWriter
from neardup.io.storage.workspace import Workspace
from neardup.report import CLUSTER_COLUMNS, NUM_LARGEST, summarise_clusters

_MIN_ID_BYTES: Final = 8 << 20


class FileResults:
    """Writes the selection of a run on files; `room` returns how many bytes of memory are left."""

    def __init__(
        self, names: RowNames, selection: pa.Table, clustered: pa.Table, room: Callable[[], int]
    ) -> None:
        self._names = names
        self._selection = selection
        self._clustered = clustered
        self._room = room
        self._kept_ids = self._ids_of_kept(selection)

    def _ids_at_once(self) -> int:
        """The number of ids to load at once: every lookup scans all of them on disk, so as many as fit in memory."""
        return self._names.num_ids_within(max(_MIN_ID_BYTES, self._room() // 8))

    def _ids_of_kept(self, selection: pa.Table) -> KeptIds:
        return KeptIds(
            selection.column("kept_row").to_numpy(), self._names.ids_of, self._ids_at_once()
        )

    def write_removed(self, path: Path) -> None:
        """Write the removed documents with ids, files and row numbers."""
        selection = self._selection
        at_once = self._ids_at_once()
        columns = schema.with_shares(schema.REMOVED_FROM_FILES, selection.schema)
        with TableWriter(path, columns) as writer:
            for first in range(0, selection.num_rows, at_once):
                chosen = selection.slice(first, at_once)
                rows, kept_rows = (chosen.column(name).to_numpy() for name in ("row", "kept_row"))
                ids = [self._names.ids_of(rows), self._kept_ids.slice(first, chosen.num_rows)]
                locations = [*self._names.locate(rows), *self._names.locate(kept_rows)]
                shares = chosen.columns[len(schema.SELECTION) :]
                writer.write(
                    pa.table(
                        [*ids, chosen.column("similarity"), *locations, *shares], schema=columns
                    )
                )

    def write_clusters(self, path: Path) -> None:
        """Write every document with the kept one of its cluster, and the size of the cluster."""
        removed = self._clustered.column("row").to_numpy()
        sizes = ClusterSizes(self._clustered)
        kept_ids = self._ids_of_kept(self._clustered)
        columns = schema.clusters(pa.string())
        with TableWriter(path, columns) as writer:
            for batch in self._names.of_input():
                rows = batch.column("row").to_numpy()
                ids = batch.column("doc_id")
                begin, end = (
                    np.searchsorted(removed, [rows[0], rows[-1] + 1]).tolist()
                    if rows.size
                    else (0, 0)
                )
                is_removed = pa.array(np.isin(rows, removed[begin:end], assume_unique=True))
                kept = pc.replace_with_mask(ids, is_removed, kept_ids.slice(begin, end - begin))
                writer.write(pa.record_batch([ids, kept, pa.array(sizes.of(rows))], schema=columns))

    def write_pairs(
        self, row_pairs: Iterable[pa.RecordBatch], columns: pa.Schema, advance: Advance, path: Path
    ) -> dict[str, int]:
        """Write pairs with ids, files and row numbers, and return how many there are."""
        num_pairs = 0
        at_once = self._ids_at_once()
        with TableWriter(path, schema.with_shares(schema.PAIRS_FROM_FILES, columns)) as writer:
            for batch in row_pairs:
                for named in self._names.name_pairs(batch, at_once):
                    writer.write(named)
                    advance(named.num_rows)
                num_pairs += batch.num_rows
        return {"num_pairs": num_pairs}

    def largest(self, per_cluster: int) -> tuple[dict[str, Any], ...]:
        """Name the largest clusters."""
        rows, kept_rows = (self._selection.column(name).to_numpy() for name in ("row", "kept_row"))
        similarity = self._selection.column("similarity").to_numpy()
        kept, sizes, weakest = summarise_clusters(kept_rows, similarity, NUM_LARGEST, per_cluster)
        named, inverse = np.unique(np.r_[kept, rows[weakest]], return_inverse=True)
        ids = self._names.ids_of(named).take(pa.array(inverse)).to_pylist()
        members = zip(
            ids[: kept.size],
            sizes.tolist(),
            ids[kept.size :],
            similarity[weakest].tolist(),
            strict=True,
        )
        return tuple(dict(zip(CLUSTER_COLUMNS, member, strict=True)) for member in members)

    def writers_of_kept(
        self, kept_rows: KeptRows, workspace: Workspace, tally: Tally
    ) -> list[Callable[[], None]]:
        """Return functions that write the kept rows of every file, to be called in any order and in parallel.

        `tally` counts the bytes of the input files.
        """
        files = kept_rows.layout.files
        sizes = ClusterSizes(self._clustered)

        def write(number: int, group: range) -> None:
            num_bytes = sum(files[at].size for at in group)
            name = f"out/kept/{files[group[0]].name}"
            with tally.asking(num_bytes, partial(_size_of, workspace.draft(name))):
                if len(group) > 1:
                    _write_texts(kept_rows, workspace, f"written/{number:06}", group)
                    return
                workspace.checkpoint(
                    name,
                    lambda path: kept_rows.write_file(group[0], str(path), self._kept_ids, sizes),
                )

        return [partial(write, number, group) for number, group in enumerate(kept_rows.groups())]


def _write_texts(kept_rows: KeptRows, workspace: Workspace, name: str, group: range) -> None:
    """Write many small files with one journal entry: an entry for each takes longer than writing them."""
    folder = workspace.folder / "out" / "kept"

    def write(path: Path) -> None:
        path.write_text(kept_rows.write_texts(group, folder), "ascii")

    if workspace.has(name):
        known = (workspace.folder / name).read_text("ascii")
        if known != kept_rows.digest_texts(group, folder):
            workspace.forget(name)
    workspace.checkpoint(name, write)


def _size_of(path: Path) -> int:
    """The size of a file that is being written, 0 until it exists."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
