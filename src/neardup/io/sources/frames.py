"""Frames, tables and datasets of other libraries become Arrow tables, without importing those libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from neardup.errors import DataError
from neardup.io.values.columns import CONVERSION_ERRORS, plain, reason_against

TextName = Callable[[list[str]], str]


def is_from(source: Any, package: str) -> bool:
    """Whether a class comes from a package, without importing it."""
    return any(kind.__module__.partition(".")[0] == package for kind in type(source).__mro__)


def as_arrow(source: Any, text_name: TextName) -> tuple[pa.Table, list[Any] | None]:
    """Return the table, and its texts apart where a pandas column holds what no Arrow column can.

    text_name: chooses the column with the text among all.
    """
    if is_from(source, "pandas") and hasattr(type(source), "columns"):
        return _pandas_table(source, text_name)
    table = _arrow_table(source)
    for at, field in enumerate(table.schema):
        column = plain(table.column(at), field.name)
        if column.type != field.type:
            table = table.set_column(at, field.with_type(column.type), column)
    return table, None


def _pandas_table(frame: Any, text_name: TextName) -> tuple[pa.Table, list[Any] | None]:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False), None
    except CONVERSION_ERRORS as error:
        names = list(map(str, frame.columns))
        name = text_name(names)
        texts = pandas_values(frame.iloc[:, names.index(name)])
        reasons = [None if text is None else reason_against(text) for text in texts]
        if not any(reasons) or len(set(names)) < len(names):
            raise DataError(
                f"the frame cannot become an Arrow table: {'; '.join(map(str, error.args))}",
                hint="give every column one type and its own name, or pass fewer: frame[['id', 'text']]",
            ) from error
        usable = [None if reason else text for text, reason in zip(texts, reasons, strict=True)]
        table, _ = _pandas_table(frame.assign(**{name: usable}), text_name)
        return table, texts


def pandas_values(column: Any) -> list[Any]:
    """The values of a pandas column; what pandas takes for missing (NaN, NaT, NA) is None."""
    values, is_missing = column.tolist(), column.isna().tolist()
    return [None if missing else value for value, missing in zip(values, is_missing, strict=True)]


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
            raise DataError(f"`source` gives an Arrow stream that is no table: {error}") from error
    raise DataError(
        "`source` must be a list of texts, a dict of id to text, or a table (Arrow, pandas, polars, datasets), "
        f"got {type(source).__name__}",
        hint=hint,
    )
