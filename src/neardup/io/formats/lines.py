"""Plain text with one document per line (`lines`), and what it shares with JSON Lines: lines as rows, in byte spans."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.config import Config
from neardup.io import records
from neardup.io.columns import gather
from neardup.io.columns.oversize import (
    SKIPPED_AT_ONCE,
    Oversize,
    max_row_bytes,
    passed,
    read_past_line,
)
from neardup.io.formats.base import no_columns
from neardup.io.records import Columns, Edits, InputFile, Records, Verdicts
from neardup.io.streams import check_unchanged, copy_file, open_input, open_output_like

column_names = table = no_columns
BOM: Final = b"\xef\xbb\xbf"
# Bytes per read and write, which stay in the cache of a core.
_COPIED_AT_ONCE: Final = 1 << 20
# Returns what to write for a block of lines, given the bounds of the lines and the row of the
# first.
Render = Callable[[bytes, npt.NDArray[np.int64], int], bytes]
# Returns lines with the changes of their rows.
EditLines = Callable[[list[bytes], list[int], Edits], list[bytes]]


def split(file: InputFile) -> list[tuple[int, int]]:
    """Split a file into byte spans of about equal size; a compressed or encoded file is one span."""
    if file.is_one_stream:
        count = 1
    else:
        count = max(1, -(-file.size // records.PART_BYTES))
    bounds = [file.size * part // count for part in range(count + 1)]
    return list(itertools.pairwise(bounds))


def read(
    file: InputFile,
    span: tuple[int, int],
    columns: Columns,  # noqa: ARG001
    config: Config,
) -> Iterator[Records]:
    """Read the lines that begin in a span, batch by batch."""
    for block in line_blocks(file, span, config):
        if isinstance(block, Oversize):
            yield gather.oversize_records(block.size, config)
            continue
        is_valid = gather.is_utf8(block)
        for lines in row_groups(block):
            rejected = [] if is_valid else broken_lines(lines, config)
            broken = {row for row, _ in rejected}
            rows = [row for row, line in enumerate(lines) if line.strip() and row not in broken]
            texts = pa.array([lines[row].removesuffix(b"\r") for row in rows], pa.large_binary())
            values = gather.Values(rows=rows, texts=texts.cast(pa.large_string()))
            yield gather.records_of(len(lines), values, rejected, found=frozenset(), config=config)
    check_unchanged(file)


def write(file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:
    """Write the kept lines byte for byte, or with the changes of the run."""
    if verdicts.edits is not None and not verdicts.edits.is_empty:
        write_edited(file, target, verdicts, config, _edited_lines)
        return
    write_kept(file, target, verdicts, config)


def _edited_lines(group: list[bytes], rows: list[int], edits: Edits) -> list[bytes]:
    """Return lines with the changes of their rows."""
    changed = set(edits.touched(rows[0], rows[-1] + 1)) if rows else set()
    touched = [at for at, row in enumerate(rows) if row in changed]
    bare = [group[at].rstrip(b"\r\n") for at in touched]
    new = edits.cut([rows[at] for at in touched], [line.decode() for line in bare])
    written = list(group)
    for at, line, text in zip(touched, bare, new, strict=True):
        written[at] = text.encode() + group[at][len(line) :]
    return written


def write_edited(
    file: InputFile, target: str, verdicts: Verdicts, config: Config, edited: EditLines
) -> None:
    """Write the lines of kept rows with the changes of the run."""
    edits = verdicts.edits
    if edits is None:
        raise ValueError("the verdicts have no edits")

    def render(block: bytes, bounds: npt.NDArray[np.int64], first: int) -> bytes:
        rows = (np.flatnonzero(verdicts.is_kept[first : first + len(bounds) - 1]) + first).tolist()
        group = [block[bounds[row - first] : bounds[row - first + 1]] for row in rows]
        return b"".join(edited(group, rows, edits))

    write_rendered(file, target, render, config)


def line_blocks(
    file: InputFile, span: tuple[int, int], config: Config
) -> Iterator[bytes | Oversize]:
    """Yield the lines that begin in a span as blocks of whole lines; lines that are too long are skipped.

    A BOM at the start of the file is dropped.
    """
    start, stop = (0, sys.maxsize) if file.is_one_stream else span
    most = max_row_bytes(config)
    with open_input(file) as stream:
        offset = _first_line(stream, start, stop)
        while offset < stop and (block := stream.read(min(records.BATCH_BYTES, stop - offset))):
            oversize = None
            if not block.endswith(b"\n"):
                block += stream.readline(len(BOM) + most + 1)
            is_first = offset == 0
            offset = offset + len(block)
            if is_first:
                block = block.removeprefix(BOM)
            begin = block.rfind(b"\n") + 1
            if len(block) - begin > most:  # a line that may continue
                skipped = read_past_line(stream)
                offset += skipped + 1
                size = len(block) - begin + skipped
                block = block[:begin]
                oversize = passed(size, file, config)
            yield from _without_long_lines(block, config)
            if oversize is not None:
                yield oversize


def _without_long_lines(block: bytes, config: Config) -> Iterator[bytes | Oversize]:
    """Remove lines longer than `max_document` from a block."""
    if len(block) <= config.max_document:
        if block:
            yield block
        return
    bounds = line_bounds(block)
    sizes = np.diff(bounds) - 1
    sizes[-1] += not block.endswith(b"\n")
    first = 0
    for row in np.flatnonzero(sizes > config.max_document).tolist():
        if bounds[row] > first:
            yield block[first : bounds[row]]
        yield Oversize(int(sizes[row]))
        first = int(bounds[row + 1])
    if first < len(block):
        yield block[first:]


def line_bounds(block: bytes) -> npt.NDArray[np.int64]:
    """Return the start of every line of a block, and the end of the last one."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
    if block.endswith(b"\n"):
        bounds: npt.NDArray[np.int64] = np.r_[0, ends]
    else:
        bounds = np.r_[0, ends, len(block)]
    return bounds


