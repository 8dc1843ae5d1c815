"""The pairs of a finished run: all pairs of a document, or one pair of two documents."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from neardup.config import Config
from neardup.config.checks import check_text, near_names
from neardup.errors import DataError
from neardup.io.finished import finished_run
from neardup.io.finished.stored_report import read_report
from neardup.questions.explain import read_document

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
    found = [*_with(table, doc_id, other_id, *reversed(_SIDES)), *_with(table, doc_id, other_id, *_SIDES)]
    if not found:
        raise _unknown(run, table, doc_id, other_id)
    return sorted(found, key=lambda pair: -pair.similarity)


def read_pair(run: Path, pair: ListedPair) -> tuple[str, str, Config]:
    """Read both texts of a pair from the input files of the run, and return them with its settings."""
    config = read_report(run).settings()
    text_a = read_document(run, pair.file_a, pair.row_a, config)
    text_b = read_document(run, pair.file_b, pair.row_b, config)
    return text_a, text_b, Config.of(config, html=False)


def _pairs(run: Path) -> pa.Table:
    """The listed pairs of a run or, if it stored none, each removed document with the kept one."""
    read_report(run)  # raises if this is not a finished run
    table = (finished_run.load_pairs if run.is_file() else finished_run.load_table)(run, "pairs")
    if table is not None:
        return table
    removed = finished_run.load_table(run, "removed")
    if removed is None:
        raise DataError(f"{run} is not a finished run: a table is missing", hint="run neardup dedup again")
    names = {"doc_a": "doc_id", "file_a": "file", "row_a": "row", "similarity": "similarity"}
    names |= {"doc_b": "kept_id", "file_b": "kept_file", "row_b": "kept_row"}
    return pa.table({name: removed.column(own) for name, own in names.items()})


def _with(
    table: pa.Table, doc_id: str, other_id: str | None, first: tuple[str, ...], second: tuple[str, ...]
) -> list[ListedPair]:
    is_asked = pc.equal(table.column(first[0]), doc_id)
    if other_id is not None:
        is_asked = pc.and_(is_asked, pc.equal(table.column(second[0]), other_id))
    columns = [*first, *second, "similarity"]
    renamed = table.filter(is_asked).select(columns).rename_columns([*_SIDES[0], *_SIDES[1], "similarity"])
    return [ListedPair(**row) for row in renamed.to_pylist()]


def _unknown(run: Path, table: pa.Table, doc_id: str, other_id: str | None) -> DataError:
    ids = {name for side in ("doc_a", "doc_b") for name in table.column(side).slice(0, _MANY_PAIRS).to_pylist()}
    missing = [name for name in (doc_id, other_id) if name is not None and name not in ids]
    if missing:
        hint = near_names(missing[0], ids) or "only documents that have a partner are listed"
        return DataError(f"no pair in {run} contains the document {missing[0]!r}", hint=hint)
    return DataError(
        f"{run} does not list {doc_id!r} and {other_id!r} as a pair",
        hint=f"neardup compare FILE:{doc_id} FILE:{other_id} compares any two documents",
    )
