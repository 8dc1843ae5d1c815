"""Documents that are too long: a row longer than `max_document` is rejected; one too long for `memory` fails the run.

Which rows are rejected depends on `max_document` alone, so the output does not depend on `memory`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa

from neardup.config import Config
from neardup.errors import DataError
from neardup.io.columns.rejected_rows import TOO_LONG
from neardup.io.records import BATCH_BYTES, InputFile, text_bytes

# Memory of the process before it reads anything: libraries and compiled kernels.
PROCESS_BYTES: Final = 250 * 10**6
# Bytes of memory per byte of a document: the line, its text, its shingles while they are sorted.
COST: Final = 12
SKIPPED_AT_ONCE: Final = 1 << 18


@dataclasses.dataclass(frozen=True, slots=True)
class Oversize:
    """A row that was skipped because it is longer than `max_document`."""

    size: int


def max_row_bytes(config: Config) -> int:
    """Return the most bytes of one row that are kept in memory; of a longer row, only the length is determined."""
    if config.memory is None:
        return config.max_document
    return min(config.max_document, max(BATCH_BYTES, (config.memory - PROCESS_BYTES) // COST))


def reason_against_size(size: int, config: Config) -> str:
    """Return the reason to reject a row of this length."""
    return f"{size:,} bytes long, more than the {config.max_document:,} {TOO_LONG}"


def passed(size: int, file: InputFile, config: Config) -> Oversize:
    """Return a row that was skipped; raise if it is within `max_document`, but too long for `memory`."""
    if size > config.max_document:
        return Oversize(size)
    needed = PROCESS_BYTES + COST * size
    raise DataError(
        f"{file.path} holds a document of {size:,} bytes, which needs {needed / 1e6:,.0f} MB of memory",
        hint=f"pass memory='{-(-needed // 10**6)}MB' or more, or a smaller `max_document` to reject such documents",
    )


def read_document(stream: BinaryIO, file: InputFile, config: Config) -> bytes | Oversize:
    """Read the rest of a stream as one document."""
    content = stream.read(max_row_bytes(config) + 1)
    if len(content) <= max_row_bytes(config):
        return content
    size = len(content)
    del content
    while skipped := stream.read(SKIPPED_AT_ONCE):
        size += len(skipped)
    return passed(size, file, config)


def read_past_line(stream: BinaryIO) -> int:
    """Skip to the next line; return the number of bytes skipped, without the newline."""
    size = 0
    while skipped := stream.readline(SKIPPED_AT_ONCE):
        size += len(skipped)
        if skipped.endswith(b"\n"):
            return size - 1
    return size


def long_values(texts: pa.Array, config: Config) -> Iterator[tuple[int, str]]:
    """Yield the texts of a column that are too long, with the reason."""
    sizes = text_bytes(texts) if len(texts) else np.empty(0, np.int64)
    for row in np.flatnonzero(sizes > config.max_document).tolist():
        yield row, reason_against_size(int(sizes[row]), config)
