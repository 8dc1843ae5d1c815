"""Bounds of the values in tables of a finished run, checked once, where a table is opened.

A run may come from someone else. Readers use file, row and position as indices, and pass them to
compiled kernels, which check no bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.io.finished.run_tables import damaged
from neardup.io.finished.stored_report import MAX_TOTAL_ROWS, StoredReport

I64 = npt.NDArray[np.int64]
# Values in a message are cut to this many characters.
_MAX_SHOWN: Final = 80
# No text has as many characters; a browser still counts so far exactly.
_MAX_POSITION: Final = 1 << 48


class _Files(NamedTuple):
    """Input files of a run: their names, and the first row of each over all files; one more is the number of rows."""

    names: pa.Array
    first_rows: I64

    @classmethod
    def of(cls, stored: StoredReport, *, with_references: bool) -> _Files:
        entries = [entry for entry in stored.inputs if with_references or not entry["ahead"]]
        names = pa.array([entry["file"] for entry in entries], pa.string())
        return cls(names, np.cumsum([0, *(entry["rows"] for entry in entries)], dtype=np.int64))


class _Opened(NamedTuple):
    """A table of a run that is being opened."""

    table: pa.Table
    path: Path
    stored: StoredReport

    def numbers(self, name: str) -> npt.NDArray[np.int64]:
        numbers: I64 = self.table.column(name).to_numpy()
        return numbers

    def require(self, is_right: npt.NDArray[np.bool_], names: tuple[str, ...], rule: str) -> None:
        """Raise unless all rows are right; show the values of the first wrong row in some columns."""
        if is_right.all():
            return
        at = int(np.argmin(is_right))
        values = " and ".join(
            f"{name} {_shown(self.table.column(name)[at].as_py())}" for name in names
        )
        raise damaged(self.path, f"row {at + 1:,} has {values}, but {rule}")

    def require_rows(self, num_rows: int, rule: str) -> None:
        """Raise unless the table has as many rows as the report says."""
        if self.table.num_rows != num_rows:
            raise damaged(
                self.path, f"it has {self.table.num_rows:,} rows, but {rule} {num_rows:,}"
            )

    def rows(self, names: tuple[str, str], files: _Files) -> I64:
        """Return the rows over all files that two columns, file and row, name; raise if there is no such row."""
        rows = _rows_in(self.table, names, files)
        self.require(rows >= 0, names, "the run read no such row")
        return rows


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}..."


def _rows_in(table: pa.Table, names: tuple[str, str], files: _Files) -> I64:
    """The rows over all files that two columns name; -1 for a row that does not exist."""
    file_column, row_column = names
    named = schema.one_array(table.column(file_column))
    at = pc.index_in(named, files.names).fill_null(-1).to_numpy()
    numbers = table.column(row_column).to_numpy()
    # The last entry, which -1 selects, is that of an unknown file.
    sizes = np.append(np.diff(files.first_rows), 0)
    is_there = (numbers >= 1) & (numbers <= sizes[at])
    rows = np.full(at.size, -1)
    rows[is_there] = files.first_rows[at[is_there]] + numbers[is_there] - 1
    return rows


def check_values(table: pa.Table, name: str, path: Path, stored: StoredReport) -> None:
    """Raise if a value of a table is out of bounds; `stored` is the report of the run, `path` the file for messages."""
    _CHECKS[name](_Opened(table, path, stored))


def _check_removed(opened: _Opened) -> None:
    opened.require_rows(opened.stored.removed, "the report counts")
    rows = opened.rows(("file", "row"), _Files.of(opened.stored, with_references=False))
    _require_once(opened, rows, "removed")
    _check_kept(opened)
    _check_similarity(opened, "similarity", *_shares(opened.table))


def _check_kept(opened: _Opened) -> None:
    """Check the locations of kept documents, which are in the input or in the index of `against`."""
    files = _Files.of(opened.stored, with_references=True)
    names = ("kept_file", "kept_row")
    is_known = _rows_in(opened.table, names, files) >= 0
    against = opened.stored.settings().against
    if len(against) == 1 and not any(entry["ahead"] for entry in opened.stored.inputs):
        numbers = opened.numbers("kept_row")
        is_indexed = pc.equal(opened.table.column("kept_file"), against[0]).to_numpy()
        is_known |= is_indexed & (numbers >= 1) & (numbers <= MAX_TOTAL_ROWS)
    opened.require(is_known, names, "the run read no such row")


def _check_rejected(opened: _Opened) -> None:
    opened.require_rows(opened.stored.rejected, "the report counts")
    rows = opened.rows(("file", "row"), _Files.of(opened.stored, with_references=False))
    _require_once(opened, rows, "rejected")


def _require_once(opened: _Opened, rows: I64, what: str) -> None:
    """Raise if a row of the input is listed twice."""
    _, firsts = np.unique(rows, return_index=True)
    is_first = np.zeros(rows.size, np.bool_)
    is_first[firsts] = True
    opened.require(is_first, ("file", "row"), f"that row was {what} before")


def _check_clusters(opened: _Opened) -> None:
    opened.require_rows(_num_documents(opened.stored), "the report counts documents:")
    if "cluster_size" in opened.table.column_names:
        # The kept document of a cluster may be in an index.
        most = sum(entry["rows"] for entry in opened.stored.inputs) + 1
        sizes = opened.numbers("cluster_size")
        opened.require(
            (sizes >= 1) & (sizes <= most),
            ("cluster_size",),
            f"a cluster has from 1 to {most} documents",
        )


def _num_documents(stored: StoredReport) -> int:
    return stored.documents - stored.rejected


def _check_pairs(opened: _Opened) -> None:
    # Their number is not checked: an audit finds pairs that are missing.
    files = _Files.of(opened.stored, with_references=True)
    first = opened.rows(("file_a", "row_a"), files)
    second = opened.rows(("file_b", "row_b"), files)
    names = ("file_a", "row_a", "file_b", "row_b")
    opened.require(first < second, names, "the first document of a pair comes before the second")
    _check_similarity(opened, "similarity", *_shares(opened.table))
    if schema.PAIR_PASSAGES.name in opened.table.column_names:
        _check_pair_passages(opened)


def _check_pair_passages(opened: _Opened) -> None:
    """Check the passages of every pair. They may overlap; the texts, and so where these end, are not known here."""
    lists = schema.one_array(opened.table.column(schema.PAIR_PASSAGES.name))
    pairs = pc.list_parent_indices(lists).to_numpy()
    passages = lists.flatten()

    def require(is_right: npt.NDArray[np.bool_], rule: str) -> None:
        if is_right.all():
            return
        at = int(np.argmin(is_right))
        shown = _shown(passages[at].as_py())
        raise damaged(opened.path, f"row {pairs[at] + 1:,} has the passage {shown}, but {rule}")

    # With the nulls of the passage itself.
    columns = dict(zip(schema.PASSAGE.names, passages.flatten(), strict=True))
    for column in columns.values():
        require(column.is_valid().to_numpy(zero_copy_only=False), "no value of a passage is null")
    values = {name: column.to_numpy() for name, column in columns.items()}
    words = values["words"]
    require(words >= 1, "`words` is at least 1")
    for side in ("a", "b"):
        for unit in ("", "_byte"):
            start, end = values[f"start{unit}_{side}"], values[f"end{unit}_{side}"]
            is_span = (start >= 0) & (start < end) & (end <= _MAX_POSITION)
            require(is_span, f"`start{unit}_{side}` is at least 0 and before `end{unit}_{side}`")
        start, end = values[f"start_{side}"], values[f"end_{side}"]
        require(words <= end - start, f"it has no room for `words` in text {side}")
        line = values[f"line_{side}"]
        require((line >= 1) & (line <= start + 1), f"`line_{side}` is one up to its start, from 1")
    similarity = values["similarity"]
    require((similarity >= 0) & (similarity <= 1), "`similarity` is a number from 0 to 1")


def _shares(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if name.startswith("containment_")]


def _check_similarity(opened: _Opened, *names: str) -> None:
    # The least similar documents of a component may have a negative cosine.
    least = -1 if opened.stored.settings().measure == "cosine" else 0
    for name in names:
        values = opened.table.column(name).to_numpy()
        is_within = (values >= least) & (values <= 1)
        opened.require(is_within, (name,), f"it is a number from {least} to 1")


def _check_order(opened: _Opened) -> None:
    num_rows = sum(entry["rows"] for entry in opened.stored.inputs)
    num_references = sum(entry["rows"] for entry in opened.stored.inputs if entry["ahead"])
    num_documents = _num_documents(opened.stored)
    rows = opened.numbers("row")
    positions = opened.numbers("position")
    is_read = (rows >= 0) & (rows < num_rows)
    opened.require(is_read, ("row",), f"the run read {num_rows:,} rows")
    opened.require(np.diff(rows, prepend=-1) > 0, ("row",), "rows ascend")
    # Reference documents have no position.
    is_own = rows >= num_references
    least = np.where(is_own, 0, -1)
    most = np.where(is_own, num_documents - 1, -1)
    is_within = (positions >= least) & (positions <= most)
    opened.require(
        is_within,
        ("row", "position"),
        f"positions are from 0 to {num_documents - 1:,}, or -1 if reference",
    )
    is_rising = np.ones(rows.size, np.bool_)
    is_rising[is_own] = np.diff(positions[is_own], prepend=-1) > 0
    opened.require(is_rising, ("row", "position"), "positions ascend")


def _check_common(opened: _Opened) -> None:
    """Check the common shingles; any hash may be one."""
    opened.require(opened.numbers("documents") >= 1, ("documents",), "a common shingle is in some")


_CHECKS: Final[dict[str, Callable[[_Opened], None]]] = {
    "removed": _check_removed,
    "rejected": _check_rejected,
    "clusters": _check_clusters,
    "pairs": _check_pairs,
    "order": _check_order,
    "common": _check_common,
}
