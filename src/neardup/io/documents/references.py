"""Reference documents of a run in memory: those of `against`, from files or in memory, ahead of all input."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from neardup import schema
from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.io.documents import in_memory
from neardup.io.documents.column_choice import of_reference_settings, of_references
from neardup.io.documents.discover import find_files
from neardup.io.documents.file_reader import documents_of, read_pieces
from neardup.io.documents.in_memory import InMemorySource
from neardup.io.documents.layout import FileLayout
from neardup.io.documents.row_names import name_rows


def read_references(source: Any, config: Config) -> InMemorySource:
    """Read reference documents from any source in memory; errors name the settings of `against`."""
    reading = Config.of(of_references(config), keep="first")
    try:
        return in_memory.read(source, reading)
    except (ConfigError, DataError) as error:
        message = re.sub("the source|`source`", "`against`", of_reference_settings(error.message))
        hint = None if error.hint is None else of_reference_settings(error.hint)
        raise type(error)(message, hint=hint) from error


def read_reference_files(paths: Sequence[str], config: Config) -> InMemorySource:
    """Read the documents of files into memory; ids are strings."""
    files = find_files(paths, config)
    layout = FileLayout(files, len(files), config)
    documents: list[pa.RecordBatch] = []
    ids: list[pa.Array] = []
    rejected: list[tuple[int, str]] = []
    piece_rows: list[int] = []
    parts: list[tuple[int, frozenset[str]]] = []
    first = 0
    for part in range(layout.num_parts):
        found_names: frozenset[str] = frozenset()
        begin = first
        for pieces, rows in read_pieces(layout, part):
            num_rows = 0
            for _, found in rows:
                documents.append(documents_of(found, found.rows + first, config))
                ids.append(_all_ids(found.ids, found.rows, found.num_rows))
                rejected += [(first + row, reason) for row, reason in found.rejected]
                found_names |= found.found
                first += found.num_rows
                num_rows += found.num_rows
            # Pieces that are read together are whole text files, of one row each.
            piece_rows += [num_rows // len(pieces)] * len(pieces)
        parts.append((first - begin, found_names))
    layout.number(piece_rows)
    layout.check_found([(count, sorted(names)) for count, names in parts])
    names = pa.concat_arrays([pa.array([], pa.string()), *ids])
    if names.null_count:
        names = names.fill_null("").to_pylist()
        own = name_rows(layout, np.arange(first)).to_pylist()
        names = pa.array([given or name for given, name in zip(names, own, strict=True)])
    rejected.sort()
    locations = layout.locate(np.array([row for row, _ in rejected], np.int64))
    reasons = pa.array([reason for _, reason in rejected], pa.string())
    return InMemorySource(
        documents=schema.documents_table(documents),
        rejected=pa.table([*locations, reasons], schema=schema.REJECTED),
        ids=names,
        original=pa.table({"doc_id": names}),
        columns={},
        has_repeated_ids=len(names.unique()) < len(names),
    )


def _all_ids(ids: pa.Array, rows: np.typing.NDArray[np.int64], num_rows: int) -> pa.Array:
    """Return one id for every row, null for rows that are no documents."""
    at = np.full(num_rows, -1, np.int64)
    at[rows] = np.arange(rows.size)
    return ids.cast(pa.string()).take(pa.array(at, mask=at < 0))


def with_references(own: InMemorySource, references: InMemorySource) -> InMemorySource:
    """Put reference documents ahead of the documents of a source; their rows come first, too."""
    num_references = len(references.ids)
    reference_documents = references.documents
    priority = pa.array(np.full(reference_documents.num_rows, schema.REFERENCE_PRIORITY))
    at = reference_documents.column_names.index("priority")
    reference_documents = reference_documents.set_column(
        at, own.documents.schema.field("priority"), priority
    )
    rows = own.documents.column("row").to_numpy() + num_references
    behind = own.documents.set_column(0, own.documents.schema.field("row"), pa.array(rows))
    ids = [references.ids, own.ids]
    if ids[0].type != ids[1].type:  # positions beside names
        ids = [column.cast(pa.string()) for column in ids]
    return dataclasses.replace(
        own,
        documents=pa.concat_tables([reference_documents.cast(behind.schema), behind]),
        ids=pa.concat_arrays(ids),
        has_repeated_ids=own.has_repeated_ids or references.has_repeated_ids,
        references=references,
    )
