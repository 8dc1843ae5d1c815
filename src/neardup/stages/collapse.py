"""Stage 2 of 6: documents with equal shingle sets become one class; only its representative goes on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup import schema
from neardup.config import Config


def collapse(sketches: pa.Table, config: Config) -> pa.Table:
    """Name for every row the representative of its class: the one of best keep priority.

    A document without shingles stands for itself, unless `collapse_empty` asks to treat all of them as one class.
    """
    rows = sketches.column("row").to_numpy()
    low, high = sketches.column("digest_low").to_numpy(), sketches.column("digest_high").to_numpy()
    order = np.lexsort((sketches.column("priority").to_numpy(), high, low))
    low, high = low[order], high[order]
    is_first = np.ones(rows.size, np.bool_)
    is_first[1:] = (low[1:] != low[:-1]) | (high[1:] != high[:-1])
    if not config.collapse_empty:
        is_first |= sketches.column("num_shingles").to_numpy()[order] == 0
    representatives = np.empty_like(rows)
    first_of_class = np.maximum.accumulate(np.where(is_first, np.arange(rows.size), 0))
    representatives[order] = rows[order][first_of_class]
    return pa.table([sketches.column("row"), pa.array(representatives)], schema=schema.CLASSES)
