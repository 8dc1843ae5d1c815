"""Documents that are too long: past `max_document` a row is rejected, past what `memory` holds the run fails.

Which rows are rejected depends on `max_document` alone, so that the output does not depend on memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import BinaryIO, Final

import numpy as np
import pyarrow as pa

from neardup.config import Config
from neardup.errors import DataError
from neardup.io.formats.base import BATCH_BYTES, InputFile, text_bytes

# What the process holds before it reads: the libraries and the compiled kernels.
PROCESS_BYTES: Final = 250 * 10**6
# Bytes that a document takes on its way, a byte of it: the line, its text, its shingles while they are sorted.
COST: Final = 12
SKIPPED_AT_ONCE: Final = 1 << 18


@dataclasses.dataclass(frozen=True, slots=True)
class Oversize:
    """One row that was read past because it is longer than `max_document`."""

    size: int


def most_held(config: Config) -> int:
    """Return how many bytes of one row may be held; of a longer one only the length is found out."""
    if config.memory is None:
        return config.max_document
    return min(config.max_document, max(BATCH_BYTES, (config.memory - PROCESS_BYTES) // COST))


def reason_against_size(size: int, config: Config) -> str:
    """Say why a row is rejected for its length."""
    return f"{size:,} bytes long, more than the {config.max_document:,} that max_document allows"


def passed(size: int, file: InputFile, config: Config) -> Oversize:
    """Return a row that was read past; raise if it is no longer than `max_document`, but than what memory holds."""
    if size > config.max_document:
        return Oversize(size)
    needed = PROCESS_BYTES + COST * size
    raise DataError(
        f"{file.path} holds a document of {size:,} bytes, which takes {needed / 1e6:,.0f} MB of memory to work on",
        hint=f"pass --memory {-(-needed // 10**6)}MB or more, or a smaller --max-document to set such documents aside",
    )


def read_document(stream: BinaryIO, file: InputFile, config: Config) -> bytes | Oversize:
    """Read the rest of a stream as one document."""
    content = stream.read(most_held(config) + 1)
    if len(content) <= most_held(config):
        return content
    size = len(content)
    del content
    while skipped := stream.read(SKIPPED_AT_ONCE):
        size += len(skipped)
    return passed(size, file, config)


def read_past_line(stream: BinaryIO) -> int:
    """Go to the next line and return how many bytes that took, without the newline."""
    size = 0
    while skipped := stream.readline(SKIPPED_AT_ONCE):
        size += len(skipped)
        if skipped.endswith(b"\n"):
            return size - 1
    return size


def long_values(texts: pa.Array, config: Config) -> Iterator[tuple[int, str]]:
    """Tell which texts of a column are too long, and the reason against each."""
    sizes = text_bytes(texts) if len(texts) else np.empty(0, np.int64)
    for row in np.flatnonzero(sizes > config.max_document).tolist():
        yield row, reason_against_size(int(sizes[row]), config)
