"""Which columns of a file are taken, and what a user can do where none fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from neardup.checks import VECTOR_MEASURES
from neardup.config import Config
from neardup.errors import ConfigError, DataError
from neardup.io.formats import registry as formats
from neardup.io.formats.base import MARK_COLUMNS, Columns, InputFile
from neardup.io.sources.in_memory import ID_COLUMNS, TEXT_COLUMNS
from neardup.io.values.contents import dimension_of
from neardup.io.values.vector_columns import VECTOR_COLUMNS


def with_dimension(files: Sequence[InputFile], config: Config) -> Config:
    """Return the settings with the dimension of the first usable vector of all files, where none is set."""
    if config.measure not in VECTOR_MEASURES or config.dimension is not None:
        return config
    for file in files:
        form = formats.load(file.format)
        columns = choose_columns(file, form.column_names(file, config), config)
        for span in form.split(file):
            for records in form.read(file, span, columns, config):
                if len(records.texts):
                    return Config.of(config, dimension=dimension_of(records.texts, config))
    return config


def choose_columns(file: InputFile, names: list[str] | None, config: Config) -> Columns:
    """Return the columns to take of a file; a column that a setting names is taken even where the file lacks it."""
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
            raise ConfigError("the measure 'weighted' compares items", hint="name their column: --items-column")
        asked = config.text_column
        text = (asked,) if isinstance(asked, str) else asked or (_usual_text(file, names),)
    columns = Columns(
        text=text,
        items=config.items_column,
        vector=_vector_column(file, names, config) if is_vector else None,
        id=config.id_column or next((name for name in ID_COLUMNS if name in names), None),
        score=config.keep_column,
        group=config.group_column,
    )
    if config.mark and file.format in ("jsonl", "json", "csv") and MARK_COLUMNS.names[0] in names:
        raise DataError(
            f"{file.path} has the column {MARK_COLUMNS.names[0]!r}: an earlier run has marked it",
            hint="name the file that was marked then, or drop its columns of marks",
        )
    for name in (*columns.text, columns.items, columns.vector, columns.id, columns.score, columns.group):
        if name is not None and names.count(name) > 1:
            raise DataError(f"{file.path} has {names.count(name)} columns named {name!r}", hint="rename all but one")
    return columns


def _vector_column(file: InputFile, names: list[str], config: Config) -> str:
    usual = [name for name in VECTOR_COLUMNS if name in names]
    if config.vector_column is None and not usual and names:
        raise DataError(
            f"{file.path} has no column named {', '.join(VECTOR_COLUMNS)}",
            hint=f"name the one with the vectors: --vector-column {names[0]!r} (the columns are {', '.join(names)})",
        )
    return config.vector_column or (usual or list(VECTOR_COLUMNS))[0]


def _usual_text(file: InputFile, names: list[str]) -> str:
    usual = [name for name in TEXT_COLUMNS if name in names]
    # A file without rows has no columns, and is no reason to stop.
    return usual[0] if usual else _no_text(file, names) if names else TEXT_COLUMNS[0]


def _no_text(file: InputFile, names: list[str]) -> NoReturn:
    raise DataError(
        f"{file.path} has no column named {', '.join(TEXT_COLUMNS)}",
        hint=f"name the one with the text: --text-column {names[0]!r} (the columns are {', '.join(names)})",
    )


def _check_no_columns(file: InputFile, config: Config) -> None:
    named = {
        "text_column": config.text_column,
        "items_column": config.items_column,
        "id_column": config.id_column,
        "keep": config.keep_column,
        "group_column": config.group_column,
    }
    for setting, column in named.items():
        if column is not None:
            raise ConfigError(
                f"`{setting}` names the column {column!r}, but {file.path} is plain text and has no columns",
                hint="leave the setting out, or leave the file out",
            )
    if config.mark:
        raise ConfigError(
            f"`mark` adds columns to every row, but {file.path} is plain text and has no columns to mark",
            hint="leave `mark` out: removed.parquet tells which documents were removed",
        )
