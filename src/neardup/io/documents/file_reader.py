"""Documents in files: read at most twice, numbered in input order, named by id or by file and row."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.errors import DataError
from neardup.io.columns import keep_order
from neardup.io.columns.sorted_search import find_sorted
from neardup.io.documents.cluster_sizes import ClusterSizes
from neardup.io.documents.held_rows import HeldRows
from neardup.io.documents.kept_ids import KeptIds
from neardup.io.documents.layout import I64, FileParts
from neardup.io.documents.notes import Notes, joined
from neardup.io.records import InputFile, Records, Verdicts, text_bytes
from neardup.io.storage.workspace import Workspace, read_batches
from neardup.io.streams import check_unchanged, copy_file, copy_permissions, read_small, write_small

Advance = Callable[[int], None]
# Pairs that are named in one batch, at a few hundred bytes each.
if TYPE_CHECKING:  # few runs have decisions
    from neardup.io.finished.decisions import Decided

_NAMED_AT_ONCE: Final = 1 << 15
# Small text files per journal entry.
_WRITTEN_AT_ONCE: Final = 256
# Bytes per id beyond its characters; a document without an id is named by file and row.
_ID_OVERHEAD: Final = 48


class FileDocuments(FileParts):
    """The documents of many files, with the notes of the first pass on disk.

    Up to `room_to_hold` bytes of text stay in memory for the second pass.
    """

    unit = "bytes"

    def __init__(
        self,
        files: Sequence[InputFile],
        num_ahead_files: int,
        config: Config,
        workspace: Workspace,
        room_to_hold: int = 0,
    ) -> None:
        super().__init__(files, num_ahead_files, config)
        self._workspace = workspace
        self.stops_at_first = config.strict
        self._priorities: I64 | None = None
        self.decided: Decided | None = None
        self._rows_of_part: tuple[int, I64] = -1, np.empty(0, np.int64)
        self._removed: tuple[pa.Table, I64] | None = None
        self._held: dict[int, list[pa.RecordBatch]] = {}
        self._room_to_hold = room_to_hold
        self.held_rows = HeldRows()
        self._lock = threading.Lock()

    def read(self, part: int, advance: Advance) -> Iterator[pa.RecordBatch]:
        """Read the documents of a part; the first pass also writes ids, scores and rejected rows to disk."""
        if self.first_rows.size:
            batches = self._held[part] if part in self._held else joined(self._read_pieces(part, None))
            yield from (self.place(part, batch) for batch in batches)
            return
        held: list[pa.RecordBatch] = []
        heard = size = 0
        with Notes(part, self.config, self._workspace) as notes:
            for batch in joined(self._read_pieces(part, notes)):
                size += batch.nbytes
                held.append(batch)
                if size > self._room_to_hold:
                    held.clear()
                yield batch
                share = min(int(text_bytes(batch.column("text")).sum()), self.weights[part] - heard)
                heard += share
                advance(share)
        self._hold(part, held, size)
        advance(self.weights[part] - heard)

    def _hold(self, part: int, batches: list[pa.RecordBatch], size: int) -> None:
        """Keep a part in memory for the second pass if there is room."""
        with self._lock:
            if batches and size <= self._room_to_hold:
                self._held[part] = batches
                self._room_to_hold -= size

    def release(self) -> None:
        """Free the texts in memory; the second pass is over."""
        self._held.clear()

    def _read_pieces(self, part: int, notes: Notes | None) -> Iterator[pa.RecordBatch]:
        for pieces, rows in self.read_pieces(part):
            num_rows = 0
            for first_row, found in rows:
                if notes is not None:
                    self._check_strict(pieces, num_rows, found)
                    notes.add(first_row, found)
                    if found.columns is not None and pieces.start >= self.file_pieces[self.num_ahead_files]:
                        self.held_rows.put(pieces.start, found.columns)
                yield self.documents_of(found, first_row)
                num_rows += found.num_rows
            if notes is not None:
                notes.end_pieces(len(pieces), num_rows)

    def has_read(self, part: int) -> bool:
        """Whether an interrupted run has read a part, and its notes are intact."""
        return all(self._workspace.has(f"{kind}/{part:06}.arrow") for kind in ("names", "rejected"))

    def skip(self, part: int, advance: Advance) -> None:
        """Count a part that an interrupted run has read."""
        advance(self.weights[part])

    def _check_strict(self, pieces: range, first_row: int, found: Records) -> None:
        if self.config.strict and found.rejected:
            row, reason = min(found.rejected)
            piece = pieces.start
            if len(pieces) > 1:  # pieces of one row each
                piece, first_row, row = pieces[first_row + row], 0, 0
            at, _ = self.piece(piece)
            before = 0  # rows of earlier pieces of the file, which may not be counted yet
            for _, span in map(self.piece, range(int(self.file_pieces[at]), piece)):
                before += sum(earlier.num_rows for earlier in self.records(at, span))
            raise DataError(
                f"{self.files[at].path}, row {before + first_row + row + 1} cannot be used: {reason}",
                hint="leave out --strict to skip such rows and list them as rejected",
            )

    def settle(self, sort: Callable[..., Iterable[pa.RecordBatch]]) -> None:
        """Number the rows of all parts and compute their keep order."""
        facts = self._facts()
        self.number([rows for part in facts for rows in part["piece_rows"]])
        self.check_found([(sum(part["piece_rows"]), part["found"]) for part in facts])
        if self.config.keep_column is not None:
            ordered = sort(self._scores(), keep_order.SORTED, keep_order.sort_keys(self.config.keep))
            self._priorities = keep_order.rank(ordered, self.num_rows, self.config.keep)

    def decided_rows(self, priority: int) -> I64:
        """Return the rows to which decisions assign a keep order, ascending; known once rows are numbered."""
        if self.decided is None:
            return np.empty(0, np.int64)
        is_wanted = self.decided.priorities == priority
        rows: I64 = self.file_first_rows[self.decided.files[is_wanted]] + self.decided.rows[is_wanted] - 1
        return np.sort(rows)

    def _facts(self) -> list[dict[str, Any]]:
        return [self._workspace.facts(f"names/{part:06}.arrow") for part in range(self.num_parts)]

    def _scores(self) -> Iterator[pa.RecordBatch]:
        for part in range(self.num_parts):
            for batch in read_batches(self._workspace.folder / f"names/{part:06}.arrow"):
                yield keep_order.unsorted(batch.column("score"), batch.column("row").to_numpy() + self.first_rows[part])

    def place(self, part: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Turn rows and priorities local to a part into those of the whole run."""
        rows = batch.column("row").to_numpy() + self.first_rows[part]
        batch = batch.set_column(batch.schema.get_field_index("row"), batch.schema.field("row"), pa.array(rows))
        at = batch.schema.get_field_index("priority")
        priority: I64 | None = None
        if part < self.num_ahead_parts:
            priority = np.full(rows.size, schema.AHEAD)
        elif self._priorities is not None:
            priority = self._priorities[rows]
        elif self.config.keep == "last":
            priority = keep_order.priorities(self.config.keep, rows)
        if at >= 0 and self.decided is not None:
            priority = batch.column(at).to_numpy().copy() if priority is None else priority
            for last in np.unique(self.decided.priorities).tolist():
                priority[np.isin(rows, self.decided_rows(last))] = last
        return batch if at < 0 or priority is None else batch.set_column(at, "priority", pa.array(priority))

    def names(self, part: int) -> Iterator[pa.RecordBatch]:
        """Iterate over row and doc_id of every document of a part."""
        for batch in read_batches(self._workspace.folder / f"names/{part:06}.arrow"):
            rows = batch.column("row").to_numpy() + self.first_rows[part]
            yield pa.record_batch({"row": rows, "doc_id": self._named(batch.column("id"), rows)})

    def _named(self, ids: pa.Array, rows: I64) -> pa.Array:
        """Return ids, with names in place of missing ones."""
        return pc.coalesce(ids, self.name_rows(rows)) if ids.null_count else ids

    def num_ids_within(self, room: int) -> int:
        """Return how many ids fit in about `room` bytes."""
        facts = self._facts()
        num_documents, id_bytes = (sum(part[name] for part in facts) for name in ("documents", "id_bytes"))
        return int(max(1, room // (id_bytes // max(num_documents, 1) + _ID_OVERHEAD)))

    def ids_of(self, rows: I64) -> pa.Array:
        """Return the doc_id of some rows, which must be ascending and distinct."""
        ends = np.searchsorted(rows, self.first_rows)
        found = [pa.array([], pa.string())]
        for part in np.flatnonzero(np.diff(ends)).tolist():
            wanted = rows[ends[part] : ends[part + 1]]
            for batch in read_batches(self._workspace.folder / f"names/{part:06}.arrow"):
                is_wanted, at = find_sorted(batch.column("row").to_numpy() + self.first_rows[part], wanted)
                found.append(self._named(batch.column("id").take(pa.array(at[is_wanted])), wanted[is_wanted]))
        return pa.concat_arrays(found)

    def name_pairs(self, pairs: pa.RecordBatch, num_ids: int) -> Iterator[pa.RecordBatch]:
        """Replace the rows of pairs by ids, files and row numbers, with at most `num_ids` ids in memory."""
        columns = schema.with_shares(schema.PAIRS_FROM_FILES, pairs.schema)
        ends = np.stack([pairs.column("row_a").to_numpy(), pairs.column("row_b").to_numpy()], axis=1)
        first = 0
        while first < pairs.num_rows:
            rows = np.unique(ends[first:])
            stop = pairs.num_rows if rows.size <= num_ids else first + max(1, num_ids // 2)
            rows = np.unique(ends[first:stop])
            ids = self.ids_of(rows)
            for begin in range(first, stop, _NAMED_AT_ONCE):
                chosen = pairs.slice(begin, min(_NAMED_AT_ONCE, stop - begin))
                sides = ends[begin : begin + chosen.num_rows].T
                named = [ids.take(pa.array(np.searchsorted(rows, side))) for side in sides]
                places = [column for side in sides for column in self.locate(side)]
                yield pa.record_batch(
                    [*named, chosen.column("similarity"), *places, *chosen.columns[3:]], schema=columns
                )
            first = stop

    def rejected(self, *, ahead: bool = False) -> Iterator[pa.RecordBatch]:
        """Iterate over the rejected rows of the input, or of the reference files, as schema.REJECTED."""
        for part in range(self.num_ahead_parts) if ahead else self._own_parts():
            for batch in read_batches(self._workspace.folder / f"rejected/{part:06}.arrow"):
                files, numbers = self.locate(batch.column("row").to_numpy() + self.first_rows[part])
                yield pa.record_batch([files, pa.array(numbers), batch.column("reason")], schema=schema.REJECTED)

    def _own_parts(self) -> range:
        return range(self.num_ahead_parts, self.num_parts)

    def count(self, fact: str, *, ahead: bool = False) -> int:
        """Add up a count over the input, or over the reference files: documents, rejected, text_bytes."""
        facts, num_ahead = self._facts(), self.num_ahead_parts
        return sum(part[fact] for part in (facts[:num_ahead] if ahead else facts[num_ahead:]))

    def own_names(self) -> Iterator[pa.RecordBatch]:
        """Iterate over row and doc_id of every document of the input."""
        for part in self._own_parts():
            yield from self.names(part)

    def _document_rows(self, part: int) -> Iterable[I64]:
        """Iterate over the rows of a part that are documents, ascending."""
        if self.part_pieces[part + 1] - self.part_pieces[part] > 1:  # cached, because many files need it
            with self._lock:
                if self._rows_of_part[0] != part:
                    self._rows_of_part = part, np.concatenate([*self._read_rows(part), np.empty(0, np.int64)])
                return [self._rows_of_part[1]]
        return self._read_rows(part)

    def _read_rows(self, part: int) -> Iterator[I64]:
        for batch in read_batches(self._workspace.folder / f"names/{part:06}.arrow", ["row"]):
            yield batch.column("row").to_numpy() + self.first_rows[part]

    def _rows_removed(self, selection: pa.Table) -> I64:
        """The removed rows; cached, because many files need them, and combining the chunks of a table copies them."""
        if self._removed is None or self._removed[0] is not selection:
            self._removed = selection, selection.column("row").to_numpy()
        return self._removed[1]

    def write_groups(self) -> list[range]:
        """Return the numbers of the input files in groups: consecutive text files together, other files alone."""
        own = self.own_files()
        is_text = self.is_text[own.start :]
        # A new group starts every _WRITTEN_AT_ONCE files, and before and after a file of another format.
        cuts = np.flatnonzero(
            ~is_text | np.r_[False, ~is_text[:-1]] | (np.arange(is_text.size) % _WRITTEN_AT_ONCE == 0)
        )
        bounds = [*(cuts + own.start).tolist(), own.stop]
        return [range(first, stop) for first, stop in pairwise(bounds)]

    def write_texts(self, group: range, folder: Path, selection: pa.Table) -> str:
        """Write the kept text files of a group to a folder; return their `digest_texts`."""
        is_kept, _ = self._is_kept(group, selection)
        whole = hashlib.sha256()
        for file, kept in zip(self.files[group.start : group.stop], is_kept.tolist(), strict=True):
            if not kept:
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

    def digest_texts(self, group: range, folder: Path, selection: pa.Table) -> str:
        """Return the digest of the files that `write_texts` wrote, to check whether they are intact."""
        is_kept, _ = self._is_kept(group, selection)
        whole = hashlib.sha256()
        for file, kept in zip(self.files[group.start : group.stop], is_kept.tolist(), strict=True):
            if kept:
                with contextlib.suppress(FileNotFoundError), open(os.path.join(folder, file.name), "rb", 0) as text:  # noqa: PTH118, PTH123
                    _add_text(whole, text.read())
        return whole.hexdigest()

    def _is_kept(self, files: range, selection: pa.Table) -> tuple[npt.NDArray[np.bool_], slice]:
        """Return which rows of consecutive files are kept, and their slice of the selection."""
        first, stop = self.file_first_rows[[files.start, files.stop]].tolist()
        is_kept = np.zeros(stop - first, np.bool_)
        begin, end = self.file_pieces[[files.start, files.stop]]
        first_part = int(np.searchsorted(self.part_pieces, begin, side="right")) - 1
        for part in range(first_part, int(np.searchsorted(self.part_pieces, end))):
            for rows in self._document_rows(part):
                low, high = np.searchsorted(rows, [first, stop])
                is_kept[rows[low:high] - first] = True
        begin, end = np.searchsorted(self._rows_removed(selection), [first, stop])
        is_kept[self._rows_removed(selection)[begin:end] - first] = False
        return is_kept, slice(int(begin), int(end))

    def write(self, at: int, target: str, selection: pa.Table, kept_ids: KeptIds, sizes: ClusterSizes) -> None:
        """Write the kept rows of a file; `kept_ids` has the kept document of each row of the selection."""
        rows = np.arange(*self.file_first_rows[at : at + 2])
        is_kept, own = self._is_kept(range(at, at + 1), selection)
        removed = selection.slice(own.start, own.stop - own.start)
        verdicts = Verdicts(
            is_kept=is_kept,
            removed=removed.column("row").to_numpy() - self.file_first_rows[at],
            kept_ids=kept_ids.slice(own.start, removed.num_rows) if self.config.mark else pa.array([], pa.string()),
            similarities=removed.column("similarity").to_numpy(),
            cluster_sizes=sizes.of(rows) if self.config.mark else None,
            held=self._take_held(at),
        )
        self.formats[at].write(self.files[at], target, verdicts, self.config)
        copy_permissions(self.files[at], target)
        check_unchanged(self.files[at])

    def _take_held(self, at: int) -> dict[tuple[int, int], list[pa.RecordBatch]]:
        """Return the columns of a file that are still in memory, by span."""
        taken = {self.piece(number)[1]: self.held_rows.take(number) for number in range(*self.file_pieces[at : at + 2])}
        return {span: held for span, held in taken.items() if held is not None}


def _add_text(whole: Any, content: bytes) -> None:
    """Add a file to the digest of a group."""
    whole.update(b"%d " % len(content) + content)
