"""Where the removed documents of a run come from, and where those are for which they were removed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config.checks import near_names
from neardup.errors import ConfigError, DataError, NotStoredError
from neardup.io.documents.column_choice import choose_columns
from neardup.io.documents.layout import rows_in
from neardup.io.finished import finished_run
from neardup.io.formats import registry as formats

if TYPE_CHECKING:
    from neardup.report import Report

Codes = npt.NDArray[np.int64]

BY_FILE: Final = "file"
BY_ID: Final = "id"
MAX_SOURCES: Final = 50
OTHER: Final = "other"
# Columns of files of up to this size are tried without being asked for.
_MAX_BYTES: Final = 64 << 20
_MAX_COLUMNS: Final = 20
# What a value is shortened to if there are more than MAX_SOURCES of them, and how that is called.
_HOST: Final = r"^[A-Za-z][\w+.-]*://(?:[^/@?#]*@)?(?P<part>[^/:?#]+)"
_MONTH: Final = r"^(?P<part>\d{4}-\d{2})(?:$|-\d{2}(?:$|[T ].*))"
_SHORTER: Final = (
    ("host", "host of {}", _HOST),
    ("month", "month of {}", _MONTH),
    ("{}", "{} up to the first : or @", r"^(?P<part>[^:@]+)[:@]"),
    ("{}", "{} up to the first :, @ or /", r"^(?P<part>[^:@/]+)[:@/]"),
)
# The share of the values that must have a form.
_MOST: Final = 0.9


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sources:
    """Removed documents by their source, and by that of the documents for which they were removed.

    Attributes:
        by: "file", "id" or the column that was asked for.
        label: what a source is: the value of that column, or a part of it.
        noun: the same in a word.
        table: a row per source, most documents first: source, documents, removed, removed_share; a null is a source of
            its own, and above 50 sources the smallest are "other".
        cells: a row per two sources, most removed documents first: source, kept_source, removed.
        removed_codes: the row of `table` of each removed document, in the order of `report.removed`.
        kept_codes: the same of the document for which it was removed.
    """

    by: str
    label: str
    noun: str = ""
    table: pa.Table
    cells: pa.Table
    removed_codes: Codes = dataclasses.field(repr=False)
    kept_codes: Codes = dataclasses.field(repr=False)

    @property
    def elsewhere(self) -> int:
        """The removed documents whose kept document is of another source."""
        return int((self.removed_codes != self.kept_codes).sum())

    def sentence(self) -> str:
        """Say in one sentence where the removed documents come from; "" if there are none."""
        num_removed = self.removed_codes.size
        if not num_removed:
            return ""
        if 2 * self.elsewhere < num_removed:
            share = _percent(num_removed - self.elsewhere, num_removed)
            return f"{share} of the removed documents are near-duplicates of one with the same {self.noun}."
        is_other = pc.invert(
            _is_equal(self.cells.column("source"), self.cells.column("kept_source"))
        )
        first = self.cells.filter(is_other).slice(0, 1).to_pylist()[0]
        share = _percent(self.elsewhere, num_removed)
        most = f"{_spelled(first['source'])}, kept in {_spelled(first['kept_source'])}"
        return (
            f"{share} of the removed documents are near-duplicates of one with another {self.noun}, "
            f"most often of {most} ({first['removed']:,})."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the tables as JSON values."""
        return {
            "by": self.by,
            "label": self.label,
            "sources": self.table.to_pylist(),
            "cells": self.cells.to_pylist(),
        }

    def __str__(self) -> str:
        return self.sentence() or "nothing was removed"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %"


def _spelled(source: str | None) -> str:
    return "no value" if source is None else source


