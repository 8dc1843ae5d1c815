"""Write the kept rows of every input file, as they were read."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.io.documents.cluster_sizes import ClusterSizes
from neardup.io.documents.kept_ids import KeptIds
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.notes import Notes
from neardup.io.documents.row_cache import RowCache
from neardup.io.records import Edits, Verdicts
from neardup.io.streams import check_unchanged, copy_file, copy_permissions, read_small, write_small

I64 = npt.NDArray[np.int64]
# Small text files per journal entry.
_WRITTEN_AT_ONCE: Final = 256


class KeptRows:
    """Writes the rows that a selection does not remove; thread-safe."""

    def __init__(
        self, layout: FileLayout, notes: Notes, selection: pa.Table, row_cache: RowCache
    ) -> None:
        """Take the removed rows, and the columns of the first pass that are still in memory."""
        self.layout = layout
        self._notes = notes
        self._selection = selection
        # Combining the chunks of a table copies them, and many files need the rows.
        self._removed: I64 = selection.column("row").to_numpy()
        self._row_cache = row_cache
        self._cached: tuple[int, I64] = -1, np.empty(0, np.int64)
        self._lock = threading.Lock()

    def groups(self) -> list[range]:
        """Return the numbers of the input files in groups: consecutive text files together, other files alone."""
        own = self.layout.own_files()
        is_text = self.layout.is_text[own.start :]
        follows_other = np.r_[False, ~is_text[:-1]]
        # A new group starts every _WRITTEN_AT_ONCE files, and before and after a file of another
        # format.
        cuts = np.flatnonzero(
            ~is_text | follows_other | (np.arange(is_text.size) % _WRITTEN_AT_ONCE == 0)
        )
        bounds = [*(cuts + own.start).tolist(), own.stop]
        return [range(first, stop) for first, stop in pairwise(bounds)]

    def write_file(self, at: int, target: str, kept_ids: KeptIds, sizes: ClusterSizes) -> None:
        """Write the kept rows of a file; `kept_ids` has the kept document of each row of the selection."""
        config = self.layout.config
        file = self.layout.files[at]
        first, stop = self.layout.file_first_rows[at : at + 2].tolist()
        own = self._removed_between(first, stop)
        removed = self._selection.slice(own.start, len(own))
        if config.mark:
            own_kept_ids = kept_ids.slice(own.start, len(own))
            cluster_sizes = sizes.of(np.arange(first, stop))
        else:
            own_kept_ids = pa.array([], pa.string())
            cluster_sizes = None
        verdicts = Verdicts(
            is_kept=self._is_kept(range(at, at + 1)),
            removed=removed.column("row").to_numpy() - first,
            kept_ids=own_kept_ids,
            similarities=removed.column("similarity").to_numpy(),
            cluster_sizes=cluster_sizes,
            cached=self._take_cached(at),
        )
        self.layout.formats[at].write(file, target, verdicts, config)
        copy_permissions(file, target)
        check_unchanged(file)

    def write_edited(self, at: int, target: str, edits: Edits) -> None:
        """Write the kept rows of a file with changes."""
        file = self.layout.files[at]
        verdicts = Verdicts(
            is_kept=self._is_kept(range(at, at + 1)),
            removed=np.empty(0, np.int64),
            kept_ids=pa.array([], pa.string()),
            similarities=np.empty(0),
            edits=edits,
        )
        self.layout.formats[at].write(file, target, verdicts, self.layout.config)
        copy_permissions(file, target)
        check_unchanged(file)

    def write_texts(self, group: range, folder: Path) -> str:
        """Write the kept text files of a group to a folder; return their `digest_texts`."""
        whole = hashlib.sha256()
        files = self.layout.files[group.start : group.stop]
        for file, is_kept in zip(files, self._is_kept(group).tolist(), strict=True):
            if not is_kept:
                check_unchanged(file)
                continue
            target = os.path.join(folder, file.name)  # noqa: PTH118
            small = read_small(file)
            if small is not None:
                write_small(target, *small)
                _add_text(whole, small[0])
            else:
                copy_file(file, target)
                copy_permissions(file, target)
                check_unchanged(file)
                _add_text(whole, Path(target).read_bytes())
        return whole.hexdigest()

    def digest_texts(self, group: range, folder: Path) -> str:
        """Return the digest of the files that `write_texts` wrote, to check whether they are intact."""
        whole = hashlib.sha256()
        files = self.layout.files[group.start : group.stop]
        for file, is_kept in zip(files, self._is_kept(group).tolist(), strict=True):
            if is_kept:
                target = os.path.join(folder, file.name)  # noqa: PTH118
                with contextlib.suppress(FileNotFoundError), open(target, "rb", 0) as text:  # noqa: PTH123
                    _add_text(whole, text.read())
        return whole.hexdigest()

    def _is_kept(self, files: range) -> npt.NDArray[np.bool_]:
        """Return which rows of consecutive files are kept."""
        first, stop = self.layout.file_first_rows[[files.start, files.stop]].tolist()
        is_kept = np.zeros(stop - first, np.bool_)
        for part in self.layout.parts_of(files):
            for rows in self._document_rows(part):
                low, high = np.searchsorted(rows, [first, stop])
                is_kept[rows[low:high] - first] = True
        own = self._removed_between(first, stop)
        is_kept[self._removed[own.start : own.stop] - first] = False
        return is_kept

    def _removed_between(self, first: int, stop: int) -> range:
        """Return which rows of the selection are in a range of rows."""
        begin, end = np.searchsorted(self._removed, [first, stop]).tolist()
        return range(begin, end)

    def _document_rows(self, part: int) -> Iterable[I64]:
        """Return the rows of a part that are documents, ascending."""
        if len(self.layout.pieces_of(part)) <= 1:
            return self._notes.rows(part)
        with self._lock:  # cached, because many files need it
            if self._cached[0] != part:
                self._cached = (
                    part,
                    np.concatenate([*self._notes.rows(part), np.empty(0, np.int64)]),
                )
            return [self._cached[1]]

    def _take_cached(self, at: int) -> dict[tuple[int, int], list[pa.RecordBatch]]:
        """Return the columns of a file that are still in memory, by span."""
        taken = {}
        for piece in range(*self.layout.file_pieces[at : at + 2]):
            _, span = self.layout.piece(piece)
            cached = self._row_cache.take(piece)
            if cached is not None:
                taken[span] = cached
        return taken


def _add_text(whole: Any, content: bytes) -> None:
    """Add a file to the digest of a group."""
    whole.update(b"%d " % len(content) + content)
