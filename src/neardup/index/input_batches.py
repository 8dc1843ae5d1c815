"""The inputs of inserts and queries: documents of any source, as batches of ids and contents."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.config import Config
from neardup.config.checks import VECTOR_MEASURES
from neardup.errors import ConfigError, DataError
from neardup.index.facts import Facts, FactSource, read_facts
from neardup.io.columns.column_checks import outer_column
from neardup.io.columns.column_values import values_in
from neardup.io.columns.python_rows import is_baskets, is_dicts, values_at
from neardup.io.documents import in_memory
from neardup.io.documents.discover import find_files, paths_of
from neardup.io.documents.file_reader import read_pieces
from neardup.io.documents.layout import FileLayout
from neardup.io.finished import finished_run
from neardup.io.finished.stored_report import read_report
from neardup.io.records import Records, runs, text_bytes
from neardup.measures.base import I64
from neardup.schema import one_array


class Batch(NamedTuple):
    """Documents of a source; rejected: location and reason of those that cannot be used."""

    ids: list[str]
    contents: pa.Array
    rejected: list[tuple[str, str]]
    facts: Facts = Facts()

    def slice(self, first: int, stop: int) -> Batch:
        """Return some consecutive documents, without the rejected ones."""
        contents = self.contents.slice(first, stop - first)
        return Batch(self.ids[first:stop], contents, [], self.facts.slice(first, stop))

    def take(self, indexes: Sequence[int]) -> Batch:
        """Return the documents at some indexes, with the rejected ones."""
        ids = [self.ids[at] for at in indexes]
        contents = self.contents.take(pa.array(indexes, pa.int64()))
        return Batch(ids, contents, self.rejected, self.facts.take(indexes))


def one_content(value: Any, config: Config) -> pa.Array:
    """Return a single document as contents; raise if it cannot be used."""
    is_plain = config.measure == "jaccard" and config.items_column is None
    is_plain = is_plain and not (config.html or config.asks_code)
    if is_plain and isinstance(value, str):
        try:
            return pa.array([value], pa.large_string())
        except UnicodeEncodeError as error:
            raise DataError(
                f"the text is not valid Unicode: lone surrogate at character {error.start}"
            ) from error
    if is_plain:
        raise DataError(
            f"a document must be a text, got {type(value).__name__}",
            hint="pass a str; an index of sets or vectors is created with items_column= or measure=",
        )
    alone = Config.of(config, strict=False, text_column=None, id_column=None, vector_column=None)
    if config.measure in VECTOR_MEASURES:
        values: Any = np.asarray(value)[None]
    else:
        values = [value]
    read = in_memory.read(
        values if config.items_column is None else in_memory.ItemSets(values), alone
    )
    for rejected in read.rejected.slice(0, 1).to_pylist():
        raise DataError(f"the document cannot be used: {rejected['reason']}")
    contents = one_array(read.documents.column("text"))
    _check_dimension(read, config)
    return contents


def batches_of(
    source: Any,
    config: Config,
    *,
    ids: Sequence[Any] | None = None,
    named: bool,
    facts: FactSource | None = None,
) -> Iterator[Batch]:
    """Split a source into batches; raise if every row is rejected.

    named: every document needs an id; facts: which of them to read besides, none if it is None.
    """
    return _usable(_batches(source, config, ids, facts or FactSource("", "", config), named=named))


def _usable(batches: Iterator[Batch]) -> Iterator[Batch]:
    num_documents = 0
    rejected = list[tuple[str, str]]()
    for batch in batches:
        num_documents += len(batch.ids)
        rejected += batch.rejected if not num_documents else []
        yield batch
    if rejected and not num_documents:
        location, reason = rejected[0]
        if len(rejected) > 1:
            message = f"all {len(rejected):,} rows were rejected; the first is {location}: {reason}"
        else:
            message = f"the only row was rejected: {location}: {reason}"
        raise DataError(
            message, hint="look at this row, and at the settings for columns and formats"
        )


def _batches(
    source: Any, config: Config, ids: Sequence[Any] | None, facts: FactSource, *, named: bool
) -> Iterator[Batch]:
    paths = paths_of(source)
    if paths is None:
        return _batches_in_memory(source, ids, config, facts, named=named)
    if ids is not None:
        raise ConfigError(
            "`ids` must be left out for files", hint="id_column= names the column with the ids"
        )
    facts.check_files()
    if len(paths) == 1 and finished_run.is_run(Path(paths[0])):
        kept, columns = _kept_of(Path(paths[0]), config)
        return _batches_in_memory(kept, None, columns, facts, named=named)
    return _file_batches(paths, config, facts)


def _kept_of(run: Path, config: Config) -> tuple[pa.Table, Config]:
    """The kept documents of a finished run, and the settings to read them with."""
    if config.measure != "jaccard" or config.items_column is not None:
        raise ConfigError(
            f"an index of items or vectors cannot read the run {run}",
            hint=f"name the files in {run / finished_run.KEPT} instead",
        )
    table = finished_run.load_table(run, finished_run.KEPT)
    if table is None:
        raise DataError(
            f"the run {run} has no kept documents", hint="run it again without dry_run=True"
        )
    text_column = read_report(run).settings().text_column
    return table, Config.of(config, id_column="doc_id", text_column=text_column)


def _check_dimension(read: in_memory.InMemorySource, config: Config) -> None:
    found = in_memory.with_dimension(read, Config.of(config, dimension=None))
    if (
        config.measure in VECTOR_MEASURES
        and read.documents.num_rows
        and found.dimension != config.dimension
    ):
        raise DataError(
            f"the vectors have {found.dimension} dimensions, but those of the index have {config.dimension}",
            hint="create an index of this dimension",
        )


def _batches_in_memory(
    source: Any, ids: Sequence[Any] | None, config: Config, facts: FactSource, *, named: bool
) -> Iterator[Batch]:
    source, keyed = _without_keys(source, config, facts)
    read = in_memory.read(source, config, ids=ids)
    has_ids = (
        ids is not None
        or "id" in read.columns
        or isinstance(source, Mapping)
        or read.ids.type != pa.int64()
    )
    if named and not has_ids:
        raise DataError(
            "the documents have no ids, but an index needs them",
            hint="pass a dict of id to text, ids=, or a table with an id column",
        )
    _check_dimension(read, config)
    facts.check_length(len(read.ids))
    facts.check_found([*keyed, *_columns_in(read, facts)])
    reasons = {row["row"]: row["reason"] for row in read.rejected.to_pylist()}
    documents = read.documents.select(["row", "text"])
    for batch in documents.to_batches(max_chunksize=in_memory.BATCH_ROWS):
        if batch.num_rows:
            for first, stop in runs(np.cumsum(text_bytes(batch.column("text")))):
                part = batch.slice(first, stop - first)
                rows = part.column("row").to_numpy()
                names = read.ids.take(part.column("row")).cast(pa.string()).to_pylist()
                values = _values_of(read, keyed, facts, rows)
                found, wrong = with_facts(names, part.column("text"), values)
                reasons |= {int(rows[at]): reason for at, reason in wrong.items()}
                yield found
    rejected = [(f"row {row}", reason) for row, reason in sorted(reasons.items())]
    _check_strict(rejected, config)
    if rejected:
        yield Batch([], pa.array([], documents.schema.field("text").type), rejected)


def with_facts(
    ids: list[str], contents: pa.Array, values: Mapping[str, Sequence[Any]]
) -> tuple[Batch, dict[int, str]]:
    """Return the documents whose facts can be used, and the reason for each other one, by index."""
    facts, reasons = read_facts(values)
    batch = Batch(ids, contents, [], facts)
    if reasons:
        batch = batch.take([at for at in range(len(ids)) if at not in reasons])
    return batch, reasons


def _check_strict(rejected: Sequence[tuple[str, str]], config: Config) -> None:
    if rejected and config.strict:
        raise DataError(
            f"{rejected[0][0]} cannot be used: {rejected[0][1]}",
            hint="leave out strict=True to skip such rows and list them as rejected",
        )


def _without_keys(
    source: Any, config: Config, facts: FactSource
) -> tuple[Any, dict[str, list[Any]]]:
    """Return dicts without the keys of facts, and the values of these keys: they may have any types."""
    is_rows = isinstance(source, (Sequence, Iterator)) and not isinstance(source, (str, bytes))
    if not is_rows or not facts.columns or hasattr(source, "__arrow_c_stream__"):
        return source, {}
    rows = list(source)
    if not is_dicts(rows) or is_baskets(rows, config):
        return rows, {}
    keyed: dict[str, list[Any]] = {}
    for name in set(facts.columns.values()):
        values = values_at(rows, name)
        if any(value is not None for value in values):
            keyed[name] = values
    if not keyed:
        return rows, {}
    return [_without(row, keyed) for row in rows], keyed


def _without(row: Any, names: Collection[str]) -> Any:
    """Return a row without some keys; one that is not a dict stays as it is, to be rejected."""
    if not isinstance(row, Mapping):
        return row
    return {name: value for name, value in row.items() if name not in names}


def _columns_in(read: in_memory.InMemorySource, facts: FactSource) -> list[str]:
    """The columns of facts that a table has."""
    if not read.columns:  # the source is a single column, and `original` was made for it
        return []
    columns = read.original.schema
    return [name for name in facts.columns.values() if outer_column(columns, name) is not None]


def _values_of(
    read: in_memory.InMemorySource, keyed: Mapping[str, list[Any]], facts: FactSource, rows: I64
) -> dict[str, list[Any]]:
    """Return the values of each fact in some rows."""
    values: dict[str, list[Any]] = {}
    for fact, given in facts.given.items():
        values[fact] = [given[row] for row in rows.tolist()]
    for fact, name in facts.columns.items():
        if name in keyed:
            values[fact] = [keyed[name][row] for row in rows.tolist()]
        elif name in _columns_in(read, facts):
            values[fact] = values_in(read.original, name, rows)
    return values


def _file_batches(paths: list[str], config: Config, facts: FactSource) -> Iterator[Batch]:
    files = find_files(paths, config)
    layout = FileLayout(files, 0, config, tuple(dict.fromkeys(facts.columns.values())))
    rows_before = dict.fromkeys(range(len(files)), 0)
    found_columns: set[str] = set()
    for part in range(layout.num_parts):
        for pieces, rows in read_pieces(layout, part):
            numbers = layout.files_of(pieces)
            is_whole = files[numbers[0]].format == "text"
            first = 0 if is_whole else rows_before[numbers[0]]
            for _, found in rows:
                found_columns |= found.found
                yield _batch(
                    found,
                    _Names([files[at].name for at in numbers], first, is_whole),
                    config,
                    facts,
                )
                first += found.num_rows
            rows_before[numbers[0]] = first
    facts.check_found(found_columns)


class _Names(NamedTuple):
    """Names rows without an id: by their file if it is one document, otherwise by file and row."""

    files: list[str]
    first: int
    is_whole: bool

    def of(self, row: int) -> str:
        at = self.first + row
        return self.files[at] if self.is_whole else f"{self.files[0]}:{at + 1}"


def _batch(found: Records, names: _Names, config: Config, facts: FactSource) -> Batch:
    ids = [
        names.of(row) if doc_id is None else doc_id
        for row, doc_id in zip(found.rows.tolist(), found.ids.to_pylist(), strict=True)
    ]
    values = {fact: found.others.get(name, ()) for fact, name in facts.columns.items()}
    batch, wrong = with_facts(ids, found.texts, values)
    reasons = dict(found.rejected) | {int(found.rows[at]): reason for at, reason in wrong.items()}
    rejected = [(names.of(row), reason) for row, reason in sorted(reasons.items())]
    _check_strict(rejected, config)
    return Batch(batch.ids, batch.contents, rejected, batch.facts)
