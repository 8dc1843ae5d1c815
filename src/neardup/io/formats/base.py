"""The interface of a file format: what it reads and writes.

A format is a module of this folder with the five functions of `Format`; `registry.py` lists them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Protocol

import pyarrow as pa

from neardup.config import Config
from neardup.io.records import Columns, InputFile, Records, Verdicts


class Format(Protocol):
    """A file format. `read` and `write` must count rows alike."""

    def split(self, file: InputFile) -> list[tuple[int, int]]:
        """Split a file into spans of about PART_BYTES that can be read independently; each format has its own unit."""

    def column_names(self, file: InputFile, config: Config) -> list[str] | None:
        """Return the columns of the file (of its first rows, if rows differ); None for a format without columns."""

    def read(
        self, file: InputFile, span: tuple[int, int], columns: Columns, config: Config
    ) -> Iterator[Records]:
        """Read the rows that begin in a span, batch by batch."""

    def table(
        self, file: InputFile, config: Config, *, without: Collection[str] = ()
    ) -> pa.Table | None:
        """Return all rows with all columns but some, blank and bad rows as nulls; None for a format without columns."""

    def write(self, file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:
        """Write the kept rows of a file to `target`, unchanged; with config.mark, all documents with marks."""


def one_span(file: InputFile) -> list[tuple[int, int]]:
    """Return a file as one span: how a format splits that can only be read from the beginning."""
    return [(0, file.size)]


def no_columns(file: InputFile, config: Config, *, without: Collection[str] = ()) -> None:
    """Return None: the column names, and the table, of a format without columns."""
