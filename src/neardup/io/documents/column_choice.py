"""The choice of columns of a file, and a hint if none fits."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import Final, NoReturn

import pyarrow as pa

from neardup.config import Config
from neardup.config.checks import VECTOR_MEASURES
from neardup.config.setting_types import Settings
from neardup.errors import ConfigError, DataError
from neardup.io.columns.column_checks import likeliest_text, named_columns
from neardup.io.columns.common_groups import URL_COLUMN
from neardup.io.columns.contents import dimension_of
from neardup.io.columns.vector_columns import VECTOR_COLUMNS
from neardup.io.documents.in_memory import ID_COLUMNS, TEXT_COLUMNS
from neardup.io.formats import registry as formats
from neardup.io.records import MARK_COLUMNS, Columns, InputFile, Records

# Delimiters other than a comma.
_DELIMITERS: Final = (";", "\t", "|", ",")
# How much of a file is read to guess which column holds prose.
_SAMPLED_COLUMNS: Final = 50
_SAMPLED_ROWS: Final = 1000


def with_dimension(files: Sequence[InputFile], config: Config) -> Config:
    """Return the settings with the dimension of the first usable vector of all files, unless it is set."""
    if config.measure not in VECTOR_MEASURES or config.dimension is not None:
        return config
    first_rejected = None
    for file in files:
        num_rows = 0
        for records in read_records(file, config):
            if len(records.texts):
                return Config.of(config, dimension=dimension_of(records.texts, config))
            if records.rejected and first_rejected is None:
                row, reason = min(records.rejected)
                first_rejected = f"{file.path} row {num_rows + row + 1}: {reason}"
            num_rows += records.num_rows
    if first_rejected is not None and config.measure == "hamming" and config.distance is not None:
        raise DataError(  # otherwise the error would be about the number of bits, although there are no vectors
            f"no row has a usable vector; the first is {first_rejected}",
            hint="name the column with the vectors in `vector_column`, and pass packed=True if they are packed bits",
        )
    return config


def read_records(
    file: InputFile, config: Config, columns: Columns | None = None
) -> Iterator[Records]:
    """Read a file from its beginning, batch by batch; without `columns`, those that the settings choose."""
    form = formats.load(file.format)
    columns = columns or choose_columns(file, form.column_names(file, config), config)
    for span in form.split(file):
        yield from form.read(file, span, columns, config)


def choose_columns(
    file: InputFile, names: list[str] | None, config: Config, others: tuple[str, ...] = ()
) -> Columns:
    """Return the columns to use from a file; a column named by a setting is included even if the file lacks it.

    others: further columns to read, of any type.
    """
    if file.reason:  # nothing is read of it
        return Columns(text=())
    if names is None:
        _check_no_columns(file, config)
        if config.measure in VECTOR_MEASURES:
            raise ConfigError(
                f"the measure {config.measure!r} compares vectors, but {file.path} is plain text",
                hint="put them in a Parquet, JSON Lines or CSV file",
            )
        return Columns(text=())
    text: tuple[str, ...] = ()
    is_vector = config.measure in VECTOR_MEASURES
    if config.items_column is None and not is_vector:
        if config.measure == "weighted":
            raise ConfigError(
                "the measure 'weighted' compares items", hint="name their column in `items_column`"
            )
        asked = config.text_column
        if isinstance(asked, str):
            text = (asked,)
        else:
            text = asked or (_usual_text(file, names, config),)
    usual_id = next((name for name in ID_COLUMNS if name in names), None)
    columns = Columns(
        text=text,
        items=config.items_column,
        vector=_vector_column(file, names, config) if is_vector else None,
        id=config.id_column or usual_id,
        score=config.keep_column,
        group=config.group_column,
        common=_common_column(names, config),
        others=others,
    )
    if config.mark and file.format in ("jsonl", "json", "csv") and MARK_COLUMNS.names[0] in names:
        raise DataError(
            f"{file.path} has the column {MARK_COLUMNS.names[0]!r}, written by an earlier run with mark=True",
            hint="use the unmarked file, or drop the mark columns",
        )
    for name in (
        *columns.text,
        columns.items,
        columns.vector,
        columns.id,
        columns.score,
        columns.group,
        columns.common,
        *others,
    ):
        if name is not None and names.count(name) > 1:
            raise DataError(
                f"{file.path} has {names.count(name)} columns named {name!r}",
                hint="rename all but one",
            )
    return columns


def of_references(config: Config) -> Config:
    """Return the settings with the columns of the documents of `against`."""
    named: Settings = {}
    if config.against_text_column is not None:
        named["text_column"] = config.against_text_column
    if config.against_items_column is not None:
        named["items_column"] = config.against_items_column
    if config.against_id_column is not None:
        named["id_column"] = config.against_id_column
    if not named:
        return config
    return Config.of(config, **named)


def choose_reference_columns(
    file: InputFile, names: list[str] | None, config: Config, others: tuple[str, ...] = ()
) -> Columns:
    """Return the columns to use from a file of `against`."""
    try:
        return choose_columns(file, names, of_references(config), others)
    except (ConfigError, DataError) as error:
        raise type(error)(
            of_reference_settings(str(error).partition("\n\nhint: ")[0]),
            hint=None if error.hint is None else of_reference_settings(error.hint),
        ) from error


def of_reference_settings(message: str) -> str:
    """Name the settings of `against` in a message about its columns, instead of those of the input."""
    return re.sub(r"\b(?=(text|items|id)_column)", "against_", message)


def _common_column(names: list[str], config: Config) -> str | None:
    """Return the column that groups documents for their common shingles; None if the id does, or nothing."""
    if config.common_by == "host":
        return URL_COLUMN if URL_COLUMN in names else None
    return config.common_column


def _vector_column(file: InputFile, names: list[str], config: Config) -> str:
    usual = [name for name in VECTOR_COLUMNS if name in names]
    if config.vector_column is None and not usual and names:
        raise DataError(
            f"{file.path} has no column named {', '.join(VECTOR_COLUMNS)}",
            hint=f"name the one with the vectors: vector_column={names[0]!r} (the columns are {', '.join(names)})",
        )
    return config.vector_column or (usual or list(VECTOR_COLUMNS))[0]


def _usual_text(file: InputFile, names: list[str], config: Config) -> str:
    usual = [name for name in TEXT_COLUMNS if name in names]
    # A file without rows has no columns, which is not an error.
    if usual:
        return usual[0]
    if names:
        return _no_text(file, names, config)
    return TEXT_COLUMNS[0]


def _no_text(file: InputFile, names: list[str], config: Config) -> NoReturn:
    raise DataError(
        f"{file.path} has no column named {', '.join(TEXT_COLUMNS)}",
        hint=hint_of_columns(file, names, config),
    )


def hint_of_columns(file: InputFile, names: list[str], config: Config, missing: str = "") -> str:
    """Return a hint for a column that a file lacks: the requested column `missing`, or else the text column."""
    other = _other_delimiter(file, names, config)
    if other is not None:
        return f"the header looks separated by {other!r}: pass delimiter={other!r}"
    if names:
        known = f"the columns are {', '.join(names)}"
    else:
        known = "the file has no columns"
    if near := difflib.get_close_matches(missing, names, n=1):
        return f"did you mean {near[0]!r}? ({known})"
    if missing:
        return f"{known}, in the first file, {file.path}"
    likely = likeliest_text(_first_texts(file, names, config))
    return f"name the one with the text: text_column={likely or names[0]!r} ({known})"


def _other_delimiter(file: InputFile, names: list[str], config: Config) -> str | None:
    """Return the likely delimiter of a CSV file whose header was read as one column."""
    if file.format != "csv" or len(names) != 1 or config.delimiter is not None:
        return None
    return next((mark for mark in _DELIMITERS if mark in names[0]), None)


def _first_texts(
    file: InputFile, names: list[str], config: Config
) -> Iterator[tuple[str, pa.Array]]:
    """Iterate over the text columns of a file, with the text of the first rows."""
    plain = Config(
        format=config.format,
        encoding=config.encoding,
        delimiter=config.delimiter,
        memory=config.memory,
    )
    for name in dict.fromkeys(names[:_SAMPLED_COLUMNS]):
        batches = read_records(file, plain, Columns(text=(name,)))
        if names.count(name) == 1 and (first := next(batches, None)) is not None:
            yield name, first.texts.slice(0, _SAMPLED_ROWS)


def _check_no_columns(file: InputFile, config: Config) -> None:
    for setting, column in named_columns(config):
        raise ConfigError(
            f"`{setting}` names the column {column!r}, but {file.path} is plain text or WARC and has no columns",
            hint="lines=True with size=1 compares every line as a set of words"
            if setting == "items_column"
            else "leave the setting out, or leave the file out",
        )
    if config.mark:
        raise ConfigError(
            f"`mark` adds columns to every row, but {file.path} is plain text and has no columns to mark",
            hint="leave `mark` out: removed.parquet lists the removed documents",
        )
