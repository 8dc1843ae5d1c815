"""Why a run kept or removed a document, and the pairs that a run lists of a document."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from neardup import schema
from neardup.config import Config
from neardup.config.checks import check_text, near_names
from neardup.errors import DataError, NotStoredError
from neardup.io.finished import finished_run
from neardup.io.finished.stored_report import read_report
from neardup.jobs.compare import Comparison, compare_documents
from neardup.report import Report

# Similar ids are searched among this many.
_MANY_IDS = 100_000
# How many documents removed for a kept one are named in a line.
_SHOWN: Final = 5


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class Explanation:
    """Why a document was removed, or which documents were removed in its favour.

    Attributes:
        doc_id: the document, with its file and row if known.
        kept_id: the document kept in its place, with its file and row; None for a kept document.
        similarity: how similar the two are.
        measure: what similarity means; by "containment" it is the share of the kept document.
        text: the text of the document; None for a kept one.
        kept_text: the text of the kept document.
        comparison: the comparison of the two texts.
        members: (doc_id, similarity) of the documents removed in favour of a kept one.
        reason: why a kept document was kept, "" for a removed one.
    """

    doc_id: Any
    file: str | None
    row: int | None
    kept_id: Any
    kept_file: str | None
    kept_row: int | None
    similarity: float | None
    measure: str
    text: str | None
    kept_text: str | None
    comparison: Comparison | None
    members: Sequence[tuple[Any, float]]
    reason: str = ""

    def __repr__(self) -> str:
        return f"<Explanation: {self}>"

    def __str__(self) -> str:
        named = _named(self.doc_id, self.file, self.row)
        if self.kept_id is not None:
            kept = _named(self.kept_id, self.kept_file, self.kept_row)
            return f"{named} was removed: {kept} was kept, {self.measure} {self.similarity:.4f}"
        if not self.members:
            return f"{named} was kept: {self.reason}"
        shown = ", ".join(f"{doc_id} ({close:.4f})" for doc_id, close in self.members[:_SHOWN])
        more = ", ..." if len(self.members) > _SHOWN else ""
        return f"{named} was kept, and {len(self.members):,} removed for it: {shown}{more}"


def _named(doc_id: Any, file: str | None, row: int | None) -> str:
    """Name a document, by its location too if it came from a file."""
    return f"{doc_id}" if file is None else f"{doc_id} ({file} row {row})"


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """The decision of a finished run about one document.

    Attributes:
        doc_id: the document.
        file: its file, as named in the tables of the run; None for a kept document.
        row: its row in the file; in memory its position.
        kept_id: the document kept in its place; None for a kept document.
        kept_file: the file of the kept document.
        kept_row: the row of the kept document.
        similarity: how similar the two are.
        members: (doc_id, similarity) of the documents removed in favour of a kept one.
        config: the settings of the run.
    """

    doc_id: Any
    file: str | None = None
    row: int | None = None
    kept_id: Any = None
    kept_file: str | None = None
    kept_row: int | None = None
    similarity: float | None = None
    members: tuple[tuple[Any, float], ...] = ()
    config: Config


def find_verdict(run: Path, doc_id: str, *, file: str | None, row: int | None) -> Verdict:
    """Look up a document in the tables of a finished run; file and row distinguish equal ids."""
    check_text("doc_id", doc_id)
    check_text("file", file or "")
    stored = read_report(run)
    stored.check_compares(run)
    config = stored.settings()
    removed = finished_run.load_table(run, "removed")
    clusters = finished_run.load_table(run, "clusters")
    if removed is None or clusters is None:
        raise DataError(
            f"{run} is not a finished run: a table is missing", hint="run neardup dedup again"
        )
    own = removed.filter(_is(removed, doc_id, file, row, ("doc_id", "file", "row"))).to_pylist()
    if len(own) > 1:
        locations = ", ".join(f"{match['file']} row {match['row']}" for match in own[:5])
        raise DataError(
            f"{len(own)} removed documents are named {doc_id!r}: {locations}",
            hint="add `file` and `row`",
        )
    if own:
        return Verdict(
            config=config, **{name: own[0][name] for name in schema.REMOVED_FROM_FILES.names}
        )
    if not pc.any(pc.equal(clusters.column("doc_id"), doc_id)).as_py():
        raise _no_document(
            str(run), doc_id, clusters.column("doc_id").slice(0, _MANY_IDS).to_pylist()
        )
    _check_location(run, removed, clusters, doc_id, file)
    stands_for = removed.filter(
        _is(removed, doc_id, file, row, ("kept_id", "kept_file", "kept_row"))
    ).to_pylist()
    members = tuple((member["doc_id"], member["similarity"]) for member in stands_for)
    return Verdict(doc_id=doc_id, file=file, row=row, members=members, config=config)


def _check_location(
    run: Path, removed: pa.Table, clusters: pa.Table, doc_id: str, file: str | None
) -> None:
    """Raise if no kept document of this name can be at the requested location."""
    files = [entry["file"] for entry in read_report(run).inputs]
    if file is not None and file not in files:
        raise DataError(
            f"{run} has no input {file!r}", hint=f"its inputs are {', '.join(files[:5])}"
        )
    own = removed.filter(pc.equal(removed.column("doc_id"), doc_id))
    num_named = pc.sum(pc.equal(clusters.column("doc_id"), doc_id)).as_py()
    if own.num_rows == num_named:
        locations = ", ".join(
            f"{match['file']} row {match['row']}" for match in own[:5].to_pylist()
        )
        raise DataError(
            f"no document {doc_id!r} of {run} is in this place", hint=f"it is in {locations}"
        )


def _is(
    table: pa.Table, doc_id: str, file: str | None, row: int | None, columns: tuple[str, str, str]
) -> Any:
    found = pc.equal(table.column(columns[0]), doc_id)
    for column, value in zip(columns[1:], (file, row), strict=True):
        if value is not None:
            found = pc.and_(found, pc.equal(table.column(column), value))
    return found


def _no_document(run: str, doc_id: str, ids: list[str]) -> DataError:
    if ids:
        known = f"ids look like {', '.join(ids[:3])}"
    else:
        known = "the run has no documents"
    return DataError(
        f"no document of {run} is named {doc_id!r}", hint=near_names(doc_id, ids) or known
    )


class ReadTexts(NamedTuple):
    """The texts of documents, and what the run compared of them."""

    texts: list[str]
    contents: pa.Array


NO_TEXTS: Final = ReadTexts([], pa.array([], pa.large_string()))


def find_memory_verdict(report: Report, doc_id: Any, row: int | None) -> tuple[Verdict, ReadTexts]:
    """Look up a document of a run in memory; return its text and the kept one's too, if it was removed.

    row: the position of the document, which distinguishes documents with the same id.
    """
    texts = report.load("texts")
    selection = report.load("selection")
    if texts is None or selection is None:
        raise NotStoredError(
            "the documents of a run on Spark stay on its workers",
            hint="filter report.removed by its column doc_id",
        )
    own = _row_of(texts, doc_id, row)
    removed = selection.filter(pc.equal(selection.column("row"), own)).to_pylist()
    if not removed:
        stands_for = selection.filter(pc.equal(selection.column("kept_row"), own))
        ids = _take_rows(texts, stands_for.column("row")).column("doc_id").to_pylist()
        members = tuple(zip(ids, stands_for.column("similarity").to_pylist(), strict=True))
        return Verdict(doc_id=doc_id, row=own, members=members, config=report.config), NO_TEXTS
    kept_row = removed[0]["kept_row"]
    similarity = removed[0]["similarity"]
    both = _take_rows(texts, pa.array([own, kept_row]))
    kept_id = both.column("doc_id")[1].as_py()
    verdict = Verdict(
        doc_id=doc_id,
        row=own,
        kept_id=kept_id,
        kept_row=kept_row if kept_row >= 0 else None,  # one of `against`
        similarity=similarity,
        config=report.config,
    )
    config = report.config
    is_text = config.measure == "jaccard" and config.items_column is None and config.weights is None
    if not is_text:
        return verdict, NO_TEXTS
    return verdict, _compared(both, report.load("common"), report.config)


def _compared(documents: pa.Table, common: pa.Table | None, config: Config) -> ReadTexts:
    """Return the texts of documents, and what a run with these common shingles compared of them."""
    texts = schema.one_array(documents.column("text"))
    if config.ignore_common is None:
        return ReadTexts(texts.to_pylist(), texts)
    from neardup.jobs.common_shingles import contents_of  # few runs have counted them

    groups = documents.column("common").to_numpy()
    return ReadTexts(texts.to_pylist(), contents_of(texts, groups, common, config))


def reason_to_keep(config: Config) -> str:
    """Say why a document was kept if no other was removed in its favour, given the settings of the run.

    >>> reason_to_keep(Config(only_against=True, against=("old",)))
    'It is not similar to any reference document'
    """
    if config.asks_containment and config.against:
        return "It contains no reference document"
    if config.only_against:
        return "It is not similar to any reference document"
    if config.per_cluster > 1:
        return f"It is one of up to {config.per_cluster:,} documents kept per cluster"
    within = " of its group" if config.group_column is not None else ""
    return f"It is not similar to any document{within} before it"


def _take_rows(texts: pa.Table, rows: pa.Array | pa.ChunkedArray) -> pa.Table:
    return texts.take(pc.index_in(rows, texts.column("row")))


def _row_of(texts: pa.Table, doc_id: Any, row: int | None) -> int:
    """Return the position of a document in the source."""
    if isinstance(doc_id, str):
        check_text("doc_id", doc_id)
    texts = texts.filter(pc.greater_equal(texts.column("row"), 0))  # without those of `against`
    ids = texts.column("doc_id")
    is_known = isinstance(doc_id, str) == pa.types.is_string(ids.type)
    if is_known:
        rows = texts.column("row").filter(pc.equal(ids, doc_id)).to_pylist()
    else:
        rows = []
    rows = [own for own in rows if row is None or own == row]
    if not rows:
        shown = [str(known) for known in ids.slice(0, _MANY_IDS).to_pylist()]
        raise _no_document(
            "the report", str(doc_id) if row is None else f"{doc_id} in row {row}", shown
        )
    if len(rows) > 1:
        locations = ", ".join(map(str, rows[:5]))
        raise DataError(
            f"{len(rows)} documents are named {doc_id!r}: rows {locations}",
            hint=f"add row={rows[0]}",
        )
    found: int = rows[0]
    return found


def read_texts(run: Path, locations: Sequence[tuple[str, int]], config: Config) -> ReadTexts:
    """Read documents of a finished run, given their files and rows, from its input files."""
    documents = pa.Table.from_batches(
        [_read_document(run, file, row, config) for file, row in locations]
    )
    common = None
    if config.ignore_common is not None:
        load = finished_run.load_pairs if run.is_file() else finished_run.load_table
        common = load(run, "common")
    return _compared(documents, common, config)


def _read_document(run: Path, file: str, row: int, config: Config) -> pa.RecordBatch:
    """Read a document of a finished run from its input file, as schema.DOCUMENTS."""
    entry = next((entry for entry in read_report(run).inputs if entry["file"] == file), None)
    if entry is None:
        raise DataError(
            f"{run} does not record the path of {file}",
            hint="the texts of an index cannot be compared; removed.parquet names them",
        )
    try:
        again = finished_run.find_again(entry, config)
        return finished_run.read_documents_row(again, row, finished_run.settings_for(entry, config))
    except DataError as error:
        raise DataError(
            f"the text of row {row} of {entry['path']} cannot be read: {error.message}",
            hint="explain reads the files that the run read; restore them, or start in the same folder",
        ) from error


# Similar ids are searched among this many pairs.
_MANY_PAIRS: Final = 100_000
_SIDES: Final = ("doc_a", "file_a", "row_a"), ("doc_b", "file_b", "row_b")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ListedPair:
    """A pair of a finished run.

    Attributes:
        doc_a: the requested document, with its file and row.
        doc_b: the other one.
        similarity: their similarity, as the run reported it.
    """

    doc_a: str
    file_a: str
    row_a: int
    doc_b: str
    file_b: str
    row_b: int
    similarity: float


def find_pairs_of(run: Path, doc_id: str, other_id: str | None = None) -> list[ListedPair]:
    """Return the pairs of a document, or its pairs with another one, most similar first; raise if there is none."""
    for wanted in (doc_id, other_id):
        check_text("doc_id", wanted or "")
    table = _pairs(run)
    # Equally similar partners are listed in input order.
    found = [
        *_with(table, doc_id, other_id, *reversed(_SIDES)),
        *_with(table, doc_id, other_id, *_SIDES),
    ]
    if not found:
        raise _unknown(run, table, doc_id, other_id)
    return sorted(found, key=lambda pair: -pair.similarity)


def compare_pair(run: Path, pair: ListedPair) -> tuple[list[str], Comparison]:
    """Read both texts of a pair from the input files of the run, and compare them as it did."""
    config = read_report(run).settings()
    locations = [(pair.file_a, pair.row_a), (pair.file_b, pair.row_b)]
    read = read_texts(run, locations, config)
    return read.texts, compare_documents(read, config)


def _pairs(run: Path) -> pa.Table:
    """The listed pairs of a run or, if it stored none, each removed document with the kept one."""
    read_report(run).check_compares(run)
    table = (finished_run.load_pairs if run.is_file() else finished_run.load_table)(run, "pairs")
    if table is not None:
        return table
    removed = finished_run.load_table(run, "removed")
    if removed is None:
        raise DataError(
            f"{run} is not a finished run: a table is missing", hint="run neardup dedup again"
        )
    names = {"doc_a": "doc_id", "file_a": "file", "row_a": "row", "similarity": "similarity"}
    names |= {"doc_b": "kept_id", "file_b": "kept_file", "row_b": "kept_row"}
    return pa.table({name: removed.column(own) for name, own in names.items()})


def _with(
    table: pa.Table,
    doc_id: str,
    other_id: str | None,
    first: tuple[str, ...],
    second: tuple[str, ...],
) -> list[ListedPair]:
    is_asked = pc.equal(table.column(first[0]), doc_id)
    if other_id is not None:
        is_asked = pc.and_(is_asked, pc.equal(table.column(second[0]), other_id))
    asked = table.filter(is_asked).select([*first, *second, "similarity"])
    renamed = asked.rename_columns([*_SIDES[0], *_SIDES[1], "similarity"])
    return [ListedPair(**row) for row in renamed.to_pylist()]


def _unknown(run: Path, table: pa.Table, doc_id: str, other_id: str | None) -> DataError:
    ids: set[str] = set()
    for side in ("doc_a", "doc_b"):
        ids.update(table.column(side).slice(0, _MANY_PAIRS).to_pylist())
    missing = [name for name in (doc_id, other_id) if name is not None and name not in ids]
    if missing:
        hint = near_names(missing[0], ids) or "only documents that have a partner are listed"
        return DataError(f"no pair in {run} contains the document {missing[0]!r}", hint=hint)
    return DataError(
        f"{run} does not list {doc_id!r} and {other_id!r} as a pair",
        hint=f"neardup compare FILE:{doc_id} FILE:{other_id} compares any two documents",
    )
