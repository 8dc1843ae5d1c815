"""What a folder holds but cannot be read, such as a broken link: one rejected row each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from neardup.config import Config
from neardup.io.columns import gather
from neardup.io.formats.base import no_columns, one_span
from neardup.io.records import Columns, InputFile, Records, Verdicts

NAME: Final = "unread"
split = one_span
column_names = no_columns
table = no_columns


def read(
    file: InputFile,
    span: tuple[int, int],  # noqa: ARG001
    columns: Columns,  # noqa: ARG001
    config: Config,
) -> Iterator[Records]:
    """Return the file as one rejected row."""
    values = gather.Values(rows=[], texts=gather.text_array([], config))
    rejected = [(0, file.reason)]
    yield gather.records_of(1, values, rejected, found=frozenset(), config=config)


def write(file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:
    """Write nothing: there is no row to keep."""