def _is_equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether values are equal, two nulls too."""
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(pc.fill_null(pc.equal(left, right), fill_value=False), both_null)


class _Values(NamedTuple):
    """What sources are made of: a value of every document, of every removed one, and of the kept one of each."""

    documents: pa.Array
    removed: pa.Array
    kept: pa.Array


def find_sources(report: Report, by: str | None = None) -> Sources:
    """Return the sources of a run by file, by id, or by a column; without `by`, by the first that has several."""
    _removed(report)
    if by is not None:
        return _sources(report, by)
    found = choices(report)
    if found:
        return found[0]
    return _sources(report, BY_FILE if _has_files(report) else BY_ID)


def choices(report: Report) -> list[Sources]:
    """Return the sources by everything that has 2 to 50 values: file, columns of small files, ids."""
    found = []
    for by in [BY_FILE, *_small_columns(report), BY_ID]:
        if by == BY_FILE and not _has_files(report):
            continue
        try:
            sources = _sources(report, by)
        except DataError:  # an input has changed since
            continue
        names = sources.table.column("source").to_pylist()
        is_grouped = len(names) <= max(2, (report.num_kept + report.num_removed) / 2)
        if len(names) > 1 and is_grouped and OTHER not in names[MAX_SOURCES - 1 :]:
            found.append(sources)
    return found


def _removed(report: Report) -> pa.Table:
    removed = report.removed
    if not isinstance(removed, pa.Table):
        raise NotStoredError(
            "the tables of a run on Spark stay on its workers",
            hint="group report.removed by its columns file and kept_file",
        )
    return removed


def _has_files(report: Report) -> bool:
    return "file" in report.removed.column_names


def _sources(report: Report, by: str) -> Sources:
    if by == BY_FILE:
        values = _files(report)
    elif by == BY_ID:
        values = _ids(report)
    elif _has_files(report):
        values = _columns_of_files(report, by)
    else:
        values = _column_in_memory(report, by)
    noun, label, values = _shorten(values, is_id=by == BY_ID)
    counted = _count(by, label.format(by), values)
    return dataclasses.replace(
        counted, noun="id prefix" if noun.format(by) == BY_ID else noun.format(by)
    )


def _files(report: Report) -> _Values:
    removed = report.removed
    if not _has_files(report):
        raise ConfigError("`by` 'file' needs a run on files", hint="by='id' works in memory too")
    own = [entry for entry in report.inputs if not entry["ahead"]]
    names = [entry["file"] for entry in own]
    is_document = _are_documents(report)
    ends = np.cumsum([0, *(entry["rows"] for entry in own)])
    counts = np.diff(np.r_[0, np.cumsum(is_document)][ends])
    files = pa.array(names, pa.string()).take(pa.array(np.repeat(np.arange(len(names)), counts)))
    return _Values(files, _texts(removed.column("file")), _texts(removed.column("kept_file")))


def _ids(report: Report) -> _Values:
    clusters = report.load("clusters")
    if clusters is None:
        raise NotStoredError("this run did not store its clusters", hint="run it again")
    removed = report.removed
    return _Values(
        *(
            _texts(column)
            for column in (
                clusters.column("doc_id"),
                removed.column("doc_id"),
                removed.column("kept_id"),
            )
        )
    )


def _are_documents(report: Report) -> npt.NDArray[np.bool_]:
    """Which rows of the input are documents that were kept or removed."""
    if not _has_files(report):
        is_document = report.mask.copy()
        is_document[_own_rows(report)] = True
        return is_document
    own = [entry for entry in report.inputs if not entry["ahead"]]
    num_rows = sum(entry["rows"] for entry in own)
    if num_rows == report.documents:
        is_document = np.ones(num_rows, np.bool_)
    else:  # no table records which rows are blank
        is_document = np.concatenate(
            [finished_run.are_documents(entry, report.config) for entry in own]
        )
    is_document[finished_run.own_rows(report.rejected, report.inputs)] = False
    return is_document


def _own_rows(report: Report) -> Codes:
    """The rows of the removed documents among those of the input, from 0."""
    if _has_files(report):
        return finished_run.own_rows(report.removed, report.inputs)
    rows: Codes = _selection(report).column("row").to_numpy()
    return rows


def _selection(report: Report) -> pa.Table:
    selection = report.load("selection")
    if selection is None:
        raise NotStoredError("this run did not store its rows", hint="run it again")
    return selection


def _column_in_memory(report: Report, by: str) -> _Values:
    source = report.load("source")
    if source is None or by not in source.column_names:
        names = [] if source is None else source.column_names
        raise ConfigError(
            f"`by` must be 'id' or a column of the documents, got {by!r}",
            hint=near_names(by, names),
        )
    values = _texts(source.column(by))
    selection = _selection(report)
    kept_rows = selection.column("kept_row").to_numpy()
    # A reference document has a negative row, and no value.
    kept = pa.array(kept_rows, mask=kept_rows < 0)
    documents = values.filter(pa.array(_are_documents(report)))
    return _Values(
        documents, values.take(selection.column("row").combine_chunks()), values.take(kept)
    )


def _columns_of_files(report: Report, by: str) -> _Values:
    parts = []
    known: set[str] = set()
    for entry in report.inputs:
        part, names = _column_of(report, entry, by)
        parts.append(part)
        known.update(names)
    if by not in known:
        raise ConfigError(
            f"`by` must be 'file', 'id' or a column of the input, got {by!r}",
            hint=near_names(by, sorted(known))
            or f"the columns are {', '.join(sorted(known)[:10])}",
        )
    values = pa.concat_arrays(parts)
    firsts = np.cumsum([0, *(entry["rows"] for entry in report.inputs)], dtype=np.int64)
    names = pa.array([entry["file"] for entry in report.inputs], pa.string())
    removed = report.removed
    rows = rows_in(_texts(removed.column("file")), removed.column("row").to_numpy(), names, firsts)
    is_known = pc.is_in(_texts(removed.column("kept_file")), names).to_numpy(zero_copy_only=False)
    kept_rows = np.zeros(removed.num_rows, np.int64)
    among = removed.filter(pa.array(is_known))
    kept_rows[is_known] = rows_in(
        _texts(among.column("kept_file")), among.column("kept_row").to_numpy(), names, firsts
    )
    own = [
        np.arange(firsts[at], firsts[at + 1])
        for at, entry in enumerate(report.inputs)
        if not entry["ahead"]
    ]
    documents = np.concatenate([np.empty(0, np.int64), *own])[_are_documents(report)]
    return _Values(
        values.take(pa.array(documents)),
        values.take(pa.array(rows)),
        values.take(pa.array(kept_rows, mask=~is_known)),
    )


def _column_of(report: Report, entry: dict[str, Any], by: str) -> tuple[pa.Array, list[str]]:
    """A column of an input file as texts, nulls if it has none of this name; the names of its columns."""
    config = report.config
    file = finished_run.find_again(entry, config)
    form = formats.load(file.format)
    names = form.column_names(file, config) or []
    nulls = pa.nulls(entry["rows"], pa.string())
    if by not in names:
        return nulls, names
    table = form.table(file, config, without=set(names) - {by})
    if table is None or by not in table.column_names:
        return nulls, names
    if table.num_rows != entry["rows"]:
        raise DataError(
            f"the input {entry['path']} has {table.num_rows:,} rows, and the report of the run says {entry['rows']:,}",
            hint="run neardup again on the input files",
        )
    return _texts(table.column(by)), names


def _texts(column: pa.ChunkedArray) -> pa.Array:
    """Return the values of a column as texts."""
    values = schema.one_array(column)
    if pa.types.is_nested(values.type):
        raise ConfigError(
            "`by` must be a column of single values, and this one has lists or structures",
            hint="choose another column",
        )
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    return values.cast(pa.string())


def _small_columns(report: Report) -> list[str]:
    """The columns that may name a source: not the text, and of files that are read quickly."""
    if not _has_files(report):
        source = report.load("source")
        if source is None:
            return []
        simple = [field.name for field in source.schema if not pa.types.is_nested(field.type)]
        return [name for name in simple if name not in ("doc_id", *_read_columns(report))][
            :_MAX_COLUMNS
        ]
    if sum(entry["size"] for entry in report.inputs) > _MAX_BYTES:
        return []
    names: list[str] = []
    for entry in report.inputs[:1]:
        try:
            file = finished_run.find_again(entry, report.config)
        except DataError:
            return []
        form = formats.load(file.format)
        own = form.column_names(file, report.config)
        if own is None or file.compression:
            return []
        columns = choose_columns(file, own, report.config)
        used = {*columns.text, columns.id, columns.items, columns.vector, BY_FILE, BY_ID}
        names += [name for name in own if name and name not in used]
    return names[:_MAX_COLUMNS]


def _read_columns(report: Report) -> Sequence[str]:
    return ("text", *report.columns.values())


def _shorten(values: _Values, *, is_id: bool) -> tuple[str, str, _Values]:
    """Shorten values of which there are too many, or that are URLs or dates; what one is called, and in full."""
    distinct = pc.unique(values.documents).drop_null()
    is_few = len(distinct) <= MAX_SOURCES
    best = None
    for number, (noun, label, pattern) in enumerate(_SHORTER):
        is_form = number < 2  # hosts and months say more than whole values, even if these are few
        if is_few and not is_form and not is_id:
            continue
        short = pc.struct_field(pc.extract_regex(distinct, pattern), "part")
        if len(distinct) == 0 or short.null_count > (1 - _MOST) * len(distinct):
            continue
        num_short = len(pc.unique(short))
        if num_short > MAX_SOURCES and best is not None:
            continue
        best = noun, label, pattern
        if 2 <= num_short <= MAX_SOURCES:
            break
    if best is None:
        return "{}", "{}", values
    return best[0], best[1], _Values(*(_part(one, best[2]) for one in values))


def _part(values: pa.Array, pattern: str) -> pa.Array:
    """The part of each value that matches, or the value itself."""
    part = pc.struct_field(pc.extract_regex(values, pattern), "part")
    return pc.if_else(pc.is_valid(part), part, values)


def _count(by: str, label: str, values: _Values) -> Sources:
    counted = pc.value_counts(
        pa.concat_arrays(
            [
                values.documents,
                values.kept.filter(pc.invert(pc.is_in(values.kept, pc.unique(values.documents)))),
            ]
        )
    )
    names = counted.field("values")
    sizes = counted.field("counts").to_numpy()
    # Most documents first, then by name, null last.
    ranks = pc.rank(pc.fill_null(names, "\U0010ffff"), tiebreaker="first").to_numpy()
    order = np.lexsort((ranks, -sizes.astype(np.int64)))
    if order.size > MAX_SOURCES:
        shown = pa.concat_arrays(
            [names.take(pa.array(order[: MAX_SOURCES - 1])), pa.array([OTHER])]
        )
    else:
        shown = names.take(pa.array(order))
    codes = [_codes(one, shown) for one in values]
    num_sources = len(shown)
    documents = np.bincount(codes[0], minlength=num_sources)
    removed = np.bincount(codes[1], minlength=num_sources)
    both = np.bincount(codes[1] * num_sources + codes[2], minlength=num_sources**2)
    found = np.flatnonzero(both)
    found = found[np.argsort(-both[found], kind="stable")]
    table = pa.table(
        {
            "source": shown,
            "documents": documents,
            "removed": removed,
            "removed_share": removed / np.maximum(documents, 1),
        }
    )
    cells = pa.table(
        {
            "source": shown.take(pa.array(found // num_sources)),
            "kept_source": shown.take(pa.array(found % num_sources)),
            "removed": both[found],
        }
    )
    return Sources(
        by=by, label=label, table=table, cells=cells, removed_codes=codes[1], kept_codes=codes[2]
    )


def _codes(values: pa.Array, shown: pa.Array) -> Codes:
    """The position of each value among those shown; the last one for all others."""
    codes: Codes = pc.index_in(values, shown).fill_null(len(shown) - 1).cast(pa.int64()).to_numpy()
    return codes
