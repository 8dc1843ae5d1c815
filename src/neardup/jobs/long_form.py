"""Sets in long form: one row per item of a set, grouped by id into one set each before a run reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.events import Watch
from neardup.io.columns.column_checks import CONVERSION_ERRORS, column_at
from neardup.io.documents.column_choice import choose_columns, hint_of_columns, read_records
from neardup.io.documents.discover import find_files
from neardup.io.formats import registry as formats
from neardup.io.records import ITEM_END, InputFile

# The file with the sets; its name stands in the tables of the run.
FILE: Final = "sets.parquet"
_PROBED_ROWS: Final = 10_000


def group_rows(paths: Sequence[str], folder: Path, config: Config, watch: Watch) -> str:
    """Write the sets of rows with the same id to a file in `folder`, in the order of first rows; return its path."""
    ids: list[pa.Array] = []
    items: list[pa.Array] = []
    num_left_out = 0
    id_name = None
    for file in find_files(paths, config, watch.warn):
        found, id_name = _rows_of(file, config)
        is_whole = pc.and_(pc.is_valid(found[0]), pc.is_valid(found[1]))
        num_left_out += len(is_whole) - (pc.sum(is_whole).as_py() or 0)
        ids.append(found[0].filter(is_whole))
        items.append(found[1].filter(is_whole))
    if num_left_out:
        if config.strict:
            raise DataError(
                f"{num_left_out:,} rows have no id or no item",
                hint="leave out strict=True to leave such rows out",
            )
        rows = "1 row was" if num_left_out == 1 else f"{num_left_out:,} rows were"
        watch.warn(f"{rows} left out: no id, or no item")
    named = pa.chunked_array(ids, pa.large_string()).combine_chunks().dictionary_encode()
    owners = named.indices.to_numpy()
    order = pa.array(np.argsort(owners, kind="stable"))
    offsets = np.r_[0, np.cumsum(np.bincount(owners, minlength=len(named.dictionary)))]
    members = pa.chunked_array(items, pa.large_string()).combine_chunks().take(order)
    sets = pa.LargeListArray.from_arrays(pa.array(offsets.astype(np.int64)), members)
    folder.mkdir(exist_ok=True)
    path = folder / FILE
    columns = [id_name or "id", config.items_column or "items"]
    pq.write_table(pa.table([named.dictionary, sets], names=columns), path)
    return str(path)


def _rows_of(file: InputFile, config: Config) -> tuple[tuple[pa.Array, pa.Array], str]:
    """Return the ids and the items of the rows of a file as strings, and the name of the id column."""
    form = formats.load(file.format)
    names = form.column_names(file, config)
    columns = choose_columns(file, names, config)
    if columns.id is None:
        raise ConfigError(
            f"`long` groups rows by their id, and {file.path} has no column named id or url",
            hint="name the column: id_column='customer', for example",
        )
    table = form.table(file, config)
    if table is None:
        raise ConfigError(
            f"`long` needs columns, but {file.path} is plain text", hint="leave `long` out"
        )
    found = []
    for name in (columns.id, columns.items or ""):
        column = _column(table, name)
        if column is None:
            raise DataError(
                f"{file.path} has no column named {name!r}",
                hint=hint_of_columns(file, names or [], config, name),
            )
        try:
            found.append(column.cast(pa.large_string()))
        except CONVERSION_ERRORS as error:
            raise DataError(
                f"the column {name!r} of {file.path} is {column.type}, not one value a row: {error}",
                hint="leave `long` out if every row holds a whole set",
            ) from error
    return (found[0], found[1]), columns.id


def _column(table: pa.Table, name: str) -> pa.Array | None:
    parts = [column_at(batch, name) for batch in table.combine_chunks().to_batches()]
    if not parts:
        return pa.array([], pa.large_string()) if name in table.column_names else None
    return None if parts[0] is None else pa.chunked_array(parts).combine_chunks()


def warn_of_long_form(files: Sequence[InputFile], config: Config, watch: Watch) -> None:
    """Warn if the first rows look like sets in long form: ids repeat, and every row has one item."""
    if config.items_column is None or config.long or not len(files) or files[0].reason:
        return
    first = next(read_records(files[0], config), None)
    if first is None:
        return
    ids = first.ids.slice(0, _PROBED_ROWS).drop_null()
    texts = first.texts.slice(0, _PROBED_ROWS)
    if len(ids) < 2 or texts.type != pa.large_string():
        return
    num_items = pc.count_substring(texts, ITEM_END)
    num_ids = len(ids.unique())
    if 2 * num_ids > len(ids) or pc.max(num_items).as_py() != 1:
        return
    watch.warn(
        f"{num_ids:,} ids name {len(ids):,} of the first rows of {files[0].path}, each with one item, "
        "so every row is a set of its own; pass `long` to make one set of the rows with the same id",
        is_urgent=True,
    )
