"""Plain text and HTML: one document a file."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from neardup.config import Config
from neardup.io.formats.base import Columns, InputFile, Records, Verdicts
from neardup.io.formats.lines import BOM
from neardup.io.streams import check_unchanged, copy_file, open_input
from neardup.io.values import gather
from neardup.io.values.oversize import Oversize, read_document


def split(file: InputFile) -> list[tuple[int, int]]:
    """Return the file as one span."""
    return [(0, file.size)]


def column_names(file: InputFile, config: Config) -> None:
    """Return None: plain text has no columns."""


def read(file: InputFile, span: tuple[int, int], columns: Columns, config: Config) -> Iterator[Records]:  # noqa: ARG001
    """Read the file as one row."""
    with open_input(file) as stream:
        content = read_document(stream, file, config)
    check_unchanged(file)
    if isinstance(content, Oversize):
        yield gather.oversize_records(content.size, config)
        return
    reason = gather.reason_against_bytes(content)
    texts = [] if reason else [content.removeprefix(BOM)]
    values = gather.Values(rows=range(len(texts)), texts=pa.array(texts, pa.large_binary()).cast(pa.large_string()))
    yield gather.records_of(1, values, [(0, reason)] if reason else [], found=frozenset(), config=config)


def write(file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:  # noqa: ARG001
    """Copy the file if its document is kept; else nothing is written."""
    if verdicts.is_kept.all():
        copy_file(file, target)
        check_unchanged(file)
