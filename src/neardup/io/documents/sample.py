"""A sample of files: the first documents of some of them, and the factor to scale up to the whole."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow.parquet as pq

from neardup.config import Config
from neardup.io.columns.arrow_rows import opened
from neardup.io.documents.column_choice import choose_columns, read_records
from neardup.io.documents.text_size import COMPRESSED, PLAIN, num_text_bytes
from neardup.io.formats import registry as formats
from neardup.io.records import Columns, InputFile, Records, text_bytes

# Fewer documents of a large file say little about the rest.
_FEW_DOCUMENTS: Final = 300


class FileSample(NamedTuple):
    """Records sampled from some files.

    All files together hold `scale` times as many rows, `text_scale` times as much text, and
    `read_scale` times as many bytes as were read.
    """

    records: list[Records]
    scale: float
    read_scale: float
    text_scale: float

    @property
    def documents(self) -> int:
        """The estimated number of documents in all files."""
        return round(sum(len(found.texts) for found in self.records) * self.scale)

    @property
    def text_bytes(self) -> int:
        """The estimated bytes of text in all files."""
        return round(_num_bytes(self.records) * self.text_scale)


def sample_files(
    files: Sequence[InputFile], config: Config, *, num_files: int, most_bytes: int, spread: int = 1
) -> FileSample:
    """Sample records of `num_files` files, and of the files after each, up to `most_bytes` of text in total.

    With many small files, this gives runs of consecutive files: near-duplicates are often close to
    each other. Of a large file, up to `spread` times as much is read, and the first records of
    every batch are taken, because the beginning of a file may differ from the rest.
    """
    starts = _evenly_spread(len(files), num_files)
    sampled: list[Records] = []
    covered = read = text = 0.0
    for start in starts:
        left = most_bytes // len(starts)
        for file in files[start : start + starts.step]:
            found = _sample_file(file, config, left, spread)
            covered += file.size * found.share
            text += file.size * found.text_share
            read += file.size * min(1.0, found.share * found.stride)
            sampled += found.records
            left -= _num_bytes(found.records)
            if left <= 0:
                break
    size = sum(file.size for file in files)
    return FileSample(
        records=sampled,
        scale=_scale(size, covered),
        read_scale=_scale(size, read),
        text_scale=_scale(size, text),
    )


def _evenly_spread(num_files: int, most: int) -> range:
    """The positions of about `most` of the files."""
    step = max(1, -(-num_files // most))
    return range(0, num_files, step)


def _scale(size: int, part: float) -> float:
    return max(1.0, size / part) if part else 1.0


def estimate_sizes(
    files: Sequence[InputFile], config: Config, *, num_files: int
) -> tuple[int, int]:
    """Estimate the number of documents and the bytes of text in all files from some of them.

    The metadata of Parquet files has both; decoding a batch of four files took 0.1 s of every
    start.
    """
    if any(file.format != "parquet" for file in files):
        sample = sample_files(files, config, num_files=num_files, most_bytes=1)
        return sample.documents, sample.text_bytes
    num_rows = num_bytes = seen = 0
    for at in _evenly_spread(len(files), num_files):
        file_rows, file_bytes = _recorded_sizes(files[at], config)
        num_rows += file_rows
        num_bytes += file_bytes
        seen += files[at].size
    scale = sum(file.size for file in files) / max(1, seen)
    return round(num_rows * scale), round(num_bytes * scale)


def _recorded_sizes(file: InputFile, config: Config) -> tuple[int, int]:
    """The rows and the bytes of text of a Parquet file, according to its metadata."""
    columns = choose_columns(file, formats.load(file.format).column_names(file, config), config)
    return _num_rows(file), num_text_bytes(file, columns.text)


class _Sampled(NamedTuple):
    """Records of a file: `share` of its rows, `text_share` of its text, one in `stride` of the records read."""

    records: list[Records]
    share: float
    stride: int
    text_share: float


def _sample_file(file: InputFile, config: Config, most_bytes: int, spread: int) -> _Sampled:
    columns = choose_columns(file, formats.load(file.format).column_names(file, config), config)
    stride = min(spread, max(1, num_text_bytes(file, columns.text) // max(most_bytes, 1)))
    found: list[Records] = []
    size = num_documents = 0
    batches = read_records(file, config, columns)
    for records in batches:
        taken = records
        if stride > 1:
            taken = _first_of(records, -(-records.num_rows // stride))
        found.append(taken)
        size += _num_bytes([taken])
        num_documents += len(taken.texts)
        # One long document is not a sample, unless a very small one is requested.
        is_sample = num_documents >= _FEW_DOCUMENTS or spread == 1 or size >= spread * most_bytes
        if size >= most_bytes and is_sample:
            is_whole = stride == 1 and next(batches, None) is None
            return _sampled(file, found, columns, stride, is_whole=is_whole)
    return _sampled(file, found, columns, stride, is_whole=stride == 1)


def _sampled(
    file: InputFile, found: list[Records], columns: Columns, stride: int, *, is_whole: bool
) -> _Sampled:
    """Estimate the share of a file in rows and in text; one long document among few rows makes them differ widely."""
    share = text_share = _share(file, found, is_whole=is_whole)
    if file.format == "parquet" and not is_whole:
        text_share = min(1.0, _num_bytes(found) / max(1, num_text_bytes(file, columns.text)))
    return _Sampled(found, share, stride, text_share)


def _first_of(records: Records, num_rows: int) -> Records:
    """The first rows of some records."""
    stop = int(np.searchsorted(records.rows, num_rows))
    return dataclasses.replace(
        records,
        num_rows=num_rows,
        rows=records.rows[:stop],
        texts=records.texts[:stop],
        ids=records.ids[:stop],
        scores=None if records.scores is None else records.scores[:stop],
        groups=None if records.groups is None else records.groups[:stop],
        common=None if records.common is None else records.common[:stop],
        rejected=[(row, reason) for row, reason in records.rejected if row < num_rows],
    )


def _num_bytes(records: Sequence[Records]) -> int:
    return sum(int(text_bytes(found.texts).sum()) for found in records)


def _share(file: InputFile, found: Sequence[Records], *, is_whole: bool) -> float:
    """The share of the file that the records are: all of it, the share of its rows, or an estimate from their text."""
    if is_whole or not file.size:
        return 1.0
    if file.format == "parquet":
        num_read = sum(records.num_rows for records in found)
        return num_read / max(1, _num_rows(file))
    bytes_a_byte = COMPRESSED if file.compression else PLAIN
    return min(1.0, _num_bytes(found) * bytes_a_byte / file.size)


def _num_rows(file: InputFile) -> int:
    """The rows of a Parquet file."""
    with opened(file, "Parquet") as source:
        return int(pq.ParquetFile(source).metadata.num_rows)
