"""Stage 3 of 6: documents that share a bucket are linked, each to the smallest row of the bucket."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup import schema
from neardup.kernels import bands


def link(band: pa.RecordBatch) -> pa.RecordBatch:
    """Turn the rows and keys of a band into a star per bucket; a bucket of one gives nothing."""
    rows, keys = (column.to_numpy() for column in band.columns)
    linked, smallest = np.empty_like(rows), np.empty_like(rows)
    count = bands.star_links(keys.view(np.uint64), rows, linked, smallest)
    return pa.record_batch([pa.array(linked[:count]), pa.array(smallest[:count])], schema=schema.LINKS)
