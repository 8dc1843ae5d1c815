"""How many bytes the rows of a Parquet file take once they are decoded, from metadata, pages and dictionaries.

A dictionary stores repeated values once, so decoded rows may take far more than the file says. The
headers of the pages say how many values are dictionary-encoded. If these values could take much
memory, pyarrow reads them once as references to the dictionary, and what they refer to is added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup.io.columns.arrow_rows import opened
from neardup.io.formats.parquet_pages import find_dictionary
from neardup.io.records import BATCH_BYTES, BATCH_ROWS, InputFile
from neardup.io.streams import is_remote

# Without a buffer, a whole column chunk is read ahead: 274 instead of 46 MB for a row group of 1
# GB.
BUFFER_BYTES: Final = 1 << 20
_PROBE_ROWS: Final = 16
# A batch may take four times BATCH_BYTES if all rows have the longest value of a dictionary.
_LONGEST_SHARE: Final = 4
# The cache size of `_longest_known`, which is called when a file is sampled, read and written.
_MAX_KNOWN: Final = 1 << 16
_known: dict[tuple[str, int, str, int, int], int] = {}


def row_bytes(
    file: InputFile, parquet: Any, groups: Sequence[int], names: Sequence[str] | None
) -> float:
    """Estimate the bytes of a decoded row, at least 1, by the row group with the longest rows and by dictionaries."""
    metadata = parquet.metadata
    leaves = [parquet.schema.column(index) for index in range(metadata.num_columns)]
    indices = [
        index
        for index, leaf in enumerate(leaves)
        if names is None
        or any(leaf.path == name or leaf.path.startswith(f"{name}.") for name in names)
    ]
    lists = [leaves[index].path for index in indices if leaves[index].max_repetition_level]
    largest = 1.0
    # The first rows of lists are probed, because the values of a list may be repeated as well.
    if lists and groups:
        first_rows = parquet.iter_batches(
            _PROBE_ROWS, row_groups=[groups[0]], columns=lists, use_threads=False
        )
        probe = next(first_rows, None)
        if probe is not None and probe.num_rows:
            largest = probe.nbytes / probe.num_rows
    with opened(file, "Parquet") as source:
        for number in groups:
            group = metadata.row_group(number)
            num_bytes = sum(group.column(index).total_uncompressed_size for index in indices)
            longest = sum(
                _longest_known(file, parquet, source, number, index)
                for index in indices
                if leaves[index].path not in lists and _has_long_dictionary(group.column(index))
            )
            largest = max(largest, num_bytes / max(group.num_rows, 1), longest / _LONGEST_SHARE)
    return largest


def _has_long_dictionary(chunk: Any) -> bool:
    return bool(chunk.has_dictionary_page) and chunk.physical_type == "BYTE_ARRAY"


def _longest_known(file: InputFile, parquet: Any, source: Any, number: int, index: int) -> int:
    """Return the bytes of the longest value of a dictionary, 0 if little is repeated; remembered."""
    key = file.path, file.size, file.modified, number, index
    longest = _known.get(key)
    if longest is None:
        chunk = parquet.metadata.row_group(number).column(index)
        leaf = parquet.schema.column(index)
        if is_remote(file.path):
            found = None
        else:
            found = find_dictionary(source, chunk)
        longest = 0
        if found is None or found.most_decoded > _LONGEST_SHARE * BATCH_BYTES:
            if found is not None and found.comes_first:
                num_rows = found.num_encoded
            else:
                num_rows = None
            longest = _longest_repeated(file, parquet.metadata, number, leaf.path, num_rows)
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        _known[key] = longest
    return longest


def _longest_repeated(
    file: InputFile, metadata: Any, number: int, path: str, num_rows: int | None
) -> int:
    """Return the bytes of the longest dictionary value of a column of a row group, 0 if little is repeated.

    num_rows: the number of leading rows that refer to the dictionary; None if unknown.
    """
    # Reading one row loads the whole dictionary; rows that do not refer to it would be added to it.
    num_batches = max(1, -(-(num_rows or 1) // BATCH_ROWS))
    batch_rows = (num_rows or 1) // num_batches
    longest = distinct = used = 0
    with opened(file, "Parquet") as source:
        parquet = pq.ParquetFile(
            source,
            metadata=metadata,
            read_dictionary=[path],
            pre_buffer=False,
            buffer_size=BUFFER_BYTES,
        )
        batches = parquet.iter_batches(
            batch_rows, row_groups=[number], columns=[path], use_threads=False
        )
        for column in (batch.column(0) for batch in islice(batches, num_batches)):
            if not pa.types.is_dictionary(column.type):
                return 0
            lengths = pc.binary_length(column.dictionary)
            longest = max(longest, pc.max(lengths).as_py() or 0)
            distinct = max(distinct, pc.sum(lengths).as_py() or 0)
            used += pc.sum(lengths.take(column.indices)).as_py() or 0
    used += longest * ((num_rows or 1) - batch_rows * num_batches)
    if num_rows is not None and used <= distinct + BATCH_BYTES:
        return 0
    return longest
