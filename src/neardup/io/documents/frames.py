"""Conversion of frames, tables and datasets of other libraries to Arrow, without importing those libraries."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import pyarrow as pa

from neardup.errors import DataError
from neardup.io.columns.column_checks import CONVERSION_ERRORS, plain

ContentName = Callable[[list[str]], str | None]
Unusable = Callable[[list[Any]], Collection[int]]


def is_from(source: Any, package: str) -> bool:
    """Whether a class comes from a package, without importing it."""
    return any(kind.__module__.partition(".")[0] == package for kind in type(source).__mro__)


def as_arrow(
    source: Any, content_name: ContentName, unusable: Unusable
) -> tuple[pa.Table, list[Any] | None]:
    """Return the table, and the contents separately if a pandas column holds values that Arrow cannot represent.

    content_name: chooses the column to compare, None for several; unusable: which of its values
    cannot be compared.
    """
    if is_from(source, "pandas") and hasattr(type(source), "columns"):
        return _pandas_table(source, content_name, unusable)
    table = _arrow_table(source)
    for at, field in enumerate(table.schema):
        column = plain(table.column(at), field.name)
        if column.type != field.type:
            table = table.set_column(at, field.with_type(column.type), column)
    return table, None


def _pandas_table(
    frame: Any, content_name: ContentName, unusable: Unusable
) -> tuple[pa.Table, list[Any] | None]:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False), None
    except CONVERSION_ERRORS as error:
        names = list(map(str, frame.columns))
        name = content_name(names)
        if name is None:
            contents = []
        else:
            contents = pandas_values(frame.iloc[:, names.index(name)])
        odd = {row for row in unusable(contents) if contents[row] is not None}
        if name is None or not odd or len(set(names)) < len(names):
            if isinstance(error, UnicodeError):
                reason = str(error)
            else:
                reason = "; ".join(map(str, error.args))
            raise DataError(
                f"the frame cannot be converted to an Arrow table: {reason}",
                hint="give every column one type and its own name, or pass fewer: frame[['id', 'text']]",
            ) from error
        usable = [None if row in odd else content for row, content in enumerate(contents)]
        table, _ = _pandas_table(frame.assign(**{name: usable}), content_name, unusable)
        return table, contents


def pandas_values(column: Any) -> list[Any]:
    """The values of a pandas column; what pandas treats as missing (NaN, NaT, NA) becomes None."""
    values = column.tolist()
    is_missing = column.isna().tolist()
    pairs = zip(values, is_missing, strict=True)
    return [None if missing else value for value, missing in pairs]


def _arrow_table(source: Any) -> pa.Table:
    if isinstance(source, pa.Table):
        return source
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    hint = None
    if is_from(source, "datasets"):
        if isinstance(source, Mapping):
            raise DataError(
                f"`source` must be one dataset, got the splits {', '.join(map(str, source))}",
                hint=f"choose one: source[{next(iter(source), 'train')!r}]",
            )
        if hasattr(source, "num_rows"):
            return source.with_format("arrow")[:]
        hint = "pass the texts: (row['text'] for row in source)"
    elif is_from(source, "polars"):
        if hasattr(source, "to_arrow"):
            return source.to_arrow()
        hint = "pass source.collect()" if hasattr(source, "collect") else None
    elif hasattr(source, "__arrow_c_stream__"):
        try:
            return pa.table(source)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"`source` exports an Arrow stream that is not a table: {error}"
            ) from error
    raise DataError(
        "`source` must be a list of texts, a dict of id to text, or a table (Arrow, pandas, polars, datasets), "
        f"got {type(source).__name__}",
        hint=hint,
    )
