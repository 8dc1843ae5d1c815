"""The rows of files with all their columns, as one table; files may have different columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa

from neardup.io.columns.column_checks import CONVERSION_ERRORS


def table_of(rows: Sequence[dict[str, Any]]) -> pa.Table:
    """Return dicts as a table; a column whose values have no common type becomes text, with JSON for other values.

    >>> table_of([{"n": 1}, {"n": "one", "m": [2]}]).to_pylist()
    [{'n': '1', 'm': None}, {'n': 'one', 'm': [2]}]
    """
    names = dict.fromkeys(name for row in rows for name in row)
    if not names:
        return pa.table({"": pa.nulls(len(rows))})
    return pa.table({name: _column([row.get(name) for row in rows]) for name in names})


def joined(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of all tables, null where a table lacks a column; one without a common type becomes text."""
    if len(tables) > 1:
        distinct = [_with_distinct_names(table) for table in tables]
    else:
        distinct = list(tables)
    mixed = _mixed_columns([table.schema for table in distinct])
    named = [_as_text(table, mixed) for table in distinct]
    return pa.concat_tables(named, promote_options="permissive")


def with_doc_ids(table: pa.Table, ids: pa.Array, id_column: str | None) -> pa.Table:
    """Prepend the ids as `doc_id`; another column of that name is renamed, unless the ids come from it."""
    names = [name for name in table.column_names if name]
    table = table.select([index for index, name in enumerate(table.column_names) if name])
    if id_column == "doc_id" and names.count("doc_id") == 1:
        table = table.drop_columns("doc_id")
    return rename_doc_id(table).add_column(0, "doc_id", ids)


def rename_doc_id(table: pa.Table) -> pa.Table:
    """Rename columns called doc_id."""
    names = list(table.column_names)
    for at, name in enumerate(table.column_names):
        if name == "doc_id":
            while names[at] in table.column_names:
                names[at] += "_"
    return table.rename_columns(names)


def _column(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except CONVERSION_ERRORS:
        return pa.array(_texts(values), pa.large_string())


def _texts(values: list[Any]) -> list[str | None]:
    texts: list[str | None] = []
    for value in values:
        if value is None or isinstance(value, str):
            texts.append(value)
        else:
            texts.append(msgspec.json.encode(value, enc_hook=str).decode())
    return texts


def _with_distinct_names(table: pa.Table) -> pa.Table:
    names: list[str] = []
    for name in table.column_names:
        while name in names:
            name += "_"
        names.append(name)
    return table.rename_columns(names)


def _mixed_columns(schemas: Sequence[pa.Schema]) -> set[str]:
    """The columns whose types in different tables have no common type."""
    fields: dict[str, list[pa.Schema]] = {}
    for columns in schemas if len(schemas) > 1 else ():
        for field in columns:
            fields.setdefault(field.name, []).append(pa.schema([field.remove_metadata()]))
    mixed = set()
    for name, kinds in fields.items():
        try:
            pa.unify_schemas(kinds, promote_options="permissive")
        except pa.ArrowException:
            mixed.add(name)
    return mixed


def _as_text(table: pa.Table, names: set[str]) -> pa.Table:
    for name in names.intersection(table.column_names):
        index = table.column_names.index(name)
        texts = _texts(table.column(name).to_pylist())
        table = table.set_column(index, name, pa.array(texts, pa.large_string()))
    return table
