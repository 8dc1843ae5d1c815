"""A sample of files: the first documents of some of them, and the factor to scale up to the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow.parquet as pq

from neardup.config import Config
from neardup.io.formats import registry as formats
from neardup.io.formats.base import InputFile, Records, text_bytes
from neardup.io.sources.column_choice import choose_columns
from neardup.io.values.arrow_rows import opened

# Bytes of a file for a byte of text: compressed, or with the marks of a format around it.
_COMPRESSED: Final = 0.25
_PLAIN: Final = 1.05


class FileSample(NamedTuple):
    """Records of some files; all files together hold `scale` times as much."""

    records: list[Records]
    scale: float

    @property
    def documents(self) -> int:
        """About how many documents all files hold."""
        return round(sum(len(found.texts) for found in self.records) * self.scale)

    @property
    def text_bytes(self) -> int:
        """About how many bytes of text all files hold."""
        return round(sum(int(text_bytes(found.texts).sum()) for found in self.records) * self.scale)


def sample_files(files: Sequence[InputFile], config: Config, *, num_files: int, most_bytes: int) -> FileSample:
    """Read the first records of at most `num_files` files, until they hold `most_bytes` of text together."""
    chosen = list(files)[:: max(1, -(-len(files) // num_files))]
    sampled: list[Records] = []
    covered = 0.0
    for file in chosen:
        found, is_whole = _first_records(file, config, most_bytes // len(chosen))
        covered += file.size * _share(file, found, is_whole=is_whole)
        sampled += found
    size = sum(file.size for file in files)
    return FileSample(sampled, size / covered if covered else 1.0)


def _first_records(file: InputFile, config: Config, most_bytes: int) -> tuple[list[Records], bool]:
    """The first records of a file up to so many bytes of text, and whether they are all of them."""
    form = formats.load(file.format)
    columns = choose_columns(file, form.column_names(file, config), config)
    found, size = [], 0
    batches = (records for span in form.split(file) for records in form.read(file, span, columns, config))
    for records in batches:
        found.append(records)
        size += int(text_bytes(records.texts).sum())
        if size >= most_bytes:
            return found, next(batches, None) is None
    return found, True


def _share(file: InputFile, found: Sequence[Records], *, is_whole: bool) -> float:
    """How much of the file its first records are: all of it, so many of its rows, or what their text makes likely."""
    if is_whole or not file.size:
        return 1.0
    if file.format == "parquet":
        with opened(file, "Parquet") as source:
            num_rows = pq.ParquetFile(source).metadata.num_rows
        return float(sum(records.num_rows for records in found) / max(1, num_rows))
    size = sum(int(text_bytes(records.texts).sum()) for records in found)
    return min(1.0, size * (_COMPRESSED if file.compression else _PLAIN) / file.size)