def _first_line(stream: BinaryIO, start: int, stop: int) -> int:
    """Seek to the first line that begins at or after `start`; return its offset, or `stop` if none begins before it."""
    if start == 0:
        return 0
    # The newline before a line that begins at `start` is one byte back.
    offset = stream.seek(start - 1)
    while offset < stop and (skipped := stream.readline(min(SKIPPED_AT_ONCE, stop - offset))):
        offset += len(skipped)
        if skipped.endswith(b"\n"):
            return offset
    return stop


def row_groups(block: bytes) -> Iterator[list[bytes]]:
    """Yield the lines of a block without newlines, at most MAX_ROWS at a time."""
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    for first in range(0, len(lines), gather.MAX_ROWS):
        yield lines[first : first + gather.MAX_ROWS]


def broken_lines(lines: list[bytes], config: Config) -> list[tuple[int, str]]:
    """Return the lines that are not in the encoding of the file, with the reason."""
    return [
        (row, reason)
        for row, line in enumerate(lines)
        if (reason := gather.reason_against_bytes(line, config))
    ]


def write_kept(file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:  # noqa: ARG001
    """Write the lines of kept rows byte for byte, and no BOM."""
    has_bom = _has_bom(file)
    if verdicts.is_kept.all() and not has_bom:
        copy_file(file, target)
        check_unchanged(file)
        return
    # One extra row, not kept, for anything after the last newline.
    is_kept = np.append(verdicts.is_kept, False)
    buffer = bytearray(_COPIED_AT_ONCE)
    row = 0
    view = memoryview(buffer)
    values = np.frombuffer(buffer, np.uint8)
    with open_input(file) as stream, open_output_like(file, target) as output:
        stream.read(len(BOM) * has_bom)
        while size := stream.readinto(buffer):
            ends = np.flatnonzero(values[:size] == ord("\n")) + 1
            own = is_kept[row : row + ends.size + 1]
            # Consecutive kept lines are written as one slice: `runs` has the bounds of these
            # slices.
            bounds = np.r_[0, ends, size]
            runs = bounds[
                np.flatnonzero(np.diff(own.astype(np.int8), prepend=0, append=0))
            ].reshape(-1, 2)
            output.write(b"".join([view[begin:end] for begin, end in runs.tolist()]))
            row += ends.size
    check_unchanged(file)


def write_rendered(file: InputFile, target: str, render: Render, config: Config) -> None:
    """Write what `render` returns for each block of lines; lines that were too long are left out."""
    first = 0
    with open_output_like(file, target) as output:
        for block in line_blocks(file, (0, file.size), config):
            if isinstance(block, Oversize):
                first += 1
                continue
            bounds = line_bounds(block)
            output.write(render(block, bounds, first))
            first += len(bounds) - 1
    check_unchanged(file)


def _has_bom(file: InputFile) -> bool:
    with open_input(file) as stream:
        return stream.read(len(BOM)) == BOM
