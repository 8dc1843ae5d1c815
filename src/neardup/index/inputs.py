"""The inputs of inserts and queries: documents of any source, as batches of ids and contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.config import Config
from neardup.config.checks import VECTOR_MEASURES
from neardup.errors import ConfigError, DataError
from neardup.io.documents import in_memory
from neardup.io.documents.discover import find_files, paths_of
from neardup.io.documents.file_reader import read_pieces
from neardup.io.documents.layout import FileLayout
from neardup.io.finished import finished_run
from neardup.io.records import Records, runs, text_bytes
from neardup.schema import one_array


class Batch(NamedTuple):
    """Documents of a source; rejected: place and reason of those that cannot be used."""

    ids: list[str]
    contents: pa.Array
    rejected: list[tuple[str, str]]


def one_content(value: Any, config: Config) -> pa.Array:
    """Return a single document as contents; raise if it cannot be used."""
    is_plain = config.measure == "jaccard" and config.items_column is None and not config.html
    if is_plain and isinstance(value, str):
        try:
            return pa.array([value], pa.large_string())
        except UnicodeEncodeError as error:
            raise DataError(f"the text is not valid Unicode: lone surrogate at character {error.start}") from error
    if is_plain:
        raise DataError(f"a document must be a text, got {type(value).__name__}", hint="pass a str")
    alone = Config.of(config, strict=False, text_column=None, id_column=None, vector_column=None)
    values: Any = np.asarray(value)[None] if config.measure in VECTOR_MEASURES else [value]
    read = in_memory.read(values if config.items_column is None else in_memory.ItemSets(values), alone)
    for rejected in read.rejected.slice(0, 1).to_pylist():
        raise DataError(f"the document cannot be used: {rejected['reason']}")
    contents = one_array(read.documents.column("text"))
    _check_dimension(read, config)
    return contents


def batches_of(source: Any, config: Config, *, ids: Sequence[Any] | None = None, named: bool) -> Iterator[Batch]:
    """Split a source into batches; named: every document needs an id. Raise if every row is rejected."""
    return _usable(_batches(source, config, ids, named=named))


def _usable(batches: Iterator[Batch]) -> Iterator[Batch]:
    num_documents, rejected = 0, list[tuple[str, str]]()
    for batch in batches:
        num_documents += len(batch.ids)
        rejected += batch.rejected if not num_documents else []
        yield batch
    if rejected and not num_documents:
        place, reason = rejected[0]
        raise DataError(
            f"all {len(rejected):,} rows were rejected; the first is {place}: {reason}"
            if len(rejected) > 1
            else f"the only row was rejected: {place}: {reason}",
            hint="look at this row, and at the settings for columns and formats",
        )


def _batches(source: Any, config: Config, ids: Sequence[Any] | None, *, named: bool) -> Iterator[Batch]:
    paths = paths_of(source)
    if paths is None:
        return _held_batches(source, ids, config, named=named)
    if ids is not None:
        raise ConfigError("`ids` must be left out for files", hint="id_column= names the column with the ids")
    if len(paths) == 1 and finished_run.is_run(Path(paths[0])):
        return _held_batches(_kept_of(Path(paths[0]), config), None, config, named=named)
    return _file_batches(paths, config)


def _kept_of(run: Path, config: Config) -> dict[str, str]:
    """The kept documents of a finished run."""
    if config.measure != "jaccard" or config.items_column is not None:
        raise ConfigError(
            f"an index of items or vectors cannot read the run {run}",
            hint=f"name the files in {run / finished_run.KEPT} instead",
        )
    table = finished_run.load_table(run, finished_run.KEPT)
    if table is None:
        raise DataError(f"the run {run} has no kept documents", hint="run it again without --dry-run")
    return dict(zip(table.column("doc_id").to_pylist(), table.column("text").to_pylist(), strict=True))


def _check_dimension(read: in_memory.InMemorySource, config: Config) -> None:
    found = in_memory.with_dimension(read, Config.of(config, dimension=None))
    if config.measure in VECTOR_MEASURES and read.documents.num_rows and found.dimension != config.dimension:
        raise DataError(
            f"the vectors have {found.dimension} dimensions, but those of the index have {config.dimension}",
            hint="create an index of this dimension",
        )


def _held_batches(source: Any, ids: Sequence[Any] | None, config: Config, *, named: bool) -> Iterator[Batch]:
    read = in_memory.read(source, config, ids=ids)
    has_ids = ids is not None or "id" in read.columns or isinstance(source, Mapping) or read.ids.type != pa.int64()
    if named and not has_ids:
        raise DataError(
            "the documents have no ids, but an index needs them",
            hint="pass a dict of id to text, ids=, or a table with an id column",
        )
    _check_dimension(read, config)
    reasons = [(f"row {row['row']}", row["reason"]) for row in read.rejected.to_pylist()]
    documents = read.documents.select(["row", "text"])
    for batch in documents.to_batches(max_chunksize=in_memory.BATCH_ROWS):
        if batch.num_rows:
            for first, stop in runs(np.cumsum(text_bytes(batch.column("text")))):
                part = batch.slice(first, stop - first)
                names = read.ids.take(part.column("row")).cast(pa.string()).to_pylist()
                yield Batch(names, part.column("text"), [])
    if reasons:
        yield Batch([], pa.array([], documents.schema.field("text").type), reasons)


def _file_batches(paths: list[str], config: Config) -> Iterator[Batch]:
    files = find_files(paths, config)
    layout = FileLayout(files, 0, config)
    rows_before = dict.fromkeys(range(len(files)), 0)
    for part in range(layout.num_parts):
        for pieces, rows in read_pieces(layout, part):
            numbers = layout.files_of(pieces)
            is_whole = files[numbers[0]].format == "text"
            first = 0 if is_whole else rows_before[numbers[0]]
            for _, found in rows:
                yield _batch(found, _Names([files[at].name for at in numbers], first, is_whole), config)
                first += found.num_rows
            rows_before[numbers[0]] = first


class _Names(NamedTuple):
    """Names rows without an id: by their file if it is one document, otherwise by file and row."""

    files: list[str]
    first: int
    is_whole: bool

    def of(self, row: int) -> str:
        at = self.first + row
        return self.files[at] if self.is_whole else f"{self.files[0]}:{at + 1}"


def _batch(found: Records, names: _Names, config: Config) -> Batch:
    rejected = [(names.of(row), reason) for row, reason in found.rejected]
    if rejected and config.strict:
        raise DataError(
            f"{rejected[0][0]} cannot be used: {rejected[0][1]}",
            hint="leave out --strict to skip such rows and list them as rejected",
        )
    ids = [
        names.of(row) if doc_id is None else doc_id
        for row, doc_id in zip(found.rows.tolist(), found.ids.to_pylist(), strict=True)
    ]
    return Batch(ids, found.texts, rejected)
