"""An estimate of the amount of text in a file, before it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow.parquet as pq

from neardup.io.columns.arrow_rows import opened
from neardup.io.records import InputFile

# Bytes of a file per byte of text: compressed, or with the markup of a format.
COMPRESSED: Final = 0.25
PLAIN: Final = 1.05


def num_text_bytes(file: InputFile, columns: Sequence[str] = ()) -> int:
    """Estimate how many bytes of text a file holds, in these columns if the file records it, else in all."""
    if file.format != "parquet":
        return round(file.size / (COMPRESSED if file.compression else PLAIN))
    with opened(file, "Parquet") as source:
        metadata = pq.ParquetFile(source).metadata
    chunks = (
        metadata.row_group(group).column(column)
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    )
    named = [
        (chunk.path_in_schema.partition(".")[0], chunk.total_uncompressed_size) for chunk in chunks
    ]
    wanted = [size for name, size in named if name in columns]
    return sum(wanted or [size for _, size in named])
