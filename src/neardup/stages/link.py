"""Stage 3 of 6: documents that share a bucket are linked, each to the smallest row of the bucket."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup import schema
from neardup.kernels import bands


def link(band: pa.RecordBatch) -> pa.RecordBatch:
    """Turn the (row, key) of whole buckets into a star per bucket; a bucket of one gives nothing."""
    rows = band.column("row").to_numpy()
    smallest = np.empty_like(rows)
    bands.star_links(band.column("key").to_numpy().view(np.uint64), rows, smallest)
    is_linked = smallest != rows
    return pa.record_batch([pa.array(rows[is_linked]), pa.array(smallest[is_linked])], schema=schema.LINKS)


def take_band(sketches: pa.Table, number: int) -> pa.RecordBatch:
    """Return the rows and keys of one band."""
    keys = [
        chunk.flatten().to_numpy().reshape(len(chunk), -1)[:, number]
        for chunk in sketches.column("keys").chunks
        if len(chunk)
    ]
    rows = schema.one_array(sketches.column("row"))
    return pa.record_batch([rows, pa.array(np.concatenate([*keys, np.empty(0, np.int64)]))], schema=schema.BAND)
