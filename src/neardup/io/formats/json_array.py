"""JSON arrays of objects, one row per element. A file is parsed in memory as a whole, to find its elements."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import msgspec
import pyarrow as pa

from neardup.config import MIN_MEMORY, Config
from neardup.errors import DataError
from neardup.io.columns import gather
from neardup.io.columns.oversize import PROCESS_BYTES
from neardup.io.formats import jsonl
from neardup.io.formats.base import one_span
from neardup.io.formats.lines import BOM
from neardup.io.free_memory import free_bytes
from neardup.io.records import BATCH_BYTES, BATCH_ROWS, Columns, InputFile, Records, Verdicts
from neardup.io.streams import check_unchanged, copy_file, open_input, open_output_like

split = one_span
# Bytes of memory per byte of an array: the array itself, its elements, and a batch of them.
_COST: Final = 4


def column_names(file: InputFile, config: Config) -> list[str]:
    """Return the columns of the first elements, in order of appearance."""
    return jsonl.names_in(_elements(file, config)[: jsonl.NUM_SAMPLE_ROWS])


def read(
    file: InputFile,
    span: tuple[int, int],  # noqa: ARG001
    columns: Columns,
    config: Config,
) -> Iterator[Records]:
    """Read the elements, batch by batch."""
    rows = jsonl.Rows(columns, config)
    for group in _groups(_elements(file, config), config):
        if len(group[0]) > config.max_document:
            yield gather.oversize_records(len(group[0]), config)
        else:
            yield rows.records(group, config, is_valid=all(map(gather.is_utf8, group)))
    check_unchanged(file)


def table(file: InputFile, config: Config, *, without: Collection[str] = ()) -> pa.Table:
    """Return all elements with all columns but some."""
    return jsonl.objects(_elements(file, config), without)


def write(file: InputFile, target: str, verdicts: Verdicts, config: Config) -> None:
    """Write an array of the kept elements byte for byte; with config.mark, all documents with marks."""
    if verdicts.leaves_all and not config.mark:
        copy_file(file, target)
        check_unchanged(file)
        return
    elements = _elements(file, config)
    if config.mark:
        marks = jsonl.marks_of(verdicts, 0, len(elements))
        written = [jsonl.with_mark(elements[row], marks[row]) for row in sorted(marks)]
    else:
        rows = verdicts.is_kept.nonzero()[0].tolist()
        written = [elements[row] for row in rows]
        if verdicts.edits is not None:
            written = jsonl.edited_objects(written, rows, verdicts.edits)
    with open_output_like(file, target) as output:
        output.write(b"[")
        for number, element in enumerate(written):
            output.write(b",\n" if number else b"\n")
            output.write(element)
        output.write(b"\n]\n")
    check_unchanged(file)


def _elements(file: InputFile, config: Config) -> list[bytes]:
    """Return the bytes of every element."""
    content = _content(file, config)
    try:
        return [bytes(element) for element in msgspec.json.decode(content, type=list[msgspec.Raw])]
    except (msgspec.DecodeError, RecursionError) as error:
        raise DataError(
            f"{file.path} is not a readable JSON array: {str(error).removeprefix('JSON is malformed: ')}",
            hint="repair it, or pass format='jsonl' if it holds one object per line",
        ) from error


def _content(file: InputFile, config: Config) -> bytes:
    limit = config.memory or max(MIN_MEMORY, free_bytes() // 2)  # the default limit of a run
    most = (limit - PROCESS_BYTES) // _COST
    with open_input(file) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        needed = PROCESS_BYTES + _COST * max(file.size, len(content))
        raise DataError(
            f"{file.path} is a JSON array, which must fit in memory: it takes more than {limit:,} bytes",
            hint=f"pass memory='{-(-needed // 10**6)}MB' or more, or rewrite it as JSON Lines, as with jq -c '.[]'",
        )
    return content.removeprefix(BOM)


def _groups(elements: list[bytes], config: Config) -> Iterator[list[bytes]]:
    """Split elements into runs of about BATCH_BYTES; a longer one, or one that is too long, is a run of its own."""
    most = min(BATCH_BYTES, config.max_document)
    first = size = 0
    for row, element in enumerate(elements):
        is_full = (
            size > most
            or size + len(element) > BATCH_BYTES
            or len(element) > most
            or row - first == BATCH_ROWS
        )
        if row > first and is_full:
            yield elements[first:row]
            first = row
            size = 0
        size += len(element)
    if elements:
        yield elements[first:]
